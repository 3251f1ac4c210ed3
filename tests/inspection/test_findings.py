"""Each finding: data in which it is reported, and data in which it is not."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import pyspar
from pyspar import BayesSpARRegressor, Moments, SpARRegressor, inspect
from pyspar.core.forecast import Forecast
from pyspar.core.regression import Limit
from pyspar.core.separation import Separation
from pyspar.estimators.target_labels import LabelForecast
from pyspar.estimators.unseen_categories import UnseenColumn, UnseenRows
from pyspar.inspection.compare import Direction
from pyspar.inspection.findings import (
    LIMITS,
    derive_feature_findings,
    derive_label_findings,
    describe_correction,
    describe_label_unit,
    describe_unseen,
)
from pyspar.inspection.judgement import SEVERITIES, Judgement
from pyspar.inspection.target_rows import AbsurdRows


def make_data(n=400, m=300, d=4, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    return X, X @ np.linspace(1.0, 2.0, d) + noise * rng.normal(size=n), Z


def find(est, Z):
    """Return the findings by code."""
    findings = inspect(est, Z).findings
    for finding in findings:
        assert finding.severity in ("good", "info", "warning", "serious")
        assert finding.text.endswith(".")
        assert finding.advice
    return {finding.code: finding for finding in findings}


@pytest.fixture
def unshifted():
    X, y, Z = make_data()
    return find(SpARRegressor().fit(X, y), Z)


def test_without_a_shift_the_only_finding_is_neutral(unshifted):
    assert set(unshifted) == {"SPAR002"}
    assert unshifted["SPAR002"].severity == "info"


def test_a_direction_that_varies_only_in_the_target_is_harmful():
    X, y, Z = make_data()
    X[:, 0] *= 1e-3
    findings = find(SpARRegressor().fit(X, y), Z)
    assert findings["SPAR001"].severity == "serious"
    assert "SPAR002" not in findings


def test_target_energy_outside_the_source_is_reported_and_does_not_depend_on_units(unshifted):
    X, y, Z = make_data()
    X[:, 3] = X[:, 2]
    source, target = X - X.mean(axis=0), Z - X.mean(axis=0)
    units = np.sqrt(np.maximum(np.mean(source**2, axis=0), np.mean(target**2, axis=0)))
    unknown = np.linalg.svd(source / units)[2][3:]
    share = np.sum((target / units @ unknown.T) ** 2) / np.sum((target / units) ** 2)
    for scale in (1.0, np.array([1.0, 1e5, 1.0, 0.01])):  # as if a column had other units
        for kind in (SpARRegressor, BayesSpARRegressor):
            findings = find(kind().fit(X * scale, y), Z * scale)
            assert f"{100 * share:.1f} %" in findings["SPAR003"].text
            assert "SPAR016" in findings
    assert "SPAR003" not in unshifted


def test_a_column_that_is_constant_in_the_source_is_named(unshifted):
    X, y, Z = make_data()
    X[:, 2] = 7.0
    assert "'x2'" in find(SpARRegressor().fit(X, y), Z)["SPAR004"].text
    Z[:, 2] = 7.0
    assert "SPAR004" not in find(SpARRegressor().fit(X, y), Z)
    assert "SPAR004" not in unshifted


@pytest.mark.parametrize("model", [SpARRegressor(), BayesSpARRegressor(), Ridge()])
def test_the_error_is_unknown_if_every_source_column_is_constant(model):
    _, y, Z = make_data()
    X = np.full((len(y), 4), 7.0)
    model.fit(X, y)
    source = {"source": (X, y)} if isinstance(model, Ridge) else {}
    assert inspect(model, Z, **source).outcome == "unknown"
    assert inspect(model, np.full_like(Z, 7.0), **source).outcome == "no-shift"
    Z[:, 0] = 0.1 + np.random.default_rng(0).normal(size=len(Z))  # one varying column suffices
    X[:, 0] = np.random.default_rng(1).normal(size=len(X))
    assert inspect(model.fit(X, y), Z, **source).outcome == "unverified"


@pytest.mark.parametrize(("rows", "severity"), [(5, "serious"), (20, "warning")])
def test_few_rows_per_direction_are_reported(rows, severity, unshifted):
    X, y, Z = make_data(n=rows, seed=1)
    finding = find(BayesSpARRegressor().fit(X, y), Z)["SPAR005"]
    assert finding.severity == severity
    assert f"{rows} rows" in finding.text
    assert "4 directions" in finding.text
    assert "SPAR005" not in unshifted


@pytest.mark.parametrize(("fit_intercept", "severity"), [(True, "serious"), (False, "warning")])
def test_an_exact_fit_counts_the_intercept_if_there_is_one(fit_intercept, severity):
    X, y, Z = make_data(n=2, seed=1)
    finding = find(BayesSpARRegressor(fit_intercept=fit_intercept).fit(X[:, :1], y), Z[:, :1])["SPAR005"]
    assert finding.severity == severity
    assert "2 rows for 1 direction (2 per direction)" in finding.text


def test_evidence_at_a_limit_is_reported(unshifted):
    X, _, Z = make_data()
    assert "'no-noise'" in find(SpARRegressor().fit(X, X @ [1.0, 2.0, 3.0, 4.0]), Z)["SPAR007"].text
    assert "'no-signal'" in find(SpARRegressor().fit(X, np.ones(len(X))), Z)["SPAR007"].text
    assert "SPAR007" not in unshifted


def test_repeated_rows_are_reported():
    rng = np.random.default_rng(0)
    basis = np.geomspace(1.0, 1e-3, 90)[:, None] * np.linalg.qr(rng.normal(size=(90, 90)))[0]
    X = rng.normal(size=(40, 90)) @ basis
    y = X @ rng.normal(size=90) + 0.5 * rng.normal(size=40)
    copies = np.r_[np.arange(40), np.arange(0, 40, 5)]
    finding = find(BayesSpARRegressor().fit(X[copies], y[copies]), X + 0.1)["SPAR007"]
    assert "'repeated-rows'" in finding.text


def test_every_limit_of_the_evidence_is_explained():
    not_reported = {"interior", "fixed", "flat"}  # no limit, and limits that the caller sets
    assert set(get_args(Limit)) - not_reported == set(LIMITS)


def test_a_large_removed_share_is_reported(unshifted):
    X, _, Z = make_data()
    noise = np.random.default_rng(1).normal(size=len(X))
    assert "SPAR008" in find(SpARRegressor().fit(X, noise), Z)
    assert "SPAR008" not in unshifted


def test_a_column_whose_mean_moved_is_named_with_its_distance(unshifted):
    X, y, Z = make_data()
    Z[:, 1] += 9.0
    distance = (Z[:, 1].mean() - X[:, 1].mean()) / X[:, 1].std()
    assert f"'x1' by {distance:.3g}" in find(SpARRegressor().fit(X, y), Z)["SPAR009"].text
    assert "SPAR009" not in unshifted


def test_features_of_one_column_report_its_largest_distance():
    X, y, Z = make_data()
    Z[:, :3] += [5.0, 20.0, 9.0]
    est = SpARRegressor().fit(X, y)
    (finding,) = [f for f in inspect(est, Z, columns=["a", "a", "b", "c"]).findings if f.code == "SPAR009"]
    assert re.search(r"'a' by (2\d|19)\b.*'b' by (9|8)\b", finding.text)
    assert finding.text.count("'a'") == 1


def test_an_imprecise_forecast_is_reported(unshifted):
    X, y, Z = make_data()
    X[:, 0] *= 1e-3
    assert "SPAR010" in find(SpARRegressor().fit(X, y), Z)
    assert "SPAR010" not in unshifted


def read_codes_in_source():
    code = (Path(pyspar.__file__).parent / "inspection" / "findings.py").read_text()
    return set(re.findall(r"SPAR\d{3}", code))


def test_exactly_the_codes_in_use_are_documented():
    page = Path(pyspar.__file__).parents[2] / "docs" / "report.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of an installed package")
    assert set(re.findall(r"^\| `(SPAR\d{3})`", page.read_text(), flags=re.M)) == read_codes_in_source()


def test_one_list_has_all_findings_with_their_labels():
    X, y, Z = make_data(n=25)
    inspection = inspect(SpARRegressor().fit(X, np.column_stack([y, -y])), Z * [1, 1, 1, 9], outputs=["price", "rent"])
    listed = [(finding.code, finding.output) for finding in inspection.findings]
    assert len(set(listed)) == len(listed)
    ranks = [SEVERITIES.index(finding.severity) for finding in inspection.findings]
    assert ranks == sorted(ranks)
    for output in inspection.outputs:
        assert {f for f in inspection.findings if f.output == output.name} == set(output.findings)
    assert ("SPAR005", None) in listed
    assert [finding["code"] for finding in inspection.as_dict()["findings"]] == [code for code, _ in listed]


def make_forecast(name, rmse):
    ends = (0.3 * rmse, 1.5 * rmse)
    return Forecast(name, rmse, ends, ends, rmse, 0, 0, 0, interval95_if_linear=ends)


def make_judgement(before, adapted):
    forecasts = tuple(make_forecast(name, 5.0) for name in ("OLS", "SpAR"))
    separation = Separation(0.9, 0.001, True)
    return Judgement(forecasts=forecasts, home=2.0, before=before, adapted=adapted, separation=separation)


def make_direction(energy, *, goes, removed=1.0):
    loads = (("area", 0.7), ("age", 0.3))
    return Direction(energy, 1.0, 0.5, -0.5, 2.0, goes, 0.9, 0.1, 0.0, removed, loads)


def make_label_forecast(rmse):
    nan = np.nan
    parts = {"rmse_uncorrected": 3.0, "n_labels": 12.0}
    return LabelForecast("Bayes-SpAR", rmse, (1.0, 1.5), (0.9, 2.5), nan, nan, nan, nan, **parts)


def test_the_text_of_every_finding(golden):
    # The findings of the judgement are in the golden file of the verdicts.
    judgement = make_judgement("OLS", "SpAR")
    directions = make_direction(0.5, goes=True), make_direction(0.4999, goes=False)
    names = [f"column {i}" for i in range(7)]
    moved = {name: 4.0 + 1e5 * i for i, name in enumerate(names)}
    far = AbsurdRows(1000, 60, 20, 55, (-10.0, 90.0), (-12.0, 999.0), (7, 3, 5))
    signed = AbsurdRows(1000, 4, 0, 4, (-10.0, 90.0), (-12.0, 80.0), (7, 3))
    findings = [
        *derive_label_findings(judgement, directions, limit="no-noise", absurd=far),
        *derive_label_findings(judgement, directions[:1], limit="no-signal", absurd=signed),
        *derive_label_findings(judgement, limit="repeated-rows"),
        *derive_feature_findings(rows=1200, rank=300, outside=0.031, constant=names, moved=moved),
        *describe_unseen(UnseenRows(30, 100, (UnseenColumn("kind", 30, ("farm", "barn")),))),
        describe_label_unit("the slope of 20 labels on the predictions is 1,000 times that of source labels"),
        *(describe_correction(make_label_forecast(1.2), n, "Correct it.") for n in (12, 13)),
        *derive_feature_findings(rows=300, rank=300, outside=0.5, constant=names[:1], moved={"a": 3.4}),
    ]
    elsewhere = {"SPAR002", "SPAR015", "SPAR016", "SPAR017"}
    assert {f.code for f in findings} | elsewhere == read_codes_in_source()
    lines = dict.fromkeys(f"{f.code} {f.severity}\n    {f.text}\n    {f.advice}" for f in findings)
    golden("findings", "\n".join(sorted(lines)))


def test_implausible_predictions_are_counted_and_their_rows_named():
    X, y, Z = make_data()
    y = y - y.min() + 1.0  # all labels are positive
    w = np.linspace(1.0, 2.0, 4)
    Z[7], Z[20] = -40.0 * w, -6.0 * w
    est = BayesSpARRegressor().fit(X, y)
    predictions = copy.copy(est).adapt(Z).predict(Z)
    margin = 0.5 * (y.max() - y.min())
    is_far = (predictions < y.min() - margin) | (predictions > y.max() + margin)
    output = inspect(est, Z).outputs[0]
    assert output.absurd.n_negative == (predictions < 0.0).sum() > 0
    assert output.absurd.n_far == is_far.sum() > 0
    assert output.absurd.n_absurd == (is_far | (predictions < 0.0)).sum()
    assert output.absurd.rows[0] == 7
    (finding,) = [finding for finding in output.findings if finding.code == "SPAR018"]
    assert f"{output.absurd.n_absurd} of 300 " in finding.text
    assert " 7, " in finding.text
    # Moments have no range of the labels, and no signs.
    without = inspect(BayesSpARRegressor().fit(Moments.of(X, y)), Z).outputs[0].absurd
    assert without.n_negative == 0
    assert without.limits == pytest.approx((y.mean() - 6 * y.std(), y.mean() + 6 * y.std()))


def test_the_range_of_the_labels_is_that_of_all_batches():
    X, y, Z = make_data()
    whole, parts = BayesSpARRegressor().fit(X, y), BayesSpARRegressor()
    for rows in np.array_split(np.arange(len(X)), 3):
        parts.partial_fit(X[rows], y[rows])
    assert np.array_equal(parts.label_range_, whole.label_range_)
    assert whole.label_range_.ravel().tolist() == [y.min(), y.max()]
    assert not hasattr(parts.fit(Moments.of(X, y)), "label_range_")
    assert inspect(whole, Z).outputs[0].absurd is None
