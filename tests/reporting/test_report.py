"""The report as page and JSON: the same numbers, no external resources, and every name escaped."""

from __future__ import annotations

import json
import re
import sys
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pyspar
from pyspar import BayesSpARRegressor, InputError, MissingExtraError, Moments, Report, SpARRegressor, report
from pyspar.inspection.judgement import OUTCOMES
from pyspar.reporting.page import render_page
from pyspar.wording import format_interval, format_number


class TableParser(HTMLParser):
    """Collects the text of table cells by the class of the table, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.ids: list[str] = []
        self._table = ""
        self._open = False

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "table":
            self._table = attributes.get("class", "groups")
        elif tag == "tr":
            self.rows.setdefault(self._table, []).append([])
        elif tag in ("td", "th"):
            self.rows[self._table][-1].append("")
            self._open = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data):
        if self._open:
            self.rows[self._table][-1][-1] += data


def parse(html: str) -> TableParser:
    parser = TableParser()
    parser.feed(html)
    return parser


def test_page_and_json_show_the_same_numbers(made, html):
    output = json.loads(made.json())["outputs"][0]
    rows = parse(html).rows
    for shown, f in zip(rows["forecasts"][1:], output["forecasts"], strict=True):
        assert shown == [
            f["name"],
            format_number(f["rmse"]),
            format_interval(f["interval80"]),
            format_interval(f["interval95"]),
            format_interval(f["interval95_if_linear"]),
        ]
    for shown, d in zip(rows["sortable"][1:], output["directions"], strict=True):
        assert shown[1:4] == [format_number(d[name], 3) for name in ("keeping", "removing", "inflation")]
    groups = {row[0]: row[1:] for row in rows["groups"][1:]}
    assert set(groups) == set(output["groups"]) == {"<i>north</i>", "south"}
    for name, forecasts in output["groups"].items():
        for shown, f in zip(groups[name], forecasts, strict=True):
            assert shown == f"{format_number(f['rmse'])} ({format_interval(f['interval95'])})"
    for finding in output["findings"]:
        assert finding["code"] in html


def test_the_data_of_the_script_agree_with_the_json(made, html):
    found = json.loads(made.json())
    output = found["outputs"][0]
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, flags=re.S).group(1))["outputs"][0]
    removed = [d for d in output["directions"] if d["alpha"] <= found["alpha"]]
    after = [step for step in data["steps"] if step[0] <= data["start"] + 1e-9]
    assert len(after) == len(removed) > 0
    # The data of the script are rounded to six digits.
    named = {f["name"]: f for f in output["forecasts"]}
    assert np.sqrt(after[-1][1]) == pytest.approx(named["SpAR"]["rmse"], rel=1e-5)
    assert len(data["points"]) == len(output["directions"])


def test_names_are_escaped_everywhere(html):
    assert "alert(1)" in html
    assert "<script>alert(1)" not in html
    assert "<b>&" not in html
    assert "<i>north" not in html
    assert "garden &lt;b&gt;&amp;" in html
    assert "$rooms$" in html


def test_the_page_has_no_external_resources(html):
    assert "default-src 'none'" in html
    sources = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert all(s.startswith("#") or s == "data:," for s in sources)
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


def test_ids_are_unique_and_references_exist(html):
    ids = parse(html).ids
    assert len(ids) == len(set(ids))
    referenced = re.findall(r'(?:href="#|url\(#|aria-labelledby="|aria-describedby="|for=")([\w-]+)', html)
    assert referenced
    assert set(referenced) <= set(ids)


def test_figures_have_a_description_and_theme_colours(html):
    figures = re.findall(r"<svg [^>]*>", html)
    assert len(figures) == 10  # five, for wide and narrow screens
    assert all('role="img"' in p and "aria-label=" in p for p in figures)
    assert not re.search(r"(?:fill|stroke): #", html)


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(1500, 512)), rng.normal(size=(3000, 512)) * np.geomspace(10, 0.1, 512)
    est = SpARRegressor().fit(X, X[:, 0] + rng.normal(size=1500))
    return report(est, Z)


def test_five_hundred_features_stay_under_three_megabytes(large):
    html = large.html()
    assert len(html.encode()) < 3_000_000
    assert re.search(r"\b400 directions .*\b512\b", html)
    assert html.count("<circle") == 2 * 2 * 400 + 2 * 500  # two figures of directions, one of predictions, two widths
    assert len(json.loads(large.json())["outputs"][0]["directions"]) == 512


@pytest.mark.slow
def test_many_outputs_with_many_columns_of_long_names_stay_under_three_megabytes(large):
    found = large.as_dict()
    (output,) = found["outputs"]
    for direction in output["directions"]:
        direction["loads"] = [[name + "_and_so_on" * 30, share] for name, share in direction["loads"]]
    found["outputs"] = [output] * 6
    html = render_page(found)
    assert len(html.encode()) < 3_000_000
    assert re.search(r"\b200 directions .*\b512\b", html)


@pytest.mark.slow
def test_at_most_six_outputs_have_a_section(shifted):
    X, y, Z = shifted
    Y = np.column_stack([y + k for k in range(8)])
    found = report(BayesSpARRegressor().fit(X, Y), Z)
    html = found.html()
    assert html.count("<article") == 6
    assert re.search(r'class="notice">2 ', html)
    assert len(found.as_dict()["outputs"]) == 8
    assert len(html.encode()) < 3_000_000


@pytest.mark.usefixtures("plain_figures")
def test_the_report_of_moments_has_no_predictions(shifted):
    X, y, Z = shifted
    found = report(SpARRegressor().fit(X, y), Moments.of(Z))
    assert "o0-predictions" not in found.html()
    assert found.as_dict()["outputs"][0]["predictions"] is None


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y, Z: (X, np.ones(len(y)), Z),
        lambda X, y, Z: (X, X[:, 0], Z),
        lambda X, y, Z: (X[:4], y[:4], Z),
        lambda X, y, Z: (X[:, :1], y, Z[:, :1]),
        lambda X, y, Z: (X, y, np.tile(X.mean(axis=0), (3, 1))),
        lambda X, y, Z: (X * np.geomspace(1, 1e-58, 8), y, Z),
    ],
    ids=["constant label", "exact", "fewer rows than features", "one feature", "target is a point", "many decades"],
)
def test_no_page_contains_nan(shifted, change):
    X, y, Z = change(*shifted)
    found = report(BayesSpARRegressor().fit(X, y), Z)
    text = re.sub(r"<script.*?</script>|<style.*?</style>", "", found.html(), flags=re.S)
    assert not re.search(r"\b(nan|NaN|inf|Infinity|None)\b", text)
    assert json.loads(found.json(), parse_constant=lambda name: pytest.fail(name))


def test_save_writes_the_format_of_the_suffix_and_rejects_others(made, html, tmp_path):
    """The page that is saved was drawn again, so it is also reproducible."""
    made.save(tmp_path / "r.html")
    assert "/tmp" not in html
    assert "/home" not in html
    made.save(tmp_path / "r.json")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == html
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == made.json()
    with pytest.raises(InputError, match=r"r\.pdf"):
        made.save(tmp_path / "r.pdf")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.html", "r.json"]


def test_a_report_has_its_command_and_versions(made):
    found = made.as_dict()
    assert found["format"] == "pyspar-report-1"
    assert found["command"] == "pyspar.report(SpARRegressor().fit(X, y), Z, target_groups=target_groups)"
    assert set(found["versions"]) == {"pyspar", "python", "numpy", "scipy", "scikit-learn"}
    assert isinstance(made, Report)


def test_the_shown_call_distinguishes_the_labels_of_the_target(shifted):
    X, y, Z = shifted
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)
    found = report(model, Z, source=(X, y), y=np.zeros(len(Z)), outputs=["target"])
    assert found.command.endswith("Z, source=(X, y), y=y_target)")
    assert "'target'" in found.title
    assert found.as_dict()["before"] == "LinearRegression"


def test_the_code_in_docs_report_runs(capsys):
    page = Path(pyspar.__file__).parents[2] / "docs" / "report.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of an installed package")
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)
    exec(compile(block, page.name, "exec"), {})
    assert capsys.readouterr().out.split()[0] in OUTCOMES


def test_a_missing_package_is_named(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pyspar\[report\]"):
        made.html()
    assert made.json()


@pytest.mark.usefixtures("plain_figures")
def test_a_notebook_shows_the_verdict_and_the_page(made):
    html = made.inspection._repr_html_()
    (output,) = made.inspection.outputs
    assert escape(output.headline) in html
    assert escape(output.next_step) in html
    assert html.count(escape(output.headline)) == 1
    assert all(
        f"<b>{finding.code}</b>" in html for finding in made.inspection.findings if finding != output.findings[0]
    )
    frame = made._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "<script" not in frame


def test_the_label_has_the_name_of_its_series_and_columns_those_of_the_table(shifted):
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, Z = shifted
    X, Z = (pd.DataFrame(rows, columns=list("abcdefgh")) for rows in (X, Z))
    scale = make_column_transformer((StandardScaler(), list("abcdefgh")))
    found = report(make_pipeline(scale, BayesSpARRegressor()).fit(X, pd.Series(y, name="price")), Z)
    assert found.inspection.outputs[0].name == "price"
    assert found.inspection.columns == tuple("abcdefgh")
    assert "price" in found.title


def test_an_unpaired_surrogate_in_a_name_is_escaped_and_restored(shifted, tmp_path):
    X, y, Z = shifted
    names = ["one \ud800", *map(str, range(7))]
    found = report(SpARRegressor().fit(X, y), Z, columns=names, outputs=["y\udfff"], target_groups=["g\udc80"] * len(Z))
    found.save(tmp_path / "r.json")
    found.save(tmp_path / "r.html")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["columns"][0] == names[0]
    assert r"y\udfff" in (tmp_path / "r.html").read_text(encoding="utf-8")
