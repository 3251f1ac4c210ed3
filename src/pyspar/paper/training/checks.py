"""Checks before training: arguments, data, models, and one trial step on a copy. Nothing is changed or written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.nn.models import evaluation_mode
from pyspar.paper.objectives.base import Objective
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import EpochData, TrainingData, as_columns
from pyspar.paper.training.inference import copy_to_device
from pyspar.paper.training.replica import Replica
from pyspar.wording import list_some

NETWORK_PARTS = ("stem", "trunk", "features", "head")
_MAX_LISTED_ROWS = 10


def check_seeds(seeds: Any) -> list[int]:
    """Return the seeds as a list of int. Raise if one is not a non-negative integer or occurs twice."""
    seeds = list(seeds)
    valid = all(isinstance(s, (int, np.integer)) and not isinstance(s, bool) and s >= 0 for s in seeds)
    if not seeds or not valid or len(set(seeds)) != len(seeds):
        raise InputError(f"seeds must be different integers of at least 0, got {seeds!r}")
    return [int(s) for s in seeds]


def check_arguments(task: Any, objective: Any, config: Any) -> None:
    """Raise if an argument has the wrong type, or the inputs are not arrays of one kind."""
    if not isinstance(objective, Objective):
        if isinstance(objective, type) and issubclass(objective, Objective):
            raise TypeError(
                f"objective must be an instance, got the class {objective.__name__}; pass {objective.__name__}(...)"
            )
        raise TypeError(f"objective must be an Objective such as ERM(), got {objective!r}")
    if not isinstance(config, TrainConfig):
        raise TypeError(
            f"config must be a TrainConfig, got {type(config).__name__}; pass TrainConfig(epochs=..., batch_size=..., "
            "lr=...)"
        )
    missing = [name for name in ("train", "val", "target_inputs") if not hasattr(task, name)]
    if missing:
        raise TypeError(
            f"task must be a ShiftTask, got {type(task).__name__} without {', '.join(missing)}; use "
            "pyspar.paper.data.load or pyspar.paper.data.ShiftTask"
        )
    objective.check(config)
    inputs = {"train.X": task.train.X, "val.X": task.val.X}
    if objective.uses_target:
        inputs["target_inputs"] = task.target_inputs
    for name, X in inputs.items():
        _check_inputs(name, X)
    uint8 = {name: _is_uint8(X) for name, X in inputs.items() if len(X)}
    if len(set(uint8.values())) > 1:
        raise InputError(
            f"inputs must be uint8 in all parts or in none, got uint8 only in "
            f"{', '.join(name for name in uint8 if uint8[name])}; convert all parts to one dtype, because uint8 "
            "images are scaled and floats are not"
        )


def _check_inputs(name: str, X: Any) -> None:
    """Raise if inputs do not support an array of row indices."""
    if hasattr(X, "iloc"):
        raise TypeError(f"{name} must be an array, got a {type(X).__name__}; use its to_numpy()")
    if not (hasattr(X, "shape") and hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise TypeError(
            f"{name} must be an array, or have shape, len and X[row indices], got {type(X).__name__}; use numpy.asarray"
        )
    if len(X.shape) < 2:
        raise InputError(
            f"{name} must have rows and columns, got shape {tuple(X.shape)}; use X.reshape(-1, 1) for one column"
        )
    if isinstance(X, np.ndarray) and X.dtype.kind not in "fiub":
        raise InputError(f"{name} must be numeric, got dtype {X.dtype}; encode text columns, or use astype(float)")


def _is_uint8(X: Any) -> bool:
    dtype = X.dtype if hasattr(X, "dtype") else np.asarray(X[np.array([0])]).dtype
    return "uint8" in str(dtype)


def check_task(task: Any, objective: Objective, config: TrainConfig) -> None:
    """Raise if labels or inputs are not finite or do not fit together. The message lists the rows."""
    parts = {"train": task.train, "val": task.val}
    for name, part in parts.items():
        if len(part.X) != len(part.y):
            raise InputError(f"{name} must have one label per row, got {len(part.X)} rows and {len(part.y)} labels")
        if as_columns(part.y).ndim > 2:
            raise InputError(
                f"{name}.y must have shape (n,) or (n, outputs), got {np.shape(part.y)}; use y.reshape(len(y), -1)"
            )
        _check_finite(as_columns(part.y), f"{name}.y", "drop these rows")
        _check_finite(part.X, f"{name}.X", "impute or drop these rows")
    n = len(task.train.y)
    if config.batch_size > n:
        raise InputError(f"batch_size must not exceed the {n} training rows, got {config.batch_size}")
    shape, others = _row_shape(task.train.X), {"val.X": task.val.X} if len(task.val.y) else {}
    if objective.uses_target:
        others["target_inputs"] = task.target_inputs
        if not len(task.target_inputs):
            raise InputError(f"{objective.name} requires target_inputs, got no rows; add target rows, or use ERM")
        _check_finite(task.target_inputs, "target_inputs", "impute or drop these rows")
    for name, X in others.items():
        if _row_shape(X) != shape:
            raise InputError(f"rows of {name} must have the shape {shape} of train.X, got {_row_shape(X)}")
    outputs, val_outputs = as_columns(task.train.y).shape[1], as_columns(task.val.y).shape[1]
    if len(task.val.y) and val_outputs != outputs:
        raise InputError(f"val.y must have as many outputs as train.y, {outputs}, got {val_outputs}")
    _check_validation(task.val, config)


def _check_validation(val: Any, config: TrainConfig) -> None:
    if config.select == "last":
        return
    if not len(val.y):
        raise InputError(f"select={config.select!r} requires validation rows, got none; use select='last'")
    if config.select == "worst-group-r":
        group, y = np.asarray(val.group), as_columns(val.y)
        if group.shape != (len(y),):
            got = "None" if val.group is None else f"shape {group.shape}"
            raise InputError(
                f"select='worst-group-r' requires val.group with one group for each of {len(y)} rows, got {got}; set "
                "val.group, or use select='mse'"
            )
        unnamed = np.array([g is None or g != g for g in group.tolist()])  # NaN is not equal to itself
        if unnamed.any():
            raise InputError(
                f"val.group must not contain None or NaN, got {int(unnamed.sum())} such rows; set their group, drop "
                "them, or use select='mse'"
            )
        for g in np.unique(group):
            if (np.ptp(y[group == g], axis=0) == 0).any():
                raise InputError(
                    f"select='worst-group-r' requires labels that vary within each group, but the "
                    f"{int((group == g).sum())} rows of group {g} in val have one value; merge groups, or use "
                    "select='mse'"
                )


def _check_finite(values: Any, name: str, fix: str) -> None:
    """Raise if values contain NaN or infinity. Rows that are read as needed are not checked; their loss will be."""
    if isinstance(values, Tensor):
        bad = ~torch.isfinite(values).flatten(1).all(dim=1).cpu().numpy() if len(values) else np.zeros(0, bool)
    elif isinstance(values, np.ndarray) and values.dtype.kind == "f":
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a copy; a finite sum has only finite terms
            return
        bad = _rows_not_finite(values)
    else:
        return
    if bad.any():
        rows = np.flatnonzero(bad)
        raise InputError(
            f"{name} must be finite, got NaN or infinity in {len(rows)} rows: "
            f"{list_some(rows.tolist(), _MAX_LISTED_ROWS)}; {fix}"
        )


def _rows_not_finite(values: NDArray[Any]) -> NDArray[np.bool_]:
    bad: NDArray[np.bool_] = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return bad


def _row_shape(X: Any) -> tuple[int, ...]:
    return tuple(X.shape[1:])


def check_precision(models: Sequence[nn.Module], config: TrainConfig) -> None:
    """Raise for mixed precision of convolutions on a CPU.

    On a CPU, torch 2.13 does not write those entries of a bfloat16 gradient that only see padding, so the step uses
    arbitrary memory.
    """
    has_convolutions = any(isinstance(layer, nn.modules.conv._ConvNd) for model in models for layer in model.modules())
    if config.autocast is not None and config.torch_device.type == "cpu" and has_convolutions:
        raise InputError(
            f"autocast={config.autocast!r} with convolutions requires a GPU, because torch computes wrong gradients on "
            "a CPU; use autocast=None"
        )


def check_models(models: Sequence[Any], seeds: Sequence[int]) -> torch.dtype:
    """Return the dtype of the models. Raise if they cannot be trained."""
    if len(models) != len(seeds):
        raise InputError(f"models must have one model for each of {len(seeds)} seeds, got {len(models)}")
    if len({id(model) for model in models}) != len(models):
        raise InputError("models must be different objects, got the same model for two seeds")
    for model in models:
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    dtypes = {p.dtype for model in models for p in model.parameters() if p.requires_grad}
    if len(dtypes) != 1:
        got = ", ".join(sorted(map(str, dtypes))) or "no trainable parameter"
        raise InputError(f"models must have trainable parameters of one dtype, got {got}")
    dtype: torch.dtype = dtypes.pop()
    return dtype


def count_features(model: nn.Module, objective: Objective, data: TrainingData) -> int:
    """Return the number of inputs of the head, or 0 if the objective has no module of its own."""
    if type(objective).module is Objective.module:
        return 0
    missing = _missing_parts(model)
    if "features" in missing:
        raise _missing_parts_error(model, objective, missing)
    x = data.x.take(torch.arange(min(2, len(data.y)), device=data.y.device), model)
    with evaluation_mode(model), torch.no_grad():
        features = _try(model, objective, x, lambda: model.features(x))  # type: ignore[operator]
    return int(features.shape[-1])


def choose_distinct(replicas: Sequence[Replica]) -> list[Replica]:
    """Return one replica for each architecture."""
    distinct = {
        (
            type(replica.net).__name__,
            *(f"{name}{tuple(tensor.shape)}" for name, tensor in replica.get_tensors("model").items()),
        ): replica
        for replica in reversed(replicas)
    }
    return list(distinct.values())[::-1]


def try_step(replica: Replica, epoch: EpochData, phase: str, config: TrainConfig) -> None:
    """Compute one prediction and one loss on a copy. Raise if the network does not fit the data or the objective."""
    objective = replica.objective
    batch = next(iter(epoch.batches(replica.net)))
    net = copy_to_device(replica.net, replica.device)
    module = None if replica.module is None else copy_to_device(replica.module, replica.device)
    prediction = _try(net, objective, batch.x, lambda: _predict(net, batch.x))
    shape = (*replica.seed_shape, config.batch_size, epoch.data.y.shape[1])
    if prediction.shape != shape:
        raise InputError(
            f"{type(net).__name__} must return shape {shape} for a batch, got {tuple(prediction.shape)}; change the "
            "number of outputs of its last layer, or remove a squeeze"
        )
    trial = Replica(net, module, replica.seeds, stacked=replica.stacked, objective=objective, config=config)
    trial.start_epoch(0, phase)
    terms = _try(net, objective, batch.x, lambda: trial.compute_losses(batch, phase))
    for name, value in terms.items():
        if value.shape != replica.seed_shape:
            raise ValueError(
                f"{objective.name}.loss must return one number per seed, shape {replica.seed_shape}, got {name!r} of "
                f"shape {tuple(value.shape)}; reduce over the last axes only"
            )


def _predict(net: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        prediction: Tensor = net.eval()(x)
        return prediction


def _try(net: nn.Module, objective: Objective, x: Tensor, compute: Callable[[], Any]) -> Any:
    """Return ``compute()``. Errors that come from a network that does not fit are raised as ``InputError``."""
    try:
        return compute()
    except (torch.cuda.OutOfMemoryError, InputError):
        raise
    except AttributeError as error:
        missing = _missing_parts(net)
        if not any(repr(name) in str(error) for name in missing):
            raise
        raise _missing_parts_error(net, objective, missing) from error
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        raise InputError(
            f"{objective.name} cannot take a step with {type(net).__name__}: {error}{_explain(net, x, error)}"
        ) from error


def _explain(net: nn.Module, x: Tensor, error: Exception) -> str:
    """Return an explanation of a message of torch, or an empty string."""
    if "more than 1 value per channel" in str(error):
        return "\nBatch norm requires a batch_size of at least 2."
    width = next((layer.in_features for layer in net.modules() if hasattr(layer, "in_features")), None)
    shapes_differ = "shapes cannot be multiplied" in str(error) or "batch2 tensor" in str(error)
    if shapes_differ and isinstance(width, int) and width != x.shape[-1]:
        return f"\nThe first linear layer has {width} inputs, but the rows have {x.shape[-1]} columns."
    return ""


def _missing_parts(net: nn.Module) -> list[str]:
    return [name for name in NETWORK_PARTS if not hasattr(net, name)]


def _missing_parts_error(net: nn.Module, objective: Objective, missing: Sequence[str]) -> InputError:
    return InputError(
        f"{objective.name} requires a network with {', '.join(NETWORK_PARTS)}; {type(net).__name__} has no "
        f"{', '.join(missing)}. Use pyspar.paper.MLP, or add these parts with features(x) = trunk(stem(x))."
    )
