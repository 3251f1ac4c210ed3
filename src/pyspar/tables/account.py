"""The results of the commands as data: every number that ``spar`` prints, and the interface to the files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sklearn.compose import ColumnTransformer

from pyspar.core.forecast import Forecast
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.core.separation import Separation
from pyspar.estimators.target_labels import LabelForecast
from pyspar.estimators.unseen_categories import UnseenRows
from pyspar.inspection import Inspection
from pyspar.inspection.findings import Finding
from pyspar.inspection.judgement import Judgement
from pyspar.progress import Progress
from pyspar.reporting import Report
from pyspar.tables.columns import Ignored
from pyspar.tables.write import PREDICTIONS_ONLY, Writing


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


@dataclass(frozen=True)
class Expected:
    """The expected error on the target, with the same posterior for all weights.

    ``directions``, ``removed`` and ``shrunk`` count the target directions, those that were removed, and those whose
    weight became smaller. ``before`` and ``after`` are the forecasts for least squares and for the weights that
    predict, on noisy labels. ``outside`` is the share of the target's variation in directions that never occur in the
    source. ``home`` is the expected error on rows like those of the source before adapting, and ``separation`` is how
    well the rows of source and target can be told apart.
    """

    directions: int
    removed: int
    shrunk: int
    before: Forecast
    after: Forecast
    outside: float
    home: float
    separation: Separation


@dataclass(frozen=True)
class Scored:
    """The errors of least squares and of the model on the labels of the target, which are used for nothing else."""

    least_squares: SquaredErrors
    model: SquaredErrors

    @property
    def rows(self) -> int:
        return self.model.n

    @property
    def rmse_least_squares(self) -> float:
        return self.least_squares.rmse

    @property
    def rmse(self) -> float:
        return self.model.rmse


@dataclass(frozen=True)
class Correction:
    """What the target's labels changed: the expected error after the correction, and the test of the relation.

    ``n_labels`` labels were used. ``p_value`` is that of the hypothesis that the relation between features and label is
    the same in the target.
    """

    n_labels: int
    expected: LabelForecast
    p_value: float


@dataclass(frozen=True)
class AdaptAccount:
    """The result of ``spar adapt``. ``has_rows`` is False for a target of Moments, which has no predictions."""

    data: DataAccount
    judgement: Judgement
    method: str
    alpha: float
    rank: int
    expected: Expected
    chosen: str | None
    scored: Scored | None
    notes: tuple[str, ...]
    output: Path | None
    save: Path | None
    findings: tuple[Finding, ...] = ()
    has_rows: bool = True
    correction: Correction | None = None


@dataclass(frozen=True)
class SummaryAccount:
    """The result of ``spar summarize``."""

    rows: int
    features: int
    label: str | None
    n_bytes_in: int
    n_bytes_out: int
    ignored: tuple[Ignored, ...]
    notes: tuple[str, ...]
    output: Path


@dataclass(frozen=True)
class InspectAccount:
    """The result of ``spar inspect``. ``top`` is the number of directions to print, ``written`` are the reports."""

    data: DataAccount
    document: Report
    top: int
    notes: tuple[str, ...]
    written: tuple[Path, ...] = ()

    @property
    def inspection(self) -> Inspection:
        return self.document.inspection


Fit = Callable[[Any], Any]
"""Fits an estimator to the encoded source, and returns it."""


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
