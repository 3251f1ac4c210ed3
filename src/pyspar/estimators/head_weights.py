"""The names of :mod:`pyspar.estimators.heads` under their old module. Temporary."""  # temporary

from typing import Any

from pyspar.core.refit import error_roots_of
from pyspar.estimators.heads import Changed, HeadMethod, NewHead, check_head_options, new_head_weights

__all__ = ["Changed", "HeadMethod", "NewHead", "check_head_options", "error_roots_of", "fit_head"]


def fit_head(
    source: Any, target: Any, method: HeadMethod, *, coef: Any, intercept: Any = None, **options: Any
) -> NewHead:
    """Return ``new_head_weights``."""
    return new_head_weights(source, target, coef, intercept, method, **options)
