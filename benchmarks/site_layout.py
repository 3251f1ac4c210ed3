"""Open every page of the built site in Chromium and list problems: ``make docs``, ``python -m benchmarks.site_layout``.

Each page is opened at 1280 px (light and dark) and 390 px. It fails if it scrolls sideways, loads anything from the
network, logs an error, has a formula that MathJax did not set, or text with too little contrast; at 1280 px also if a
line of code or a formula needs a scrollbar. It needs chromium and websocket-client. ``--out FOLDER`` writes a picture
of each page.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SITE = Path(__file__).parents[1] / "site"
SCREENS = {"1280-light": (1280, "light"), "1280-dark": (1280, "dark"), "390-light": (390, "light")}
"""The widths in CSS pixels and the colours in which each page is opened."""

PROBLEMS = r"""
const problems = [], width = document.documentElement.clientWidth, wide = width > 1000;
const scrolls = e => e && (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
const start = e => e.textContent.trim().replace(/\s+/g, ' ').slice(0, 60);
if (document.documentElement.scrollWidth > width) problems.push('the page scrolls sideways');
for (const e of document.querySelectorAll('main *')) {
  if (e.closest('dialog, .bd-sidebar-secondary') || e.getBoundingClientRect().right <= width + 1) continue;
  if (!scrolls(e.parentElement)) problems.push('too wide: ' + e.tagName + ' ' + start(e));
}
for (const e of document.querySelectorAll('.bd-sidebar-secondary *'))
  if (wide && e.getBoundingClientRect().right > width + 1) problems.push('too wide: ' + e.tagName + ' ' + start(e));
for (const e of document.querySelectorAll('main .math'))
  if (!e.querySelector('mjx-container') || e.querySelector('mjx-merror')) problems.push('formula: ' + e.textContent);
const needed = e => e.matches('pre') ? e.scrollWidth : e.querySelector('mjx-math').getBoundingClientRect().width;
for (const e of document.querySelectorAll(wide ? 'main pre, main .math' : 'main span.math'))
  if (needed(e) > e.clientWidth + 1) problems.push('scrollbar: ' + e.tagName + ' ' + start(e));
for (const r of performance.getEntriesByType('resource'))
  if (/^https?:/.test(r.name)) problems.push('loads ' + r.name);
const numbers = colour => colour.match(/[\d.]+/g).map(Number);
const light = colour => numbers(colour).slice(0, 3).map(v => v / 255)
  .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const opaque = e => { const c = numbers(getComputedStyle(e).backgroundColor); return c.length < 4 || c[3] > 0.5; };
const faint = new Set();
for (const e of document.querySelectorAll('main article *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
  let behind = e;
  while (behind.parentElement && !opaque(behind)) behind = behind.parentElement;
  const [a, b] = [getComputedStyle(e).color, getComputedStyle(behind).backgroundColor].map(light);
  if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 3) faint.add(e.tagName + '.' + e.className);
}
for (const e of faint) problems.push('too little contrast: ' + e);
return problems;
"""
IS_READY = "document.readyState === 'complete' && (!document.querySelector('main .math') || !!window.MathJax?.startup)"
FORMULAS_ARE_SET = "Promise.resolve(window.MathJax?.startup?.promise).then(() => document.fonts.ready).then(() => true)"


class Browser:
    """A tab of Chromium, controlled by its DevTools protocol."""

    def __init__(self, address: str) -> None:
        import websocket

        self.socket = websocket.create_connection(address, timeout=60, suppress_origin=True)
        self.count, self.errors = 0, []
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result. Errors that pages log in the meantime are stored."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while (message := json.loads(self.socket.recv())).get("id") != self.count:
            if message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.errors.append(message["params"]["entry"]["text"])
            if message["method"] == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"]["text"])
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page; a promise is awaited."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def use_screen(self, width: int, colours: str) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500
        )
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])

    def open(self, page: Path) -> list[str]:
        """Open a page and return its problems."""
        self.errors.clear()
        self.send("Page.navigate", url=page.as_uri())
        deadline = time.monotonic() + 30
        while not self.evaluate(f"location.href === {page.as_uri()!r} && {IS_READY}"):
            if time.monotonic() > deadline:
                return ["not loaded after 30 seconds"]
            time.sleep(0.05)
        self.evaluate(FORMULAS_ARE_SET)
        return [*self.evaluate(f"(() => {{{PROBLEMS}}})()"), *self.errors]

    def take_picture(self, path: Path) -> None:
        """Write the whole page, or its first 16,000 pixels, as a PNG file."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16_000), "scale": 1}
        picture = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start Chromium without a window, and stop it at the end."""
    from urllib.request import urlopen

    folder = Path(tempfile.mkdtemp(prefix="pyspar-chromium-"))
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
    command = ["chromium", *options, "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not (folder / "DevToolsActivePort").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("chromium did not start; try: chromium --headless=new about:blank")
            time.sleep(0.1)
        port = (folder / "DevToolsActivePort").read_text().split()[0]
        with urlopen(f"http://127.0.0.1:{port}/json/list") as reply:
            (tab,) = [entry for entry in json.load(reply) if entry["type"] == "page"]
        yield Browser(tab["webSocketDebuggerUrl"])
    finally:
        process.terminate()
        process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.site_layout", description=__doc__)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write a picture of each page")
    out = parser.parse_args().out
    pages = [page for page in sorted(SITE.rglob("*.html")) if "_static" not in page.parts]
    if not pages:
        print(f"no pages in {SITE}; build the site with: make docs")
        return 2
    failed = set()
    with open_browser() as browser:
        for screen, (width, colours) in SCREENS.items():
            browser.use_screen(width, colours)
            for page in pages:
                name = page.relative_to(SITE)
                for problem in browser.open(page):
                    failed.add(name)
                    print(f"{name} at {screen}: {problem}", flush=True)
                if out is not None:
                    out.mkdir(parents=True, exist_ok=True)
                    browser.take_picture(out / f"{'-'.join(name.with_suffix('').parts)}-{screen}.png")
    print(f"{len(pages)} pages at {', '.join(SCREENS)}: {len(failed)} with problems")
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main())
