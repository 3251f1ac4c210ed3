"""Open every page of the built site in Chromium and list problems: ``make docs``, ``python -m benchmarks.site_layout``.

A page fails if it is wider than a small screen, loads anything from the network, logs an error, or has a formula that
MathJax did not set. It needs selenium, and Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

SITE = Path(__file__).parents[1] / "site"
WIDTH = 390
"""The width of a small telephone in CSS pixels."""

PROBLEMS = """
const problems = [], width = document.documentElement.clientWidth;
const scrolls = e => e && (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
if (document.documentElement.scrollWidth > width) problems.push('the page scrolls sideways');
for (const e of document.querySelectorAll('main *')) {
  if (e.closest('dialog, .bd-sidebar-secondary') || e.getBoundingClientRect().right <= width + 1) continue;
  if (!scrolls(e.parentElement)) problems.push('too wide: ' + e.tagName + ' ' + e.textContent.trim().slice(0, 40));
}
for (const e of document.querySelectorAll('main .math'))
  if (!e.querySelector('mjx-container') || e.querySelector('mjx-merror')) problems.push('formula: ' + e.textContent);
for (const r of performance.getEntriesByType('resource'))
  if (/^https?:/.test(r.name)) problems.push('loads ' + r.name);
return problems;
"""
FORMULAS_ARE_SET = "return !document.querySelector('main .math') || !!document.querySelector('mjx-container')"


def open_browser() -> Any:
    """Start Chromium without a window, as wide as a small screen."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    screen = {"width": WIDTH, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    return browser


def main() -> int:
    from selenium.webdriver.support.ui import WebDriverWait

    pages = [page for page in sorted(SITE.rglob("*.html")) if "_static" not in page.parts]
    if not pages:
        print(f"no pages in {SITE}; build the site with: make docs")
        return 2
    browser, failed = open_browser(), 0
    for page in pages:
        browser.get(page.as_uri())
        WebDriverWait(browser, 20).until(lambda driver: driver.execute_script(FORMULAS_ARE_SET))
        problems = browser.execute_script(PROBLEMS)
        problems += [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        failed += bool(problems)
        for problem in problems:
            print(f"{page.relative_to(SITE)}: {problem}")
    browser.quit()
    print(f"{len(pages)} pages at {WIDTH} px, {failed} with problems")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
