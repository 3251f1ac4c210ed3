"""The alignment objectives: they lower their penalty, their loss is the documented sum, and they check settings."""

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar import InputError  # noqa: E402
from pyspar.paper.networks.mlp import MLP  # noqa: E402
from pyspar.paper.objectives.alignment import (  # noqa: E402
    AFN,
    RSD,
    DAREGram,
    DeepCORAL,
    coral_penalty,
)
from pyspar.paper.objectives.base import Batch  # noqa: E402
from pyspar.paper.objectives.penalties_subspace import dare_gram_penalty, principal_sines, rsd_penalty  # noqa: E402


def make_batch(n=24, d=6, seed_shape=()):
    """A batch of two Gaussian samples with different means and covariances, and labels linear in the first."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(*seed_shape, n, d, generator=draw)
    z = torch.randn(*seed_shape, n, d, generator=draw) * torch.linspace(0.2, 3, d) + 1
    return Batch(x, x[..., :1] - x[..., 1:2], target=z)


def network(seed=0, hidden=64):
    torch.manual_seed(seed)
    return MLP(6, hidden=hidden)


def train_network(objective, batch, steps=150, lr=1e-3):
    net = network()
    adam = torch.optim.Adam(net.parameters(), lr=lr)
    for _ in range(steps):
        adam.zero_grad()
        sum(objective.loss(net, batch, None, "train").values()).backward()
        adam.step()
    return net


def mean_norm(source, target):
    return -(source.norm(dim=-1).mean() + target.norm(dim=-1).mean())


CASES = [
    (DeepCORAL(1.0), coral_penalty),
    (AFN(0.5), mean_norm),
    (RSD(0.1), lambda s, t: principal_sines(s, t).sum()),
    (RSD(0.1), rsd_penalty),
    (DAREGram(1.0, 0.01), dare_gram_penalty),
]


@pytest.mark.parametrize(
    ("objective", "measure"), CASES, ids=lambda case: repr(case) if hasattr(case, "penalty_name") else ""
)
def test_a_method_reduces_its_penalty_and_still_fits_the_labels(objective, measure):
    batch = make_batch()
    nets = {
        "start": network(),
        "erm": train_network(type(objective)(0.0), batch),
        "aligned": train_network(objective, batch),
    }
    if isinstance(objective, DAREGram):
        nets["erm"] = train_network(DAREGram(0.0, 0.0), batch)
    with torch.no_grad():
        distances = {
            name: float(measure(net.features(batch.x), net.features(batch.target))) for name, net in nets.items()
        }
        errors = {name: float((net(batch.x) - batch.y).square().mean()) for name, net in nets.items()}
    assert distances["aligned"] < min(distances["start"], distances["erm"])
    assert errors["aligned"] < 0.5 * errors["start"]
    assert all(torch.isfinite(p).all() for p in nets["aligned"].parameters())


@pytest.mark.parametrize("objective", [DeepCORAL(2.0), AFN(), RSD(), DAREGram()], ids=repr)
def test_the_loss_is_the_squared_error_and_the_weighted_penalty(objective):
    batch, net = make_batch(), network()
    parts = objective.loss(net, batch, None, "train")
    assert list(parts) == ["mse", objective.penalty_name]
    torch.testing.assert_close(parts["mse"], (net(batch.x) - batch.y).square().mean())
    expected = objective.penalty(net.features(batch.x), net.features(batch.target))
    torch.testing.assert_close(parts[objective.penalty_name], expected)
    assert objective.uses_target


def test_the_penalty_is_proportional_to_the_weight():
    source, target = torch.randn(5, 9), torch.randn(5, 9)
    for kind in (DeepCORAL, AFN, RSD):
        torch.testing.assert_close(3 * kind(1.0).penalty(source, target), kind(3.0).penalty(source, target))
    both = DAREGram(1.0, 0.0).penalty(source, target) + DAREGram(0.0, 1.0).penalty(source, target)
    torch.testing.assert_close(both, DAREGram(1.0, 1.0).penalty(source, target))


def test_objectives_with_decompositions_are_not_capturable():
    assert DeepCORAL.capturable
    assert AFN.capturable
    assert not RSD.capturable
    assert not DAREGram.capturable


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: DeepCORAL(-1), "weight .*-1"),
        (lambda: DeepCORAL(float("nan")), "weight .*nan"),
        (lambda: DeepCORAL("1"), "weight .*'1'"),
        (lambda: DeepCORAL(True), "weight .*True"),
        (lambda: RSD(base=-0.1), r"base .*-0\.1"),
        (lambda: DAREGram(threshold=1.5), r"threshold .*\[0, 1\].*1\.5"),
    ],
)
def test_invalid_settings_raise(make, match):
    with pytest.raises(InputError, match=match):
        make()


def test_settings_are_attributes_and_in_the_repr():
    assert vars(RSD()) == {"weight": 0.001, "base": 0.01}
    assert vars(DAREGram()) == {"angle": 0.05, "scale": 0.001, "threshold": 0.9}
    assert repr(AFN()) == "AFN(weight=0.05, step=1.0)"
    assert not any(isinstance(value, nn.Module) for value in vars(DeepCORAL()).values())


@pytest.mark.parametrize(("rows", "target_rows"), [(16, 8), (8, 16), (20, 20)])
def test_rsd_refuses_batches_that_span_all_features(rows, target_rows):
    with pytest.raises(InputError, match=r"16 features.*batch_size=8"):
        RSD().penalty(torch.randn(rows, 16), torch.randn(target_rows, 16))
    assert RSD().penalty(torch.randn(15, 16), torch.randn(15, 16)) > 0
