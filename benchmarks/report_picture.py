"""Take the screenshot of the report for the documentation: ``python benchmarks/report_picture.py``.

Requires the extras report and dev, Debian's chromium and chromium-driver, and the data set communities-and-crime.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path

from pyspar import BayesSpARRegressor, report
from pyspar.paper.data import load

PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "report.png"
WIDTH = 880


def main() -> None:
    """Make the report, open it in a browser, and save a screenshot of the first card and the findings."""
    from selenium import webdriver

    task = load("communities-and-crime")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        report(BayesSpARRegressor().fit(task.train.X, task.train.y), task.test.X).save(page)
        try:
            size = {"width": WIDTH, "height": 1200, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            light = [{"name": "prefers-color-scheme", "value": "light"}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
            browser.get(page.as_uri())
            bottom = "return document.querySelector('.experts').getBoundingClientRect().top"
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": browser.execute_script(bottom) + 14, "scale": 1}
            capture = {"format": "png", "clip": clip, "captureBeyondViewport": True}
            screenshot = browser.execute_cdp_cmd("Page.captureScreenshot", capture)
        finally:
            browser.quit()
    PICTURE.write_bytes(base64.b64decode(screenshot["data"]))


if __name__ == "__main__":
    main()
