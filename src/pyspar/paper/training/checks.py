"""Gate: what is refused before training starts, while nothing has been changed or written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Objective
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import Feed, World, columns
from pyspar.paper.training.inference import copied
from pyspar.paper.training.order import torch_seed
from pyspar.paper.training.replica import Lane

NETWORK = ("stem", "trunk", "features", "head")


def check_seeds(seeds: Any) -> list[int]:
    """Return the seeds as a list, or refuse what cannot seed a run."""
    found = list(seeds)
    fine = all(isinstance(s, (int, np.integer)) and not isinstance(s, bool) and s >= 0 for s in found)
    if not found or not fine or len(set(found)) != len(found):
        raise InputError(f"seeds must be whole numbers of at least 0, each once. Got {found!r} instead.")
    return [int(s) for s in found]


def check_kinds(task: Any, objective: Any, config: Any) -> None:
    """Refuse arguments that are something else than they should be."""
    if not isinstance(objective, Objective):
        if isinstance(objective, type) and issubclass(objective, Objective):
            got, cure = f"the class {objective.__name__}", f"call it: {objective.__name__}(...)"
        else:
            got, cure = repr(objective), "for squared error pass ERM(), and for your own a subclass of Objective"
        raise TypeError(f"objective must be an object such as ERM(). Got {got} instead; {cure}.")
    if not isinstance(config, TrainConfig):
        raise TypeError(
            f"config must be a TrainConfig. Got {type(config).__name__} instead; pass TrainConfig(epochs=..., "
            "batch_size=..., lr=...)."
        )
    missing = [name for name in ("train", "val", "target_inputs") if not hasattr(task, name)]
    if missing:
        raise TypeError(
            f"task must be a ShiftTask, with train, val and test. Got {type(task).__name__}, without "
            f"{', '.join(missing)}; use pyspar.paper.data.load, or build one of pyspar.paper.data.Part."
        )
    objective.check(config)
    inputs = {"train.X": task.train.X, "val.X": task.val.X}
    if objective.uses_target:
        inputs["target_inputs"] = task.target_inputs
    for name, X in inputs.items():
        _check_inputs(name, X)
    pixels = {name: _is_uint8(X) for name, X in inputs.items() if len(X)}
    if len(set(pixels.values())) > 1:
        some = ", ".join(name for name, found in pixels.items() if found)
        raise InputError(
            f"inputs must be uint8 in all parts or in none: uint8 images are scaled, floats are taken as they are. "
            f"Got uint8 in {some} only; bring all parts to one dtype and scale."
        )


def _check_inputs(name: str, X: Any) -> None:
    """Refuse what cannot be asked for rows by their numbers."""
    if hasattr(X, "iloc"):
        raise TypeError(f"{name} must be an array. Got a {type(X).__name__}; pass {name.split('.')[0]} X.to_numpy().")
    if not (hasattr(X, "shape") and hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise TypeError(
            f"{name} must be an array, rows first, or have shape, len and X[row numbers]. Got {type(X).__name__} "
            "instead; use numpy.asarray."
        )
    if len(X.shape) < 2:
        raise InputError(
            f"{name} must have rows and columns. Got the shape {tuple(X.shape)}; one column is X.reshape(-1, 1)."
        )
    if isinstance(X, np.ndarray) and X.dtype.kind not in "fiub":
        raise InputError(
            f"{name} must hold numbers. Got the dtype {X.dtype}; encode what is text, or use astype(float)."
        )


def _is_uint8(X: Any) -> bool:
    dtype = X.dtype if hasattr(X, "dtype") else np.asarray(X[np.array([0])]).dtype
    return "uint8" in str(dtype)


def check_task(task: Any, objective: Objective, config: TrainConfig) -> None:
    """Refuse labels and inputs that cannot be learned from, naming the rows."""
    parts = {"train": task.train, "val": task.val}
    for name, part in parts.items():
        if len(part.X) != len(part.y):
            raise InputError(f"{name} must have a label for each row. Got {len(part.X)} rows and {len(part.y)} labels.")
        if columns(part.y).ndim > 2:
            raise InputError(
                f"labels of {name} must have shape (n,) or (n, outputs). Got {np.shape(part.y)}; use "
                "y.reshape(len(y), -1)."
            )
        _refuse_rows(columns(part.y), f"labels of {name}", "drop these rows")
        _refuse_rows(part.X, f"inputs of {name}", "impute or drop these rows first")
    n = len(task.train.y)
    if config.batch_size > n:
        raise InputError(f"batch_size must not exceed the {n} training rows. Got {config.batch_size}; lower it.")
    shape, others = _row_shape(task.train.X), {"val": task.val.X} if len(task.val.y) else {}
    if objective.uses_target:
        others["target_inputs"] = task.target_inputs
        if not len(task.target_inputs):
            raise InputError(f"{objective.name} needs target inputs. Got none; give the task some, or use ERM.")
        _refuse_rows(task.target_inputs, "target_inputs", "impute or drop these rows first")
    for name, X in others.items():
        if _row_shape(X) != shape:
            raise InputError(f"{name} must have rows of the training inputs' shape {shape}. Got {_row_shape(X)}.")
    outputs, judged = columns(task.train.y).shape[1], columns(task.val.y).shape[1]
    if len(task.val.y) and judged != outputs:
        raise InputError(
            f"labels of val must have as many outputs as those of train, {outputs}. Got {judged}; give both the same."
        )
    _check_validation(task.val, config)


def _check_validation(val: Any, config: TrainConfig) -> None:
    if config.select == "last":
        return
    if not len(val.y):
        raise InputError(f"select={config.select!r} needs validation rows. Got none; use select='last'.")
    if config.select == "worst-group-r":
        group, y = np.asarray(val.group), columns(val.y)
        if group.shape != (len(y),):
            got = "None" if val.group is None else f"shape {group.shape}"
            raise InputError(
                f"select='worst-group-r' needs val.group, a group for each of {len(y)} rows. Got {got}; name the "
                "groups, or use select='mse'."
            )
        nameless = np.array([g is None or g != g for g in group.tolist()])  # NaN is not itself
        if nameless.any():
            raise InputError(
                f"val.group must name a group for each row. Got None or NaN in {int(nameless.sum())} rows; name these, "
                "drop them, or use select='mse'."
            )
        for g in np.unique(group):
            if (np.ptp(y[group == g], axis=0) == 0).any():
                raise InputError(
                    f"select='worst-group-r' needs labels that vary within each group. Got one value in group {g} of "
                    f"val ({int((group == g).sum())} rows); merge groups, or use select='mse'."
                )


def _refuse_rows(values: Any, what: str, cure: str) -> None:
    """Refuse NaN and infinity; rows that are read as needed are found out by their loss."""
    if isinstance(values, Tensor):
        bad = ~torch.isfinite(values).flatten(1).all(dim=1).cpu().numpy() if len(values) else np.zeros(0, bool)
    elif isinstance(values, np.ndarray) and values.dtype.kind == "f":
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass and no copy; a finite sum has only finite terms
            return
        bad = _bad_rows(values)
    else:
        return
    if bad.any():
        rows = np.flatnonzero(bad)
        shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
        raise InputError(f"{what} must be finite. Got NaN or infinity in {len(rows)} rows: {shown}; {cure}.")


def _bad_rows(values: NDArray[Any]) -> NDArray[np.bool_]:
    bad: NDArray[np.bool_] = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return bad


def _row_shape(X: Any) -> tuple[int, ...]:
    return tuple(X.shape[1:])


def check_precision(models: Sequence[nn.Module], config: TrainConfig) -> None:
    """Refuse mixed precision of convolutions on a CPU.

    There torch 2.13 leaves those entries of a bfloat16 gradient unwritten which only ever meet padding: whatever lay in
    memory becomes a step.
    """
    convolves = any(isinstance(layer, nn.modules.conv._ConvNd) for model in models for layer in model.modules())
    if config.autocast is not None and config.torch_device.type == "cpu" and convolves:
        raise InputError(
            f"autocast={config.autocast!r} of a network with convolutions needs a GPU: on a CPU torch computes their "
            "gradients wrongly. Use autocast=None."
        )


def check_models(models: Sequence[Any], seeds: Sequence[int]) -> torch.dtype:
    """Return the dtype that the models compute in, or refuse what cannot be trained."""
    if len(models) != len(seeds):
        raise InputError(f"models must be one for each of {len(seeds)} seeds. Got {len(models)}.")
    if len({id(model) for model in models}) != len(models):
        raise InputError("models must be different objects, one for each seed. Got the same one twice.")
    for model in models:
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module. Got {type(model).__name__} instead.")
    found = {p.dtype for model in models for p in model.parameters() if p.requires_grad}
    if len(found) != 1:
        said = ", ".join(sorted(map(str, found))) or "no parameter to train"
        raise InputError(f"models must have trainable parameters of one dtype. Got {said}.")
    dtype: torch.dtype = found.pop()
    return dtype


def feature_count(model: nn.Module, objective: Objective, world: World) -> int:
    """Return how many features enter the head, for the objective's own part; 0 where it has none."""
    if type(objective).module is Objective.module:
        return 0
    missing = [name for name in NETWORK if not hasattr(model, name)]
    if "features" in missing:
        raise _missing(model, objective, missing)
    flags = [(module, module.training) for module in model.modules()]
    x = world.x.take(torch.arange(min(2, len(world.y)), device=world.y.device), model)
    model.eval()
    with torch.no_grad():
        found = _attempt(model, objective, x, lambda: model.features(x))  # type: ignore[operator]
    for module, training in flags:
        module.training = training
    return int(found.shape[-1])


def unlike(lanes: Sequence[Lane]) -> list[Lane]:
    """Return one lane of each shape of network: the others would say the same."""
    found = {
        (
            type(lane.net).__name__,
            *(f"{name}{tuple(tensor.shape)}" for name, tensor in lane.tensors("model").items()),
        ): lane
        for lane in reversed(lanes)
    }
    return list(found.values())[::-1]


def try_step(lane: Lane, feed: Feed, phase: str, config: TrainConfig) -> None:
    """Compute one loss and one prediction on a copy, so that a network that does not fit is refused at once."""
    world, objective = feed.world, lane.objective
    batch = next(iter(feed.batches(lane.net)))
    net = copied(lane.net, lane.device)
    module = None if lane.module is None else copied(lane.module, lane.device)
    torch.manual_seed(torch_seed(lane.seeds[0], 0, "trial"))
    found = _attempt(net, objective, batch.x, lambda: _predicted(net, batch.x))
    shape = (*lane.shape, config.batch_size, world.y.shape[1])
    if found.shape != shape:
        raise InputError(
            f"{type(net).__name__} must predict as many outputs as the labels have, {shape[-1]} for each row: shape "
            f"{shape} for a batch. Got {tuple(found.shape)}; change its last layer, or do not squeeze."
        )
    trial = Lane(net, module, lane.seeds, stacked=lane.stacked, objective=objective, config=config)
    trial.begin(0, phase)
    parts = _attempt(net, objective, batch.x, lambda: trial.losses(batch, phase))
    for name, value in parts.items():
        if value.shape != lane.shape:
            raise ValueError(
                f"{objective.name}.loss must return one number for each lane, shape {lane.shape}. Got {name!r} of "
                f"shape {tuple(value.shape)}; reduce over the last axes only."
            )


def _predicted(net: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        found: Tensor = net.eval()(x)
        return found


def _attempt(net: nn.Module, objective: Objective, x: Tensor, compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except (torch.cuda.OutOfMemoryError, InputError):
        raise
    except AttributeError as error:
        missing = [name for name in NETWORK if not hasattr(net, name)]
        if not any(repr(name) in str(error) for name in missing):
            raise
        raise _missing(net, objective, missing) from error
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        raise InputError(
            f"{objective.name} cannot take a step with {type(net).__name__}: {error}{_hint(net, x, error)}"
        ) from error


def _hint(net: nn.Module, x: Tensor, error: Exception) -> str:
    """Say in our words what torch's mean, where they are known."""
    if "more than 1 value per channel" in str(error):
        return "\nBatch norm needs a batch_size of at least 2."
    width = next((layer.in_features for layer in net.modules() if hasattr(layer, "in_features")), None)
    misfit = "shapes cannot be multiplied" in str(error) or "batch2 tensor" in str(error)
    if misfit and isinstance(width, int) and width != x.shape[-1]:
        return f"\nIts first linear layer takes {width} columns, and the inputs have {x.shape[-1]}; build it for those."
    return ""


def _missing(net: nn.Module, objective: Objective, missing: Sequence[str]) -> InputError:
    return InputError(
        f"{objective.name} needs a network with {', '.join(NETWORK)}. {type(net).__name__} has no "
        f"{', '.join(missing)}; use pyspar.paper.MLP, or give yours these parts: features(x) = trunk(stem(x))."
    )
