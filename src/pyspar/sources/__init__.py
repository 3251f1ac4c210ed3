"""Moments of rows that are not in one array: batches, sparse matrices, Dask collections, tensors and files."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

from pyspar.core.moments import Moments, Solver, column_names
from pyspar.sources.kinds import DataKind, features_of_batch, kind_of, refuse_dates
from pyspar.sources.stream import moments_of_batches


def moments_of(
    data: Any, Y: Any = None, sample_weight: Any = None, *, labelled: bool = False, solver: Solver = "auto"
) -> Moments:
    """Return the moments of rows of any kind. ``labelled`` says whether batches contain labels."""
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
        return _moments_of_any_batches(data, labelled=labelled, solver=solver)
    return Moments.of(data, Y, sample_weight, solver=solver)


def _moments_of_any_batches(batches: Any, *, labelled: bool, solver: Solver) -> Moments:
    """Return the moments of batches of tensors or of other rows, depending on the first batch."""
    stream = iter(batches)
    start = list(islice(stream, 1))
    stream = chain(start, stream)
    if start and kind_of(features_of_batch(start[0])) == "torch":
        from pyspar.sources.torch import moments_of_loader

        return moments_of_loader(stream, labelled=labelled, solver=solver)
    return moments_of_batches(stream, labelled=labelled, solver=solver)


def linear_prediction(model: Any, X: Any, kind: DataKind) -> Any:
    """Return the predictions of a linear model: lazy for a Dask collection, on the device for a tensor."""
    refuse_dates("X", X)
    columns, expected = X.shape[1] if len(X.shape) == 2 else None, model.n_features_in_
    if columns != expected:
        raise ValueError(f"X has {columns} features, but {type(model).__name__} is expecting {expected} features.")
    source_names, names = getattr(model, "feature_names_in_", None), column_names(X)
    if source_names is not None and names and list(source_names) != list(names):
        raise ValueError("The feature names should match those that were passed during fit, in the same order.")
    if kind == "dask":
        from pyspar.sources.dask import predict_dask

        return predict_dask(X, model.coef_, model.intercept_)
    from pyspar.sources.torch import predict_tensor

    return predict_tensor(X, model.coef_, model.intercept_)
