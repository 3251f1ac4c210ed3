"""A test for a changed relation between features and label that is valid after every label."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from pyspar.core.arrays import Matrix
from pyspar.core.concept_shift import log_bayes_factor
from pyspar.core.drift import TargetUnits
from pyspar.estimators.base import AdaptableRegressor, weights_of
from pyspar.estimators.source_belief import predict_from_source
from pyspar.estimators.target_labels import read_labels

RELATION_LEVEL = 0.05


class RelationWatch:
    """The labels of a target so far, and the evidence against the relation of the source.

    The evidence is the Bayes factor of a drift against none (:mod:`pyspar.core.concept_shift`), averaged over the
    outputs. Features are standardised by the source, so that later rows do not change the factor of earlier ones.
    """

    def __init__(self, estimator: AdaptableRegressor) -> None:
        self._estimator = estimator
        source, (coef, intercept) = estimator._source, weights_of(estimator)
        d = source.n_features
        root = source.root_about(None)[:, :d] / np.sqrt(source.weight)  # its square is the covariance
        spread, size = np.sqrt(np.square(root).sum(axis=0)), np.sqrt(np.square(root @ coef).sum(axis=0))
        scale = _inverse(spread) / np.sqrt(max(int((spread > 0.0).sum()), 1))
        centre = source.mean[:d] @ coef + intercept
        self._units = [
            TargetUnits(source.mean[:d], scale, float(mean), float(factor))
            for mean, factor in zip(centre, _inverse(size), strict=True)
        ]
        self._rows: Matrix = np.empty((0, d))
        self._labels: Matrix = np.empty((0, coef.shape[1]))
        self._largest = 0.0

    @property
    def labels(self) -> int:
        """The number of rows with a label of any output."""
        return len(self._labels)

    @property
    def p_value(self) -> float:
        """The reciprocal of the largest evidence so far."""
        return float(np.exp(-self._largest))

    def read(self, Z: Any, y: Any) -> tuple[Matrix, Matrix]:
        """Return the rows of a batch that have a label of any output, and their labels; NaN where unknown."""
        rows = self._estimator._rows(Z)
        labels, _ = read_labels(y, len(rows), "TargetWatch.update")
        if labels.shape[1] != self._labels.shape[1]:
            raise ValueError(f"y must have one column for each of {self._labels.shape[1]} output(s)")
        known = np.isfinite(labels).any(axis=1)
        return rows[known], labels[known]

    def add(self, rows: Matrix, labels: Matrix) -> Self:
        """Return a watch with the labels of more rows, as ``read`` returns them."""
        new = copy.copy(self)
        new._rows, new._labels = np.vstack([self._rows, rows]), np.vstack([self._labels, labels])
        if len(rows):
            new._largest = max(self._largest, new._log_evidence())
        return new

    def _log_evidence(self) -> float:
        mean, roots = predict_from_source(self._estimator, self._rows)
        coef, intercept = weights_of(self._estimator)
        prediction = self._rows @ coef + intercept
        factors = []
        for k, units in enumerate(self._units):
            at = np.isfinite(self._labels[:, k])
            features, q = units.standardise(self._rows[at], prediction[at, k])
            residual = (self._labels - mean)[at, k]
            factors.append(log_bayes_factor(features, q, residual, error_root=roots[k][at]) if at.any() else 0.0)
        return float(np.logaddexp.reduce(factors) - np.log(len(factors)))


def _inverse(values: Any) -> Any:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0.0)
