"""The report: page and JSON from one object, with the same numbers, nothing from outside, and every name escaped."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import pyspar
from pyspar import BayesSpARRegressor, InputError, MissingExtraError, Moments, Report, SpARRegressor, report
from pyspar.reporting.page import page
from pyspar.wording import between, number


class Cells(HTMLParser):
    """Collects the text of table cells, row by row, under the class of their table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.ids: list[str] = []
        self._table = ""
        self._open = False

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "table":
            self._table = given.get("class", "groups")
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


def read(html: str) -> Cells:
    cells = Cells()
    cells.feed(html)
    return cells


def test_page_and_json_show_the_same_numbers(made, html):
    output = json.loads(made.json())["outputs"][0]
    rows = read(html).rows
    for shown, f in zip(rows["forecasts"][1:], output["forecasts"], strict=True):
        assert shown == [
            f["name"],
            number(f["rmse"]),
            between(f["interval80"]),
            between(f["interval95"]),
            number(f["rmse_noiseless"]),
            between(f["interval80_noiseless"]),
            between(f["interval95_noiseless"]),
            number(f["variance"]),
            number(f["bias"]),
            number(f["noise"]),
        ]
    for shown, d in zip(rows["sortable"][1:], output["directions"], strict=True):
        assert shown[1:4] == [number(d["keeping"]), number(d["removing"]), number(d["inflation"])]
    groups = {row[0]: row[1:] for row in rows["groups"][1:]}
    assert set(groups) == set(output["groups"]) == {"<i>north</i>", "south"}
    for name, forecasts in output["groups"].items():
        for shown, f in zip(groups[name], forecasts, strict=True):
            assert shown == f"{number(f['rmse'])} ({between(f['interval95'])})"
    for finding in output["findings"]:
        assert finding["code"] in html


def test_what_the_script_gets_is_what_the_json_says(made, html):
    found = json.loads(made.json())
    output = found["outputs"][0]
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, flags=re.S).group(1))["outputs"][0]
    gone = [d for d in output["directions"] if d["alpha"] <= found["alpha"]]
    after = [step for step in data["steps"] if step[0] <= data["start"] + 1e-9]
    assert len(after) == len(gone) > 0
    # Six digits are written for the script.
    named = {f["name"]: f for f in output["forecasts"]}
    assert np.sqrt(after[-1][1]) == pytest.approx(named["SpAR"]["rmse"], rel=1e-5)
    assert len(data["points"]) == len(output["directions"])


def test_names_from_files_are_text_everywhere(html):
    assert "alert(1)" in html
    assert "<script>alert(1)" not in html
    assert "<b>&" not in html
    assert "<i>north" not in html
    assert "garden &lt;b&gt;&amp;" in html
    assert "$rooms$" in html


def test_the_page_asks_for_nothing_from_outside(html):
    assert "default-src 'none'" in html
    sources = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert all(s.startswith("#") or s == "data:," for s in sources)
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


def test_ids_are_unique_and_references_lead_somewhere(html):
    ids = read(html).ids
    assert len(ids) == len(set(ids))
    pointed = re.findall(r'(?:href="#|url\(#|aria-labelledby="|aria-describedby="|for=")([\w-]+)', html)
    assert pointed
    assert set(pointed) <= set(ids)


def test_pictures_have_words_and_colours_of_the_theme(html):
    pictures = re.findall(r"<svg [^>]*>", html)
    assert len(pictures) == 10
    assert all('role="img"' in p and "aria-label=" in p for p in pictures)
    assert not re.search(r"(?:fill|stroke): #", html)


def test_the_same_data_give_the_same_bytes(made, html):
    assert made.html() == html
    assert "/tmp" not in html
    assert "/home" not in html


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(1500, 512)), rng.normal(size=(3000, 512)) * np.geomspace(10, 0.1, 512)
    est = SpARRegressor().fit(X, X[:, 0] + rng.normal(size=1500))
    return report(est, Z)


def test_five_hundred_features_stay_under_three_megabytes(large):
    html = large.html()
    assert len(html.encode()) < 3_000_000
    assert "The 400 costliest of 512 directions are drawn" in html
    assert len(json.loads(large.json())["outputs"][0]["directions"]) == 512


def test_many_outputs_with_many_columns_of_long_names_stay_under_three_megabytes(large):
    found = large.as_dict()
    (output,) = found["outputs"]
    for direction in output["directions"]:
        direction["loads"] = [[name + "_and_so_on" * 30, share] for name, share in direction["loads"]]
    found["outputs"] = [output] * 6
    html = page(found)
    assert len(html.encode()) < 3_000_000
    assert "The 200 costliest of 512 directions are drawn" in html


def test_several_outputs_have_a_section_each_up_to_six(shifted):
    X, y, Z = shifted
    Y = np.column_stack([y + k for k in range(8)])
    found = report(BayesSpARRegressor().fit(X, Y), Z)
    html = found.html()
    assert html.count("<article") == 6
    assert "2 further outputs are not shown" in html
    assert len(found.as_dict()["outputs"]) == 8
    assert len(html.encode()) < 3_000_000


def test_moments_have_no_predictions_to_show(shifted):
    X, y, Z = shifted
    found = report(SpARRegressor().fit(X, y), Moments.of(Z))
    assert "Predictions before and after" not in found.html()
    assert found.as_dict()["outputs"][0]["predictions"] is None


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y, Z: (X, np.ones(len(y)), Z),
        lambda X, y, Z: (X, X[:, 0], Z),
        lambda X, y, Z: (X[:4], y[:4], Z),
        lambda X, y, Z: (X[:, :1], y, Z[:, :1]),
        lambda X, y, Z: (X, y, np.tile(X.mean(axis=0), (3, 1))),
        lambda X, y, Z: (X * np.geomspace(1, 1e-160, 8), y, Z),
    ],
    ids=["constant label", "exact", "fewer rows than features", "one feature", "target is a point", "beyond float64"],
)
def test_no_data_make_a_page_say_nan(shifted, change):
    X, y, Z = change(*shifted)
    found = report(BayesSpARRegressor().fit(X, y), Z)
    text = re.sub(r"<script.*?</script>|<style.*?</style>", "", found.html(), flags=re.S)
    assert not re.search(r"\b(nan|NaN|inf|Infinity|None)\b", text)
    assert json.loads(found.json(), parse_constant=lambda name: pytest.fail(name))


def test_save_writes_what_the_suffix_says_and_refuses_others(made, html, tmp_path):
    made.save(tmp_path / "r.html")
    made.save(tmp_path / "r.json")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == html
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == made.json()
    with pytest.raises(InputError, match=r"\.html or \.json"):
        made.save(tmp_path / "r.pdf")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.html", "r.json"]


def test_a_report_says_how_it_was_made(made):
    found = made.as_dict()
    assert found["format"] == "pyspar-report-1"
    assert found["command"] == "pyspar.report(BayesSpARRegressor().fit(X, y), Z, groups=groups)"
    assert set(found["versions"]) == {"pyspar", "python", "numpy", "scipy", "scikit-learn"}
    assert isinstance(made, Report)


def test_the_code_on_the_page_about_reports_runs(capsys):
    page = Path(pyspar.__file__).parents[2] / "docs" / "report.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of an installed package")
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)
    exec(compile(block, page.name, "exec"), {})
    assert "expected RMSE" in capsys.readouterr().out


def test_a_missing_package_is_named_before_anything_is_drawn(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pyspar\[report\]"):
        made.html()
    assert made.json()


def test_half_a_surrogate_in_a_name_is_escaped_and_read_back(shifted, tmp_path):
    X, y, Z = shifted
    names = ["half \ud800", *map(str, range(7))]
    found = report(SpARRegressor().fit(X, y), Z, columns=names, outputs=["y\udfff"], groups=["g\udc80"] * len(Z))
    found.save(tmp_path / "r.json")
    found.save(tmp_path / "r.html")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["columns"][0] == names[0]
    assert r"y\udfff" in (tmp_path / "r.html").read_text(encoding="utf-8")
