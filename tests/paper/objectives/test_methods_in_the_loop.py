"""Every method in the training loop: tables with several seeds, images, and CUDA graphs."""

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

import pyspar  # noqa: E402
from pyspar.paper.data.task import Part, ShiftTask  # noqa: E402
from pyspar.paper.networks.mlp import MLP  # noqa: E402
from pyspar.paper.networks.resnet import resnet  # noqa: E402
from pyspar.paper.objectives.alignment import AFN, RSD, DAREGram, DeepCORAL  # noqa: E402
from pyspar.paper.objectives.base import ERM  # noqa: E402
from pyspar.paper.objectives.dann import DANN  # noqa: E402
from pyspar.paper.objectives.noisy_student import NoisyStudent  # noqa: E402
from pyspar.paper.objectives.swav import SwAV  # noqa: E402
from pyspar.paper.training.config import TrainConfig  # noqa: E402
from pyspar.paper.training.train import train, train_seeds  # noqa: E402


def make_task(shape, n=96):
    rng = np.random.default_rng(0)

    def part(shift, n):
        X = rng.normal(size=(n, *shape)) + shift
        if len(shape) > 1:
            X = np.clip(60 * X + 128, 0, 255).astype(np.uint8)
        y = X.reshape(n, -1)[:, :3].mean(axis=1) / X.std()
        return Part(X, y, np.zeros(n, dtype=np.int64))

    return ShiftTask("toy", part(0.0, n), part(0.0, n // 2), part(1.0, n), "none", "made here", "none")


def methods(teacher):
    return [
        DeepCORAL(0.5),
        AFN(),
        RSD(0.01),
        DAREGram(),
        DANN(0.1, hidden=8),
        DANN(0.1, by="reversal", hidden=8),
        NoisyStudent(teacher),
        SwAV(2, prototypes=4, projection=6),
    ]


METHODS = methods(MLP(5, hidden=16).double())
TABLE = TrainConfig(epochs=6, batch_size=12, lr=5e-3, device="cpu", select="last")


@pytest.mark.parametrize("objective", METHODS, ids=repr)
def test_seeds_trained_together_equal_each_alone(objective):
    task, seeds = make_task((5,)), [3, 8]

    def build(seed):
        torch.manual_seed(seed)
        return MLP(5, hidden=16).double()

    together = train_seeds([build(seed) for seed in seeds], objective, task, TABLE, seeds, progress=False)
    for seed, trained in zip(seeds, together):
        alone = train(build(seed), objective, task, TABLE, seed, progress=False)
        for one, other in zip(trained.model.parameters(), alone.model.parameters()):
            # In float64, because Adam divides by the size of the gradient, which magnifies the rounding of small ones.
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
        assert not torch.equal(alone.model.head.weight, build(seed).head.weight)


def test_a_trained_model_can_be_a_teacher():
    task = make_task((5,))
    torch.manual_seed(0)
    teacher = train(MLP(5, hidden=16), ERM(), task, TABLE, 0, progress=False).model
    student = train(MLP(5, hidden=16), NoisyStudent(teacher), task, TABLE, 0, progress=False)
    assert {"mse", "pseudo"} == set(student.history[-1].losses)


@pytest.mark.parametrize("objective", methods(resnet(stem="small", channels=1)), ids=repr)
def test_every_method_trains_on_uint8_images(objective):
    task = make_task((1, 8, 8), n=12)
    config = TrainConfig(epochs=3, batch_size=6, lr=1e-4, device="cpu", select="last")
    torch.manual_seed(0)
    net = resnet(stem="imagenet", channels=1)
    trained = train(net, objective, task, config, 0, progress=False)
    assert all(torch.isfinite(p).all() for p in trained.model.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("objective", methods(MLP(5, hidden=16)), ids=repr)
def test_a_captured_step_equals_a_plain_step(objective):
    models = []
    for graph in ("auto", "never"):
        config = TrainConfig(epochs=6, batch_size=12, lr=1e-3, device="cuda", select="last", graph=graph)
        torch.manual_seed(0)
        models.append(train(MLP(5, hidden=16), objective, make_task((5,)), config, 0, progress=False).model)
    for one, other in zip(*(model.parameters() for model in models)):
        torch.testing.assert_close(one, other)


def test_the_documentation_runs_and_lists_every_method():
    page = Path(pyspar.__file__).parents[2] / "docs" / "methods.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of an installed package")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page.name, "exec"), {})
    missing = [
        type(objective).__name__ for objective in METHODS if f"`{type(objective).__name__}(" not in page.read_text()
    ]
    assert missing == []
