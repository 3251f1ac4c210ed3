"""The inputs of a command: the request that names two files, and both files as the command computes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sklearn.compose import ColumnTransformer

from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.estimators.unseen_categories import NO_UNSEEN_ROWS, UnseenRows
from pyspar.tables.write import Output
from pyspar.terminal import Progress

Method = Literal["bayes", "spar", "ols", "ridge"]
Features = Literal["all", "num"]
BadCells = Literal["stop", "impute"]
Fit = Callable[[Any], Any]
"""Fits an estimator to the encoded source, and returns it."""
Predict = Callable[[Sequence[Any], Output, Progress], tuple[SquaredErrors, ...] | None]


@dataclass(frozen=True)
class Request:
    """Two files and how to read them.

    ``source`` and ``target`` contain rows or Moments. ``label`` may be None if the source contains Moments. ``alpha``
    is the confidence of the paper's rule, by default 0.999; if it is set, ``bayes`` uses that rule as well.
    ``identity`` is the column with the ids of the rows, ``drop`` are columns to ignore, and ``categories`` are columns
    that are categories even if they contain numbers. ``stream`` reads the files in batches even if they fit into
    memory. ``bad_cells`` determines how text among numbers is treated, and ``drop_unlabelled`` ignores source rows
    without a label. ``groups`` is the column with the groups of the rows, and ``cost`` the column with the cost of each
    label; both are not used as features. ``labels`` is a file of ``spar label`` in which labels have been filled in.
    """

    source: Path
    target: Path
    label: str | None
    alpha: float | None = None
    features: Features = "all"
    identity: str | None = None
    drop: tuple[str, ...] = ()
    stream: bool = False
    categories: tuple[str, ...] = ()
    bad_cells: BadCells = "stop"
    drop_unlabelled: bool = False
    groups: str | None = None
    labels: Path | None = None
    cost: str | None = None


@dataclass(frozen=True)
class Ignored:
    """A column that is not used, and the reason."""

    column: str
    reason: str


@dataclass(frozen=True)
class Imputed:
    """The number of missing values of one column, and their replacement."""

    column: str
    source: int
    target: int
    value: str


@dataclass(frozen=True)
class DataAccount:
    """The rows and columns of source and target."""

    label: str
    n_source: int
    n_target: int
    n_numeric: int
    n_categorical: int
    n_date: int
    n_encoded: int
    imputed: tuple[Imputed, ...]
    ignored: tuple[Ignored, ...]
    unseen: UnseenRows


@dataclass(frozen=True, eq=False)
class Target:
    """The encoded target: rows in memory, rows in a file, or Moments.

    ``features`` are the encoded rows if they are in memory, otherwise their Moments, which ``moments`` returns in both
    cases. ``predict_and_score`` predicts with linear models, and returns the errors of each if the target has labels.
    It writes the predictions of the last model to the output, with intervals if it has a level and the model has
    intervals. ``n_missing`` counts the missing values of each column. ``alerts`` are notes that are shown first.
    ``labels``, and all columns as ``table``, are None unless they are in memory. ``has_rows`` says whether there are
    rows to predict.
    """

    features: Any
    n_rows: int
    moments: Callable[[], Moments]
    predict_and_score: Predict
    n_missing: Mapping[str, int]
    alerts: tuple[str, ...]
    notes: tuple[str, ...]
    unseen: UnseenRows = NO_UNSEEN_ROWS
    labels: Any = None
    table: Any = None
    has_rows: bool = True


@dataclass(frozen=True, eq=False)
class Inputs:
    """Both encoded files, the raw column of each feature, and the fitted preprocessing."""

    fit: Fit
    target: Target
    columns: Sequence[str]
    data: DataAccount
    notes: tuple[str, ...]
    encoder: ColumnTransformer
