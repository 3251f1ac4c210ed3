"""Every method of the paper gives the same result for seeds trained together and alone."""

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.paper import ERM, MLP, CMixup, Mixup, TrainConfig, train, train_seeds  # noqa: E402
from pyspar.paper.objectives.alignment import AFN, RSD, DAREGram, DeepCORAL  # noqa: E402
from pyspar.paper.objectives.dann import DANN  # noqa: E402
from pyspar.paper.objectives.noisy_student import NoisyStudent  # noqa: E402
from pyspar.paper.objectives.swav import SwAV  # noqa: E402

SEEDS = (0, 1, 2)
METHODS = {
    "ERM": ERM,
    "Mixup": Mixup,
    "manifold Mixup": lambda: Mixup(where="manifold", mix="sample"),
    "C-Mixup": lambda: CMixup(0.5),
    "C-Mixup within batches": lambda: CMixup(0.5, partners="within-batch"),
    "Deep CORAL": DeepCORAL,
    "DANN": DANN,
    "DANN by reversal": lambda: DANN(by="reversal"),
    "AFN": AFN,
    "RSD": RSD,
    "DARE-GRAM": DAREGram,
    "Noisy Student": lambda: NoisyStudent(build(9)),
    "SwAV": lambda: SwAV(pretrain=1),
}


def build(seed, dtype=torch.float64):
    torch.manual_seed(seed)
    return MLP(5, hidden=16).to(dtype)


@pytest.mark.parametrize("name", METHODS)
def test_seeds_trained_together_equal_each_alone(name, table_task):
    task, config = table_task(), TrainConfig(epochs=3, batch_size=8, lr=1e-3, device="cpu")
    together = train_seeds(build, METHODS[name](), task, config, SEEDS)
    for seed, one in zip(SEEDS, together, strict=True):
        alone = train(build(seed), METHODS[name](), task, config, seed)
        assert one.best_epoch == alone.best_epoch
        for ours, theirs in zip(one.history, alone.history, strict=True):
            assert ours.losses == pytest.approx(theirs.losses, rel=1e-6, abs=1e-9)
        for a, b in zip(one.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-8)  # float64; eigenvectors magnify the last digits


@pytest.mark.parametrize("name", METHODS)
def test_seeds_trained_together_equal_each_alone_up_to_float32_rounding(name, table_task):
    task, config = table_task(), TrainConfig(epochs=3, batch_size=8, lr=1e-3, device="cpu")
    objective = NoisyStudent(build(9, torch.float32)) if name == "Noisy Student" else METHODS[name]()
    together = train_seeds([build(seed, torch.float32) for seed in SEEDS], objective, task, config, SEEDS)
    for seed, one in zip(SEEDS, together, strict=True):
        alone = train(build(seed, torch.float32), objective, task, config, seed)
        for ours, theirs in zip(one.history, alone.history, strict=True):
            assert ours.losses == pytest.approx(theirs.losses, rel=1e-3, abs=1e-5)
        for a, b in zip(one.model.parameters(), alone.model.parameters(), strict=True):
            # 24 steps of Adam at 1e-3 move 0.024; a rounding error of 6e-8 grows by at most two orders of magnitude.
            torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("objective", "atol"),
    [
        # RSD's gradient divides by gaps between 24 singular values. Decompositions in float32 would give 7e-3 and 4e-5.
        (RSD(1.0), 3e-4),
        (DAREGram(5.0, scale=0.1), 5e-6),
    ],
    ids=["RSD", "DARE-GRAM"],
)
def test_a_large_penalty_on_a_wide_network_keeps_float32_seeds_close(objective, atol, table_task):
    task, config = table_task(n=200, m=90), TrainConfig(epochs=4, batch_size=24, lr=1e-3, device="cpu")

    def wide(seed):
        torch.manual_seed(seed)
        return MLP(5, hidden=64)

    together = train_seeds([wide(seed) for seed in SEEDS], objective, task, config, SEEDS)
    for seed, one in zip(SEEDS, together, strict=True):
        alone = train(wide(seed), objective, task, config, seed)
        for a, b in zip(one.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=atol)
