"""Every method of the paper's tables goes through the one loop, alone and with its seeds as one."""

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.nn import ERM, MLP, CMixup, Mixup, TrainConfig, train, train_seeds  # noqa: E402
from pyspar.nn.alignment import AFN, RSD, DAREGram, DeepCORAL  # noqa: E402
from pyspar.nn.dann import DANN  # noqa: E402
from pyspar.nn.noisy_student import NoisyStudent  # noqa: E402
from pyspar.nn.swav import SwAV  # noqa: E402

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
    "Noisy Student": lambda: NoisyStudent(built(9)),
    "SwAV": lambda: SwAV(pretrain=1),
}


def built(seed):
    torch.manual_seed(seed)
    return MLP(5, hidden=16).double()


@pytest.mark.parametrize("name", METHODS)
def test_seeds_of_every_method_as_one_equal_each_alone(name, table_task):
    task, config = table_task(), TrainConfig(epochs=3, batch_size=8, lr=1e-3, device="cpu")
    together = train_seeds(built, METHODS[name](), task, config, SEEDS)
    for seed, one in zip(SEEDS, together, strict=True):
        alone = train(built(seed), METHODS[name](), task, config, seed)
        assert one.best_epoch == alone.best_epoch
        for ours, theirs in zip(one.history, alone.history, strict=True):
            assert ours.losses == pytest.approx(theirs.losses, rel=1e-6, abs=1e-9)
        for a, b in zip(one.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-8)  # float64; eigenvectors magnify the last digits
