"""Write ``docs/speed.md``. All numbers come from the records in ``benchmarks/results``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.measure import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "speed.md"

INTRO = """# Speed

A ratio is the median time of one task divided by that of another. The tasks ran alternately, in one run on one machine.
The line below a table gives the machine and the number of turns. `python -m benchmarks.report` writes this page from
the records in `benchmarks/results`. `make bench` creates the records, except those of other libraries (`make peers`)
and of the GPU (`python -m benchmarks.gpu`).

All records except that of the GPU are from before Moments contained the skewness and kurtosis of each column, which
need one more pass over the rows. For 20,000 rows and 256 columns this takes about an eighth of the time of
`Moments.of`. On the GPU, fit and adapt took 0.39 s without this pass. The record of the GPU is from before a change
that made the pass faster.
"""

FLOOR = """\
The lower bound (*floor*) is two matrix products and two eigendecompositions. The *textbook* implementation of
Algorithm 1 uses two singular value decompositions and a pseudoinverse.
"""


def main() -> None:
    """Write the page."""
    parts = [INTRO]
    for name, title in (
        ("floor", "fit + adapt compared with the lower bound and a textbook implementation"),
        ("regressors", "fit compared with scikit-learn"),
        ("bayes", "fit + adapt of BayesSpARRegressor compared with SpARRegressor"),
        ("wide", "fit + adapt with fewer rows than features compared with the dense QR path"),
        ("peers", "fit + adapt compared with other libraries"),
    ):
        record = load(name)
        if record:
            rows = record["found"]
            content = table(list(rows[0]), [list(row.values()) for row in rows])
            parts += [f"## {title}\n", *([FLOOR] if name == "floor" else []), content, machine_line(record)]
    parts += growth() + streaming() + cluster() + gpu() + cmixup() + seeds() + imports()
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(f"wrote {PAGE}")


def growth() -> list[str]:
    record = load("growth")
    if not record:
        return []
    rows = [[name, ", ".join(f"{s:.3g}" for s in f["seconds"]), f["exponent"]] for name, f in record["found"].items()]
    return [
        "## Growth of fit + adapt with rows and features\n",
        table(["varied", "seconds", "fitted exponent"], rows),
        machine_line(record),
    ]


def streaming() -> list[str]:
    record = load("streaming")
    if not record:
        return []
    found = record["found"]
    rows = [[task, s, found["file_gb"] / s] for task, s in found["seconds"].items()]
    text = (
        f"Streaming reaches {found['speed']:.0%} of the speed of the slower of reading and multiplying. The peak "
        f"memory of the process was {found['peak_gb']:.2f} GB."
    )
    title = f"## Streaming a Parquet file of {found['file_gb']:.1f} GB\n"
    return [title, table(["task", "seconds", "GB / s"], rows), wrap(text), machine_line(record)]


def cluster() -> list[str]:
    record = load("cluster")
    if not record:
        return []
    found = record["found"]
    text = (
        f"Two worker processes took {found['ratio']:.2f} times as long as local streaming of the same "
        f"{record['rows']:,} rows. Both use both cores. The weights differ from those of a fit in memory by "
        f"{found['difference']:.0e}."
    )
    return ["## Dask\n", wrap(text), machine_line(record)]


def gpu() -> list[str]:
    record = load("gpu")
    if not record:
        return []
    found, machine = record["found"], record["machine"]
    rows = [[task, s] for task, s in found["seconds"].items()]
    title = f"## {record['rows']:,} x {record['features']} float32 on one {machine['gpu']}\n"
    text = f"The weights differ from those of the CPU by {found['difference']:.0e}, relative to the largest."
    return [title, table(["task", "seconds"], rows), wrap(text), machine_line(record)]


def cmixup() -> list[str]:
    record = load("cmixup")
    if not record:
        return []
    found = record["found"]
    rows = [[f["way"], f"{f['rows']:,}", f["prepare"], f["draw"], f["bytes"] / 1e6] for f in found["curves"]]
    mlp, resnet = found["mlp"], found["resnet18"]
    text = (
        "All three methods draw from the same distribution. *Published* fits one kernel density per sample and calls "
        "`choice` per draw. *All pairs* computes the N x N matrix with array operations and bisects its cumulative "
        "sums. *Ours* sorts the labels. Times are processor seconds of one thread.\n\n"
        f"At 40,000 rows an epoch of the paper's MLP (17 -> 128 -> 128 -> 1, batches of 32) takes {mlp['ERM']:.3g} s "
        f"with ERM and {mlp['overhead']:.0%} more with C-Mixup; the draw alone takes {mlp['draw'] / mlp['ERM']:.1%}. "
        f"For ResNet-18 at 28 x 28 (batches of 64; {resnet['device']}; extrapolated from a few steps), the slower of "
        f"the two draws, from the whole set or within batches, takes {resnet['share']:.2%} of an epoch of ERM. The "
        f"total overhead of C-Mixup is {resnet['overhead']:.0%}."
    )
    picture = "![Time and memory of the three methods as a function of the number of rows](figures/cmixup.png)\n"
    header = ["method", "rows", "prepare once, s", "draw per epoch, s", "peak MB"]
    return ["## Drawing the partners of C-Mixup\n", picture, table(header, rows), wrap(text), machine_line(record)]


def seeds() -> list[str]:
    record = load("seeds")
    if not record:
        return []
    header = ["objective", "together", "one by one", "ratio", f"{record['full_epochs']} epochs together"]
    rows = [[name, f["as one"], f["one by one"], f["ratio"], f["full"]] for name, f in record["found"].items()]
    title = f"## Training ten seeds together: SkillCraft, {record['epochs']} epochs, processor seconds of one thread\n"
    return [title, table(header, rows), machine_line(record)]


def imports() -> list[str]:
    record = load("imports")
    if not record:
        return []
    seconds = record["found"]
    reference = seconds["import sklearn.linear_model"]
    rows = [[f"`{code}`", s, s / reference] for code, s in seconds.items()]
    return ["## Import time\n", table(["code", "seconds", "ratio to scikit-learn"], rows), machine_line(record)]


def load(name: str) -> dict[str, Any] | None:
    """Return a record, or None if it was not made."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def wrap(text: str) -> str:
    """Wrap paragraphs at 120 characters. A paragraph that starts with a dash is an item of a list."""
    return "\n\n".join(map(wrap_paragraph, text.strip().split("\n\n"))) + "\n"


def wrap_paragraph(text: str) -> str:
    """Wrap one paragraph, or one item of a list, at 120 characters."""
    indent = "  " if text.startswith("- ") else ""
    return fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def write_list(items: Iterable[str]) -> str:
    """Return a Markdown list with wrapped lines."""
    return "\n".join(wrap_paragraph(f"- {item}") for item in items) + "\n"


def table(header: list[str], rows: list[list[Any]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def machine_line(record: dict[str, Any]) -> str:
    """Return the processor, the versions and the number of turns of a record."""
    m = record["machine"]
    blas, turns = ", ".join(m["blas"]), record.get("turns", 1)
    return wrap(f"*{m['processor']}, {m['cores']} cores; numpy {m['numpy']}, {blas}; {turns} turns.*")


if __name__ == "__main__":
    main()
