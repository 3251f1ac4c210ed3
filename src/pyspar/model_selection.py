"""Extrapolation cross-validation for any scikit-learn regressors: which one to trust on an unlabelled target.

Ordinary cross-validation asks how well a regressor does on more of the same. Here the labelled source rows that look
most like the target are held out, each candidate learns from the rest, adapts to the held-out rows if it can, and is
scored on their labels. No label of the target is used, and none is needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix, diags_array, issparse, vstack
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, has_fit_parameter

from pyspar.core.arrays import Vector
from pyspar.errors import SparWarning
from pyspar.pipelines import adapt_pipeline

_FOLDS = 5
_CATEGORIES = 50
"""Of a column of text as many values count as these, the most frequent; the others are one."""
_DATES = ["datetime", "datetimetz", "timedelta"]
_FEWEST_HELD_OUT = 2
_FEWEST_LEFT = 2
_FAILURES = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RuntimeError)


class ExtrapolationCV(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Rank regressors for a given unlabelled target, and keep the best.

    Parameters
    ----------
    estimators : dict of name to regressor, or list of (name, regressor)
        Any scikit-learn regressors; they are cloned. One that has ``adapt``, or a pipeline whose last step has
        ``adapted``, is adapted to the held-out rows before it predicts them.
    fractions : sequence of float in (0, 1), default (0.3, 0.2, 0.1)
        How much of the source to hold out; each gives one split.
    classifier : scikit-learn classifier, optional
        Tells source from target; its out-of-fold score says which source rows look like the target. By default
        logistic regression on standardised features, with gaps filled in and text one-hot encoded.
    scoring : callable, default ``sklearn.metrics.root_mean_squared_error``
        ``scoring(y_true, y_pred)``, with ``sample_weight=`` where weights are given. Not negative; less is better.
    random_state : int, default 0
        Seeds the folds of the classifier; the same seed gives the same ranking.

    Attributes
    ----------
    scores_ : dict of name to array of shape (splits,)
        The score in each split; NaN for a candidate that failed. ``pandas.DataFrame(cv.scores_)`` is a table.
    mean_scores_ : dict of name to float
        The geometric mean over the splits, which the ranking goes by.
    ranking_ : list of str
        The names, best first; those that failed are last.
    best_name_, best_estimator_
        The best candidate, fitted to the whole source and adapted to Z if it can.
    failures_ : dict of name to str
        What went wrong with those that failed.
    likeness_ : array of shape (n,)
        How much each source row looks like the target.
    held_out_ : list of arrays
        The rows that were held out in each split.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.dummy import DummyRegressor
    >>> from pyspar.model_selection import ExtrapolationCV
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(200, 2)), rng.normal(size=(80, 2)) + [2, 0]
    >>> y = X[:, 0] + 0.1 * rng.normal(size=200)
    >>> cv = ExtrapolationCV({"linear": LinearRegression(), "mean": DummyRegressor()}).fit(X, y, Z)
    >>> cv.ranking_
    ['linear', 'mean']
    """

    def __init__(
        self,
        estimators: Mapping[str, Any] | Iterable[tuple[str, Any]],
        *,
        fractions: Iterable[float] = (0.3, 0.2, 0.1),
        classifier: Any = None,
        scoring: Callable[..., float] = root_mean_squared_error,
        random_state: int | None = 0,
    ) -> None:
        self.estimators = estimators
        self.fractions = fractions
        self.classifier = classifier
        self.scoring = scoring
        self.random_state = random_state

    def fit(self, X: Any, y: Any, Z: Any, sample_weight: Any = None) -> Self:
        """Rank the candidates for the target Z and refit the best on the whole source.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, D)
            Labelled source rows.
        y : array of shape (n,) or (n, K)
        Z : like X, of shape (m, D)
            Unlabelled target rows.
        sample_weight : array of shape (n,), optional
            Given to the candidates whose ``fit`` takes it, and to ``scoring``. Rows of weight 0 are not held out.

        Returns
        -------
        self
        """
        candidates = named_estimators(self.estimators)
        fractions = _checked_fractions(self.fractions)
        check_consistent_length(X, y, sample_weight)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        y = np.asarray(y)
        likeness = target_likeness(X, Z, classifier=self.classifier, random_state=self.random_state)
        counting = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0.0)
        held_out = [counting[most_alike(likeness[counting], fraction)] for fraction in fractions]
        scores: dict[str, Vector] = {}
        failures: dict[str, str] = {}
        for name, estimator in candidates.items():
            try:
                scores[name] = np.array([self._score(estimator, X, y, weight, held) for held in held_out])
            except _FAILURES as error:  # a failure of one candidate is reported, and is not that of the others
                scores[name] = np.full(len(held_out), np.nan)
                failures[name] = f"{type(error).__name__}: {error}"
        means = {name: _geometric_mean(values) for name, values in scores.items()}
        for name in (n for n, mean in means.items() if not np.isfinite(mean) and n not in failures):
            failures[name] = f"its scores are {scores[name]}, which must be finite and not negative"
        told = "; ".join(f"{name}: {why}" for name, why in failures.items())
        if len(failures) == len(candidates):
            raise ValueError(f"No candidate could be scored on the held-out rows. {told}.")
        if failures:
            warnings.warn(f"Some candidates failed and are ranked last. {told}.", SparWarning, stacklevel=2)
        self.scores_, self.mean_scores_, self.failures_ = scores, means, failures
        self.likeness_, self.held_out_ = likeness, held_out
        self.ranking_ = sorted(candidates, key=lambda name: (name in failures, means[name]))  # stable: ties keep order
        self.best_name_ = self.ranking_[0]
        best = _fitted(candidates[self.best_name_], X, y, weight)
        self.best_estimator_ = _adapted(best, Z)
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the best candidate."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def _score(self, estimator: Any, X: Any, y: Any, weight: Vector | None, held: Any) -> float:
        rest = np.setdiff1d(np.arange(len(y)), held)
        fitted = _fitted(estimator, _safe_indexing(X, rest), y[rest], None if weight is None else weight[rest])
        rows = _safe_indexing(X, held)
        predicted = _adapted(fitted, rows).predict(rows)
        extra = {} if weight is None else {"sample_weight": weight[held]}
        return float(self.scoring(y[held], predicted, **extra))


def named_estimators(estimators: Any) -> dict[str, Any]:
    """Return the candidates by name, or say what is wrong with them."""
    pairs = list(estimators.items()) if isinstance(estimators, Mapping) else list(estimators)
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise TypeError(
            "estimators must be a dict of name to regressor or a list of (name, regressor). "
            f"Got {estimators!r} instead; for example {{'ridge': RidgeCV()}}."
        )
    found = dict(pairs)
    if not found or len(found) < len(pairs):
        raise ValueError(f"estimators must have at least one entry, with distinct names. Got {[n for n, _ in pairs]}.")
    lacking = [
        name for name, estimator in found.items() if not (hasattr(estimator, "fit") and hasattr(estimator, "predict"))
    ]
    if lacking:
        raise TypeError(f"estimators must have fit and predict. Got {', '.join(map(repr, lacking))} without.")
    return found


def target_likeness(X: Any, Z: Any, *, classifier: Any = None, random_state: int | None = 0) -> Vector:
    """Return how much each source row looks like the target: a classifier's score, from folds it was not trained on."""
    n, m = _num_samples(X), _num_samples(Z)
    folds = min(_FOLDS, n, m)
    if folds < 2:
        raise ValueError(f"X and Z must have at least 2 rows each to be told apart. Got {n} and {m}.")
    both = _stacked(X, Z)
    for name, rows in (("X", X), ("Z", Z)):
        _refuse_empty(name, rows)
    own = classifier is None
    classifier = _discriminant(both) if own else classifier
    label = np.repeat([0, 1], [n, m])
    method = "decision_function" if hasattr(classifier, "decision_function") else "predict_proba"
    splits = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    try:
        found = cross_val_predict(clone(classifier), both, label, cv=splits, method=method)
    except (ValueError, TypeError) as error:
        if not own:
            raise
        told = str(error).strip().splitlines()[-1]
        encode = "pass data frames, or classifier= with a pipeline that encodes the columns first"
        cure = "replace or drop what is infinite" if "infinity" in told else encode
        raise ValueError(f"The default classifier cannot tell these rows apart ({told}); {cure}.") from error
    found = np.asarray(found, dtype=np.float64)
    return found[:n] if found.ndim == 1 else found[:n, -1]


class _PowerOfTwo(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Divides each column by a power of two near its largest value: no digit changes, and every square is a float64."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the power of two of each column."""
        largest = abs(X).max(axis=0)
        largest = largest.toarray().ravel() if issparse(X) else np.asarray(largest)
        self.exponent_ = np.clip(np.frexp(largest)[1], -1000, 1000)  # within what a power of two can be itself
        return self

    def transform(self, X: Any) -> Any:
        """Divide."""
        factor = np.ldexp(1.0, -self.exponent_)
        return X @ diags_array(factor) if issparse(X) else X * factor.astype(X.dtype)


def _refuse_empty(name: str, rows: Any) -> None:
    """Refuse a table without a single value: filled in, it would look like the other and say nothing."""
    if hasattr(rows, "isna"):
        empty = bool(np.all(rows.isna()))
    elif issparse(rows):
        empty = rows.nnz == np.prod(rows.shape) and bool(np.isnan(rows.data).all())
    else:
        array = np.asarray(rows)
        empty = bool(np.all(array != array)) if array.dtype.kind in "fcO" else False
    if empty:
        raise ValueError(
            f"{name} must hold values. Got {_num_samples(rows)} rows that are missing (NaN) throughout; look at how "
            "they were made."
        )


def _discriminant(both: Any) -> Any:
    """Return what tells the rows of two worlds apart, whatever their columns hold."""
    # Without centring, so that sparse rows stay sparse; the logistic regression has an intercept of its own.
    filled = SimpleImputer(strategy="mean", keep_empty_features=True)
    numbers = [filled, _PowerOfTwo(), StandardScaler(with_mean=False)]
    encode: list[Any] = numbers
    if hasattr(both, "select_dtypes"):
        kinds = [set(both.select_dtypes(include=kind).columns) for kind in (["number", "bool"], _DATES)]
        numeric, dates = ([j for j, name in enumerate(both.columns) if name in kind] for kind in kinds)
        others = [j for j in range(both.shape[1]) if j not in {*numeric, *dates}]
        words = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_CATEGORIES)
        encode = [
            make_column_transformer(
                (make_pipeline(FunctionTransformer(_as_floats), *map(clone, numbers)), numeric),
                (make_pipeline(FunctionTransformer(_as_days), *map(clone, numbers)), dates),
                (make_pipeline(FunctionTransformer(_as_text), words), others),
            )
        ]
    return make_pipeline(*encode, LogisticRegression(max_iter=1000))


def _as_text(frame: Any) -> Any:
    return frame.astype("object").where(frame.notna(), "").astype(str)


def _as_floats(frame: Any) -> Any:
    return frame.astype("float64")


def _as_days(frame: Any) -> Any:
    """Return instants as days since 1970, and durations as days."""
    instants = [frame[name].dtype.kind == "M" for name in frame.columns]
    values = [frame[name].to_numpy(f"{'datetime' if m else 'timedelta'}64[ns]") for name, m in zip(frame, instants)]
    start = np.datetime64(0, "ns")
    return np.column_stack([(v - start if m else v) / np.timedelta64(1, "D") for v, m in zip(values, instants)])


def most_alike(likeness: Vector, fraction: float) -> Any:
    """Return the rows with the greatest likeness, a given fraction of them; of equals the earlier.

    >>> most_alike(np.array([0.1, 0.9, 0.5, 0.7, 0.2]), 0.4)
    array([1, 3])
    """
    n = len(likeness)
    count = max(_FEWEST_HELD_OUT, round(fraction * n))
    if n - count < _FEWEST_LEFT:
        raise ValueError(
            f"X must have at least {_FEWEST_HELD_OUT + _FEWEST_LEFT} rows, enough to hold out {fraction:.0%} and learn "
            f"from the rest. Got {n}."
        )
    return np.sort(np.argsort(-likeness, kind="stable")[:count])


def _checked_fractions(fractions: Any) -> list[float]:
    found = [float(fraction) for fraction in fractions]
    if not found or not all(0.0 < fraction < 1.0 for fraction in found):
        raise ValueError(f"fractions must lie between 0 and 1, at least one of them. Got {fractions!r} instead.")
    return found


def _stacked(X: Any, Z: Any) -> Any:
    columns = [np.shape(part)[1] if len(np.shape(part)) == 2 else None for part in (X, Z)]
    if None in columns or columns[0] != columns[1]:
        raise ValueError(f"X and Z must be tables with the same columns. Got shapes {np.shape(X)} and {np.shape(Z)}.")
    if hasattr(X, "columns") and hasattr(Z, "columns") and list(X.columns) != list(Z.columns):
        raise ValueError("X and Z must have the same columns in the same order; pass Z[list(X.columns)].")
    if hasattr(X, "iloc") and hasattr(Z, "iloc"):  # columns keep their own types, for classifiers that read frames
        import pandas as pd

        return pd.concat([X, Z], ignore_index=True)
    if issparse(X) or issparse(Z):
        return vstack([csr_matrix(X), csr_matrix(Z)]).tocsr()
    return np.concatenate([np.asarray(X), np.asarray(Z)])


def _fitted(estimator: Any, X: Any, y: Any, weight: Vector | None) -> Any:
    fresh = clone(estimator)
    if weight is None:
        return fresh.fit(X, y)
    if isinstance(fresh, Pipeline) and has_fit_parameter(fresh.steps[-1][1], "sample_weight"):
        return fresh.fit(X, y, **{f"{fresh.steps[-1][0]}__sample_weight": weight})
    return fresh.fit(X, y, sample_weight=weight) if has_fit_parameter(fresh, "sample_weight") else fresh.fit(X, y)


def _adapted(fitted: Any, rows: Any) -> Any:
    if isinstance(fitted, Pipeline):
        return adapt_pipeline(fitted, rows) if hasattr(fitted.steps[-1][1], "adapted") else fitted
    return fitted.adapt(rows) if hasattr(fitted, "adapt") else fitted


def _geometric_mean(scores: Vector) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.exp(np.log(scores).mean()))
