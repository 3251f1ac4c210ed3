"""What stands behind the features: the trained head, or one fitted after training. Each is a linear prediction."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.bench.names import known
from pyspar.bench.registry import CUTS, HEADS, recipe_of
from pyspar.bench.spec import canonical
from pyspar.bench.store import Features
from pyspar.core.arrays import Matrix, Vector
from pyspar.errors import SparWarning
from pyspar.estimators import SpARRegressor


@dataclass(frozen=True)
class Head:
    """A way to predict from features: its name, what it is built with, and which rows it is adapted to.

    ``adapt_to`` is "test" for the test inputs, as in most of the paper, or "unlabeled" for a pool apart from them.
    """

    name: str
    params: dict[str, Any] = field(default_factory=dict)
    adapt_to: str = "test"

    @property
    def key(self) -> str:
        """One spelling of all three, the name of its scores; from the second version of its rule on, with that too.

        >>> Head("SpAR", {"alpha": 0.9}).key
        '["SpAR",{"alpha":0.9},"test"]'
        """
        version = [self.recipe] if self.recipe > 1 else []
        return canonical([self.name, self.params, self.adapt_to, *version])

    @property
    def recipe(self) -> int:
        """The version of its rule, as the code has it now."""
        return recipe_of(self.name)

    def label(self, method: str) -> str:
        """Return how a table names the head behind a method.

        >>> Head("trained").label("ERM"), Head("SpAR").label("ERM")
        ('ERM', 'ERM + SpAR')
        """
        return method if self.name == "trained" else f"{method} + {self.name}"


def predictions(features: Features, heads: list[Head]) -> dict[str, Vector]:
    """Return the predictions for the test rows by each head's key; the source is factorised once for all of them."""
    fitted: dict[str, Any] = {}
    found = {}
    for head in heads:
        known("head", head.name, HEADS)
        with warnings.catch_warnings():
            # A network's features often have directions without rows left for noise; the scores say what comes of it.
            warnings.simplefilter("ignore", SparWarning)
            found[head.key] = _predict(features, head, fitted)
    return found


def above_rounding(X: NDArray[np.float32], share: float = 1.0) -> Matrix:
    """Return features without the directions that rounding in float32 can have made, in float64.

    What is below ``max(N, D) * eps`` of the largest singular value goes, the default of torch's ``pinv``, or below a
    share of that. A network *computes* in float32, layer upon layer, so its features carry much more noise than storing
    them costs, and least squares along that noise predicts thousands where labels are tens.
    Authors: we infer this cut from their published column of least squares; ``spar reproduce rank-cut`` has others.

    >>> X = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0 + 1e-6]], dtype=np.float32)
    >>> int(np.linalg.matrix_rank(above_rounding(X)))
    1
    """
    rows = X.astype(np.float64)
    squares, V = np.linalg.eigh(rows.T @ rows)  # in float64 the square still tells lengths apart that float32 cannot
    lam = np.sqrt(np.maximum(squares, 0.0))
    kept = V[:, lam > share * max(X.shape) * np.finfo(np.float32).eps * lam[-1]]
    return np.asarray((rows @ kept) @ kept.T)


def _predict(features: Features, head: Head, fitted: dict[str, Any]) -> Vector:
    test = features.test.astype(np.float64)
    if head.name == "trained":
        return np.asarray(test @ features.head.T)[:, 0]
    name, _, cut = head.name.partition(", ")
    if cut not in fitted:
        X = above_rounding(features.train, CUTS[cut]) if CUTS[cut] else features.train
        # Paper: the head has no bias, so nothing is centred.
        fitted[cut] = X, SpARRegressor(fit_intercept=False).fit(X, features.y_train)
    X, least_squares = fitted[cut]
    if name == "OLS":
        return np.asarray(least_squares.predict(test))
    target = features.test if head.adapt_to == "test" else features.unlabeled
    if target is None:
        raise ValueError("the task has no unlabelled rows to adapt to; use adapt_to='test'.")
    if name == "SpAR":
        estimator = SpARRegressor(fit_intercept=False, **head.params).fit_moments(least_squares.moments_)
    else:
        from pyspar.bayes import BayesSpARRegressor

        # The features of one layer share a unit: a faint one is faint, and must not be blown up to unit spread.
        estimator = BayesSpARRegressor(**{"fit_intercept": False, "scale": False, **head.params}).fit(
            X, features.y_train
        )
    Z = target.astype(np.float64) if CUTS[cut] else target
    return np.asarray(estimator.adapt(Z).predict(test))
