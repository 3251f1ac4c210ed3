"""Rows in categories that the source never had: found wherever an encoder takes them, and told wherever it matters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, inspect, report
from pyspar.inspection.unseen_categories import NONE, Unseen, UnseenRows, unseen_by


def homes(n, kinds, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"area": rng.normal(size=n), "kind": [kinds[i % len(kinds)] for i in range(n)]})


def fitted(kinds=("house", "flat"), unknown="ignore", most=None):
    source = homes(200, kinds)
    encoder = OneHotEncoder(handle_unknown=unknown, max_categories=most, sparse_output=False)
    prepared = make_column_transformer((StandardScaler(), ["area"]), (encoder, ["kind"]))
    labels = 3.0 * source["area"] + (source["kind"] == "flat") + np.random.default_rng(1).normal(size=200)
    return make_pipeline(prepared, PolynomialFeatures(2, include_bias=False), BayesSpARRegressor()).fit(source, labels)


def test_a_pipeline_tells_of_them_in_finding_and_verdict():
    found = inspect(fitted(), homes(100, ["house", "farm"], 2))
    told = {each.code: each for each in found.findings}
    assert told["SPAR014"].severity == "serious"
    assert told["SPAR014"].text.startswith(
        "50 of 100 target rows (50.0 %) are in a category that the source never had: kind 'farm'."
    )
    assert told["SPAR014"].output is None
    for output in found.outputs:
        assert output.verdict.endswith(
            "; the forecast says nothing about 50 of 100 target rows, in a category that the source never had "
            "(kind 'farm')."
        )


def test_a_target_of_which_much_is_unknown_is_not_called_good():
    known = ["house", "flat", "house", "flat", "barn", "shed"]
    est = fitted(known, "infrequent_if_exist", 3)  # a farm is taken for one of the rare kinds, and stands out nowhere
    few, many = (inspect(est, homes(500, kinds, 2)) for kinds in (known * 4 + ["farm"], [*known, "farm"]))
    for found, severities in ((few, {"good"}), (many, {"info"})):
        calm = [each for each in found.findings if each.code == "SPAR002"]
        assert {each.severity for each in calm} == severities
        assert calm == [each for each in found.outputs[0].findings if each.code == "SPAR002"]
    assert {each.code: each.severity for each in few.findings}["SPAR014"] == "warning"


def test_rows_of_weight_zero_are_absent():
    target = homes(100, ["house", "farm", "barn", "flat"], 2)
    without = inspect(fitted(), target, sample_weight=target["kind"].isin(["house", "flat"]).astype(float))
    assert "SPAR014" not in {each.code for each in without.findings}
    some = inspect(fitted(), target, sample_weight=(target["kind"] != "barn").astype(float))
    told = {each.code: each.text for each in some.findings}
    assert told["SPAR014"].startswith("25 of 75 target rows (33.3 %) are in a category that the source never had: kind")
    assert "barn" not in told["SPAR014"]


def test_known_categories_are_no_finding():
    found = inspect(fitted(), homes(100, ["house", "flat"], 2))
    assert "SPAR014" not in {each.code for each in found.findings}
    assert "never had" not in found.outputs[0].verdict


def test_the_first_card_of_the_page_tells_of_them():
    html = report(fitted(), homes(100, ["house", "<farm>"], 2)).html()
    card = html[html.index('<section class="first') : html.index("Expected error on the target")]
    assert '<a href="#o0-SPAR014">SPAR014</a> <span class="tag serious">' in card
    assert card.count("&lt;farm&gt;") == 2  # in the verdict, and in the finding
    assert "<farm>" not in html


@pytest.mark.parametrize("gap", [np.nan, None])
def test_rows_are_counted_once_and_a_missing_value_that_was_seen_is_known(gap):
    source = np.array([["a", "x"], ["b", gap]], dtype=object)
    target = np.array([["c", "y"], ["a", gap], ["c", "x"], ["d", "x"]], dtype=object)
    encoder = OneHotEncoder(handle_unknown="ignore").fit(source)
    assert unseen_by(encoder, target) == UnseenRows(3, 4, (Unseen("x0", 3, ("c", "d")), Unseen("x1", 1, ("y",))))


def test_steps_without_categories_have_none_unseen():
    scaler = make_pipeline(StandardScaler(), PolynomialFeatures(2)).fit(np.eye(3))
    for rows in (np.ones((5, 3)), [[1.0, 2.0, 3.0]], sparse.csr_matrix(np.ones((5, 3)))):
        assert unseen_by(scaler, rows) == NONE
    alone = make_pipeline(BayesSpARRegressor()).fit(np.eye(5), np.arange(5.0))
    assert unseen_by(alone[:-1], np.eye(5)) == NONE


@pytest.mark.parametrize("columns", [["kind"], [1], slice(1, 2), make_column_selector(dtype_include=object)])
@pytest.mark.parametrize("around", [lambda step: step, lambda step: make_union(step, "passthrough")])
def test_encoders_are_found_however_their_columns_are_chosen(columns, around):
    source, target = (homes(20, kinds).astype({"kind": object}) for kinds in (["house", "flat"], ["house", "farm"]))
    chosen = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), columns))
    found = unseen_by(around(chosen).fit(source), target)
    assert found == UnseenRows(10, 20, (Unseen("kind", 10, ("farm",)),))
