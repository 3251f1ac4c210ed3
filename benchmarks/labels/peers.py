"""ADAPT's supervised methods for regression, around the same models, with their own defaults.

They need a separate environment (``make labels-peers``) and are imported only if such a method is run. Except for
``RegularTransferLR``, they fit the models themselves, so they use our estimator without adapting it to the target.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.labels.bases import BASES, fit
from benchmarks.labels.methods import Answer, Case, Method

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def adapt(module: str, name: str) -> Method:
    """Wrap a method that is fitted on the source and takes the labelled rows of the target as parameters."""

    def method(case: Case) -> Answer:
        X, y, Z, _ = case.problem.arrays
        make = getattr(import_module(f"adapt.{module}"), name)
        model = make(BASES[case.base](), Xt=Z[case.rows], yt=case.labels, verbose=0, random_state=0)
        return Answer(np.ravel(model.fit(X, y).predict(Z)))

    return method


def regular_transfer(case: Case) -> Answer:
    """Fit least squares on the labelled rows, with a penalty on the distance from the weights of the source model."""
    X, y, Z, _ = case.problem.arrays
    make: Any = import_module("adapt.parameter_based").RegularTransferLR
    model = make(fit(case.base, X, y, Z), verbose=0).fit(Z[case.rows], case.labels)
    return Answer(np.ravel(model.predict(Z)))


PEERS: dict[str, Method] = {
    "ADAPT RegularTransferLR": regular_transfer,
    "ADAPT PRED": adapt("feature_based", "PRED"),
    "ADAPT FA": adapt("feature_based", "FA"),
    "ADAPT TrAdaBoostR2": adapt("instance_based", "TrAdaBoostR2"),
    "ADAPT TwoStageTrAdaBoostR2": adapt("instance_based", "TwoStageTrAdaBoostR2"),
}
