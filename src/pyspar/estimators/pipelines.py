"""The last step of a fitted scikit-learn Pipeline: adapted, or taken out with the rows that it would be given."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pyspar.core.moments import Moments


def adapt_pipeline(pipe: Pipeline, Z: Any) -> Pipeline:
    """Return a copy of a fitted pipeline whose last step is adapted to the target Z.

    Z passes through the earlier steps, which were fitted on the source and stay so: the copy shares them. The
    pipeline given is unchanged.

    Parameters
    ----------
    pipe : Pipeline
        Fitted; its last step has ``adapted`` (as :class:`SpARRegressor` has).
    Z : array or data frame
        Rows of the new world as the pipeline would be given them to predict.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pyspar import SpARRegressor, adapt_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    >>> pipe = make_pipeline(StandardScaler(), SpARRegressor()).fit(X, X[:, 0])
    >>> adapt_pipeline(pipe, Z).predict(Z).shape
    (20,)
    """
    if not isinstance(pipe, Pipeline):
        raise TypeError(f"pipe must be a scikit-learn Pipeline. Got {type(pipe).__name__} instead.")
    name = pipe.steps[-1][0]
    last, transformed = last_step(pipe, Z)
    return Pipeline([*pipe.steps[:-1], (name, last.adapted(transformed))], memory=pipe.memory, verbose=pipe.verbose)


def last_step(pipe: Pipeline, Z: Any) -> tuple[Any, Any]:
    """Return the last step of a fitted pipeline, and the target as the earlier steps transform it."""
    name, last = pipe.steps[-1]
    if not hasattr(last, "adapted"):
        raise TypeError(
            f"The last step of the pipeline must be a regressor that can be adapted. Got {name!r}, a "
            f"{type(last).__name__}, instead; end the pipeline with SpARRegressor()."
        )
    check_is_fitted(last)
    if isinstance(Z, Moments):
        raise TypeError("Moments cannot pass through the earlier steps; pass the rows, or adapt the last step itself.")
    return last, pipe[:-1].transform(Z) if len(pipe.steps) > 1 else Z


def names_made(pipe: Pipeline) -> tuple[str, ...] | None:
    """Return what the earlier steps call the features that they make; None where some step does not know."""
    if len(pipe.steps) == 1:
        return None
    try:
        found = pipe[:-1].get_feature_names_out()
    except (AttributeError, ValueError):  # a step that was written without them
        return None
    return None if found is None else tuple(map(str, found))
