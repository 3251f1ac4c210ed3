"""Rows in categories that do not occur in the source: how they are found, and where they are reported."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, inspect, report
from pyspar.estimators.unseen_categories import (
    NO_UNSEEN_ROWS,
    UnseenColumn,
    UnseenRows,
    describe_columns,
    find_unseen,
)


def make_homes(n, kinds, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"area": rng.normal(size=n), "kind": [kinds[i % len(kinds)] for i in range(n)]})


def fit_pipeline(kinds=("house", "flat"), handle_unknown="ignore", max_categories=None):
    source = make_homes(200, kinds)
    encoder = OneHotEncoder(handle_unknown=handle_unknown, max_categories=max_categories, sparse_output=False)
    prepared = make_column_transformer((StandardScaler(), ["area"]), (encoder, ["kind"]))
    labels = 3.0 * source["area"] + (source["kind"] == "flat") + np.random.default_rng(1).normal(size=200)
    return make_pipeline(prepared, PolynomialFeatures(2, include_bias=False), BayesSpARRegressor()).fit(source, labels)


def find_code(inspection, code):
    return [finding for finding in inspection.findings if finding.code == code]


def test_unseen_rows_are_reported_in_a_finding_and_in_every_verdict():
    inspection = inspect(fit_pipeline(), make_homes(100, ["house", "farm"], 2))
    (finding,) = find_code(inspection, "SPAR014")
    assert finding.severity == "serious"
    assert finding.output is None
    for text in (finding.text, *(output.verdict for output in inspection.outputs)):
        assert "50 of 100 target rows" in text
        assert "kind 'farm'" in text


def test_many_unseen_rows_make_the_error_unknown_and_few_are_a_warning():
    known = ["house", "flat", "house", "flat", "barn", "shed"]
    est = fit_pipeline(known, "infrequent_if_exist", 3)  # a farm is encoded as a rare kind
    few, many = (inspect(est, make_homes(500, kinds, 2)) for kinds in (known * 4 + ["farm"], [*known, "farm"]))
    assert (few.outcome, many.outcome) == ("no-shift", "unknown")
    assert "20 of 500" in few.outputs[0].not_covered
    assert "71 of 500" in many.outputs[0].headline
    assert [finding.severity for finding in find_code(few, "SPAR014")] == ["warning"]
    assert [finding.severity for finding in find_code(many, "SPAR014")] == ["serious"]


def test_rows_with_weight_zero_are_ignored():
    target = make_homes(100, ["house", "farm", "barn", "flat"], 2)
    without = inspect(fit_pipeline(), target, sample_weight=target["kind"].isin(["house", "flat"]).astype(float))
    assert not find_code(without, "SPAR014")
    (finding,) = find_code(
        inspect(fit_pipeline(), target, sample_weight=(target["kind"] != "barn").astype(float)), "SPAR014"
    )
    assert "25 of 75 target rows" in finding.text
    assert "barn" not in finding.text


def test_known_categories_are_not_reported():
    inspection = inspect(fit_pipeline(), make_homes(100, ["house", "flat"], 2))
    assert not find_code(inspection, "SPAR014")
    assert "kind" not in inspection.outputs[0].verdict


def test_the_headline_of_the_page_reports_unseen_rows(monkeypatch):
    monkeypatch.setattr("pyspar.reporting.drawing.draw_figure", lambda *_: "")  # drawing is slow
    html = report(fit_pipeline(), make_homes(100, ["house", "<farm>"], 2)).html()
    assert "&lt;farm&gt;" in html[html.index('<section class="first') : html.index('-findings-h"')]
    assert 'id="o0-SPAR014" class="serious"' in html
    assert "<farm>" not in html


@pytest.mark.parametrize("missing", [np.nan, None])
def test_rows_are_counted_once_and_a_missing_value_can_be_a_known_category(missing):
    source = np.array([["a", "x"], ["b", missing]], dtype=object)
    target = np.array([["c", "y"], ["a", missing], ["c", "x"], ["d", "x"]], dtype=object)
    encoder = OneHotEncoder(handle_unknown="ignore").fit(source)
    columns = UnseenColumn("x0", 3, ("c", "d")), UnseenColumn("x1", 1, ("y",))
    assert find_unseen(encoder, target) == UnseenRows(3, 4, columns)


def test_steps_without_categories_have_no_unseen_rows():
    scaler = make_pipeline(StandardScaler(), PolynomialFeatures(2)).fit(np.eye(3))
    for rows in (np.ones((5, 3)), [[1.0, 2.0, 3.0]], sparse.csr_matrix(np.ones((5, 3)))):
        assert find_unseen(scaler, rows) == NO_UNSEEN_ROWS
    alone = make_pipeline(BayesSpARRegressor()).fit(np.eye(5), np.arange(5.0))
    assert find_unseen(alone[:-1], np.eye(5)) == NO_UNSEEN_ROWS


@pytest.mark.parametrize("columns", [["kind"], [1], slice(1, 2), make_column_selector(dtype_include=object)])
@pytest.mark.parametrize("wrap", [lambda step: step, lambda step: make_union(step, "passthrough")])
def test_encoders_are_found_for_every_way_to_select_columns(columns, wrap):
    source, target = (
        make_homes(20, kinds).astype({"kind": object}) for kinds in (["house", "flat"], ["house", "farm"])
    )
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), columns))
    unseen = find_unseen(wrap(encoder).fit(source), target)
    assert unseen == UnseenRows(10, 20, (UnseenColumn("kind", 10, ("farm",)),))


def test_only_the_first_columns_and_categories_are_listed():
    columns = [UnseenColumn(f"c{i}", 1, ("a", "b", "c", "d" * 100)) for i in range(5)]
    text = describe_columns(columns)
    assert "c2 'a', 'b', 'c' and 1 more" in text
    assert "c3" not in text
    assert "2 more columns" in text
    assert len(describe_columns([UnseenColumn("c", 1, ("d" * 100,))])) < 50


@pytest.mark.parametrize("nested", [False, True])
def test_an_encoder_without_columns_is_ignored(nested):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), encoder) if nested else encoder, make_column_selector(dtype_include=object)),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    model = make_pipeline(columns, BayesSpARRegressor()).fit(frame, frame["a"] + rng.normal(size=40))
    assert not any(finding.code == "SPAR014" for finding in inspect(model, frame).findings)
