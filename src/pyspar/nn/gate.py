"""Gate: what is refused before training starts, while nothing has been changed or written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.nn.config import TrainConfig
from pyspar.nn.evaluate import copied
from pyspar.nn.feed import Feed, World, columns
from pyspar.nn.lane import Lane
from pyspar.nn.objective import Objective
from pyspar.nn.order import torch_seed

NETWORK = ("stem", "trunk", "features", "head")


def check_seeds(seeds: Any) -> list[int]:
    """Return the seeds as a list, or refuse what cannot seed a run."""
    found = list(seeds)
    fine = all(isinstance(s, (int, np.integer)) and not isinstance(s, bool) and s >= 0 for s in found)
    if not found or not fine or len(set(found)) != len(found):
        raise InputError(f"seeds must be whole numbers of at least 0, each once. Got {found!r} instead.")
    return [int(s) for s in found]


def check_task(task: Any, objective: Objective, config: TrainConfig) -> None:
    """Refuse labels and inputs that cannot be learned from, naming the rows."""
    parts = {"train": task.train, "val": task.val}
    for name, part in parts.items():
        if len(part.X) != len(part.y):
            raise InputError(f"{name} must have a label for each row. Got {len(part.X)} rows and {len(part.y)} labels.")
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
    _check_validation(task.val, config)


def _check_validation(val: Any, config: TrainConfig) -> None:
    if config.select == "last":
        return
    if not len(val.y):
        raise InputError(f"select={config.select!r} needs validation rows. Got none; use select='last'.")
    if config.select == "worst-group-r":
        group, y = np.asarray(val.group), columns(val.y)
        if len(group) != len(y):
            raise InputError(f"val.group must name a group for each of {len(y)} rows. Got {len(group)}.")
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
    model.eval()
    with torch.no_grad():
        found = model.features(world.x.take(torch.arange(min(2, len(world.y)), device=world.y.device), model))  # type: ignore[operator]
    for module, training in flags:
        module.training = training
    return int(found.shape[-1])


def try_step(lane: Lane, feed: Feed, phase: str, config: TrainConfig) -> None:
    """Compute one loss and one prediction on a copy, so that a network that does not fit is refused at once."""
    world, objective = feed.world, lane.objective
    batch = next(iter(feed.batches(lane.net)))
    net = copied(lane.net, lane.device)
    module = None if lane.module is None else copied(lane.module, lane.device)
    torch.manual_seed(torch_seed(lane.seeds[0], 0, "trial"))
    found = _attempt(net, objective, lambda: _predicted(net, batch.x))
    shape = (*lane.shape, config.batch_size, world.y.shape[1])
    if found.shape != shape:
        raise InputError(
            f"{type(net).__name__} must predict as many outputs as the labels have, {shape[-1]} for each row: shape "
            f"{shape} for a batch. Got {tuple(found.shape)}; change its last layer, or do not squeeze."
        )
    trial = Lane(net, module, lane.seeds, stacked=lane.stacked, objective=objective, config=config)
    trial.begin(0, phase)
    parts = _attempt(net, objective, lambda: trial.losses(batch, phase))
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


def _attempt(net: nn.Module, objective: Objective, compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except torch.cuda.OutOfMemoryError:
        raise
    except AttributeError as error:
        missing = [name for name in NETWORK if not hasattr(net, name)]
        if not any(repr(name) in str(error) for name in missing):
            raise
        raise _missing(net, objective, missing) from error
    except (RuntimeError, TypeError, IndexError) as error:
        raise InputError(f"{objective.name} cannot take a step with {type(net).__name__}: {error}") from error


def _missing(net: nn.Module, objective: Objective, missing: Sequence[str]) -> InputError:
    return InputError(
        f"{objective.name} needs a network with {', '.join(NETWORK)}. {type(net).__name__} has no "
        f"{', '.join(missing)}; use pyspar.nn.MLP, or give yours these parts: features(x) = trunk(stem(x))."
    )
