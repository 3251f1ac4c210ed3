"""Write ``docs/speed.md`` from the records in ``benchmarks/results``: the page says nothing that was not measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "speed.md"

INTRO = """# Speed

Ratios measured in one run on one machine; the things compared take turns and medians are divided. Made by
`python -m benchmarks.report` from the records in `benchmarks/results`, which `make bench` writes (`make peers` and
`python -m benchmarks.gpu` for their tables).
"""


def main() -> None:
    parts = [INTRO]
    for name, title in (
        ("floor", "fit + adapt against the floor and the textbook"),
        ("regressors", "fit against scikit-learn"),
        ("peers", "fit + adapt against other libraries"),
    ):
        record = load(name)
        if record:
            rows = record["found"]
            parts += [f"## {title}\n", table(list(rows[0]), [list(row.values()) for row in rows]), where(record)]
    parts += growth() + streaming() + cluster() + gpu() + imports()
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(f"wrote {PAGE}")


def growth() -> list[str]:
    record = load("growth")
    if not record:
        return []
    rows = [[name, ", ".join(f"{s:.3g}" for s in f["seconds"]), f["exponent"]] for name, f in record["found"].items()]
    return ["## Growth\n", table(["growing", "seconds", "fitted exponent"], rows), where(record)]


def streaming() -> list[str]:
    record = load("streaming")
    if not record:
        return []
    found = record["found"]
    rows = [[what, s, found["file_gb"] / s] for what, s in found["seconds"].items()]
    said = (
        f"{found['speed']:.0%} of the speed of the slower of reading and multiplying; the process never held more than "
        f"{found['peak_gb']:.2f} GB.\n"
    )
    title = f"## A Parquet file of {found['file_gb']:.1f} GB, streamed\n"
    return [title, table(["what", "seconds", "GB / s"], rows), said, where(record)]


def cluster() -> list[str]:
    record = load("cluster")
    if not record:
        return []
    found = record["found"]
    said = (
        f"Two process workers took {found['ratio']:.2f} times as long as the local stream of the same "
        f"{record['rows']:,} rows (both use both cores), and gave the in-memory weights to {found['difference']:.0e}.\n"
    )
    return ["## Dask\n", said, where(record)]


def gpu() -> list[str]:
    record = load("gpu")
    if not record:
        return []
    found, machine = record["found"], record["machine"]
    rows = [[what, s] for what, s in found["seconds"].items()]
    title = f"## {record['rows']:,} x {record['features']} float32 on one {machine['gpu']}\n"
    said = f"\nThe weights differ from the CPU's by {found['difference']:.0e}, relative to the largest.\n"
    return [title, table(["what", "seconds"], rows), said, where(record)]


def imports() -> list[str]:
    record = load("imports")
    if not record:
        return []
    seconds = record["found"]
    reference = seconds["import sklearn.linear_model"]
    rows = [[f"`{what}`", s, s / reference] for what, s in seconds.items()]
    return ["## Import\n", table(["what", "seconds", "ratio to scikit-learn's"], rows), where(record)]


def load(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(header: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def where(record: dict[str, Any]) -> str:
    m = record["machine"]
    blas, turns = ", ".join(m["blas"]), record.get("turns", 1)
    return f"*{m['processor']}, {m['cores']} cores; numpy {m['numpy']}, {blas}; {turns} turns.*\n"


if __name__ == "__main__":
    main()
