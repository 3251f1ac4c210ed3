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
        ("bayes", "fit + adapt of BayesSpARRegressor against SpARRegressor's"),
        ("peers", "fit + adapt against other libraries"),
    ):
        record = load(name)
        if record:
            rows = record["found"]
            parts += [f"## {title}\n", table(list(rows[0]), [list(row.values()) for row in rows]), where(record)]
    parts += growth() + streaming() + cluster() + gpu() + cmixup() + seeds() + imports()
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


def cmixup() -> list[str]:
    record = load("cmixup")
    if not record:
        return []
    found = record["found"]
    rows = [[f["way"], f"{f['rows']:,}", f["prepare"], f["draw"], f["bytes"] / 1e6] for f in found["curves"]]
    mlp, resnet = found["mlp"], found["resnet18"]
    said = (
        "All draw the same distribution. *Published* fits one kernel density per sample and calls `choice` per draw; "
        "*all pairs* makes the N x N matrix by array operations and bisects its sums; *ours* sorts the labels. Seconds "
        "are of one thread's processor time.\n\n"
        f"At 40,000 rows an epoch of the paper's MLP (17 -> 128 -> 128 -> 1, batches of 32) takes {mlp['ERM']:.3g} s "
        f"with ERM and {mlp['overhead']:.0%} more with C-Mixup; the draw itself takes {mlp['draw'] / mlp['ERM']:.1%}. "
        f"For ResNet-18 at 28 x 28 (batches of 64; {resnet['device']}; scaled from a few steps) the slower of the "
        f"draws, whole set or within batches, takes {resnet['share']:.2%} of ERM's epoch, and C-Mixup in all "
        f"{resnet['overhead']:.0%}.\n"
    )
    picture = "![Time and memory of the three ways against the number of rows](figures/cmixup.png)\n"
    header = ["way", "rows", "prepare once, s", "draw per epoch, s", "peak MB"]
    return ["## C-Mixup's partners\n", picture, table(header, rows), said, where(record)]


def seeds() -> list[str]:
    record = load("seeds")
    if not record:
        return []
    header = ["objective", "as one", "one by one", "ratio", f"{record['full_epochs']} epochs as one"]
    rows = [[name, f["as one"], f["one by one"], f["ratio"], f["full"]] for name, f in record["found"].items()]
    title = f"## Ten seeds of a network on SkillCraft, {record['epochs']} epochs, processor seconds on one thread\n"
    return [title, table(header, rows), where(record)]


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
