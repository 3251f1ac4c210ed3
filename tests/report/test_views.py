"""Print, notebook, JSON and page show the same findings, escape names, and lose nothing."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, InputError, SpARRegressor, inspect
from pyspar.report.page import render_page

NAMES = ["area", "garden <b>&", "$rooms$", "<script>alert(1)</script>", "\u202eevil\x1b[2J", "date"]
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """The elements of a page: checks that they are closed, and collects texts, ids and addresses."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.texts, self.ids, self.addresses = [], [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open += [] if tag in VOID else [tag]
        for name, value in attributes:
            self.ids += [value] if name == "id" else []
            self.addresses += [value] if name in ("src", "href") else []
            assert not name.startswith("on")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 6)), rng.normal(size=(200, 6)) * [1, 1, 1, 1, 1, 8]
    return X, X @ [2, 1, 1, 0, 0, 0] + rng.normal(size=300), Z, Z @ [2, 1, 1, 0, 0, 0] + rng.normal(size=200)


@pytest.fixture(scope="module")
def reports(data):
    X, y, Z, truth = data
    cubic = make_pipeline(StandardScaler(), PolynomialFeatures(3), RidgeCV()).fit(X, y)
    labels = np.where(np.arange(200) < 12, truth, np.nan)
    return {
        "own": inspect(SpARRegressor().fit(X, y), Z, columns=NAMES, outputs=["price <i>"]),
        "any": inspect(cubic, Z + 3.0, source=(X, y)),
        "labels": inspect(BayesSpARRegressor().fit(X, y), Z, y=labels),
        "two": inspect(BayesSpARRegressor().fit(X, np.c_[y, -y]), Z),
        "errors of zero": inspect(BayesSpARRegressor().fit(X, np.zeros(300)), Z),
    }


@pytest.mark.parametrize("name", ["any", "labels", "own"])
def test_the_printed_report_is_short_and_complete(reports, golden, name):
    text = str(reports[name])
    golden(f"report_{name}", text)
    lines = text.split("\n")
    assert 8 <= len(lines) <= 22
    assert max(map(len, lines)) <= 120
    assert "\x1b" not in text
    for finding in reports[name].findings:
        assert finding.code in text
    assert len(str(reports[name].outputs[0])) < 2500
    assert repr(reports[name]) == text


def test_json_has_the_same_sentences_and_survives_a_round_trip(reports, tmp_path):
    for name, report in reports.items():
        report.save(tmp_path / f"{name}.json")
        loaded = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        assert loaded == report.to_dict()
        assert [finding["text"] for finding in loaded["findings"]] == [finding.text for finding in report.findings]
        assert [output["advice_text"] for output in loaded["outputs"]] == [o.advice_text for o in report.outputs]
    with pytest.raises(InputError, match=r"\.html or \.json"):
        reports["own"].save(tmp_path / "report.txt")


def test_numbers_that_are_not_finite_are_null(data):
    X, y, Z, _ = data
    X = np.c_[X, np.ones(300)]
    report = inspect(BayesSpARRegressor().fit(X, y), np.c_[Z, np.arange(200.0)])
    drift = next(column for column in report.columns if column.name == "x6")
    assert drift.is_constant
    assert math.isinf(drift.spread_ratio)
    assert "null" in json.dumps(report.to_dict(), allow_nan=False)
    assert "constant in the source" in render_page(report)


def test_the_page_is_one_valid_file_without_scripts_and_addresses(reports):
    for report in reports.values():
        html = render_page(report)
        page = Page(html)
        assert "script" not in page.tags
        assert len(page.ids) == len(set(page.ids))
        assert [address for address in page.addresses if not address.startswith(("#", "data:"))] == []
        assert "http" not in re.sub(r"http-equiv", "", html)
        text = " ".join("".join(page.texts).split())
        for finding in report.findings:
            assert finding.code in text
        for output in report.outputs:
            assert " ".join(output.advice_text.split()) in text
        assert len(html) < 100_000


def test_names_are_escaped(reports):
    html, text = render_page(reports["own"]), reports["own"]._repr_html_()
    assert "&lt;script&gt;alert(1)" in html
    assert "<b>&" not in html
    assert "price <i>" not in html + text


def test_serious_findings_are_first_in_every_view(reports):
    report = reports["any"]
    serious = [finding.text for finding in report.findings if finding.severity == "serious"]
    others = [finding.text for finding in report.findings if finding.severity != "serious"]
    assert serious
    assert others
    found = json.dumps(report.to_dict()["findings"], ensure_ascii=False)
    page = "".join(Page(render_page(report)).texts)
    for view in (str(report), found, page):
        text = " ".join(view.split())
        assert max(map(text.index, serious)) < min(map(text.index, others))
    assert "#b0221a" in report._repr_html_()


def test_a_failed_write_changes_no_file(reports, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")
    monkeypatch.setattr("pyspar.persist.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        reports["own"].save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "before"


def test_unpaired_surrogates_in_names_can_be_saved(data, tmp_path):
    X, y, Z, _ = data
    report = inspect(BayesSpARRegressor().fit(X, y), Z, columns=["a\ud800", *"bcdef"])
    for suffix in ("html", "json"):
        report.save(tmp_path / f"report.{suffix}")
    assert json.loads((tmp_path / "report.json").read_bytes())["columns"][0]["name"]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows_in_a_browser(reports, tmp_path, width):
    """A script that the test adds measures the page, because the page itself has none."""
    path = tmp_path / "report.html"
    measure = (
        "<script>document.querySelectorAll('details').forEach(d => d.open = true);"
        "document.title = document.documentElement.scrollWidth + ' ' + innerWidth</script>"
    )
    html = render_page(reports["own"]).replace("default-src 'none'; ", "").replace("</body>", f"{measure}</body>")
    path.write_text(f"<!-- {width} -->{html}", encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    done = subprocess.run(["chromium", *options, path.as_uri()], capture_output=True, text=True, timeout=120)
    found = re.search(r"<title>(\d+) (\d+)</title>", done.stdout)
    assert found, done.stderr[-500:]
    assert int(found[1]) <= int(found[2])
