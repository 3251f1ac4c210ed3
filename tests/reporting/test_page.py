"""The page: what it says holds for every kind of data, and nothing on it is empty, cut or beside the point."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, SpARRegressor, report
from pyspar.reporting.axes import log_ticks, with_line
from pyspar.reporting.page import page
from pyspar.wording import number, spelt


def still(n: int = 1000, d: int = 8):
    """Return a source and a target that are alike, with weights that are all of one size."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(300, d))
    return X, X.sum(axis=1) + rng.normal(size=n), Z


def words(html: str) -> str:
    """Return what a person reads, without the table that sorts by its numbers."""
    text = re.sub(r'<script.*?</script>|<style.*?</style>|<table class="sortable">.*?</table>', "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", text))


def limits(html: str, figure: str) -> list[float]:
    """Return the ends of a figure's axes: x, x, y, y."""
    return [float(end) for end in re.search(rf'class="{figure}">.*?data-limits="([^"]*)"', html, flags=re.S)[1].split()]


def test_large_numbers_are_written_with_commas_and_larger_ones_as_powers(shifted):
    assert spelt("from 2.512e+04 to 3e+12 (5e-07), x1e+05 as it is") == (
        "from 25,120 to 3·10¹² (5·10⁻⁷), x1e+05 as it is"  # what belongs to a name stays
    )
    X, y, Z = shifted
    html = report(BayesSpARRegressor().fit(X, 1e5 * y), Z).html()
    assert not re.search(r"\de[+-]\d", words(html))


@pytest.mark.parametrize("low", [1e-300, 3e-9, 0.37, 1.0, 99.0, 4e250])
@pytest.mark.parametrize("ratio", [1.3, 2.6, 8.0, 40.0, 1e3, 1e9, 1e30])
def test_a_logarithmic_axis_has_a_few_ticks_whatever_its_range(low, ratio):
    found = log_ticks(low, low * ratio, 7)
    assert 2 <= len(found) <= 8
    assert all(low <= tick <= low * ratio for tick in found)


def test_the_rules_line_is_in_the_picture_where_every_direction_is_kept():
    X, y, Z = still()
    found = report(BayesSpARRegressor().fit(X, y), Z)
    assert not any(d["goes"] for d in found.as_dict()["outputs"][0]["directions"])
    x0, x1, y0, y1 = limits(found.html(), "plane")
    slope = 1.0 / 10.8276  # one over the chi-squared quantile at 0.999
    assert slope * x0 < y1
    assert slope * x1 > y0


def test_a_line_too_far_away_does_not_flatten_the_points():
    assert with_line((1.0, 10.0), (1.0, 10.0), 1e30) == (1.0, 10.0)


def test_what_inflation_would_be_without_a_shift_is_in_the_picture_however_large_it_is():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(200, 6)) * np.geomspace(1, 1e-10, 6), rng.normal(size=(100, 6))
    found = report(SpARRegressor().fit(X, X[:, 0] + 0.1 * rng.normal(size=200)), Z)
    _, _, low, high = limits(found.html(), "inflation")
    assert low < 1 / 200 < high
    assert high > max(d["inflation"] for d in found.as_dict()["outputs"][0]["directions"]) > 1e12


def test_labels_without_noise_leave_sentences_in_place_of_empty_pictures(shifted):
    X, _, Z = shifted
    html = report(BayesSpARRegressor().fit(X, np.ones(len(X))), Z).html()
    assert html.count("<svg") == 4  # errors and predictions, wide and narrow
    assert html.count("Least squares fits the labels of the source exactly") == 2
    assert "Every label of the source is 1." in html
    assert 'type="range"' not in html


def test_the_worst_group_is_that_of_the_adapted_weights_whatever_others_are_given(shifted):
    X, y, Z = shifted
    groups = np.where(np.abs(Z[:, 1]) > 20.0, "far", "near")
    # Weights that know what lies far away, and nothing else, are worst where the adapted ones are best.
    odd = {"odd": (np.array([9.0, 1.3, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0]), 0.0)}
    found = report(BayesSpARRegressor().fit(X, y), Z, groups=groups, weights=odd)
    by_group = found.as_dict()["outputs"][0]["groups"]
    adapted = {name: {f["name"]: f["rmse"] for f in each}["Bayes-SpAR"] for name, each in by_group.items()}
    assert adapted["far"] > adapted["near"]
    assert re.findall(r'role="rowheader"><bdi>(\w+)', found.html()) == ["far", "near"]


def test_next_to_nothing_taken_away_is_said_rather_than_drawn():
    X, y, Z = still()
    html = report(BayesSpARRegressor().fit(X, y), Z).html()
    assert "Adapting took away next to nothing: no more than" in words(html)
    assert 'class="loads"' not in html
    assert "Adapting took nothing away." in words(report(SpARRegressor(alpha=0.0).fit(X, y), Z).html())


def test_shares_of_columns_that_are_not_listed_are_told():
    X, y, Z = still(n=80, d=60)
    output = report(BayesSpARRegressor().fit(X, y), Z)
    listed = output.as_dict()["outputs"][0]["columns"]
    rest = 1.0 - sum(share for _, share in listed)
    assert f"The other {60 - len(listed)} columns share {100 * rest:.1f}" in words(output.html())


def test_what_is_spread_thinly_over_many_columns_is_not_called_nothing(made):
    found = made.as_dict()
    found["outputs"][0]["columns"] = []
    text = words(page(found))
    assert "spread thinly over all columns" in text
    assert "took nothing away" not in text


def test_the_papers_own_regressor_gets_a_number_of_its_own(shifted):
    X, y, Z = shifted
    for estimator, there in ((SpARRegressor(), True), (BayesSpARRegressor(), False)):
        found = report(estimator.fit(X, y), Z)
        named = {f["name"]: number(f["rmse"]) for f in found.as_dict()["outputs"][0]["forecasts"]}
        html = found.html()
        assert (f"<dt>adapted (SpAR)</dt><dd>{named['SpAR']}</dd>" in html) == there
        assert (f"<dt>adapted (Bayes-SpAR)</dt><dd>{named['Bayes-SpAR']}</dd>" in html) != there
        assert (f"<dt>Bayes-SpAR on the target</dt><dd>{named['Bayes-SpAR']}</dd>" in html) == there
        assert f"after: {type(estimator).__name__}, adapted" in found.html()


def test_findings_stand_from_serious_to_good_below_the_headline(made):
    found = made.as_dict()
    kinds = ["info", "warning", "good", "serious"]
    found["findings"] = [
        {"code": f"X{i}", "severity": kind, "text": "t", "advice": "a", "output": None} for i, kind in enumerate(kinds)
    ]
    html = page(found)
    listed = re.findall(r'<li id="o0-(\w+)" class="(\w+)"', html)
    assert listed[0] == ("SPAR001", "serious")
    rank = ["serious", "warning", "info", "good"]
    assert [kind for _, kind in listed[1:]] == sorted((kind for _, kind in listed[1:]), key=rank.index)
    assert '<a href="#o0-X3">X3</a>' in html  # also said at the top
    assert '<a href="#o0-X0">X0</a>' not in html


def test_names_in_any_script_and_of_any_length_cause_no_warning(shifted):
    X, y, Z = shifted
    names = ["温度", "مساحة", "a" * 300, "b" * 300 + "end", "📈", "$x_{1}$", "{{ 7 * 7 }}", "</style>"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = report(
            BayesSpARRegressor().fit(X, y),
            Z,
            columns=names,
            outputs=["c" * 300],
            weights={"温度 مساحة": (np.ones(8), 0)},
        )
        html = found.html()
    assert "{{ 7 * 7 }}" in html
    assert "</style><" not in html.split("</head>")[1]
    assert "a" * 300 not in words(html)


@pytest.mark.parametrize("value", [None, float("nan")])
def test_what_is_unknown_is_called_so(value):
    assert number(value) == "unknown"


def test_what_is_too_large_is_called_so():
    assert number(float("inf")) == "beyond what numbers can hold"
