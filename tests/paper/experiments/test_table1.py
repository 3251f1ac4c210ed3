"""Table 1 is reproduced digit by digit."""

import json

import numpy as np
import pytest

from pyspar.paper.experiments import table1
from pyspar.paper.experiments.reproduce import reproduce
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.experiments.table1 import (
    HUNDRED,
    TABLE_1,
    Cell,
    compare_cells,
    compute_errors,
    format_scientific,
    measure_experiment,
)
from pyspar.paper.runs.records import read_records


@pytest.mark.parametrize("experiment", TABLE_1, ids=lambda e: e.name)
def test_every_cell_of_table_1_has_the_published_digits(experiment):
    cells = compare_cells(measure_experiment(experiment))
    assert [(c.method, *c.ours) for c in cells] == [(c.method, *c.published) for c in cells]
    assert len(cells) == 3


@pytest.mark.slow
def test_the_hundred_dimensional_experiment_has_the_published_digits():
    cells = compare_cells(measure_experiment(HUNDRED))
    assert {c.method: c.ours for c in cells} == {"ERM": ("8738", "14104"), "ERM + SpAR": ("5857", "7033")}


def test_a_draw_depends_on_its_seed_only_and_leaves_the_global_generator_unchanged():
    state = np.random.get_state()[1].copy()
    one, two = TABLE_1[0].draw(123), TABLE_1[0].draw(123)
    np.testing.assert_array_equal(one.Z, two.Z)
    np.testing.assert_array_equal(state, np.random.get_state()[1])


def test_the_error_of_erm_agrees_with_the_formula():
    draw = TABLE_1[1].draw(125)
    w_hat = np.linalg.pinv(draw.X) @ draw.y
    assert compute_errors(draw)["ERM"] == pytest.approx(((draw.Z @ (w_hat - draw.w_star)) ** 2).sum(), rel=1e-9)


def test_the_suite_writes_records_tables_and_figures(mini):
    # The miniature has one draw of each experiment, so its numbers differ from the published ones.
    result = reproduce(read_suite("table1"), mini)
    assert [p.name for p in result.files] == [
        "records.jsonl", "table.md", "figure1.png", "spectral_inflation.png",
    ]  # fmt: skip
    assert all(p.stat().st_size > 100 for p in result.files)
    records = read_records(result.files[0])
    assert len(records) == 4 * 3 + 3  # five experiments with three methods
    origin, first = map(json.loads, result.files[0].read_text().splitlines()[:2])
    assert {"spec", "versions", "machine"} <= set(origin)
    assert {"task", "method", "seed", "metric", "value"} <= set(first)
    assert result.files[1].read_text().count("\n| ") == 1 + 14
    assert all(p.read_bytes()[:4] == b"\x89PNG" for p in result.files[2:])


@pytest.mark.slow
def test_recorded_experiments_are_not_measured_again_after_an_interruption(mini, tmp_path, monkeypatch):
    suite = read_suite("table1")
    reproduce(suite, type(mini)(out=tmp_path / "undisturbed", mini=True))
    measured, measure = [], table1.measure_experiment

    def interrupt_the_third(experiment):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(experiment.name)
        return measure(experiment)

    monkeypatch.setattr(table1, "measure_experiment", interrupt_the_third)
    with pytest.raises(KeyboardInterrupt):
        reproduce(suite, mini)
    assert {r.task for r in read_records(mini.out / "table1" / "records.jsonl")} == set(measured)
    again = []
    monkeypatch.setattr(table1, "measure_experiment", lambda e: again.append(e.name) or measure(e))
    result = reproduce(suite, mini)
    assert any("2 of 5 experiments" in notice for notice in result.notices)
    assert measured + again == [e.name for e in (*TABLE_1, HUNDRED)]
    monkeypatch.setattr(table1, "measure_experiment", lambda *_: pytest.fail("measured again"))
    assert reproduce(suite, mini).sheets == result.sheets
    for name in ("records.jsonl", "table.md"):
        assert (mini.out / "table1" / name).read_bytes() == (tmp_path / "undisturbed" / "table1" / name).read_bytes()


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.54e6, "2.54e6"), (0.77, "0.77e0"), (12.96, "1.30e1"), (999.6, "1.00e3"), (0.0, "0.00e0"), (803.9, "8.04e2")],
)
def test_numbers_have_the_format_of_the_published_table(value, text):
    assert format_scientific(value) == text


def test_the_verdict_is_the_difference_in_joint_standard_errors():
    def make_cell(published, low, high, n):
        return Cell("t", "m", "squared error", published, n, (low, high) * (n // 2))  # mean and spread are exact

    same = make_cell(("1.00e0", "0.10e0"), 0.9, 1.1, 26)
    off = make_cell(("2.00e0", "0.30e0"), 1.7, 2.5, 26)  # 0.1 / (0.5 / 5)
    spread = make_cell(("2.00e0", "0.10e0"), 1.8, 2.2, 26)
    one_draw = Cell("t", "p", "squared error", ("2.00e0", "0.10e0"), 1, (2.0,))
    assert [cell.verdict for cell in (same, off, spread, one_draw)] == ["same", "+1.0 SE", "+0.0 SE", "differs"]
