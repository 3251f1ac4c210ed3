"""Write the records compressed, and the tables made from them."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

from benchmarks.align.run import Record

RESULTS = Path(__file__).parents[1] / "results"
DEVELOP = ("gaussian noise", "contrast", "brightness")
"""The corruptions on which the learning rate was chosen."""


def write_results(rows: list[Record]) -> None:
    """Write ``align.csv.gz`` and ``align.md``."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(Record._fields)
    writer.writerows(
        [f"{v:.5g}" if isinstance(v, float) else v for v in row] for row in sorted(rows, key=lambda r: r[:6])
    )
    with gzip.GzipFile(RESULTS / "align.csv.gz", "wb", mtime=0) as file:
        file.write(text.getvalue().encode())
