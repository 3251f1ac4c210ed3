"""The page in a browser: it loads without errors and requests, and slider, pointer and keyboard work."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, SpARRegressor, report

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
selenium = pytest.importorskip("selenium", reason="selenium drives the browser; it comes with the extra dev")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs Debian's chromium and chromium-driver")

ACTIONS = "return [...document.querySelectorAll('.plane .wide circle')].map(c => c.getAttribute('class')).join(' ')"
LAYOUT_PROBLEMS = """
const problems = [];
for (const svg of document.querySelectorAll('svg')) {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  if (box.width) texts.forEach(([words, a], i) => {
    if (a.left < box.left - 1 || a.right > box.right + 1 || a.top < box.top - 1 || a.bottom > box.bottom + 1)
      problems.push('cut: ' + words);
    for (const [other, b] of texts.slice(i + 1))
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
        problems.push(words + ' over ' + other);
  });
}
return problems;
"""
OPEN = "document.querySelectorAll('details').forEach(d => { d.open = true; })"
RULE = "return document.querySelector('.plane .wide [id$=\"-rule\"] path').getAttribute('d')"


@pytest.fixture(scope="module")
def driver():
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield browser
    browser.quit()


@pytest.fixture
def page(driver, html, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(html, encoding="utf-8")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [_theme("light")]})
    driver.get_log("performance")
    driver.get_log("browser")
    driver.get(path.as_uri())
    driver.execute_script(OPEN)
    return driver


def test_the_page_loads_without_errors_and_requests(page):
    assert page.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in urls if url.startswith("file:")]) == 1


def test_the_slider_changes_the_picture_and_the_counts(page, made):
    count = "return Number(document.querySelector('.count').textContent)"
    directions = made.as_dict()["outputs"][0]["directions"]
    first, line = page.execute_script(ACTIONS), page.execute_script(RULE)
    assert first.count("gone") == page.execute_script(count)
    for place in (6.0, 2.0, 1.0, 0.3):
        _move(page, place)
        expected = sum(d["doubt"] >= 10**-place * (1 - 1e-9) for d in directions if d["keeping"] > 0)
        assert page.execute_script(count) == expected
        assert page.execute_script(ACTIONS).count("gone") == expected
    assert page.execute_script(ACTIONS) != first
    assert page.execute_script(RULE) != line
    page.find_element("css selector", ".reset").click()
    assert page.execute_script(ACTIONS) == first
    assert page.get_log("browser") == []


def test_the_script_computes_the_number_that_the_page_shows_first(page, made):
    # The page shows the forecast of SpAR. The script computes it as a sum over directions.
    shown = page.find_element("css selector", ".after").text
    page.find_element("css selector", ".reset").click()
    spar = next(f for f in made.as_dict()["outputs"][0]["forecasts"] if f["name"] == "SpAR")
    assert float(shown) == pytest.approx(spar["rmse"], rel=5e-4)
    assert page.find_element("css selector", ".after").text == shown
    assert page.find_element("css selector", ".alpha").text == "0.999"


def test_points_above_the_line_are_the_removed_ones(page):
    _move(page, 2.0)
    above = page.execute_script(
        "const path = document.querySelector('.plane .wide [id$=\"-rule\"] path').getAttribute('d').match(/-?[\\d.]+/g)"
        ".map(Number); const [x0, y0, x1, y1] = path;"
        "return [...document.querySelectorAll('.plane .wide circle')].map(c => {"
        "const x = Number(c.getAttribute('cx'));"
        "return [Number(c.getAttribute('cy')) - (y0 + (y1 - y0) * (x - x0) / (x1 - x0)), c.getAttribute('class')]; })"
    )
    # Positions of circles are rounded to one decimal, so half a pixel is tolerated.
    for below_line, kind in above:
        assert abs(below_line) < 0.5 or (kind == "gone") == (below_line < 0)


def test_pointing_at_a_direction_shows_its_details(page):
    from selenium.webdriver import ActionChains

    circle = page.find_element("css selector", ".plane .wide circle")
    # A scroll event hides the details, so wait for the frame after the scrolling.
    page.execute_async_script(
        "arguments[0].scrollIntoView({block: 'center'});"
        "const done = arguments[1]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))",
        circle,
    )
    ActionChains(page).move_to_element(circle).perform()
    tip = page.find_element("id", "tip")
    assert tip.is_displayed()
    assert tip.text.startswith("Direction 1:")
    assert len(tip.text.splitlines()) == 5
    ActionChains(page).move_to_element(page.find_element("css selector", "h1")).perform()
    assert not tip.is_displayed()


def test_the_keyboard_reaches_and_moves_the_slider(page):
    from selenium.webdriver.common.keys import Keys

    slider = page.find_element("css selector", "input[type=range]")
    page.execute_script("arguments[0].focus()", slider)
    outline = "return getComputedStyle(arguments[0]).outlineStyle"
    before, description = float(slider.get_attribute("value")), slider.get_attribute("aria-valuetext")
    slider.send_keys(Keys.HOME)
    assert float(slider.get_attribute("value")) == 0.0
    assert page.find_element("css selector", ".count").text == "0"
    slider.send_keys(Keys.ARROW_RIGHT)
    assert 0.0 < float(slider.get_attribute("value")) < before
    assert slider.get_attribute("aria-valuetext") != description
    assert page.execute_script(outline, slider) != "none"


def test_the_table_sorts_by_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    page.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    button = page.find_element("css selector", "table.sortable th:nth-child(3) button")
    button.send_keys(Keys.ENTER)
    values = page.execute_script(
        "return [...document.querySelectorAll('table.sortable tbody tr')].map(r => Number(r.cells[2].dataset.value))"
    )
    assert values == sorted(values, reverse=True)
    assert page.execute_script("return arguments[0].parentElement.getAttribute('aria-sort')", button) == "descending"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast(page, theme):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [_theme(theme)]})
    names = ["ink", "muted", "keep", "remove", "third", "good", "warning", "serious", "info", "bg", "card"]
    colours = dict(zip(names, page.execute_script(
        "const s = getComputedStyle(document.documentElement);"
        "return arguments[0].map(n => s.getPropertyValue('--' + n).trim())", names
    )))  # fmt: skip
    for name in names[:-2]:
        for background in ("bg", "card"):
            assert _contrast(colours[name], colours[background]) >= 4.5, (theme, name, background)


def test_the_button_changes_the_theme(page):
    background = "return getComputedStyle(document.body).backgroundColor"
    before = page.execute_script(background)
    page.find_element("id", "theme").click()
    assert page.execute_script(background) != before
    page.find_element("id", "theme").click()
    assert page.execute_script(background) == before


def test_the_page_fits_a_telephone(page):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        page.refresh()
        page.execute_script(OPEN)
        assert page.execute_script("return document.documentElement.scrollWidth") == 390
        shown = (
            "return [...document.querySelectorAll('.narrow, .wide')].filter(e => e.offsetParent).map(e => e.className)"
        )
        assert set(page.execute_script(shown)) == {"narrow"}
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture(scope="module")
def awkward():
    """Reports with long names, names in other scripts, huge numbers, tiny numbers or little content."""
    rng = np.random.default_rng(0)
    names = ["<script>alert(1)</script>", "a" * 200, "مساحة البيت", "温度", 'say "x"', "$y$", "C:\\temp", "tram"]
    X, Z = rng.normal(size=(60, 8)), rng.normal(size=(90, 8)) * [1, 30, 1, 1, 1, 1, 1, 9]
    y = 3e5 + 1e5 * X[:, 0] + 4e4 * rng.normal(size=60)
    groups = np.array(["<b>the north</b> beyond the river", "شمال", "e"])[np.arange(90) % 3]
    thin = X * np.geomspace(1, 1e-10, 8)
    labels = np.column_stack([y, np.ones(60)])
    return {
        "prices": report(
            BayesSpARRegressor(alpha=0.999).fit(X, y),
            Z,
            columns=names,
            target_groups=groups,
            outputs=["price" * 30],
        ),
        "tiny": report(BayesSpARRegressor().fit(X[:30, :2], X[:30, 0] + X[30:, 0]), Z[:20, :2]),
        "far": report(SpARRegressor().fit(thin, thin @ np.ones(8) + 0.1 * X[:, 1]), X),
        "two": report(BayesSpARRegressor().fit(X, labels), Z, target_groups=groups),
    }


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["prices", "tiny", "far", "two"])
def test_no_text_overlaps_is_cut_off_or_needs_horizontal_scrolling(driver, awkward, tmp_path, name, width):
    awkward[name].save(tmp_path / "report.html")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        driver.get_log("browser")
        driver.get((tmp_path / "report.html").as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        driver.execute_script(OPEN)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert driver.execute_script(LAYOUT_PROBLEMS) == []
        tables = ".groups, .forecasts" + (", .sortable" if width > 1000 else "")
        inner = f"return [...document.querySelectorAll('{tables}')].map(t => t.parentElement)"
        for box in driver.execute_script(inner):
            assert driver.execute_script("return arguments[0].scrollWidth - arguments[0].clientWidth", box) <= 0
        assert driver.get_log("browser") == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_print_shows_whole_tables_in_light_colours_without_controls(driver, awkward, tmp_path):
    awkward["prices"].save(tmp_path / "report.html")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [_theme("dark")]})
    # The width of A4 paper with margins of one centimetre.
    size = {"width": 718, "height": 1047, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        driver.get((tmp_path / "report.html").as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 718
        assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        hidden = (
            "return ['input', '.reset', '#theme', '.print-hidden', '.narrow'].every(w => !document.querySelector(w)"
        )
        assert driver.execute_script(hidden + ".getClientRects().length)")
        whole = (
            "return [...document.querySelectorAll('figure, .interactive')].map(e => getComputedStyle(e).breakInside)"
        )
        assert set(driver.execute_script(whole)) == {"avoid"}
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [_theme("light")]})


def test_shares_and_names_are_hidden_if_no_direction_is_removed(page):
    parts = "return [...document.querySelectorAll('.some')].map(e => e.getClientRects().length > 0)"
    _move(page, 3.0)
    assert all(page.execute_script(parts))
    _move(page, 0.0)
    assert not any(page.execute_script(parts))
    assert page.find_element("css selector", ".count").text == "0"


def test_script_and_page_format_numbers_alike(driver, awkward, tmp_path):
    awkward["prices"].save(tmp_path / "report.html")
    driver.get((tmp_path / "report.html").as_uri())
    driver.execute_script(OPEN)
    outcome = driver.find_element("css selector", ".outcome")
    before = outcome.text
    assert "," in driver.find_element("css selector", ".after").text
    driver.find_element("css selector", ".reset").click()
    assert outcome.text == before


def _move(page, place: float) -> None:
    page.execute_script(
        "const s = document.querySelector('input[type=range]');"
        "s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
        place,
    )


def _theme(name: str) -> dict[str, str]:
    return {"name": "prefers-color-scheme", "value": name}


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of the Web Content Accessibility Guidelines."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
