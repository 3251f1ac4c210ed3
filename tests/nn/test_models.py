"""Models that other libraries shard, offload or extend are refused with the way to convert them."""

import pytest

from pyspar import InputError
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


class FSDPModule:
    """The mixin that ``fully_shard`` adds to the class of a module."""


class FSDPLinear(FSDPModule, nn.Linear):
    pass


class FullyShardedDataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


class OffloadHook:
    offload = True


class LoraLinear(nn.Module):
    """A linear layer with an adapter, as in peft."""

    def __init__(self, base):
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.ModuleDict({"default": nn.Linear(base.in_features, 2, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(2, base.out_features, bias=False)})

    def forward(self, x):
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))


class SequenceClassifier(nn.Module):
    """A causal language model that scores every token and returns the score of the last one."""

    def __init__(self):
        super().__init__()
        self.body, self.score = nn.Linear(6, 5), nn.Linear(5, 1)

    def forward(self, x):
        return self.score(self.body(x))[torch.arange(len(x)), -1]


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(6, 5), FSDPLinear(5, 1)),
        FullyShardedDataParallel(nn.Linear(6, 1)),
    ],
)
def test_a_sharded_model_is_refused_before_a_batch_is_read(model, never_read):
    with pytest.raises(InputError, match=r"FSDP.*full_state_dict"):
        adapt_head(model, never_read, never_read)


def test_an_offloaded_model_is_refused_before_a_batch_is_read(never_read):
    hooked = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 1))
    hooked[0]._hf_hook = OffloadHook()
    for model in (hooked, nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 1, device="meta"))):
        with pytest.raises(InputError, match=r"Sequential .*offloaded.*one device"):
            adapt_head(model, never_read, never_read)


def test_an_adapter_on_the_head_must_be_merged_but_not_one_on_the_body(problem):
    head = nn.Sequential(nn.Linear(6, 5), LoraLinear(nn.Linear(5, 1)))
    with pytest.raises(InputError, match=r"merge_and_unload"):
        adapt_head(head, problem.source, problem.target)
    body = nn.Sequential(LoraLinear(nn.Linear(6, 5)), nn.Linear(5, 1))
    assert adapt_head(body, problem.source, problem.target, labels_scale="ignore").head_name == "1"


def test_a_head_on_every_token_of_a_language_model_is_refused_with_a_wrapper(problem):
    X, Z = problem.X.reshape(100, 4, 6), problem.Z[:148].reshape(37, 4, 6)
    with pytest.raises(InputError, match=r"'score'.*token.*hidden_states"):
        adapt_head(SequenceClassifier(), [(X, problem.y[:100])], [Z])


def test_an_assertion_of_deepcopy_is_reported_as_a_model_that_cannot_be_copied(problem):
    class NotCopied(nn.Linear):
        def __deepcopy__(self, memo):
            raise AssertionError("sharded")

    with pytest.raises(TypeError, match=r"copy.deepcopy.* NotCopied.*sharded"):
        adapt_head(NotCopied(6, 1), problem.source, problem.target)
