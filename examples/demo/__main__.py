"""Run the demo: ``make demo``, or ``python -m examples.demo --out FOLDER``.

It forecasts errors, adapts, corrects with ten labels on real data, and compares each forecast with the true error.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from examples.demo.output import describe_story, draw_story
from examples.demo.story import load_traffic, run_demo
from threadpoolctl import threadpool_limits


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="the folder for demo.png and demo.json")
    out = parser.parse_args().out
    data = load_traffic()
    with threadpool_limits(1):  # on a busy machine, several threads are slower for tables of this size
        story = run_demo(data)
    out.mkdir(parents=True, exist_ok=True)
    draw_story(story, data, out / "demo.png")
    (out / "demo.json").write_text(json.dumps(story.as_dict(), indent=2) + "\n", encoding="utf-8")
    print("\n\n".join([*describe_story(story), f"Wrote {out / 'demo.png'} and {out / 'demo.json'}."]))


if __name__ == "__main__":
    main()
