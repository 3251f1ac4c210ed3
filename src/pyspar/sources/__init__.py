"""Moments of rows of any kind: arrays, batches, sparse matrices, Dask collections and tensors.

This module recognises the kind of data of a caller. One module per kind computes Moments; ``files`` reads cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from pyspar.core.moments import VALUE_RANGE, Moments
from pyspar.core.spectrum import Eigen
from pyspar.text import list_some

DataKind = Literal["rows", "sparse", "dask", "torch", "batches"]

_TIME_TYPES = ("date", "time", "period", "duration")  # prefixes of names of types in numpy, pandas, polars and arrow


def kind_of(data: Any) -> DataKind:
    """Return the kind of data, without importing a library that the caller has not imported.

    >>> kind_of(np.ones((2, 2))), kind_of(sp.eye_array(2)), kind_of(iter([]))
    ('rows', 'sparse', 'batches')
    """
    if sp.issparse(data):
        return "sparse"
    refuse_unread_tables(data)
    library = type(data).__module__.partition(".")[0]
    if library == "dask":
        return "dask"
    if library == "torch" and hasattr(data, "is_floating_point"):
        return "torch"
    return "batches" if is_batches(data) else "rows"


def is_batches(data: Any) -> bool:
    """Return whether data is an iterable of row blocks rather than rows.

    >>> is_batches(iter([])), is_batches([[1.0, 2.0]]), is_batches([np.ones((2, 3))]), is_batches(np.ones((2, 3)))
    (True, False, True, False)
    """
    if any(hasattr(data, name) for name in ("shape", "__array__", "columns", "__dataframe__")):
        return False
    if isinstance(data, (list, tuple)):
        return bool(data) and len(getattr(features_of_batch(data[0]), "shape", ())) == 2
    return isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict, set))


def features_of_batch(batch: Any) -> Any:
    """Return the features of a batch: its first part if it is a tuple or list, else the batch."""
    return batch[0] if isinstance(batch, (tuple, list)) and len(batch) else batch


def moments_of(data: Any, Y: Any = None, sample_weight: Any = None, *, labelled: bool = False) -> Moments:
    """Return the moments of rows of any kind. ``labelled`` says whether batches contain labels."""
    kind = kind_of(data)
    if kind == "rows":
        return Moments.of(data, Y, sample_weight)
    if kind == "batches":
        stream = iter(data)
        start = list(islice(stream, 1))
        is_torch = start and kind_of(features_of_batch(start[0])) == "torch"
        name = "torch.moments_of_loader" if is_torch else "stream.moments_of_batches"
        return _find(name)(chain(start, stream), labelled=labelled)  # type: ignore[no-any-return]
    return _find(f"{kind}.moments_of_{kind}")(data, Y, sample_weight)  # type: ignore[no-any-return]


def _find(name: str) -> Any:
    """Return a function of one of the modules, which are imported when they are needed."""
    module, _, function = name.partition(".")
    return getattr(import_module(f"pyspar.sources.{module}"), function)


def linear_prediction(X: Any, coef: Any, intercept: Any) -> Any:
    """Return the predictions of linear weights: lazy for a Dask collection, on the device for a tensor."""
    return _find("dask.predict_dask" if kind_of(X) == "dask" else "torch.predict_tensor")(X, coef, intercept)


def eigen_on_device_of(data: Any) -> Eigen | None:
    """Return the function that solves eigenproblems on the GPU of a tensor; None for other data."""
    return partial(_find("torch.eigen_on"), data.device) if getattr(data, "is_cuda", False) else None


def refuse_unread_tables(data: Any) -> None:
    """Raise TypeError for a LazyFrame of polars and a table of pyarrow, with the call that makes a data frame of it."""
    library, name = type(data).__module__.partition(".")[0], type(data).__name__
    if library == "polars" and name == "LazyFrame":
        raise TypeError("expected a data frame, got a LazyFrame; call collect() first")
    if library == "pyarrow" and name in ("Table", "RecordBatch"):
        raise TypeError(f"expected a data frame, got a pyarrow {name}; use to_pandas() or polars.from_arrow first")


def refuse_dates(name: str, values: Any) -> None:
    """Raise TypeError for dates and durations, which numpy converts to a count of nanoseconds or of another unit."""
    refuse_unread_tables(values)
    columns = getattr(values, "columns", None)
    if columns is not None and len(values.shape) == 2:  # a Dask series has columns too
        dated = [str(column) for column, dtype in zip(columns, values.dtypes) if _is_time(dtype)]
        contains_dates, where = bool(dated), f" in {list_some(dated)}"
    else:
        first = values[0] if isinstance(values, (list, tuple)) and values else values  # a list has no dtype
        entries = first if isinstance(first, (list, tuple)) else [first]
        contains_dates, where = any(_is_time(getattr(entry, "dtype", None)) for entry in entries), ""
    if contains_dates:
        raise TypeError(
            f"{name} must contain numbers, got dates or durations{where}; convert them to numbers first, for example "
            "to days: (dates - dates.min()) / numpy.timedelta64(1, 'D')"
        )


def refuse_large(name: str, values: Any) -> None:
    """Raise ValueError for values that are too large to compute with (``VALUE_RANGE``). NaN is ignored."""
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    if largest > VALUE_RANGE[1]:
        raise ValueError(f"{name} must have values up to {VALUE_RANGE[1]:g}, got {largest:.3g}; rescale or drop them")


def _is_time(dtype: Any) -> bool:
    name = (dtype.name if isinstance(dtype, np.dtype) else str(dtype)).lower()
    return name.startswith(_TIME_TYPES)
