"""The arguments and options that several commands of ``spar`` share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

FILES = (
    "Files: .csv and .tsv (also .gz), .parquet (also a folder of them), .xlsx (the first sheet), .npy (a 2-D "
    "array; its columns are x0, x1, ...), .npz (a 2-D array X with columns x0, x1, ..., "
    "and 1-D arrays with the names of their keys, such as y). "
    "Dates: YYYY-MM-DD, YYYY/MM/DD or DD.MM.YYYY."
)


Method = StrEnum("Method", ["bayes", "spar", "ols", "ridge"])
"""The method; only bayes and spar use the target."""
Features = StrEnum("Features", ["all", "num"])
"""Which columns to use."""
BadCells = StrEnum("BadCells", ["stop", "impute"])
"""What to do with text among numbers."""

Source = Annotated[Path, typer.Argument(metavar="SOURCE", help="Labelled rows, or their summary.")]
Target = Annotated[
    Path, typer.Argument(metavar="TARGET", help="Rows to predict, which need no labels, or their summary.")
]
ModelOrSource = Annotated[
    Path,
    typer.Argument(metavar="MODEL_OR_SOURCE", help="A .skops file of spar adapt --save, or labelled rows."),
]
Label = Annotated[
    str | None,
    typer.Option(
        help="The label column; for .npy and .npz also its number, such as -1. Required unless SOURCE is a summary.",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        help="Confidence of the paper's rule in [0, 1]: 0 removes no target direction, 1 removes all. The default is "
        "0.999 for spar; bayes uses the rule only with this option."
    ),
]
Columns = Annotated[Features, typer.Option(help="Use all columns, or only numeric columns.")]
Identity = Annotated[
    str | None,
    typer.Option("--id", help="A column with the ids of the rows. It is not used as a feature."),
]
Drop = Annotated[list[str] | None, typer.Option(help="A column to ignore; may be repeated.")]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help="A column of categories, even if it contains numbers; may be repeated."),
]
Cells = Annotated[
    BadCells,
    typer.Option(
        help="Text among numbers or dates: stop and name the cells, or treat them as missing and impute them. With "
        "--stream, impute also imputes missing values, and reads SOURCE once more."
    ),
]
DropUnlabelled = Annotated[bool, typer.Option("--drop-unlabelled", help="Ignore rows of SOURCE without a label.")]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="Put ' before text in a .csv or .tsv output that a spreadsheet would read as a formula (=, +, -, @).",
    ),
]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Read in batches, and use only numeric columns. A missing value is an error. Automatic for files that "
        "need more than a quarter of the free memory.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        help="A column with the groups of the rows, such as patients or shops. It is not used as a feature. The error "
        "at home is that of new groups.",
    ),
]
LabelFile = Annotated[Path | None, typer.Option(help="Labels of TARGET rows: the file of spar label, filled in.")]
Level = Annotated[
    float, typer.Option(help="The probability that the interval of a row contains its label (columns low and high).")
]
Intervals = Annotated[
    bool, typer.Option("--intervals/--no-intervals", help="Write intervals; without them millions of rows are faster.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on stdout, and nothing else. Errors go to stderr.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
