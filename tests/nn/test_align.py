"""nn.align: undoes a changed measurement, leaves the rest alone, and needs no source rows."""

import copy
import random
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402
from torch.distributions import Normal, kl_divergence  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.nn import SourceSummary, align, summarize  # noqa: E402
from pyspar.nn.align import Descent, _open_copy, find_layers  # noqa: E402
from pyspar.nn.features import RowSample  # noqa: E402
from pyspar.nn.layer_statistics import collect_channels  # noqa: E402
from pyspar.nn.source_summary import make_summary, relative_distance  # noqa: E402

NORMS = {
    "batch": lambda width: nn.BatchNorm1d(width),
    "layer": lambda width: nn.LayerNorm(width),
    "group": lambda width: nn.GroupNorm(4, width),
    "rms": lambda width: nn.RMSNorm(width),
}
TRUTH = torch.linspace(-1.0, 1.0, 6)


def make_rows(n, seed):
    return torch.randn(n, 6, generator=torch.Generator().manual_seed(seed))


def measure(rows):
    """Return rows as another instrument measures them."""
    return rows * torch.tensor([2.0, 0.7, 1.5, 1.8, 0.6, 1.4]) + torch.tensor([1.6, -1.0, 0.9, 0.0, 2.0, -1.4])


def labels(rows):
    return rows @ TRUTH + 0.5 * torch.sin(2.0 * rows[:, 0])


def make_network(kind):
    torch.manual_seed(1)
    body = [nn.Linear(6, 16), NORMS[kind](16), nn.ReLU(), nn.Linear(16, 16), NORMS[kind](16), nn.ReLU()]
    return nn.Sequential(*body, nn.Linear(16, 1)).eval()


def train(model, X, y):
    optimizer = torch.optim.Adam(model.train().parameters(), lr=1e-2)
    for _ in range(10):
        for part in torch.arange(len(X)).split(100):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(X[part])[:, 0], y[part]).backward()
            optimizer.step()
    return model.eval()


@pytest.fixture(scope="module")
def networks():
    return {kind: train(make_network(kind), (X := make_rows(2000, 0)), labels(X)) for kind in NORMS}


def rmse(model, rows, y):
    with torch.no_grad():
        return float((copy.deepcopy(model).eval()(rows)[:, 0] - y).square().mean().sqrt())


def state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def is_same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


SOURCE, ROWS = make_rows(1500, 2), make_rows(1000, 3)
TARGET = measure(ROWS)


@pytest.mark.parametrize("kind", NORMS)
def test_alignment_removes_a_part_of_the_error_without_labels(networks, kind):
    model = networks[kind]
    result = align(model, SOURCE, TARGET, force=kind == "group")  # moved away, although its error falls
    assert result.changed
    assert result.outside > 0.1
    assert result.p_value < 0.01
    assert len(result.losses) == 5
    assert result.losses[-1] < result.losses[0]
    assert rmse(result.model, TARGET, labels(ROWS)) < 0.9 * rmse(model, TARGET, labels(ROWS))
    assert str(result).startswith("aligned: ")


def test_noise_along_directions_of_little_variance_does_no_harm():
    torch.manual_seed(0)
    hidden, model = torch.randn(3000, 2), nn.Sequential(nn.Linear(32, 128), nn.BatchNorm1d(128), nn.ReLU())
    rows, y = torch.tanh(hidden @ torch.randn(2, 32)) + 0.02 * torch.randn(3000, 32), hidden[:, 0]
    model = train(model.append(nn.Linear(128, 1)), rows[:2000], y[:2000])
    noisy = rows[2000:] + 0.3 * torch.randn(1000, 32)
    result = align(model, rows[:2000], noisy)
    assert rmse(result.model, noisy, y[2000:]) < 1.1 * rmse(model, noisy, y[2000:])


@pytest.mark.parametrize("kind", NORMS)
def test_only_normalisation_layers_change_and_the_given_model_does_not(networks, kind):
    model = copy.deepcopy(networks[kind]).train()
    model[0].weight.requires_grad_(False)
    model[2].eval()
    before = state(model)
    flags = [p.requires_grad for p in model.parameters()], [m.training for m in model.modules()]
    result = align(model, SOURCE, TARGET, passes=1, force=True)
    assert is_same(before, state(model))
    for network in (model, result.model):
        assert flags == ([p.requires_grad for p in network.parameters()], [m.training for m in network.modules()])
        assert all(p.grad is None for p in network.parameters())
    after = result.model.state_dict()
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"1", "4"}


def test_statistics_are_those_of_all_target_rows(networks):
    model = networks["batch"]
    result = align(model, SOURCE, TARGET, passes=0, force=True)
    first = model[0](TARGET)
    torch.testing.assert_close(result.model[1].running_mean, first.mean(dim=0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(result.model[1].running_var, first.var(dim=0), rtol=1e-4, atol=1e-5)
    assert torch.equal(result.model[1].weight, model[1].weight)
    assert torch.equal(result.model[1].num_batches_tracked, model[1].num_batches_tracked)
    assert result.model[1].momentum == 0.1
    assert result.losses == ()


@pytest.mark.parametrize("kind", ["layer", "group"])
def test_outputs_of_other_layers_get_mean_and_spread_of_the_source(networks, kind):
    model = networks[kind]
    result = align(model, SOURCE, TARGET, passes=0, force=True)
    moved, wanted = result.model[:2](TARGET), model[:2](SOURCE)
    torch.testing.assert_close(moved.mean(dim=0), wanted.mean(dim=0), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(moved.std(dim=0), wanted.std(dim=0), rtol=1e-2, atol=1e-3)


def test_channels_are_found_wherever_a_layer_has_them():
    class Permuted(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x.movedim(1, -1)).movedim(-1, 1)

    x = torch.randn(8, 8, 8)  # equal sizes say nothing
    for layer, place in ((nn.LayerNorm(8), 2), (Permuted(8), 1), (nn.GroupNorm(2, 8), 1)):
        nn.init.normal_(layer.bias)
        with collect_channels([layer]) as sums:
            output = layer(x)
        mean, spread = sums.joined(1)
        values = output.detach().movedim(place, 0).flatten(1)
        np.testing.assert_allclose(mean, values.mean(dim=1), atol=1e-5)
        np.testing.assert_allclose(spread, values.std(dim=1, correction=0), rtol=1e-4)


def with_activation(kind):
    """Return a class of layers that include their activation, as timm has it."""
    return type(f"{kind.__name__}Act", (kind,), {"forward": lambda self, x: kind.forward(self, x).relu()})


def fuse(model, first, second):
    """Return the model with layers that contain the activations."""
    first.load_state_dict(model[1].state_dict())
    second.load_state_dict(model[4].state_dict())
    return nn.Sequential(model[0], first, model[3], second, model[6]).eval()


def test_an_activation_inside_batch_normalisation_changes_nothing(networks):
    model = networks["batch"]
    fused = fuse(model, *(with_activation(nn.BatchNorm1d)(16) for _ in range(2)))
    for passes in (0, 1):
        expected, result = (align(one, SOURCE, TARGET, passes, force=True).model for one in (model, fused))
        for value, other in zip(expected.state_dict().values(), result.state_dict().values(), strict=True):
            torch.testing.assert_close(value, other)
        assert rmse(result, TARGET, labels(ROWS)) == pytest.approx(rmse(expected, TARGET, labels(ROWS)), rel=1e-4)


def test_scales_behind_which_an_activation_follows_inside_a_layer_change_by_gradients_only(networks):
    fused = fuse(networks["group"], *(with_activation(nn.GroupNorm)(4, 16) for _ in range(2)))
    assert is_same(state(fused), state(align(fused, SOURCE, TARGET, passes=0, force=True).model))
    result = align(fused, SOURCE, TARGET, force=True)
    assert rmse(result.model, TARGET, labels(ROWS)) < 0.9 * rmse(fused, TARGET, labels(ROWS))


def test_layers_may_be_registered_in_another_order_than_they_run(networks):
    class Reversed(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.second, self.inner = inner[4], inner

        def forward(self, x):
            return self.inner(x)

    expected = align(networks["layer"], SOURCE, TARGET, passes=0, force=True)
    result = align(Reversed(networks["layer"]), SOURCE, TARGET, passes=0, force=True)
    assert is_same(state(expected.model), state(result.model.inner))


def test_a_layer_that_runs_several_times_is_aligned_by_gradients_only():
    model = nn.Sequential(nn.Linear(6, 6), norm := nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 6), norm, nn.Linear(6, 1))
    assert is_same(state(model), state(align(model, SOURCE, TARGET, passes=0, force=True).model))
    assert not is_same(state(model), state(align(model, SOURCE, TARGET, passes=1, force=True).model))


@pytest.mark.parametrize("kind", NORMS)
def test_a_target_inside_the_support_is_returned_unchanged(networks, kind):
    model = networks[kind]
    for inside in (ROWS, ROWS[ROWS[:, 0] > 0.3]):  # the same distribution, and a part of it
        result = align(model, SOURCE, inside)
        assert not result.changed
        assert result.outside < 0.10
        assert is_same(state(model), state(result.model))
        assert str(result).startswith("not aligned: ")
    assert align(model, SOURCE, ROWS, passes=1, force=True).changed


def test_a_target_that_does_not_come_closer_is_returned_unchanged(networks):
    model = copy.deepcopy(networks["group"]).train()
    result, forced = (align(model, SOURCE, TARGET, force=force) for force in (False, True))
    assert (result.changed, forced.changed) == (False, True)
    assert all(module.training for module in result.model.modules())
    assert is_same(state(model), state(result.model))
    assert str(result) != str(align(model, SOURCE, ROWS))  # another reason than for a target inside the support
    with torch.no_grad():
        features, before = (model.eval()[:-1](rows) for rows in (SOURCE, TARGET))
        known, predicted = model[-1](features), model[-1](before)
        scales = torch.cdist(features, features).topk(6, largest=False).values[:, 1:].mean(dim=1)
        moved = [relative_distance(x, features, scales).median() for x in (forced.model.eval()[:-1](TARGET), before)]
    assert 1.0 < result.distance == forced.distance == pytest.approx(float(moved[0] / moved[1]), rel=0.1)
    spread = float((predicted - known.mean()).square().mean().sqrt() / known.std())
    assert result.spread == pytest.approx(spread, rel=0.1)
    constant = nn.Linear(16, 3)  # its other outputs are constant
    constant.weight.data = torch.cat([model[-1].weight.detach(), torch.zeros(2, 16)])
    assert align(nn.Sequential(*model[:-1], constant), SOURCE, TARGET).spread == pytest.approx(spread, rel=0.1)


def test_a_measurement_that_moves_the_target_inside_needs_force(networks):
    """A smaller contrast is a part of the support, as a part of the population is."""
    model, moved = networks["batch"], 0.5 * ROWS + 0.5
    result = align(model, SOURCE, moved)
    assert not result.changed
    assert "force=True" in str(result)
    forced = align(model, SOURCE, moved, force=True)
    assert rmse(forced.model, moved, labels(ROWS)) < 0.5 * rmse(model, moved, labels(ROWS))


def test_the_share_outside_is_that_of_its_definition():
    support, rows = make_rows(40, 5).numpy(), make_rows(30, 6).numpy()

    def nearest(row, others):
        distances = np.sqrt(np.square(others - row).sum(axis=1))
        order = np.argsort(distances)[:5]
        return distances[order].mean(), order

    scales = np.array([nearest(row, np.delete(support, i, axis=0))[0] for i, row in enumerate(support)])
    expected = [nearest(row, support)[0] / scales[nearest(row, support)[1]].mean() for row in rows]
    result = relative_distance(*(torch.from_numpy(a) for a in (rows, support, scales.astype(np.float32))))
    np.testing.assert_allclose(result, expected, rtol=1e-3)


def summarize_features(features):
    head = nn.Linear(features.shape[1], 1)
    sample = RowSample(10_000)
    for rows in features.split(70):
        sample.add(rows)
    return make_summary(sample, head, torch.zeros(2, 0))


def test_the_test_of_the_share_has_its_level_without_a_shift():
    rng = np.random.default_rng(0)
    summary = summarize_features(make_rows(400, 0))
    values = []
    for _ in range(2000):  # distances of source and target are exchangeable without a shift
        held_out = replace(summary, distances=np.sort(rng.random(len(summary.distances))))
        values.append(held_out.test_outside(torch.from_numpy(rng.random(100)))[1])
    assert np.mean(np.array(values) <= 0.05) <= 0.065
    for outside in (60, 5):
        share, p_value = summary.test_outside(torch.where(torch.arange(100) < outside, torch.inf, 0.0))
        assert share == outside / 100
        assert p_value < 1e-6 if outside == 60 else p_value > 0.3


def test_a_summary_has_mean_directions_and_variances_of_all_rows():
    features = make_rows(700, 1) * torch.tensor([3.0, 2.0, 1.0, 0.5, 1e-5, 0.0]) + 100.0
    summary = summarize_features(features)
    covariance = np.cov(features.double().numpy().T, bias=True)
    assert summary.directions.shape == (6, 4)  # the last two have less than a millionth of the largest variance
    np.testing.assert_allclose(summary.mean, features.mean(dim=0), rtol=1e-6)
    np.testing.assert_allclose(summary.variances, np.linalg.eigvalsh(covariance)[::-1][:4], rtol=1e-4)
    np.testing.assert_allclose(covariance @ summary.directions, summary.directions * summary.variances, atol=1e-4)


def test_the_loss_is_the_symmetric_divergence_and_the_covariances_weighted_by_the_head(networks):
    model = networks["layer"]
    summary = summarize(model, SOURCE)
    features = model[:-1](TARGET[:64])
    scores = (features.double() - torch.from_numpy(summary.mean)) @ torch.from_numpy(summary.directions).double()
    target = Normal(scores.mean(dim=0), scores.std(dim=0))
    source = Normal(torch.zeros(scores.shape[1]).double(), torch.from_numpy(summary.variances).double().sqrt())
    slopes = (model[-1].weight.double() @ torch.from_numpy(summary.directions).double()).abs().squeeze(0)
    weights = sum(0.5 * x / x.sum() for x in (source.scale, slopes * source.scale))
    expected = (weights * (kl_divergence(target, source) + kl_divergence(source, target))).sum()
    halves = ((scores - target.mean) / source.scale).tensor_split(2)
    pairs = torch.outer(weights, weights).fill_diagonal_(0.0) / weights.square().sum()
    expected += 0.5 * (pairs * torch.stack([half.T @ half / 32 for half in halves]).prod(dim=0)).sum()
    with _open_copy(model, [SOURCE], "source", None, None, 0) as net:
        loss = Descent(net, summary, find_layers(model), 1e-3).loss(features)
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-3)


def test_the_result_depends_on_the_seed_only(networks):
    model = networks["layer"]
    torch.manual_seed(4)
    first = state(align(model, SOURCE, TARGET, 1).model)
    torch.manual_seed(5)
    assert is_same(first, state(align(model, SOURCE, TARGET, 1).model))
    assert is_same(first, state(align(model, SOURCE, DataLoader([*TARGET], batch_size=10), 1).model))
    assert not is_same(first, state(align(model, SOURCE, TARGET, 1, seed=np.int64(3)).model))
    assert not is_same(first, state(align(model, SOURCE, TARGET, np.int64(1), seed=None).model))
    with pytest.raises(TypeError, match="'float' object"):
        align(model, SOURCE, TARGET, seed=1.5)


@pytest.mark.parametrize("stop", [None, 1, 40])
def test_random_numbers_and_loaders_of_the_caller_continue_as_before(networks, stop):
    model, generator, sizes = networks["batch"], torch.Generator().manual_seed(5), []

    def read_noisily(rows):
        sizes.append(len(rows))
        if len(sizes) == stop:
            raise KeyboardInterrupt
        return torch.stack([row for (row,) in rows]) + 1e-3 * (np.random.normal() + random.gauss(0.0, 1.0))

    source, target = (TensorDataset(rows) for rows in (SOURCE, TARGET))
    source = DataLoader(source, 100, shuffle=True, generator=generator)
    target = DataLoader(target, 100, shuffle=True, generator=generator, collate_fn=read_noisily)

    def states():
        values = torch.get_rng_state(), generator.get_state(), *model.state_dict().values()
        return *(x.tolist() for x in values), random.getstate(), str(np.random.get_state())

    before = states()
    for call in (lambda: align(model, source, target), lambda: summarize(model, source)):
        with pytest.raises(KeyboardInterrupt) if stop and not sizes else nullcontext():
            call()
        assert states() == before


class Named(nn.Module):
    """A model with a named argument that returns a structure, as those of Hugging Face do."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, pixel_values):
        return {"logits": self.inner(pixel_values)}


def test_all_forms_of_rows_give_similar_networks(networks):
    model, y = networks["batch"], torch.zeros(len(TARGET))
    forms = {
        "array": TARGET.double().numpy(),
        "pairs": DataLoader(TensorDataset(TARGET, y), batch_size=300),
        "shuffled": DataLoader(TensorDataset(TARGET), batch_size=10, shuffle=True),
        "list": list(zip(TARGET.split(333), y.split(333), strict=True)),
        "small": list(TARGET.split(4)),
        "named": [{"pixel_values": part, "labels": part[:, 0]} for part in TARGET.split(200)],
    }
    errors = {}
    for name, target in forms.items():
        network = Named(model) if name == "named" else model
        result = align(network, SOURCE, target)
        errors[name] = rmse(result.model.inner if name == "named" else result.model, TARGET, labels(ROWS))
    assert max(errors.values()) < 1.15 * min(errors.values())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_precision_of_the_weights_is_kept(networks, dtype):
    model = copy.deepcopy(networks["layer"]).to(dtype)
    result = align(model, SOURCE.to(dtype), TARGET.to(dtype))
    assert {p.dtype for p in result.model.parameters()} == {dtype}
    assert not torch.equal(result.model[1].weight, model[1].weight)
    assert align(model, summarize(model, SOURCE.to(dtype)), TARGET.to(dtype), passes=1).changed


def test_layers_of_other_libraries_are_found_by_their_name_unless_they_have_other_weights():
    def layer(name, **sizes):
        module = type(name, (nn.Module,), {})()
        for key, size in sizes.items():
            module.register_parameter(key, nn.Parameter(torch.ones(size)))
        return module

    NormLinear, frozen = type("NormLinear", (nn.Linear,), {}), layer("FrozenBatchNorm2d")
    frozen.register_buffer("running_mean", torch.zeros(3))
    frozen.register_buffer("running_var", torch.ones(3))
    model = nn.ModuleDict(
        {
            "llama": layer("LlamaRMSNorm", weight=4),
            "instance": nn.InstanceNorm2d(3, affine=True),
            "without weights": nn.LayerNorm(3, elementwise_affine=False),
            "statistics": nn.BatchNorm2d(3, affine=False),
            "none": nn.BatchNorm2d(3, affine=False, track_running_stats=False),
            "linear": nn.Linear(3, 3),
            "only by name": NormLinear(3, 3),
            "with one output": NormLinear(3, 1),
            "matrix": layer("NormMatrix", weight=(3, 4), bias=3),
            "scalar": layer("ScaleNorm", scale=()),
            "subclass": type("Frozen", (nn.BatchNorm2d,), {})(3),
            "tracked": nn.InstanceNorm2d(3, track_running_stats=True),
            "frozen": frozen,
            "normal": layer("NormalHead", scale=()),
            "keras": layer("LayerNormalization", scale=()),
        }
    )
    found = {"llama", "instance", "statistics", "scalar", "subclass", "tracked", "frozen", "keras"}
    assert set(find_layers(model)) == {model[name] for name in found}


def test_the_statistics_of_a_tracked_instance_norm_are_means_over_rows():
    layer, x = nn.InstanceNorm1d(3, track_running_stats=True).eval(), torch.randn(90, 3, 1000) * torch.rand(90, 3, 1)
    with collect_channels([layer], wanted=np.zeros((2, 0), np.float32)) as sums:
        for part in x.split(40):
            layer(input=part)
    sums.write()
    torch.testing.assert_close(layer.running_mean, x.mean(dim=(0, 2)))
    torch.testing.assert_close(layer.running_var, x.var(dim=2).mean(dim=0), rtol=2e-3, atol=0.0)


class TokenNetwork(nn.Module):
    """A network of token codes whose layers get named arguments and return tuples."""

    def __init__(self):
        super().__init__()
        pair = type("PairNorm", (nn.LayerNorm,), {"forward": lambda self, x: (nn.LayerNorm.forward(self, x), x)})
        self.codes, self.pair, self.norm, self.head = nn.Embedding(50, 16), pair(16), nn.LayerNorm(16), nn.Linear(16, 1)

    def forward(self, codes):
        return self.head(self.norm(input=self.pair(self.codes(codes).sum(dim=1))[0].tanh()))


def test_codes_remain_integers_and_layers_may_return_tuples():
    codes = np.random.default_rng(0).integers(0, 25, size=(400, 5))
    result = align(TokenNetwork(), codes, codes + 25, force=True)
    assert result.losses[-1] < result.losses[0]


def test_a_file_of_the_source_gives_the_same_network(networks, tmp_path):
    model, path = networks["batch"], tmp_path / "source.npz"
    summary = summarize(model, SOURCE)
    summary.save(path)
    expected = state(align(model, summary, TARGET, 1).model)
    assert is_same(expected, state(align(model, path, TARGET, 1).model))
    assert is_same(expected, state(align(model, str(path), TARGET, 1).model))
    direct, from_file = (align(model, of, TARGET, 1).model for of in (SOURCE, path))
    assert rmse(direct, TARGET, labels(ROWS)) == pytest.approx(rmse(from_file, TARGET, labels(ROWS)), rel=0.1)
    assert align(copy.deepcopy(model).to(torch.bfloat16), path, TARGET.to(torch.bfloat16), passes=0).changed
    with pytest.raises(InputError, match="network whose head has other weights; write"):
        align(networks["group"], path, TARGET)
    with pytest.raises(InputError, match=r"of shape \(1, 16\) instead of \(1, 6\)"):
        summary.check_head(nn.Linear(6, 1))
    with pytest.raises(InputError, match=r"must end in \.npz"):
        summary.save(tmp_path / "source.pkl")


DAMAGE = {
    "pickle": lambda parts: parts | {"mean": np.array([{"a": 1}], dtype=object)},
    "missing": lambda parts: {key: value for key, value in parts.items() if key != "head"},
    "shape": lambda parts: parts | {"mean": parts["mean"][:-1]},
    "variance": lambda parts: parts | {"variances": -parts["variances"]},
    "nan": lambda parts: parts | {"support": parts["support"] * np.nan},
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_refused(networks, tmp_path, name):
    path = tmp_path / "source.npz"
    parts = {key: np.asarray(value) for key, value in vars(summarize(networks["batch"], SOURCE)).items()}
    np.savez(path, **DAMAGE[name](parts))
    with pytest.raises(InputError, match="is not a summary"):
        SourceSummary.load(path)
    for content in (b"PK\x03\x04 broken", b"text", b""):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not a summary") as caught:
            SourceSummary.load(path)
        assert "pickle" not in str(caught.value)
    with pytest.raises(InputError, match="file not found"):
        SourceSummary.load(tmp_path / "none.npz")


NO_NORM = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1))
DETACHED, OTHER_OUTPUT = make_network("batch"), make_network("batch")
DETACHED[5].register_forward_hook(lambda layer, inputs, output: output.detach())
OTHER_OUTPUT.register_forward_hook(lambda layer, inputs, output: SimpleNamespace(y=output))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": NO_NORM}, "no normalisation layer.*ColumnAligner"),
        ({"model": DETACHED, "force": True}, r"no gradient reaches.*torch\.no_grad.*passes=0"),
        ({"model": OTHER_OUTPUT}, "got a SimpleNamespace; wrap"),
        ({"target": TARGET[:1]}, "at least 10 rows, got 1"),
        ({"source": SOURCE[:1]}, "at least 50 rows, got 1"),
        ({"source": torch.ones(100, 6)}, "features of the source are constant"),
        ({"target": torch.ones(100, 6)}, "features of all target rows are equal"),
        ({"target": torch.where(TARGET > 1.5, torch.nan, TARGET)}, "NaN or infinity in the input of layer '6'"),
        ({"target": []}, "at least one batch"),
        ({"source": []}, "at least 50 rows, got 0"),
        ({"target": TARGET[:0]}, "at least one batch"),
        ({"target": TARGET[:, :3]}, "the model failed"),
        ({"source": SOURCE[:, :3]}, "the model failed"),
        ({"target": iter([TARGET])}, "an iterator"),
        ({"source": iter([SOURCE])}, "an iterator"),
    ],
)
def test_errors_name_the_problem_and_the_model_is_untouched(networks, change, message):
    arguments = {"model": networks["batch"], "source": SOURCE, "target": TARGET} | change
    before = state(arguments["model"])
    with pytest.raises(InputError, match=message):
        align(**arguments)
    assert is_same(before, state(arguments["model"]))


def test_a_source_of_any_size_is_read_in_bounded_memory(networks, monkeypatch):
    monkeypatch.setattr("pyspar.nn.source_summary.SAMPLE", 100)
    summary = summarize(networks["batch"], [SOURCE] * 3)
    assert len(summary.support) == len(summary.distances) == 50
    read = []

    class Counted(torch.utils.data.Dataset):
        def __len__(self):
            return 1_000_000

        def __getitem__(self, row):
            read.append(row)
            return SOURCE[row % len(SOURCE)]

    monkeypatch.setattr(sys.modules["pyspar.nn.align"], "MAX_SOURCE_ROWS", 500)
    summarize(networks["batch"], DataLoader(Counted(), batch_size=100))
    assert len(read) == 500 + 100  # one batch finds the head
    assert max(read) > 100_000


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_callers_gradient_mode_does_not_matter(networks, mode):
    expected = align(networks["batch"], SOURCE, TARGET, passes=1)
    with mode():
        aligned, unchanged = (align(networks["batch"], SOURCE, rows, passes=1) for rows in (TARGET, ROWS))
        assert not torch.is_grad_enabled()
    assert not any(p.is_inference() for p in unchanged.model.parameters())
    assert is_same(state(aligned.model), state(expected.model))
