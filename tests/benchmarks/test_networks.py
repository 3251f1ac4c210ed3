"""The benchmark of repaired networks, run on a small synthetic shift."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")
pytest.importorskip("benchmarks.networks", reason="the benchmarks are not part of an installed package")

import torch
from benchmarks.networks import ablation, scoring, training
from benchmarks.records import RESULTS, read
from benchmarks.shifts.sets import REGISTER
from benchmarks.shifts.sets.shift import Shift, last_third

from benchmarks import evidence, when_spar_helps

SMALL = "64-64 ReLU"


def loader(rows: int = 300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 5)), columns=list("abcde"))
    y = frame["a"] + np.sin(2.0 * frame["b"]) + 0.1 * rng.normal(size=rows)
    return frame, y, last_third(frame["a"])


@pytest.fixture
def tiny(monkeypatch, tmp_path) -> str:
    monkeypatch.setenv("PYSPAR_SHIFTS_CACHE", str(tmp_path / "shifts"))
    monkeypatch.setenv("PYSPAR_NETWORKS_CACHE", str(tmp_path / "networks"))
    monkeypatch.setattr(training, "MOST_EPOCHS", 3)
    monkeypatch.setattr(training, "PATIENCE", 2)
    monkeypatch.setitem(REGISTER, "tiny", Shift("tiny", "y", "low a → high a", "made here", "none", loader, "develop"))
    return "tiny"


@pytest.mark.filterwarnings("ignore:training ended after")
def test_a_trained_network_and_its_split_are_read_from_the_cache(tiny, monkeypatch):
    first = training.trained_network(tiny, SMALL)
    monkeypatch.setattr(training, "_fit", None)  # a second training would fail
    second = training.trained_network(tiny, SMALL)
    assert first.epoch == second.epoch
    for name, weights in first.model.state_dict().items():
        assert torch.equal(weights, second.model.state_dict()[name])
    data = second.data
    assert [len(getattr(data, part)[0]) for part in ("train", "validation", "held_out", "target")] == [140, 40, 20, 100]
    rows = torch.cat([data.train[0], data.validation[0], data.held_out[0]])
    assert len(torch.unique(rows, dim=0)) == 200
    assert float(data.train[1].mean()) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.filterwarnings("ignore:training ended after")
def test_a_repair_is_scored_once_and_its_ratio_is_that_of_the_errors(tiny, tmp_path, capsys):
    path = tmp_path / "records.csv.gz"
    assert scoring.run([tiny], [SMALL], ("ols", "bayes"), path) == 4
    assert scoring.run([tiny], [SMALL], ("ols", "bayes"), path) == 0
    table = read(path)
    assert len(table) == 4
    assert (table["trained"] > 0.0).all()
    unchanged = table[(table["method"] == "bayes") & (table["changed"] == 0)]
    assert (unchanged["ratio"] == 1.0).all()
    header, rows = evidence.summarise_networks(table)
    assert {row[header.index("networks")] for row in rows} == {1}


@pytest.mark.parametrize("rows", scoring.ROWS)
def test_the_ablation_with_all_mechanisms_is_the_repair_of_adapt_head(tiny, rows, monkeypatch):
    larger = replace(REGISTER[tiny], load=partial(loader, 6000))  # enough rows to change the head
    monkeypatch.setitem(REGISTER, tiny, larger)
    trained = training.trained_network(tiny, SMALL, epochs=2)
    ratios = dict(ablation.repair(trained, rows))
    assert set(ratios) == set(ablation.VARIANTS)
    record = scoring.measure(tiny, SMALL, rows, "bayes", trained)
    assert ratios["all mechanisms"] == pytest.approx(record["ratio"], abs=1e-5)  # adapt_head predicts in float32
    assert record["changed"] > 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_records_of_training_are_means_over_seeds(tiny, monkeypatch):
    monkeypatch.setattr(when_spar_helps, "LONG_STEPS", 20)
    monkeypatch.setattr(when_spar_helps, "SHORT_STEPS", 5)
    monkeypatch.setattr(when_spar_helps, "CHECK_STEPS", 10)
    records = when_spar_helps.measure(tiny, 4)
    assert len(records) == len(when_spar_helps.TRAINING) * len(when_spar_helps.ROWS)
    for record in records:
        for method in when_spar_helps.METHODS:
            assert 0.0 < record[method] <= record[f"{method}_worst"]


def test_no_repair_of_a_required_network_exceeds_its_limit():
    table = read(RESULTS / "networks.csv.gz")
    ours = table[(table["method"] == "bayes") & table["network"].isin(training.REQUIRED)]
    assert ours["ratio"].max() <= 1.03
