"""Both files of a command as it computes with them: the encoded source and target, and an account of their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sklearn.compose import ColumnTransformer

from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.estimators.unseen_categories import UnseenRows
from pyspar.tables.columns import Ignored
from pyspar.tables.request import PREDICTIONS_ONLY, Writing
from pyspar.terminal import Progress

Fit = Callable[[Any], Any]
"""Fits an estimator to the encoded source, and returns it."""


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


class Target(Protocol):
    """The encoded target: rows in memory, rows in a file, or Moments."""

    @property
    def has_rows(self) -> bool:
        """Whether the target has rows to predict."""

    @property
    def features(self) -> Any:
        """The encoded rows if they are in memory, otherwise the Moments."""

    def moments(self) -> Moments:
        """Return the Moments of the encoded features."""

    def predict_and_score(
        self, models: Sequence[Any], output: Path | None, progress: Progress, *, writing: Writing = PREDICTIONS_ONLY
    ) -> tuple[SquaredErrors, ...] | None:
        """Predict with linear models, and return the errors of each if the target has labels.

        The predictions of the last model are written to ``output``, with intervals if ``writing`` has a level and the
        model has intervals.
        """


@dataclass(frozen=True, eq=False)
class Inputs:
    """Both encoded files, the raw column of each feature, and a function that returns the fitted preprocessing."""

    fit: Fit
    target: Target
    columns: Sequence[str]
    data: DataAccount
    notes: tuple[str, ...]
    make_encoder: Callable[[], ColumnTransformer]
