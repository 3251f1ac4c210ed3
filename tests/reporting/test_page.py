"""The content of the page for data of every kind."""

from __future__ import annotations

import re
import warnings
from html import unescape

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, SpARRegressor, report
from pyspar.reporting.page import _list_errors
from pyspar.wording import format_number


def make_unshifted(n: int = 1000, d: int = 8):
    """Return a source and a target with the same distribution, and equal weights."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(300, d))
    return X, X.sum(axis=1) + rng.normal(size=n), Z


def extract_text(html: str) -> str:
    """Return the visible text without the sortable table."""
    text = re.sub(r'<script.*?</script>|<style.*?</style>|<table class="sortable">.*?</table>', "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", text))


def read_limits(html: str, figure: str) -> list[float]:
    """Return the limits of the axes of a figure: x, x, y, y."""
    return [float(end) for end in re.search(rf'class="{figure}">.*?data-limits="([^"]*)"', html, flags=re.S)[1].split()]


def test_the_page_has_no_numbers_with_exponents(shifted):
    X, y, Z = shifted
    html = report(BayesSpARRegressor().fit(X, 1e5 * y), Z).html()
    assert not re.search(r"\de[+-]\d", extract_text(html))


def test_the_line_of_the_rule_is_visible_if_every_direction_is_kept():
    X, y, Z = make_unshifted()
    found = report(SpARRegressor().fit(X, y), Z)
    assert not any(d["goes"] for d in found.as_dict()["outputs"][0]["directions"])
    x0, x1, y0, y1 = read_limits(found.html(), "plane")
    slope = 1.0 / 10.8276  # one over the chi-squared quantile at 0.999
    assert slope * x0 < y1
    assert slope * x1 > y0


def test_the_inflation_without_a_shift_is_visible_if_the_inflation_is_huge():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(200, 6)) * np.geomspace(1, 1e-10, 6), rng.normal(size=(100, 6))
    found = report(SpARRegressor().fit(X, X[:, 0] + 0.1 * rng.normal(size=200)), Z)
    _, _, low, high = read_limits(found.html(), "inflation")
    assert low < 1 / 200 < high
    assert high > max(d["inflation"] for d in found.as_dict()["outputs"][0]["directions"]) > 1e12


def test_labels_without_noise_have_no_figures_of_directions(shifted):
    X, _, Z = shifted
    html = report(BayesSpARRegressor().fit(X, np.ones(len(X))), Z).html()
    assert html.count("<svg") == 2  # predictions, wide and narrow; all errors are zero
    assert 'class="inflation"' not in html
    assert 'class="plane"' not in html
    assert 'type="range"' not in html


@pytest.mark.usefixtures("plain_figures")
def test_groups_are_sorted_by_the_error_of_the_adapted_weights(shifted):
    X, y, Z = shifted
    groups = np.where(np.abs(Z[:, 1]) > 20.0, "far", "near")
    found = report(BayesSpARRegressor().fit(X, y), Z, target_groups=groups)
    by_group = found.as_dict()["outputs"][0]["groups"]
    adapted = {
        group: next(f["rmse"] for f in forecasts if f["name"] == "Bayes-SpAR") for group, forecasts in by_group.items()
    }
    assert adapted["far"] > adapted["near"]
    assert re.findall(r'role="rowheader"><bdi>(\w+)', found.html()) == ["far", "near"]


@pytest.mark.usefixtures("plain_figures")
@pytest.mark.parametrize(("scale", "has_commas"), [(100.0, True), (1e4, False)])
def test_the_costs_are_all_powers_of_ten_if_one_is_very_large(shifted, scale, has_commas):
    X, y, Z = shifted
    found = report(SpARRegressor().fit(X, scale * y), Z)
    costs = [d[key] for d in found.as_dict()["outputs"][0]["directions"] for key in ("keeping", "removing")]
    assert (max(costs) < 1e9) == has_commas
    assert any(1e4 <= cost < 1e9 for cost in costs)
    rows = found.html().partition('<table class="sortable">')[2].partition("</table>")[0]
    shown = re.findall(r'<th scope="row">\d+</th><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td>', rows)
    assert any("," in cost for pair in shown for cost in pair) == has_commas


@pytest.mark.usefixtures("plain_figures")
def test_no_columns_are_listed_if_almost_nothing_was_removed():
    X, y, Z = make_unshifted()
    for estimator in (BayesSpARRegressor(), SpARRegressor(alpha=0.0)):
        html = report(estimator.fit(X, y), Z).html()
        assert 'class="loads"' not in html
        assert "o0-columns-h" not in html


def test_bars_of_columns_are_shares_of_the_full_width(made, html):
    widths = [float(width) for width in re.findall(r'class="bar"[^>]*><span style="width: ([\d.]+)%"', html)]
    shares = [100.0 * share for _, share in made.inspection.outputs[0].columns]
    assert widths == pytest.approx(shares, abs=0.05)
    assert len(widths) > 0


def test_no_point_of_the_first_figure_is_outside_its_interval(shifted):
    X, y, Z = shifted
    labels = np.r_[Z[:40, 0], np.full(50, np.nan)]
    for est in (BayesSpARRegressor(), SpARRegressor()):
        found = report(est.fit(X, y), Z, y=labels).as_dict()
        output = found["outputs"][0]
        rows = _list_errors(found, output, {f["name"]: f for f in output["forecasts"]})
        assert [row["kind"] for row in (rows[0], *rows[-2:])] == ["home", "true", "expected"]  # the last: corrected
        for row in rows[1:]:
            low, high = row["interval95"]
            assert low <= row["value"] <= high
            if row["interval80"] is not None:
                assert low <= row["interval80"][0] <= row["value"] <= row["interval80"][1] <= high


@pytest.mark.usefixtures("plain_figures")
def test_the_share_of_other_columns_is_shown():
    X, y, Z = make_unshifted(n=80, d=60)
    output = report(BayesSpARRegressor().fit(X, y), Z)
    listed = output.as_dict()["outputs"][0]["columns"]
    rest = 1.0 - sum(share for _, share in listed)
    assert f"{60 - len(listed)} other columns: {100 * rest:.1f}" in extract_text(output.html())


@pytest.mark.usefixtures("plain_figures")
def test_the_first_card_has_three_numbers(shifted):
    X, y, Z = shifted
    for labels in (None, np.r_[Z[:40, 0], np.full(50, np.nan)]):
        found = report(BayesSpARRegressor().fit(X, y), Z, y=labels)
        output, html = found.as_dict()["outputs"][0], found.html()
        card = html[html.index('<dl class="numbers">') : html.index("</dl>")]
        numbers = re.findall(r"<dd>(.*?)</dd>", card)
        expected = next(f for f in output["forecasts"] if f["name"] == output["recommended"])
        rate = (
            output["base_rate"]
            and f"{100 * output['base_rate']['n_exceeded'] / output['base_rate']['n_tasks']:.0f}\xa0%"
        )
        third = rate if labels is None else format_number(output["labels"]["rmse"], 3)
        assert numbers == [format_number(output["home"], 3), format_number(expected["rmse"], 3), third]


@pytest.mark.usefixtures("plain_figures")
def test_only_labels_that_confirm_are_green():
    X, y, Z = make_unshifted()
    est = BayesSpARRegressor().fit(X, y)
    labels = Z.sum(axis=1) + np.random.default_rng(1).normal(size=len(Z))
    for target_labels, severity in ((None, "info"), (labels, "good"), (labels + 9.0, "serious")):
        html = report(est, Z, y=target_labels).html()
        assert f'<section class="first {severity}"' in html


@pytest.mark.usefixtures("plain_figures")
def test_the_expert_sections_are_folded_and_show_the_method_in_use(html, shifted):
    X, y, Z = shifted
    for page, has_rule in ((html, True), (report(BayesSpARRegressor().fit(X, y), Z).html(), False)):
        assert '<details class="experts">' in page
        assert page.index('<details class="experts">') > page.index("o0-findings-h")
        assert ('type="range"' in page) == has_rule
        assert ('class="plane"' in page) == has_rule


def test_the_findings_keep_their_order_and_leave_out_the_headline(made, html):
    found = made.as_dict()
    listed = re.findall(r'<li id="o0-(\w+)" class="(\w+)"', html)
    expected = [(f["code"], f["severity"]) for f in found["findings"] if f["code"] != "SPAR001"]
    assert listed == expected
    assert len(listed) == len(found["findings"]) - 1


def test_long_names_and_names_in_any_script_cause_no_warning(shifted):
    X, y, Z = shifted
    names = ["温度", "مساحة", "a" * 300, "b" * 300 + "end", "📈", "$x_{1}$", "{{ 7 * 7 }}", "</style>"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = report(
            BayesSpARRegressor().fit(X, y),
            Z,
            columns=names,
            outputs=["c" * 300],
        )
        html = found.html()
    assert "{{ 7 * 7 }}" in html
    assert "</style><" not in html.split("</head>")[1]
    assert "a" * 300 not in extract_text(html)


def test_the_text_of_the_page(html, golden):
    labels = re.findall(r'aria-label="([^"]*)"', html)
    body = re.sub(r"<svg.*?</svg>|<script.*?</script>|<style.*?</style>|<tbody.*?</tbody>", "", html, flags=re.S)
    lines = re.sub(r"</(p|h\d|li|dt|dd|tr|figcaption|summary|label|button)>", "\n", re.sub(r"\s+", " ", body))
    text = re.sub(r" *\n\s*", "\n", re.sub(r"<[^>]*>", " ", lines)).strip() + "\n" + "\n".join(dict.fromkeys(labels))
    text = re.sub(r"\d[\d,.]*\d|\d", "#", unescape(text).replace("\xa0", " "))  # digits depend on the machine
    golden("report_page", re.sub(r"#·#[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", "#", re.sub(r" +", " ", text)))


def test_the_first_picture_has_its_key_and_its_labels_on_every_screen(html):
    """The key is text below the picture, because a narrow figure has no room for it."""
    picture = re.search(r'<figure class="picture">.*?</figure>', html, flags=re.S).group()
    caption = picture.rpartition("<figcaption>")[2]
    assert "80" in caption
    assert "95" in caption
    assert "at home" in caption
    for size in ("wide", "narrow"):
        drawn = picture.partition(f'<div class="{size}">')[2].partition("</svg>")[0]
        assert "expected, least squares" in drawn
        assert ">RMSE<" in drawn
