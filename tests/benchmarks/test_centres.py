"""The centres that benchmarks.networks.centres compares."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

pytest.importorskip("benchmarks.networks.centres", reason="the benchmarks are not part of an installed package")

from benchmarks.networks.centres import (
    BY_LIKELIHOOD,
    FILE,
    IF_CORRECTED,
    Problem,
    average_ends,
    centres,
    chance,
    even_odds,
    heads,
    path_to_zero,
    shares,
    summary,
)

from pyspar.core.belief import ridge_belief
from pyspar.core.moments import Moments


def problem(bias: float | None = 0.3) -> tuple[Problem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 5)) * [3.0, 2.0, 1.0, 0.3, 0.1] + 1.0
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.3 + rng.normal(size=80)
    Z = rng.normal(size=(60, 5)) * [1.0, 2.0, 1.0, 2.0, 2.0]
    return Problem(Moments.of(X, y), Moments.of(Z), (np.array([1.1, -0.9, 0.4, 1.0, -2.0]), bias)), X, y


def test_evidence_of_a_centre_differs_from_that_of_the_library_by_a_constant():
    p, X, y = problem()
    columns = np.column_stack([p.head, np.zeros(5)])
    library = [
        ridge_belief(Moments.of(X, y - X @ (p.directions.T @ c)), fit_intercept=True).evidence.log_evidence[0]
        for c in columns.T
    ]
    values, _ = p.log_evidence(columns)
    assert values[0] - values[1] == pytest.approx(library[0] - library[1], abs=0.02)  # the grid has steps of 0.25
    assert shares(values) == pytest.approx(shares(np.array(library)), abs=0.01)


def test_joint_significance_is_the_increase_of_the_residual_under_the_constraint():
    p, X, y = problem()
    E, Xc, yc = p.target_directions, X - X.mean(axis=0), y - y.mean()
    residual = [
        np.sum((yc - A @ np.linalg.lstsq(A, yc, rcond=None)[0]) ** 2)
        for A in (Xc @ p.directions.T @ E[:, m:] for m in range(6))
    ]
    noise = residual[0] / (len(y) - 1 - 5)
    assert p.joint_significance(E) == pytest.approx((np.array(residual[1:]) - residual[0]) / noise)
    assert p.significance(E)[0] == pytest.approx(p.joint_significance(E)[0])


def test_the_path_removes_one_direction_after_another_and_ends_at_zero():
    p, *_ = problem()
    E = p.target_directions
    path = path_to_zero(p.head, E)
    assert (path[:, 0] == p.head).all()
    assert not path[:, -1].any()
    assert E[:, :2].T @ path[:, 2] == pytest.approx(np.zeros(2))
    assert E[:, 2:].T @ path[:, 2] == pytest.approx(E[:, 2:].T @ p.head)


@pytest.mark.parametrize("bias", [None, 0.3])
def test_centres_keep_the_trained_prediction_at_the_origin_of_the_fit(bias):
    p, X, _ = problem(bias)
    for coef, new_bias in centres(p).values():
        if bias is None:
            assert new_bias is None
        else:
            assert X.mean(axis=0) @ coef + new_bias == pytest.approx(X.mean(axis=0) @ p.trained[0] + bias)


def test_the_average_of_head_and_zero_uses_the_posterior_mean_of_the_library():
    p, X, y = problem()
    about_zero = p.directions @ ridge_belief(Moments.of(X, y), fit_intercept=True).w_hat[:, 0]
    values, _ = p.log_evidence(np.column_stack([p.head, np.zeros(5)]))
    expected = np.column_stack([p.head, about_zero]) @ shares(values)
    assert average_ends(p) == pytest.approx(expected, abs=0.003)  # the grid has steps of 0.25
    assert abs(expected - p.head).max() > 0.009


def test_the_likelihood_of_a_head_is_that_of_its_residuals_about_their_mean():
    p, X, y = problem()
    path = path_to_zero(p.head, p.target_directions)
    residuals = y[:, None] - X @ (p.directions.T @ path)
    expected = [
        norm.logpdf(r - r.mean(), scale=r.std()).sum() * (len(y) - 1) / len(y) for r in residuals.T
    ]  # one row is spent on the mean
    values = p.log_likelihood(path)
    assert values - values[0] == pytest.approx(np.array(expected) - expected[0])


@pytest.mark.parametrize("n", [5, 30, 80])
def test_even_odds_limit_the_source_error_of_the_average(n):
    _, X, y = problem(None)
    rng, largest = np.random.default_rng(n), 0.0
    for _ in range(100):
        X_n, trained = X[:n], rng.normal(size=5) * rng.choice([0.01, 0.1, 1.0])
        p = Problem(
            Moments.of(X_n, y[:n]), Moments.of(rng.normal(size=(60, 5)) * rng.gamma(1.0, size=5)), (trained, None)
        )
        path = path_to_zero(p.head, p.target_directions)
        average = path @ shares(p.log_likelihood(path) + even_odds(path.shape[1] - 1))
        before, after = (np.sum((y[:n] - X_n @ p.restore(w)[0]) ** 2) for w in (p.head, average))
        largest = max(largest, after / before - 1.0)
    assert 0.0 < largest <= 2.0 / (np.e * (n - 2))


def test_a_head_that_is_not_corrected_stays_as_it_is():
    _, X, y = problem()
    best = np.linalg.lstsq(np.column_stack([X, np.ones(80)]), y, rcond=None)[0]
    for trained, same in ((best, True), (best + 5.0, False)):
        of_heads = heads(Problem.of_rows(X, y, X[:40] * [1.0, 1.0, 1.0, 5.0, 5.0], (trained[:5], float(trained[5]))))
        expected = of_heads["trained" if same else BY_LIKELIHOOD]
        assert of_heads[IF_CORRECTED] == expected
        assert not np.allclose(of_heads[BY_LIKELIHOOD][0], of_heads["trained"][0])


def test_chance_is_one_for_spar_and_zero_for_a_worse_head():
    rng = np.random.default_rng(0)
    spar = {cell: rng.uniform(size=(40, 2)).tolist() for cell in "abcd"}
    worse = {cell: (np.array(values) + 1.0).tolist() for cell, values in spar.items()}
    lines = chance({"tabular": {"SpAR": spar, "worse": worse}}, draws=20).splitlines()
    assert [[part.strip() for part in line.split("|")[2:4]] for line in lines[-2:]] == [
        ["8.0", "1.000"],
        ["0.0", "0.000"],
    ]


def test_decision_15_contains_the_stored_results():
    page = Path(__file__).parents[2] / "docs" / "decisions" / "0015-repair-centred-on-the-trained-head.md"
    assert summary(json.loads(FILE.read_text(encoding="utf-8"))).strip() in page.read_text(encoding="utf-8")
