"""The small language of ``sets.tsv``, on top of the expressions of ``pandas.DataFrame.eval``.

- ``table`` is a call of a reader with constants, such as ``r_data('ISLR/Wage')`` or ``csv('pyblp', 'data/x.csv')``.
- ``rows`` are steps that are separated by ``; ``: a condition; ``complete`` or ``complete: a, b`` drops rows with
  missing values; ``unique`` or ``unique: a, b`` drops repeated rows; ``only: a, b`` and ``without: a, b`` choose
  columns; ``sort: a, b``; ``number rows``; ``name = expression`` adds a column.
- ``columns`` are features that are separated by ``; ``: a column; ``name = expression``; ``lags``, ``cycle``,
  ``circle`` and ``calendar``, which give several columns. With ``all`` or with ``-a; -b``, all columns are kept, or all
  but some.
- ``y`` and ``target`` are expressions. ``@row`` is the number of a row, and ``@last_third(a)`` its upper third.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.shifts.sets import readers
from benchmarks.shifts.sets.shift import Loaded, last_third


def csv(module: str, path: str, **options: Any) -> pd.DataFrame:
    return pd.read_csv(readers.bundled(module, path), **options).rename(columns=str)


def excel(module: str, path: str, **options: Any) -> pd.DataFrame:
    return pd.read_excel(readers.bundled(module, path), **options).rename(columns=str)


def parquet(module: str, path: str, **options: Any) -> pd.DataFrame:
    return pd.read_parquet(readers.bundled(module, path), **options)


READERS = {"csv": csv, "excel": excel, "parquet": parquet, "r_data": readers.r_data, "keel": readers.keel} | {
    name.removeprefix("read_"): function for name, function in vars(readers).items() if name.startswith("read_")
}
SEVERAL = {
    "lags": lambda series, *steps: readers.lags(series, steps).values(),
    "cycle": lambda phase: readers.cycle("", phase).values(),
    "circle": lambda degrees: readers.circle("", degrees).values(),
    "calendar": lambda time: readers.calendar(time).values(),
}
FUNCTIONS = {**SEVERAL, "last_third": last_third, "to_datetime": pd.to_datetime, "text": lambda values: values.map(str)}
IS_SEVERAL = re.compile(rf"({'|'.join(SEVERAL)})\(")


def load(table: str, rows: str, columns: str, y: str, target: str) -> Loaded:
    """Return the features, the labels and the mask of the target rows of one row of ``sets.tsv``."""
    frame = _choose_rows(_read(table), rows)
    return _make_columns(frame, columns), _compute(frame, y), _compute(frame, target)


def _read(call: str) -> pd.DataFrame:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    options = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    return READERS[node.func.id](*map(ast.literal_eval, node.args), **options)


def _compute(frame: pd.DataFrame, expression: str) -> Any:
    row = pd.Series(np.arange(len(frame)), index=frame.index)
    return frame.eval(expression, engine="python", local_dict={**FUNCTIONS, "row": row})


def _choose_rows(frame: pd.DataFrame, steps: str) -> pd.DataFrame:
    for step in filter(None, steps.split("; ")):
        word, _, rest = step.partition(": ")
        names = rest.split(", ") if rest else None
        if word == "complete":
            frame = frame.dropna(subset=names)
        elif word == "unique":
            frame = frame.drop_duplicates(names)
        elif word == "only":
            frame = frame[names]
        elif word == "without":
            frame = frame.drop(columns=names)
        elif word == "sort":
            frame = frame.sort_values(names)
        elif word == "number rows":
            frame = frame.reset_index(drop=True)
        elif " = " in step:
            name, _, expression = step.partition(" = ")
            frame = frame.assign(**{name: _compute(frame, expression)})
        else:
            frame = frame[_compute(frame, step)]
    return frame


def _make_columns(frame: pd.DataFrame, items: str) -> pd.DataFrame:
    chosen = items.split("; ")
    keeps_all = any(item == "all" or item.startswith("-") for item in chosen)
    columns = {c: frame[c] for c in frame if f"-{c}" not in chosen} if keeps_all else {}
    for item in chosen:
        if " = " in item:
            name, _, expression = item.partition(" = ")
            columns[name] = _compute(frame, expression)
        elif IS_SEVERAL.match(item):
            columns |= {f"{item} {k}": column for k, column in enumerate(_compute(frame, f"@{item}"))}
        elif item != "all" and not item.startswith("-"):
            columns[item] = frame[item]
    return pd.DataFrame(columns)
