"""Shared parts of the callbacks for training libraries: options, loaders, and the numbers that are logged."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

from pyspar.errors import InputError
from pyspar.nn import AdaptedHead, adapt_head
from pyspar.nn.batches import BatchReader, check_loader, read_first_batch
from pyspar.nn.features import TargetRows, check_order
from pyspar.nn.find_head import find_head
from pyspar.nn.models import check_model, copy_model, prepare_runner, strip_wrapper_prefix, unwrap
from pyspar.wording import list_some, suggest_name

OPTIONS = frozenset(inspect.signature(adapt_head).parameters) - {"model", "source_loader", "target_loader"}
"""The options of ``adapt_head`` that a callback passes on."""


def check_options(callback: str, options: Mapping[str, Any]) -> None:
    """Raise TypeError for an option that :func:`pyspar.nn.adapt_head` does not have."""
    for name in options:
        if name not in OPTIONS:
            hint = suggest_name(name, OPTIONS) or f"use one of {list_some(sorted(OPTIONS), 20)}"
            raise TypeError(f"{callback} has no option {name!r}; {hint}")


def check_batches(loader: Any, name: str) -> None:
    """Raise TypeError, before training, for an argument that is neither a loader nor a function that returns one."""
    if loader is not None and (not callable(loader) or isinstance(loader, Iterable)):
        check_loader(loader, name)


def get_batches(loader: Any, name: str) -> Any:
    """Return a loader, or the loader that a function without arguments returns."""
    if callable(loader) and not isinstance(loader, Iterable):
        loader = loader()
    check_loader(loader, name)
    return loader


def refuse_processes(callback: str, processes: int, fix: str) -> None:
    """Raise InputError for several processes, because each would compute a different head from its own rows."""
    if processes > 1:
        raise InputError(
            f"{callback} needs one process, got {processes}: each process would compute another head from its own "
            f"rows; {fix}"
        )


def list_metrics(adapted: AdaptedHead) -> dict[str, float]:
    """Return the numbers of a repair that a callback logs, by name.

    ``spar/expected_rmse`` is the forecast on the target, with its 80 % interval; it is missing with ``method="ols"``.
    If the model has several outputs, the names end in ``_0``, ``_1`` and so on.
    """
    account = adapted.account
    numbers = {"source_rmse_trained": account.trained, "source_rmse_adapted": account.adapted}
    if adapted.forecast is not None or hasattr(adapted.estimator, "_adapted_to"):
        expected = adapted.expected_rmse()
        forecasts = expected if isinstance(expected, list) else [expected]
        numbers["expected_rmse"] = np.array([forecast.rmse for forecast in forecasts])
        numbers["expected_rmse_low"] = np.array([forecast.interval80[0] for forecast in forecasts])
        numbers["expected_rmse_high"] = np.array([forecast.interval80[1] for forecast in forecasts])
    metrics = {"spar/changed_directions": float(adapted.changed.directions)}
    for name, values in numbers.items():
        for output, value in enumerate(values.tolist()):
            metrics[f"spar/{name}" + (f"_{output}" if len(values) > 1 else "")] = value
    return metrics


def check_target_labels(labels: Any, target: Any) -> None:
    """Raise ValueError before training for target labels that are no numbers or do not match the rows of a loader."""
    if labels is not None:
        check_order(target)
        rows = TargetRows(labels)
        if (count := _count_rows(target)) is not None:
            rows.read(count)


def try_first_batch(model: nn.Module, target: Any, options: Mapping[str, Any], transfer: Callable[[Any], Any]) -> None:
    """Run a copy of a model on the first target batch, so that errors of the target stop a training before it starts.

    An iterator is not read, because it can be read only once. The state of torch's generator is restored, so that the
    training is the same as without this check. ``transfer`` moves a batch to the device of the model.
    """
    if hasattr(target, "__next__"):
        return
    check_model(model, options.get("autocast"))
    copied = copy_model(unwrap(model))
    names = ("inputs", "labels", "mask", "sample_weight")
    reader = BatchReader.of(copied, **{name: options.get(name) for name in names})
    with torch.random.fork_rng(devices=[]), prepare_runner(copied, options.get("autocast")) as run:
        first, where = transfer(read_first_batch(target, "target_loader")[0]), "batch 0 of target_loader"
        find_head(run, reader.read_arguments(first, where), strip_wrapper_prefix(options.get("head"), copied), where)


def _count_rows(loader: Any) -> int | None:
    """Return the number of rows of a DataLoader that yields each row of its dataset, or None if it is not known."""
    if isinstance(loader, DataLoader) and loader.collate_fn is default_collate and loader.batch_size is not None:
        try:
            return None if loader.drop_last else len(loader.sampler)  # type: ignore[arg-type]
        except TypeError:  # an iterable dataset has no length
            return None
    return None
