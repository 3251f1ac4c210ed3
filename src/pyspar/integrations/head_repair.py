"""Shared parts of the callbacks for training libraries: arguments, checks before the training, and the result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from pyspar.errors import InputError
from pyspar.nn import AdaptedHead, adapt_head
from pyspar.nn.batches import BatchReader, check_loader, read_first_batch
from pyspar.nn.features import check_order
from pyspar.nn.find_head import find_head, find_linear_layers
from pyspar.nn.head import check_options
from pyspar.nn.models import check_network, copy_model, prepare_runner, unwrap


class HeadRepair:
    """The arguments of a callback, which are checked when it is created, and the result of its last repair."""

    def __init__(self, target: Any, source: Any, options: dict[str, Any], *, default_target: bool = False) -> None:
        arguments = inspect.signature(adapt_head).bind(None, source, target, **options)  # refuses unknown options
        arguments.apply_defaults()
        check_options(arguments.arguments)
        for role, loader in (("target", target), ("source", source)):
            if loader is not None and not _is_function(loader):
                check_loader(loader, role)
        uses_target = options.get("method") != "ols" or options.get("target_labels") is not None
        if target is None and uses_target and not default_target:
            raise InputError(
                f"target is missing; pass rows of the target to {type(self).__name__}, such as a DataLoader, or "
                "method='ols'"
            )
        self.target, self.source, self.options = target, source, options
        self.adapted: AdaptedHead | None = None
        self.metrics: dict[str, float] = {}
        self._arguments = arguments.arguments

    def refuse_processes(self, processes: int, fix: str) -> None:
        """Raise InputError for several processes, because each would compute a different head from its own rows."""
        if processes > 1:
            raise InputError(
                f"{type(self).__name__} needs one process, got {processes}: each process would compute a different "
                f"head from its own rows; {fix}"
            )

    def check_layers(self, model: nn.Module) -> None:
        """Raise InputError for a model that is sharded or offloaded, or that has no such head."""
        check_network(model)
        find_linear_layers(unwrap(model), self._arguments["head"])

    def get_target(self, default: Any = None) -> Any:
        """Return the loader of the target, or the default; raise InputError if it has labels but shuffles."""
        target = default if self.target is None else get_batches(self.target, "target")
        if self._arguments["target_labels"] is not None:
            check_order(target)
        return target

    def try_first_batch(self, model: nn.Module, target: Any, transfer: Callable[[Any], Any]) -> None:
        """Run a copy of a model on the first target batch, so that errors of the target stop a training at its start.

        An iterator is not read, because it can be read only once. The state of torch's generator is restored, so that
        the training is the same as without this check. ``transfer`` moves a batch to the device of the model.
        """
        if hasattr(target, "__next__"):
            return
        copied, given = copy_model(unwrap(model)), self._arguments
        functions = {name: given[name] for name in ("inputs", "labels", "mask", "sample_weight")}
        with torch.random.fork_rng(devices=[]), prepare_runner(copied, given["autocast"]) as run:
            first, where = transfer(read_first_batch(target, "target_loader")[0]), "batch 0 of target_loader"
            find_head(run, BatchReader.of(copied, **functions).read_arguments(first, where), given["head"], where)


def get_batches(loader: Any, name: str) -> Any:
    """Return a loader, or the loader that a function without arguments returns."""
    loader = loader() if _is_function(loader) else loader
    check_loader(loader, name)
    return loader


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


def _is_function(loader: Any) -> bool:
    return callable(loader) and not isinstance(loader, Iterable)
