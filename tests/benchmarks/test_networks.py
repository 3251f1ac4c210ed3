"""The benchmark of repaired networks, run on a small synthetic shift."""

import re
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")
pytest.importorskip("benchmarks.networks", reason="the benchmarks are not part of an installed package")

import torch
from benchmarks.networks import __main__ as command
from benchmarks.networks import choice, report, scoring, training
from benchmarks.shifts.sets import BLIND, REGISTER, UNSEEN
from benchmarks.shifts.sets.shift import Shift, last_third

SMALL = "64-64 ReLU"
PAGES = (
    "docs/networks.md", "README.md", "docs/faq.md", "docs/decisions/0027-the-refit-is-tested.md",
    "docs/evidence-summary.md",
)  # fmt: skip


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
    monkeypatch.setitem(REGISTER, "tiny", Shift("tiny", "y", "low a → high a", "made here", "none", loader, "last"))
    return "tiny"


@pytest.mark.filterwarnings("ignore:training ended after")
def test_a_trained_network_and_its_split_are_read_from_the_cache(tiny, monkeypatch):
    first = training.trained_network(tiny, SMALL)
    monkeypatch.setattr(training, "_fit", None)  # a second training would fail
    second = training.trained_network(tiny, SMALL)
    assert first.epoch == second.epoch
    for name, weights in first.model.state_dict().items():
        assert torch.equal(weights, second.model.state_dict()[name])
    for part in ("train", "validation", "held_out", "target"):
        assert all(map(torch.equal, getattr(first.data, part), getattr(second.data, part)))


@pytest.mark.filterwarnings("ignore:training ended after")
def test_the_split_uses_every_source_row_once_and_training_labels_are_standardised(tiny):
    data = training.trained_network(tiny, SMALL).data
    assert [len(getattr(data, part)[0]) for part in ("train", "validation", "held_out", "target")] == [140, 40, 20, 100]
    rows = torch.cat([data.train[0], data.validation[0], data.held_out[0]])
    assert len(torch.unique(rows, dim=0)) == 200
    assert float(data.train[1].mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(data.train[1].std(correction=0)) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.filterwarnings("ignore:training ended after")
def test_the_best_epoch_is_restored(tiny, monkeypatch):
    errors = iter([1.0, 0.5, 0.7, 0.6])
    states = []

    def error(model, rows):
        states.append({name: weights.clone() for name, weights in model.state_dict().items()})
        return next(errors)

    data = training.trained_network(tiny, SMALL).data
    monkeypatch.setattr(training, "rmse", error)
    monkeypatch.setattr(training, "MOST_EPOCHS", 10)
    model, epoch = training._fit(training.NETWORKS[SMALL], data)
    assert (epoch, len(states)) == (2, 4)
    assert all(torch.equal(weights, states[1][name]) for name, weights in model.state_dict().items())


@pytest.mark.filterwarnings("ignore:training ended after")
def test_records_are_written_once_and_one_method_can_be_scored_again(tiny, tmp_path):
    path = tmp_path / "records.jsonl"
    assert scoring.run([tiny], [SMALL], path=path) == 6
    assert scoring.run([tiny], [SMALL], path=path) == 0
    assert scoring.run([tiny], [SMALL], path=path, again=["bayes"]) == 2
    records = scoring.read(path)
    assert len(records) == len(path.read_text().splitlines()) == 6
    for record in records.values():
        assert record["note"] == ""
        assert record["ratio"] == pytest.approx(record["rmse"] / record["trained"], rel=1e-6)
        assert 0 <= record["changed"] <= 64
        assert record["n"] == (140 if record["rows"] == "training rows" else 40)


@pytest.mark.filterwarnings("ignore:training ended after")
def test_a_repair_that_fails_is_recorded_with_its_reason(tiny, monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("no memory")

    monkeypatch.setattr(scoring, "adapt_head", fail)
    record = scoring.measure(tiny, SMALL, "training rows", "ols", training.trained_network(tiny, SMALL))
    assert record["ratio"] is None
    assert record["note"] == "ValueError: no memory"


def test_the_rule_selects_by_size_in_the_order_of_the_hash(tiny, monkeypatch):
    monkeypatch.setattr(choice, "REGISTER", {"tiny": REGISTER["tiny"]})
    assert choice.chosen() == {}
    monkeypatch.setattr(choice, "FEWEST_SOURCE_ROWS", 200)
    monkeypatch.setattr(choice, "FEWEST_TARGET_ROWS", 100)
    assert choice.chosen() == {"last": ["tiny"]}


def test_names_are_grouped_by_part_in_the_order_of_the_hash():
    assert choice.by_part(["ice-core", "graduates", "placement"]) == {
        "last": ["placement", "graduates"], "final": ["ice-core"]
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:training ended after")
def test_the_command_writes_the_page_from_the_records(tiny, tmp_path, monkeypatch, capsys):
    path = tmp_path / "records.jsonl"
    monkeypatch.setattr(command, "RECORDS", path)
    monkeypatch.setattr(command, "chosen", lambda parts: {"last": [tiny]} if "last" in parts else {})
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(sys, "argv", ["networks", "--networks", SMALL])
    command.main()
    page = (tmp_path / "page.md").read_text()
    record = scoring.read(path)[tiny, SMALL, "validation rows", "spar"]
    assert f"| {record['ratio']:.3f} |" in page
    assert page.index("## Unmet requirements") < page.index("## Repaired with training rows")
    assert re.search(r"`bayes` .* 4 repairs", page)  # of the two other small networks
    assert "The wide network was not run on `last`." in page
    assert page.split("\n\n")[1].startswith("**The requirement is not met on `last` (1 sets).**")
    assert "| tiny | last | y | low a → high a | 140 | 40 | 100 | 5 |" in page

    monkeypatch.setattr(command, "chosen", None)  # the names come from the records
    monkeypatch.setattr(sys, "argv", ["networks", "--no-run"])
    command.main()
    assert (tmp_path / "page.md").read_text() == page


def test_a_run_of_one_part_writes_no_page(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(command, "RECORDS", tmp_path / "records.jsonl")
    monkeypatch.setattr(command, "chosen", lambda parts: asked.extend(parts) or {})
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(sys, "argv", ["networks", "--part", "blind"])
    command.main()
    assert asked == ["blind"]
    assert not report.PAGE.exists()


def test_the_committed_page_is_that_of_the_committed_records(tmp_path, monkeypatch):
    committed = report.PAGE.read_text()
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(sys, "argv", ["networks", "--no-run"])
    command.main()
    assert (tmp_path / "page.md").read_text() == committed


def summaries_of_bayes(records, names):
    """Return the summaries of "bayes" with the small networks: training rows, then validation rows."""
    return [
        next(s for s in report.summaries(records, names, training.REQUIRED, rows) if s.method == "bayes")
        for rows in scoring.ROWS
    ]


@pytest.fixture(scope="module")
def committed():
    return scoring.read(scoring.RECORDS)


@pytest.fixture(scope="module")
def parts(committed):
    return choice.by_part({name for name, *_ in committed})


@pytest.mark.parametrize("part", choice.PARTS)
def test_the_requirement_is_met(part, committed, parts):
    assert report.unmet_requirements(committed, parts[part]) == []
    for summary in summaries_of_bayes(committed, parts[part]):
        assert summary.geometric_mean <= 1.005
        assert summary.worst <= 1.03
        assert len(summary.records) == 3 * len(parts[part])


def test_networks_that_the_former_method_left_unchanged_are_unchanged(committed):
    former = scoring.read(scoring.UNSCALED)
    assert set(former) == {key for key in committed if key[3] == "bayes" and REGISTER[key[0]].part != UNSEEN}
    for key, record in former.items():
        if record["changed"] == 0:
            assert committed[key]["changed"] == 0


def test_the_pages_quote_the_numbers_of_the_records(committed, parts):
    names = sorted({name for name, *_ in committed})
    trained, validation = summaries_of_bayes(committed, names)
    first, second = (f"{s.worst:.3f}" for s in summaries_of_bayes(committed, parts[UNSEEN]))
    root = report.PAGE.parents[1]
    guide, readme, faq, decision, summary = (" ".join((root / page).read_text().split()) for page in PAGES)
    total, others = len(trained.records), len(parts[UNSEEN])
    assert f"On {len(names)} real shifts" in guide
    assert f"{trained.unchanged} of the {total} networks are unchanged" in guide
    assert f"and {validation.unchanged} with validation rows" in guide
    (mean,) = {f"{s.geometric_mean:.3f}" for s in (trained, validation)}
    assert f"has a mean of {mean} in both cases." in guide
    assert (
        f"maximum is {trained.worst:.3f} with training rows and {validation.worst:.3f} with validation rows." in guide
    )
    assert f"was chosen with {len(names) - others} of these shifts. On the {others} others" in guide
    assert f"the part `unseen`, the maximum is {first} and {second}." in guide
    assert f"Of {total} networks" in readme
    assert f"left {trained.unchanged} unchanged with training rows and {validation.unchanged} with validation" in readme
    assert f"the error before was {trained.worst:.3f} and {validation.worst:.3f}." in readme
    assert f"On the {3 * others} networks of the data sets that had no influence" in readme
    assert f"it was {first} and {second} (" in readme
    for one in summaries_of_bayes(scoring.read(scoring.UNSCALED), parts[BLIND]):
        assert f"the mean is {one.geometric_mean:.3f} and the worst ratio {one.worst:.3f}" in decision
    assert f"{trained.unchanged} of {total} in the" in faq
    assert f"the worst ratio of the errors is {trained.worst:.2f}." in summary
    assert f"it is {validation.worst:.2f}, and {validation.unchanged} are unchanged." in summary


def make_record(name: str, network: str, rows: str, method: str, ratio: float | None) -> dict:
    key = {"set": name, "network": network, "rows": rows, "method": method}
    return {**key, "ratio": ratio, "home_before": 1.0, "home_after": 1.1, "seconds": 1.0, "note": "why"}


def test_the_summary_and_the_unmet_requirements_are_those_computed_by_hand():
    records = {}
    for network, ratio in zip(training.REQUIRED, (0.5, 1.0, 2.0), strict=True):
        for rows in scoring.ROWS:
            of_rows = ratio if rows == "training rows" else 1.0
            records["s", network, rows, "bayes"] = make_record("s", network, rows, "bayes", of_rows)
    first, second = (report.summaries(records, ["s"], training.REQUIRED, rows) for rows in scoring.ROWS)
    assert first[0].cells() == ["bayes", 3, "1.000", "2.000", 1, 1, 1, 1, "1.100", "1.100", "1.00"]
    assert second[0].worst == 1.0
    sentences = report.unmet_requirements(records, ["s"])
    assert re.search(r"training rows.* 1.03 \(1 of 3\): s \(256 tanh\) 2.000", sentences[0])
    assert not any("validation" in sentence for sentence in sentences)
    assert report.shifts_above(records, ["s"], training.REQUIRED, "training rows") == ["- `bayes`: s 2.000"]


def test_the_independent_test_lists_what_is_not_met_first():
    records = {}
    for network in training.REQUIRED:
        for rows, ratio in zip(scoring.ROWS, (1.0, 1.2), strict=True):
            records["s", network, rows, "bayes"] = make_record("s", network, rows, "bayes", ratio)
    _, _, items, *_ = report.independent_test(records, ["s"], "{sets} sets")
    unmet, met = items.split("- ")[1:]
    assert re.search(r"validation rows.*not met.* 1\.2000, worst 1\.200, 0 of\s+3", unmet, re.DOTALL)
    assert re.search(r"training rows.* met.* 1\.0000, worst 1\.000, 3 of\s+3", met, re.DOTALL)
    assert report.independent_test(records, [], "") == []


def test_a_wide_network_that_was_run_on_a_part_must_be_complete():
    records = {}
    for rows in scoring.ROWS:
        for method in scoring.METHODS:
            for network in training.REQUIRED:
                records["s", network, rows, method] = make_record("s", network, rows, method, 1.0)
    assert report.unmet_requirements(records, ["s"]) == []
    assert report.verdict(records, {"last": ["s"]}) == "The requirement is met on `last` (1 sets)."
    (wide,) = report.WIDE
    records["s", wide, "training rows", "bayes"] = make_record("s", wide, "training rows", "bayes", 1.0)
    assert any(re.search(r"`bayes` .* 1 repairs", sentence) for sentence in report.unmet_requirements(records, ["s"]))
