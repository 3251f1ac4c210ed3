"""Other ways to obtain Moments, nothing else: streams, sparse rows, Dask, torch. There is no second estimator."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import scipy.sparse as sp

from pyspar.core.eigen import working_with
from pyspar.core.moments import Moments, Solver, column_names
from pyspar.sources.refusals import refuse_dates
from pyspar.sources.stream import is_batches, moments_of_batches

Kind = Literal["rows", "sparse", "dask", "torch", "batches"]


def kind_of(data: Any) -> Kind:
    """Tell what data is, without importing a library that the caller has not.

    >>> import numpy as np
    >>> kind_of(np.ones((2, 2))), kind_of(sp.eye_array(2)), kind_of(iter([]))
    ('rows', 'sparse', 'batches')
    """
    if sp.issparse(data):
        return "sparse"
    library = type(data).__module__.partition(".")[0]
    if library == "dask":
        return "dask"
    if library == "torch" and hasattr(data, "is_floating_point"):
        return "torch"
    return "batches" if is_batches(data) else "rows"


def moments_of(data: Any, Y: Any = None, sample_weight: Any = None, *, solver: Solver = "auto") -> Moments:
    """Summarise rows of any kind; for batches, Y is True where they are labelled."""
    kind = kind_of(data)
    if kind == "sparse":
        from pyspar.sources.sparse import moments_of_sparse

        return moments_of_sparse(data, Y, sample_weight, solver=solver)
    if kind == "dask":
        from pyspar.sources.dask import moments_of_dask

        return moments_of_dask(data, Y, sample_weight, solver=solver)
    if kind == "torch":
        from pyspar.sources.torch import moments_of_tensors

        return moments_of_tensors(data, Y, sample_weight, solver=solver)
    if kind == "batches":
        return _of_batches(data, labelled=Y is True, solver=solver)
    return Moments.of(data, Y, sample_weight, solver=solver)


def _of_batches(batches: Any, *, labelled: bool, solver: Solver) -> Moments:
    """Look at the first batch to know whether tensors come, and then read on."""
    from itertools import chain

    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        raise ValueError("the batches must hold at least one row. Got none; is the iterator used up?")
    rows = first[0] if isinstance(first, (tuple, list)) and len(first) else first
    stream = chain([first], stream)
    if kind_of(rows) == "torch":
        from pyspar.sources.torch import moments_of_loader

        return moments_of_loader(stream, labelled=labelled, solver=solver)
    return moments_of_batches(stream, labelled=labelled, solver=solver)


def linear_prediction(model: Any, X: Any, kind: Kind) -> Any:
    """Predict rows where they lie: lazily for Dask, on the device for torch."""
    refuse_dates("X", X)
    columns, expected = X.shape[1] if len(X.shape) == 2 else None, model.n_features_in_
    if columns != expected:
        raise ValueError(f"X has {columns} features, but {type(model).__name__} is expecting {expected} features.")
    names, given = getattr(model, "feature_names_in_", None), column_names(X)
    if names is not None and given and list(names) != list(given):
        raise ValueError("The feature names should match those that were passed during fit, in the same order.")
    if kind == "dask":
        from pyspar.sources.dask import predict_dask

        return predict_dask(X, model.coef_, model.intercept_)
    from pyspar.sources.torch import predict_tensor

    return predict_tensor(X, model.coef_, model.intercept_)


def working_near(data: Any) -> AbstractContextManager[None]:
    """Do what grows as D cubed where the rows lie, inside a ``with`` block: on the GPU for a tensor that is there."""
    if not getattr(data, "is_cuda", False):
        return nullcontext()
    from pyspar.sources.torch import DeviceAlgebra

    return working_with(DeviceAlgebra(data.device))
