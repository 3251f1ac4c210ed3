"""The suites of PovertyMap as a stranger runs them: one command each, from a folder in the layout of WILDS."""

from dataclasses import replace

import numpy as np
import pytest

from pyspar.paper.data import povertymap
from pyspar.paper.data.povertymap import FOLDS, PATTERN, countries_of
from pyspar.paper.experiments.reproduce import describe_suites, import_kind
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.run_suite import Options

torch = pytest.importorskip("torch")
COUNTRIES = sorted({country for fold in FOLDS for country in countries_of(fold)[1]})


def write_set(folder, table, rows, *, labelled):
    (folder / "images").mkdir(parents=True)
    rng = np.random.default_rng(0)
    lines = ["wealthpooled,country,urban" if labelled else "country"]
    for row in range(rows):
        x = rng.normal(size=(8, 16, 16)).astype(np.float32)
        country = COUNTRIES[row % 23]
        lines.append(f"{x[:2].mean() * 30:.4f},{country},{row % 3 == 0}" if labelled else country)
        np.savez_compressed(folder / "images" / PATTERN.format(row), x=x)
    (folder / table).write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def wilds(tmp_path_factory):
    """A folder in the layout of WILDS with images of 16 pixels, and a cache folder."""
    folder = tmp_path_factory.mktemp("wilds")
    write_set(folder / "poverty_v1.1", "dhs_metadata.csv", 92, labelled=True)
    write_set(folder / "poverty_unlabeled_v1.0", "unlabeled_metadata.csv", 46, labelled=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPAR_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(povertymap, "check_sha256", lambda *_, **__: None)  # the metadata are not those of WILDS
        yield folder


def gather(name, options):
    """Run a suite with the data of the folder, one epoch and small batches."""
    suite = read_suite(name)
    blocks = []
    for block in suite.blocks:
        methods = {}
        for method, params in block.methods.items():
            short = {"pretrain": 1} if "pretrain" in params else {}
            config = {**params.get("config", {}), "epochs": 1 + bool(short), "batch_size": 8}
            methods[method] = {**params, **short, "config": config}
        blocks.append(replace(block, methods=methods))
    suite = replace(suite, blocks=tuple(blocks))
    gathered = import_kind(suite).gather(suite, options)
    assert gathered.failures == []
    sheets, _ = import_kind(suite).present(suite, gathered.records)
    assert all(sheet.rows for sheet in sheets)
    return gathered


@pytest.mark.slow
def test_every_suite_of_povertymap_runs_with_all_methods_and_shares_its_networks(wilds, tmp_path):
    states = {name: state for name, _, state in describe_suites(wilds)}
    assert states["povertymap"] == states["povertymap-unlabeled"] == "ready"
    options = Options(out=tmp_path, seeds=1, jobs=1, data=wilds, eval_batch=16)
    first = gather("povertymap", options)
    assert {r.method for r in first.records} >= {"ERM", "ERM + SpAR", "C-Mixup", "C-Mixup + SpAR"}
    unlabelled = gather("povertymap-unlabeled", options)
    trained = {r.method for r in unlabelled.records if " + " not in r.method}
    assert trained == set(read_suite("povertymap-unlabeled").blocks[0].methods)
    assert len(trained) == 9
    runs = {r.method: r.run for r in first.records}
    assert all(r.run == runs[r.method] for r in unlabelled.records if r.method in ("ERM", "C-Mixup"))
    assert any("2 of 9 networks were trained before" in notice for notice in unlabelled.notices)
    assert "1 of 1 networks" in gather("spectral-inflation-povertymap", options).notices[0]
    assert gather("povertymap-tuned", replace(options, methods=("ERM",))).records
    assert {r.metric for r in gather("cost-povertymap", options).records} == {"seconds"}


def test_the_suite_trains_on_the_four_real_images(tmp_path, monkeypatch):
    from tests.paper.data.conftest import SHARED

    if not (SHARED / "images").is_dir():
        pytest.skip("the real PovertyMap files are not next to the repository")
    from pyspar.paper import TrainConfig, multispectral_resnet18, train
    from pyspar.paper.data.image_files import ImageFiles
    from pyspar.paper.data.povertymap import read_metadata
    from pyspar.paper.data.task import Part, ShiftTask
    from pyspar.paper.objectives.mixup import CMixup

    metadata = read_metadata(SHARED / "dhs_metadata.csv")
    images = ImageFiles(SHARED / "images", np.arange(4), pattern=PATTERN, cache=tmp_path / "images.float16", count=4)
    part = Part(images, metadata.wealth[:4], metadata.urban[:4])
    task = ShiftTask("real", part, part, part, "urban", "", "")
    objective = CMixup(0.5, mix_alpha=0.5, mix="sample", include_self=False, both_ways=True)
    config = TrainConfig(epochs=1, batch_size=2, lr=1e-3, device="cpu")
    torch.manual_seed(0)
    trained = train(multispectral_resnet18(), objective, task, config, 0)
    assert np.isfinite(trained.validation)
    stored = np.memmap(tmp_path / "images.float16", np.float16, "r", shape=(4, 8, 224, 224))
    np.testing.assert_allclose(stored[2], images._read(np.array([2]))[0], rtol=1e-3, atol=1e-3)
