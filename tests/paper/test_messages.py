"""The wording of representative errors of training, objectives and data sets, as a golden text."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.paper import (  # noqa: E402
    DANN,
    ERM,
    MLP,
    CMixup,
    DAREGram,
    DeepCORAL,
    SwAV,
    TrainConfig,
    load_checkpoint,
    resnet,
    train,
    train_seeds,
    unstack,
)
from pyspar.paper.data import Part, load, where  # noqa: E402

CONFIG = TrainConfig(epochs=2, batch_size=8, lr=1e-2, device="cpu")


def change(task, part, **fields):
    old = getattr(task, part)
    return dataclasses.replace(task, **{part: Part(**{"X": old.X, "y": old.y, "group": old.group, **fields})})


def collect(cases, tmp_path):
    """Return the message of each call, without the path of the temporary folder."""
    lines = []
    for call in cases:
        with pytest.raises((ValueError, TypeError)) as raised:
            call()
        lines.append(f"{type(raised.value).__name__}: {raised.value}".replace(str(tmp_path), "TMP"))
    return "\n\n".join(lines)


def test_the_messages_of_training(table_task, tmp_path, golden):
    torch.manual_seed(0)
    task, model = table_task(), MLP(5)
    missing = task.train.y.copy()
    missing[[4, 9]] = np.nan
    (tmp_path / "damaged.pt").write_bytes(b"not a checkpoint")
    cases = [
        lambda: dataclasses.replace(CONFIG, epochs=0),
        lambda: dataclasses.replace(CONFIG, lr=-1.0),
        lambda: dataclasses.replace(CONFIG, gamma=1.5),
        lambda: dataclasses.replace(CONFIG, schedule="linear"),
        lambda: dataclasses.replace(CONFIG, autocast="float16"),
        lambda: train(model, ERM(), task, CONFIG, -1),
        lambda: train_seeds([model], ERM(), task, CONFIG, [0, 1]),
        lambda: train(model, ERM(), change(task, "train", y=missing), CONFIG, 0),
        lambda: train(model, ERM(), change(task, "train", y=missing[:5]), CONFIG, 0),
        lambda: train(model, ERM(), change(task, "val", X=task.val.X[:, :3]), CONFIG, 0),
        lambda: train(model, DeepCORAL(), change(task, "test", X=task.test.X[:0]), CONFIG, 0),
        lambda: train(model, ERM(), task, dataclasses.replace(CONFIG, batch_size=99), 0),
        lambda: train(
            model, ERM(), change(task, "val", group=None), dataclasses.replace(CONFIG, select="worst-group-r"), 0
        ),
        lambda: train(MLP(5, outputs=2), ERM(), task, CONFIG, 0),
        lambda: train(model, SwAV(2), task, CONFIG, 0),
        lambda: train(model, ERM(), task, dataclasses.replace(CONFIG, lr=1e30), 0),
        lambda: train(model, ERM(), task, CONFIG, 0, checkpoint=tmp_path / "missing" / "run.pt"),
        lambda: train(model, ERM(), task, CONFIG, 0, checkpoint=tmp_path / "damaged.pt"),
        lambda: load_checkpoint(tmp_path / "none.pt", model),
        lambda: DeepCORAL(-1),
        lambda: DAREGram(threshold=1.5),
        lambda: CMixup(0.0),
        lambda: DANN(by="turns"),
        lambda: resnet(50),
        lambda: resnet(channels=8, normalise="imagenet"),
        lambda: unstack(model),
    ]
    golden("paper_training_messages", collect(cases, tmp_path))


def test_the_messages_of_data_sets(tmp_path, golden, monkeypatch):
    monkeypatch.setenv("PYSPAR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("pyspar.paper.data.files.package_folder", lambda package: None)
    for module in ("rcf_mnist.DEBIAN", "chairs.recreated.FOLDER"):
        monkeypatch.setattr(f"pyspar.paper.data.{module}", tmp_path / "none")
    images = tmp_path / "poverty_v1.1" / "images"
    images.mkdir(parents=True)
    metadata = images.parent / "dhs_metadata.csv"
    metadata.write_text("wealthpooled,country,urban\n1,mali,True\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SkillCraft1_Dataset.csv").write_bytes(b"")

    def load_metadata(text):
        metadata.write_text(text)
        load("povertymap", folder=tmp_path, verify=False)

    cases = [
        lambda: load("skilcraft"),
        lambda: load("iris"),
        lambda: load("skillcraft", colour=3),
        lambda: load("skillcraft", seed=-1),
        lambda: where("skillcraft", tmp_path / "nowhere"),
        *(lambda name=name: where(name) for name in ("skillcraft", "rcf-mnist", "povertymap", "povertymap-angola")),
        *(lambda name=name: where(name) for name in ("chair-angles-tails", "chair-angles-recreated")),
        lambda: load("skillcraft", folder=tmp_path / "broken"),
        lambda: load("povertymap", folder=tmp_path, fold="F", verify=False),
        lambda: load("povertymap", folder=tmp_path, verify=False),
        lambda: load_metadata("wealthpooled,country,urban\n1,atlantis,True\n"),
        lambda: load_metadata("wealthpooled,country,urban\n1,mali,suburb\n"),
        lambda: load_metadata("country\nmali\n"),
    ]
    golden("paper_data_messages", collect(cases, tmp_path))
