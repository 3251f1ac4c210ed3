"""Adapt the last step of a fitted scikit-learn Pipeline."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pyspar.core.moments import Moments


def adapt_pipeline(pipe: Pipeline, Z: Any) -> Pipeline:
    """Return a copy of a fitted pipeline whose last step is adapted to the target Z.

    Z passes through the earlier steps, which were fitted on the source and are shared by the copy. The original
    pipeline is unchanged.

    Parameters
    ----------
    pipe : Pipeline
        A fitted pipeline whose last step has a method ``adapted``, for example :class:`BayesSpARRegressor`.
    Z : array or data frame
        Target rows, as for the pipeline's ``predict``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pyspar import BayesSpARRegressor, adapt_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    >>> pipe = make_pipeline(StandardScaler(), BayesSpARRegressor()).fit(X, X[:, 0] + rng.normal(size=50))
    >>> adapt_pipeline(pipe, Z).predict(Z).shape
    (20,)
    """
    if not isinstance(pipe, Pipeline):
        raise TypeError(f"pipe must be a scikit-learn Pipeline, got {type(pipe).__name__}")
    name = pipe.steps[-1][0]
    last, transformed = last_step(pipe, Z)
    return Pipeline([*pipe.steps[:-1], (name, last.adapted(transformed))], memory=pipe.memory, verbose=pipe.verbose)


def last_step(pipe: Pipeline, Z: Any) -> tuple[Any, Any]:
    """Return the last step of a fitted pipeline, and the target as the earlier steps transform it."""
    name, last = pipe.steps[-1]
    if not hasattr(last, "adapted"):
        raise TypeError(
            f"the last step of the pipeline must be a regressor that can be adapted, got {name!r} "
            f"({type(last).__name__}); end the pipeline with BayesSpARRegressor()"
        )
    check_is_fitted(last)
    if isinstance(Z, Moments):
        raise TypeError("Moments cannot be transformed by the earlier steps; pass the rows, or adapt the last step")
    return last, pipe[:-1].transform(Z) if len(pipe.steps) > 1 else Z


def output_names(pipe: Pipeline) -> tuple[str, ...] | None:
    """Return the names of the features after the earlier steps; None if a step does not provide names."""
    if len(pipe.steps) == 1:
        return None
    try:
        names = pipe[:-1].get_feature_names_out()
    except (AttributeError, ValueError):  # a step without feature names
        return None
    return None if names is None else tuple(map(str, names))
