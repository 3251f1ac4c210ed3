"""The published digits, cell by cell."""

import json

import numpy as np
import pytest

from pyspar.paper.experiments import table1
from pyspar.paper.experiments.comparison import compare, scientific, whole
from pyspar.paper.experiments.published import published
from pyspar.paper.experiments.reproduce import reproduce
from pyspar.paper.experiments.suite import suite_named
from pyspar.paper.experiments.synthetic import HUNDRED, TABLE_1
from pyspar.paper.experiments.table1 import measure, squared_errors
from pyspar.paper.runs.records import read_records


@pytest.mark.parametrize("experiment", TABLE_1, ids=lambda e: e.name)
def test_every_cell_of_table_1_prints_as_published(experiment):
    table = published("synthetic")
    only = type(table)(table.label, table.what, {experiment.name: table.cells[experiment.name]})
    cells = compare(only, measure(experiment), scientific)
    assert [(c.method, *c.ours) for c in cells] == [(c.method, *c.published) for c in cells]
    assert len(cells) == 3


def test_the_hundred_dimensional_experiment_prints_8738_and_5857():
    cells = compare(published("synthetic-100d"), measure(HUNDRED), whole)
    assert {c.method: c.ours for c in cells} == {"ERM": ("8738", "14104"), "ERM + SpAR": ("5857", "7033")}


def test_an_experiment_is_drawn_again_from_its_seed_and_leaves_the_global_generator_alone():
    state = np.random.get_state()[1].copy()
    one, two = TABLE_1[0].draw(123), TABLE_1[0].draw(123)
    np.testing.assert_array_equal(one.Z, two.Z)
    np.testing.assert_array_equal(state, np.random.get_state()[1])


def test_errors_are_those_of_a_literal_reading_of_the_algorithm():
    draw = TABLE_1[1].draw(125)
    w_hat = np.linalg.pinv(draw.X) @ draw.y
    assert squared_errors(draw)["ERM"] == pytest.approx(((draw.Z @ (w_hat - draw.w_star)) ** 2).sum(), rel=1e-9)


def test_the_suite_writes_records_tables_and_figures(mini):
    # The miniature: one repeat of each, so the verdicts differ; what is tested is the way to the files.
    found = reproduce(suite_named("table1"), mini)
    assert [p.name for p in found.files] == [
        "records.jsonl", "table.md", "table.csv", "figure1.png", "spectral_inflation.png",
    ]  # fmt: skip
    assert all(p.stat().st_size > 100 for p in found.files)
    records = read_records(found.files[0])
    assert len(records) == 4 * 3 + 3  # of the last one, no PCR was published
    first = json.loads(found.files[0].read_text().splitlines()[0])
    assert {"task", "method", "seed", "metric", "value", "spec", "versions", "machine"} <= set(first)
    assert found.files[1].read_text().count("\n| ") == 1 + 14
    assert found.files[2].read_text().splitlines()[0].startswith("table,task,method,published")
    assert all(p.read_bytes()[:4] == b"\x89PNG" for p in found.files[3:])


def test_what_is_recorded_is_not_measured_again_and_a_kill_loses_one_experiment(mini, tmp_path, monkeypatch):
    suite = suite_named("table1")
    reproduce(suite, type(mini)(out=tmp_path / "peace", mini=True))
    measured, real = [], table1.measure

    def killed_at_the_third(experiment, progress):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(experiment.name)
        return real(experiment, progress)

    monkeypatch.setattr(table1, "measure", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        reproduce(suite, mini)
    assert {r.task for r in read_records(mini.out / "table1" / "records.jsonl")} == set(measured)
    again = []
    monkeypatch.setattr(table1, "measure", lambda e, progress: again.append(e.name) or real(e, progress))
    found = reproduce(suite, mini)
    assert "2 of 5 experiments had been measured before and were reused." in found.notices
    assert measured + again == [e.name for e in (*TABLE_1, HUNDRED)]
    monkeypatch.setattr(table1, "measure", lambda *_: pytest.fail("measured again"))
    assert reproduce(suite, mini).sheets == found.sheets
    for name in ("records.jsonl", "table.md", "table.csv"):
        assert (mini.out / "table1" / name).read_bytes() == (tmp_path / "peace" / "table1" / name).read_bytes()
