"""The alignment objectives: they lower what they penalise, they are the sum they say, and they check their settings."""

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar import InputError  # noqa: E402
from pyspar.paper.networks.mlp import MLP  # noqa: E402
from pyspar.paper.objectives.alignment import AFN, RSD, DAREGram, DeepCORAL  # noqa: E402
from pyspar.paper.objectives.base import Batch  # noqa: E402
from pyspar.paper.objectives.penalties import coral_penalty, norm_radius_penalty  # noqa: E402
from pyspar.paper.objectives.penalties_subspace import dare_gram_penalty, principal_sines, rsd_penalty  # noqa: E402


def clouds(n=24, d=6, lanes=()):
    """Two Gaussian clouds of different place and shape, and labels that are linear in the first."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(*lanes, n, d, generator=draw)
    z = torch.randn(*lanes, n, d, generator=draw) * torch.linspace(0.2, 3, d) + 1
    return Batch(x, x[..., :1] - x[..., 1:2], target=z)


def network(seed=0, hidden=64):
    torch.manual_seed(seed)
    return MLP(6, hidden=hidden)


def trained(objective, batch, steps=150, lr=1e-3):
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
    (AFN(0.05, by="radius", radius=5.0), lambda s, t: norm_radius_penalty(s, t, radius=5.0)),
    (RSD(0.1), lambda s, t: principal_sines(s, t).sum()),
    (RSD(0.1), rsd_penalty),
    (DAREGram(1.0, 0.01), dare_gram_penalty),
]


@pytest.mark.parametrize(("objective", "measure"), CASES, ids=lambda case: repr(case) if hasattr(case, "part") else "")
def test_on_a_shift_the_method_reduces_what_it_penalises_and_still_learns(objective, measure):
    batch = clouds()
    nets = {"start": network(), "erm": trained(type(objective)(0.0), batch), "aligned": trained(objective, batch)}
    if isinstance(objective, DAREGram):
        nets["erm"] = trained(DAREGram(0.0, 0.0), batch)
    with torch.no_grad():
        found = {name: float(measure(net.features(batch.x), net.features(batch.target))) for name, net in nets.items()}
        errors = {name: float((net(batch.x) - batch.y).square().mean()) for name, net in nets.items()}
    assert found["aligned"] < min(found["start"], found["erm"])
    assert errors["aligned"] < 0.5 * errors["start"]
    assert all(torch.isfinite(p).all() for p in nets["aligned"].parameters())


@pytest.mark.parametrize("objective", [DeepCORAL(2.0), AFN(), AFN(by="radius"), RSD(), DAREGram()], ids=repr)
def test_the_loss_is_the_squared_error_and_the_weighted_penalty(objective):
    batch, net = clouds(), network()
    parts = objective.loss(net, batch, None, "train")
    assert list(parts) == ["mse", objective.part]
    torch.testing.assert_close(parts["mse"], (net(batch.x) - batch.y).square().mean())
    expected = objective.penalty(net.features(batch.x), net.features(batch.target))
    torch.testing.assert_close(parts[objective.part], expected)
    assert objective.uses_target


def test_weights_are_factors():
    source, target = torch.randn(5, 9), torch.randn(5, 9)
    for kind in (DeepCORAL, AFN, RSD):
        torch.testing.assert_close(3 * kind(1.0).penalty(source, target), kind(3.0).penalty(source, target))
    both = DAREGram(1.0, 0.0).penalty(source, target) + DAREGram(0.0, 1.0).penalty(source, target)
    torch.testing.assert_close(both, DAREGram(1.0, 1.0).penalty(source, target))


def test_decompositions_are_kept_out_of_cuda_graphs():
    assert DeepCORAL.capturable
    assert AFN.capturable
    assert not RSD.capturable
    assert not DAREGram.capturable


def test_a_batch_without_target_is_refused_with_what_to_do():
    batch = clouds()
    with pytest.raises(InputError, match=r"RSD compares .* Got none instead; give the task unlabelled target inputs"):
        RSD().loss(network(), Batch(batch.x, batch.y), None, "train")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: DeepCORAL(-1), "weight must be a finite number of at least 0. Got -1 instead"),
        (lambda: DeepCORAL(float("nan")), "Got nan instead"),
        (lambda: DeepCORAL("1"), "Got '1' instead"),
        (lambda: DeepCORAL(True), "Got True instead"),
        (lambda: AFN(by="both"), "by must be one of 'step', 'radius'. Got 'both'"),
        (lambda: AFN(radius=-1), "radius must be"),
        (lambda: RSD(base=-0.1), "base must be"),
        (lambda: DAREGram(threshold=1.5), r"threshold must be a finite number in \[0, 1\]. Got 1.5"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, text):
    with pytest.raises(InputError, match=text):
        make()


def test_settings_are_plain_attributes_that_show():
    assert vars(RSD()) == {"weight": 0.001, "base": 0.01}
    assert vars(DAREGram()) == {"angle": 0.05, "scale": 0.001, "threshold": 0.9}
    assert repr(AFN()) == "AFN(weight=0.05, by='step', step=1.0, radius=25.0)"
    assert not any(isinstance(value, nn.Module) for value in vars(DeepCORAL()).values())
