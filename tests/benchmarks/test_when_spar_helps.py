"""The factorial experiment: its records, effects and page."""

import math
from itertools import product

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("benchmarks.when_spar_helps", reason="the benchmarks are not part of an installed package")

from benchmarks.when_spar_helps import page as page_module
from benchmarks.when_spar_helps import run
from benchmarks.when_spar_helps.analysis import judge_hypotheses, measure_effect, rank_correlation, where

from pyspar.terminal import SILENT

ROWS = run.ROWS


@pytest.fixture(scope="module")
def committed():
    return list(run.read_records(run.RECORDS).values())


def make_data(n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)

    def draw(rows, scale):
        X = rng.normal(size=(rows, d)).astype(np.float32) * scale
        return X, (X @ w + 0.1 * rng.normal(size=rows)).astype(np.float32)

    return run.Data(draw(n, 1.0), draw(n, 1.0), draw(40, 1.0), draw(60, 1.5))


def make_records(ratio):
    """Return records of five sets in which the log ratio is a function of the factors and the set."""
    cells = product(range(5), run.WIDTHS, run.TRAINING, ROWS, (0, 1))
    return [
        {"set": f"set {s}", "width": w, "training": t, "rows": r, "seed": seed, "n": 100, "m": 50, "excess": 1.0 + s,
         "inflation": 2.0 + s, **{method: math.exp(ratio(s, w, t, r)) for method in run.METHODS}}
        for s, w, t, r, seed in cells
    ]  # fmt: skip


def test_effects_of_an_additive_model_are_its_coefficients():
    records = make_records(lambda s, w, t, r: 0.1 * (w == 256) + 0.2 * (t == "long") + 0.01 * (s - 2))
    wide = measure_effect(records, "spar", where(width=256), where(width=16))
    assert wide.mean == pytest.approx(math.exp(0.1))
    assert wide.low == pytest.approx(wide.high)  # the difference is the same for every set
    long = measure_effect(records, "spar", where(training="long", width=16))
    spread = 0.01 * np.std([-2, -1, 0, 1, 2], ddof=1)
    half = 2.776445 * spread / math.sqrt(5)  # the 97.5 % quantile of Student's t with 4 degrees of freedom
    assert math.log(long.mean) == pytest.approx(0.2)
    assert math.log(long.high) == pytest.approx(0.2 + half, rel=1e-6)
    assert long.better == 0


def test_a_verdict_needs_a_small_p_value():
    sure = measure_effect(make_records(lambda s, w, t, r: -0.1 - 0.01 * s), "ols", where())
    assert sure.p_value == pytest.approx(2 / 2**5)  # the smallest p-value of the signed-rank test of five sets
    assert sure.verdict == "no effect seen"
    many = [{"set": f"set {s}", "ols": math.exp(-0.1 - 0.01 * s)} for s in range(6)]
    assert measure_effect(many, "ols", where()).verdict == "helps"
    many = [{"set": f"set {s}", "ols": math.exp(0.1 + 0.01 * s)} for s in range(6)]
    assert measure_effect(many, "ols", where()).verdict == "harms"


def test_the_rank_correlation_is_over_sets():
    records = make_records(lambda s, w, t, r: 0.01 * s)
    rho, _ = rank_correlation(records, lambda r: r["inflation"], lambda r: math.log(r["spar"]), where())
    assert rho == pytest.approx(1.0)


def test_the_features_are_described_as_by_their_definitions():
    rng = np.random.default_rng(0)
    F, G = rng.normal(size=(50, 3)), rng.normal(size=(20, 3)) * 2.0
    y = F @ [1.0, 2.0, 3.0] + rng.normal(size=50)
    hat = F @ np.linalg.pinv(F) @ y
    described = run._describe_features(F, G, y, np.eye(3)[:2], 0.0 * y, hat)
    inverse = np.linalg.inv(F[:, :2].T @ F[:, :2])
    leverage = np.mean([g[:2] @ inverse @ g[:2] for g in G]) / (2 / 50)
    assert described["inflation"] == pytest.approx(leverage, rel=1e-5)
    assert described["outside"] == pytest.approx((G[:, 2] ** 2).sum() / (G**2).sum(), rel=1e-5)
    noise = math.sqrt(((y - hat) ** 2).sum() / 48)
    assert described["excess"] == pytest.approx(math.sqrt((y**2).mean()) / noise, rel=1e-5)


def test_a_run_writes_every_cell_and_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "WIDTHS", (4,))
    monkeypatch.setattr(run, "LONG_STEPS", 60)
    monkeypatch.setattr(run, "SHORT_STEPS", 10)
    monkeypatch.setattr(run, "load_data", lambda name, seed: make_data(seed=seed))
    path = tmp_path / "records.jsonl"
    assert run.run(["a", "b"], path, SILENT) == 2 * len(run.SEEDS)
    records = run.read_records(path)
    assert len(records) == 2 * 3 * 2 * 3
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:20])  # an interrupted line
    assert run.run(["a", "b"], path, SILENT) == len(run.SEEDS)  # only the set with a missing record
    assert run.read_records(path) == records
    assert run.run(["a", "b"], path, SILENT) == 0


def test_stopping_keeps_the_lowest_validation_error_of_each_network(monkeypatch):
    import torch

    monkeypatch.setattr(run, "LONG_STEPS", 200)
    parts = [make_data(seed=seed) for seed in range(2)]
    models = run.train_networks(parts, 8)
    for part, stopped, long in zip(parts, models["stopped"], models["long"], strict=True):
        X, y = map(torch.as_tensor, part.validation)
        with torch.inference_mode():
            errors = [float((model(X)[:, 0] - y).square().mean()) for model in (stopped, long)]
        assert errors[0] <= errors[1] * (1 + 1e-6)


def test_the_split_of_a_set_is_disjoint_and_of_equal_sizes():
    data = run.load_data("skillcraft", 0)
    n = len(data.train[0])
    assert len(data.held_out[0]) == n
    rows = np.concatenate([data.train[0], data.held_out[0], data.validation[0]])
    assert len(np.unique(rows.round(5), axis=0)) > 0.99 * len(rows)  # players with equal columns exist
    assert data.train[0].mean(axis=0) == pytest.approx(np.zeros(data.train[0].shape[1]), abs=1e-4)


def test_the_committed_page_follows_from_the_committed_records(committed):
    """If this fails, run ``python -m benchmarks.when_spar_helps``."""
    assert page_module.PAGE.read_text(encoding="utf-8") == page_module.render_page(committed)
    assert len(committed) == 12 * len(run.WIDTHS) * len(run.TRAINING) * len(ROWS) * len(run.SEEDS)


def test_the_bold_sentences_of_the_short_answer_hold(committed):
    def effect(method, **levels):
        return measure_effect(committed, method, where(**levels))

    # "A network that was stopped early needs no new head."
    assert effect("spar", training="stopped").verdict == "harms"
    assert effect("ols", training="stopped").verdict == "harms"
    assert effect("bayes", training="stopped").verdict == "no effect seen"
    # "A network that was trained too long gains from a new head on held-out rows", and not from its training rows.
    assert effect("bayes", training="long", rows=ROWS[1]).verdict == "helps"
    assert {effect(m, training="long", rows=ROWS[0]).verdict for m in run.METHODS} <= {"no effect seen", "harms"}
    # "Wide layers need the default method."
    wide = {m: measure_effect(committed, m, where(width=256), where(width=16)) for m in run.METHODS}
    assert wide["ols"].verdict == wide["spar"].verdict == "harms"
    assert wide["bayes"].median < wide["spar"].median
    assert effect("bayes", width=256).verdict == "helps"  # less than at width 16, but still
    # "No method is safe on every shift."
    assert min(max(r[m] for r in committed) for m in run.METHODS) > 1.1


def test_other_pages_quote_the_largest_ratios_of_ours(committed):
    root = page_module.PAGE.parents[1]
    guide, readme, summary = (
        " ".join((root / page).read_text(encoding="utf-8").split())
        for page in ("docs/networks.md", "README.md", "docs/evidence-summary.md")
    )
    short, stopped, long = ([r for r in committed if r["training"] == training] for training in run.TRAINING)
    worst = max(stopped, key=lambda r: r["bayes"])
    largest = f"{worst['bayes']:.2f}"
    assert f"an early-stopped network is {largest}, on `{worst['set']}` with {worst['rows']}" in guide
    assert f"trained too long it is {max(r['bayes'] for r in long):.2f}." in guide
    assert f"After short training it is {max(r['bayes'] for r in short):.2f}." in guide
    assert f"In another experiment with {len(stopped) // len(ROWS)} such networks it was {largest} (" in readme
    assert f"the worst ratio of an early-stopped network is {largest}." in summary
    held_out, training = (measure_effect(long, "bayes", where(rows=rows)) for rows in reversed(ROWS))
    assert f"on {held_out.better} of {held_out.sets} shifts, and training rows on {training.better}." in guide


def test_every_hypothesis_gets_a_decision(committed):
    findings = judge_hypotheses(committed)
    assert {f.stated for f in findings} == {"before", "after"}
    assert {f.decision for f in findings} <= {"supported", "contradicted", "not decided"}
