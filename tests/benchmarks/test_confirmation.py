"""The table of confirmations is about what an inspection shows."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchmarks.confirmation", reason="the benchmarks are not part of an installed package")

from benchmarks.confirmation import judge_draw, read, summarise

from pyspar import BayesSpARRegressor, inspect


def test_a_draw_is_judged_as_an_inspection_with_these_labels_judges_it(rng):
    X, Z = rng.normal(size=(200, 3)), rng.normal(size=(150, 3)) + 0.7
    est = BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=200))
    yz = Z[:, 0] + rng.normal(size=150)
    (judgement,) = inspect(est, Z).outputs
    errors = {"not adapted": est.predict(Z) - yz, "Bayes-SpAR": est.adapted(Z).predict(Z) - yz}
    easy = np.argsort(np.abs(errors["Bayes-SpAR"]))
    judged = []
    for rows in (*(rng.permutation(150)[:n] for n in (5, 100, 140, 150)), *(easy[:n] for n in range(20, 150, 10))):
        labels = np.full(150, np.nan)
        labels[rows] = yz[rows]
        (inspected,) = inspect(est, Z, y=labels).outputs
        judged.append((inspected.labels.confirmed, inspected.severity == "good"))
        assert judge_draw(judgement, errors, rows)[0] == judged[-1][1]
    assert set(judged) == {(False, False), (True, False), (True, True)}  # (True, False): unusually easy rows


def test_data_sets_have_equal_weight_and_wrong_is_a_share_of_the_confirmed():
    shares = {"a": {"10": (1.0, 0.0, 1.0)}, "b": {"10": (0.5, 0.5, 1.0)}, "c": {"10": (0, 0, 0.7), "20": (0, 0, 1)}}
    header, rows = summarise([{"set": name, "part": "new", "shares": of_set} for name, of_set in shares.items()])
    cells = {name: dict(zip(header, row, strict=True)) for name, *_ in rows for row in rows if row[0] == name}
    assert [cells[name]["10"] for name in ("`new`: data sets", "`new`: confirmed")] == ["3", "50 %"]
    assert cells["`new`: wrong, of the confirmed"]["10"].startswith("33.3 % ")
    assert cells["`new`: upper end holds"]["10"] == "90.0 %"
    assert cells["`new`: data sets"]["20"] == "1"


def test_the_page_has_the_table_of_the_records():
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
    for row in summarise(read())[1]:
        assert "| " + " | ".join(row) + " |" in page
