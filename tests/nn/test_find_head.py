"""The head is the linear layer whose output the model returns; other layers are refused with a reason."""

import pytest

from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional


def centre(output):
    return output - 0.5 * output.mean(0)


def halve_near_zero(output):
    return torch.where(output.abs() < 1, 0.5 * output, output)


CHANGED = "changes its output"


@pytest.mark.parametrize("head", [None, "fc"])
@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (lambda s, x: s.fc(s.body(x)) + x[:, :1], CHANGED),
        (lambda s, x: s.fc(s.body(x)) + x.mean(), CHANGED),
        (lambda s, x: s.fc(s.body(x)) + 1e-6, CHANGED),
        (lambda s, x: s.fc(s.body(x)) + s.fc2(x), CHANGED),
        (lambda s, x: torch.sigmoid(s.fc(s.body(x))), CHANGED),
        (lambda s, x: F.relu(100 + s.fc(s.body(x))) - 100, CHANGED),
        (lambda s, x: s.fc(s.body(x)).clamp(-900, 900), CHANGED),
        (lambda s, x: s.fc(s.body(x)).clamp(max=1.0), CHANGED),
        (lambda s, x: s.fc(s.body(x)).sort(dim=0).values, CHANGED),
        (lambda s, x: centre(s.fc(s.body(x))), CHANGED),
        (lambda s, x: halve_near_zero(s.fc(s.body(x))), CHANGED),
        (lambda s, x: s.fc(s.body(x)).relu_(), CHANGED),
        (lambda s, x: 2 * s.fc(s.body(x)), CHANGED),
        (lambda s, x: s.fc(s.body(x)).flip(0), CHANGED),
        (lambda s, x: s.norm(s.fc(s.body(x))), CHANGED),
        (lambda s, x: s.fc(s.body(x))[:-1], r"\(64, 1\).*\(63, 1\)"),
    ],
)
def test_a_layer_whose_output_is_not_the_prediction_is_refused_with_the_reason(
    problem, make_network, forward, reason, head
):
    model = make_network(forward, fc2=nn.Linear(6, 1), norm=nn.BatchNorm1d(1))
    with pytest.raises(ValueError, match=rf"(?s)Network: layer '\w+' cannot be adapted: .*{reason}"):
        adapt_head(model, problem.source, problem.target, head=head)


@pytest.mark.parametrize(
    "forward",
    [
        lambda s, x: s.fc(s.body(x)).squeeze(-1),
        lambda s, x: s.fc(s.body(x)).flatten(),
        lambda s, x: s.fc(s.body(x)).view(1, -1),
        lambda s, x: s.fc(s.body(x)).double(),
        lambda s, x: (s.fc(s.body(x)), s.body(x)),
        lambda s, x: F.dropout(s.fc(s.body(x)), training=s.training),
        lambda s, x: {"prediction": s.fc(s.body(x)), "loss": None},
    ],
)
def test_the_output_may_change_its_shape_or_dtype_or_be_part_of_a_structure(problem, make_network, forward):
    adapted = adapt_head(make_network(forward), problem.source, problem.target, head="fc")
    assert adapted.head_name == "fc"


@pytest.mark.parametrize("change", [lambda o: o.clamp(max=1.0), torch.relu])
def test_one_row_in_the_first_batch_is_enough_to_detect_an_operation(problem, make_network, change):
    rows = list(zip(problem.X.split(1), problem.y.split(1), strict=True))
    with pytest.raises(ValueError, match=CHANGED):
        adapt_head(make_network(lambda s, x: change(s.fc(s.body(x)))), rows, rows)


def test_a_layer_that_is_not_linear_in_its_own_weight_is_refused(make_network, problem):
    normed = make_network(lambda s, x: s.fc(s.body(x)))
    nn.utils.parametrizations.weight_norm(normed.fc)
    with pytest.raises(ValueError, match=r"weight_norm"):
        adapt_head(normed, problem.source, problem.target)

    class Cosine(nn.Linear):
        def forward(self, x):
            return F.linear(F.normalize(x, dim=1), self.weight, self.bias)

    with pytest.raises(ValueError, match=r"Cosine computes"):
        adapt_head(nn.Sequential(nn.Linear(6, 5), Cosine(5, 1)), problem.source, problem.target)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 5)
        self.price, self.size = nn.Linear(5, 1), nn.Linear(5, 1)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        return {"price": self.price(h), "size": self.size(h), "rank": h.argmax(dim=1)}


def test_one_of_several_heads_must_be_named(problem):
    with pytest.raises(ValueError, match=r"'price', 'size'.*head="):
        adapt_head(TwoHeads(), problem.source, problem.target)
    model = TwoHeads()
    adapted = adapt_head(model, problem.source, problem.target, head="size", labels_scale="ignore")
    assert not torch.equal(adapted.model.size.weight, model.size.weight)
    assert torch.equal(adapted.model.price.weight, model.price.weight)
