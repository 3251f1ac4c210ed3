"""``spar demo``: forecast, adapt and correct with a few labels on real data; compare forecasts with true errors."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from pyspar.errors import need
from pyspar.io.atomic import whole_files
from pyspar.terminal import handle_errors, show_progress

EPILOG = "Example: spar demo --out demo-output"


def demo(
    out: Annotated[Path, typer.Option(help="The folder for demo.png and demo.json.")] = Path("demo-output"),
    json: Annotated[bool, typer.Option("--json", help="Print demo.json on stdout, and nothing else.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Forecast errors, adapt, correct with ten labels on real data, and compare each forecast with the true error."""
    with handle_errors(debug=debug):
        need("matplotlib", "report")
        from threadpoolctl import threadpool_limits

        from pyspar.demo.output import describe_story, draw_story
        from pyspar.demo.story import load_traffic, run_demo

        data = load_traffic()
        out.mkdir(parents=True, exist_ok=True)
        # On a busy machine, several threads are slower for tables of this size.
        with show_progress() as progress, threadpool_limits(1):
            story = run_demo(data, progress)
        content = dumps(story.as_dict(), indent=2)
        files = [out / "demo.png", out / "demo.json"]
        with whole_files(files) as (figure, numbers):
            draw_story(story, data, figure)
            numbers.write_text(f"{content}\n", encoding="utf-8")
        paragraphs = [*describe_story(story), f"Wrote {files[0]} and {files[1]}."]
        typer.echo(content if json else "\n\n".join(paragraphs))
