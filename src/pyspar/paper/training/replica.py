"""One network in training, or several stacked networks: optimisers, the training step and the best weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pyspar.paper.objectives.base import Batch, Objective
from pyspar.paper.training.config import TrainConfig


class Replica:
    """A network with its optimisers and best weights. ``seeds`` has several entries if networks are stacked."""

    def __init__(
        self,
        net: nn.Module,
        module: nn.Module | None,
        seeds: Sequence[int],
        *,
        stacked: bool,
        objective: Objective,
        config: TrainConfig,
    ) -> None:
        self.net, self.module, self.seeds, self.stacked = net, module, tuple(seeds), stacked
        self.objective, self.config = objective, config
        self.device = config.torch_device
        self.loss_names: tuple[str, ...] = ()
        self.parts = {"model": net} if module is None else {"model": net, "module": module}
        self._trainable = {k: [p for p in m.parameters() if p.requires_grad] for k, m in self.parts.items()}
        self.optimizers = {k: self._make_adam(k, params) for k, params in self._trainable.items() if params}
        self._active = list(self.optimizers.values())
        self._saved_buffers: dict[str, dict[str, Tensor]] = {}
        self.best = {name: tensor.clone() for name, tensor in self.get_tensors("model").items()}
        self.best_score = torch.full(self.seed_shape, math.inf, dtype=torch.float64, device=self.device)

    @property
    def seed_shape(self) -> tuple[int, ...]:
        """The shape of one value per seed: (S,) if networks are stacked, else ()."""
        return (len(self.seeds),) if self.stacked else ()

    def _base_lr(self, part: str) -> float:
        return self.config.lr if part == "model" else self.objective.module_lr(self.config.lr)

    def _make_adam(self, part: str, params: list[nn.Parameter]) -> torch.optim.Adam:
        on_gpu = self.device.type == "cuda"
        lr: Any = torch.tensor(self._base_lr(part), device=self.device) if on_gpu else self._base_lr(part)
        return torch.optim.Adam(
            params, lr=lr, weight_decay=self.config.weight_decay, fused=True, capturable=on_gpu, foreach=False
        )

    def get_tensors(self, part: str) -> dict[str, Tensor]:
        """Return every parameter and buffer of a part. They share memory with the part."""
        module = self.parts[part]
        named = [*module.named_parameters(), *module.named_buffers()]
        return {name: tensor.detach() for name, tensor in named}

    def start_epoch(self, epoch: int, phase: str) -> None:
        """Set the learning rates, and enable gradients only for the parts that this phase trains."""
        updates = self.objective.updates(phase)
        for part, params in self._trainable.items():
            for p in params:
                p.requires_grad_(part in updates)
        for part, optimizer in self.optimizers.items():
            lr = self.config.lr_at(epoch, self._base_lr(part))
            for group in optimizer.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(lr)
                else:
                    group["lr"] = lr
        self._active = [optimizer for part, optimizer in self.optimizers.items() if part in updates]
        for module in self.parts.values():
            module.train()
        # A part that this phase does not train still processes batches, which changes its running statistics.
        self._saved_buffers = {
            part: {name: buffer.clone() for name, buffer in module.named_buffers()}
            for part, module in self.parts.items()
            if part not in updates
        }

    def end_epoch(self) -> None:
        """Restore the running statistics of the parts that the epoch did not train."""
        for part, buffers in self._saved_buffers.items():
            copy_tensors(dict(self.parts[part].named_buffers()), buffers)

    def compute_losses(self, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the terms of the loss by name."""
        dtype = self.config.autocast_dtype
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            return self.objective.loss(self.net, batch, self.module, phase)  # type: ignore[arg-type]

    def take_step(self, batch: Batch, phase: str) -> Tensor:
        """Take one step. Return the terms of the loss before it, shape (terms, *seed_shape)."""
        for optimizer in self._active:
            optimizer.zero_grad(set_to_none=True)
        terms = self.compute_losses(batch, phase)
        self.loss_names = tuple(terms)
        values = list(terms.values())
        record = torch.stack([value.detach() for value in values])
        # The losses of all seeds are summed. Seeds share no parameter, so each gradient is that of its own seed.
        total = sum(values[1:], values[0]).sum()
        total.backward()  # type: ignore[no-untyped-call]
        for optimizer in self._active:
            optimizer.step()
        return record

    def keep_best(self, metric: Tensor, epoch: int, *, eligible: bool = True) -> Tensor:
        """Keep the weights of each seed whose metric improved. Return which seeds improved.

        The weights of an epoch that is not eligible are kept only until the first eligible epoch.
        """
        score = {"mse": metric, "worst-group-r": -metric}.get(self.config.select, torch.full_like(metric, -epoch))
        better = score < self.best_score if eligible else torch.isinf(self.best_score)
        if eligible:
            self.best_score = torch.where(better, score, self.best_score)
        for name, current in self.get_tensors("model").items():
            mask = better.reshape((*better.shape, *[1] * (current.ndim - better.ndim)))
            torch.where(mask, current, self.best[name], out=self.best[name])
        return better

    def is_finite(self) -> Tensor:
        """Return for each seed whether all trained weights are finite, including those of the objective's module."""
        axes = len(self.seed_shape)
        weights = [p.detach() for params in self._trainable.values() for p in params]
        return torch.stack([torch.isfinite(p).flatten(axes).all(dim=-1) for p in weights]).all(dim=0)

    def get_state(self) -> dict[str, Any]:
        """Return everything that the next epoch depends on, as tensors and plain values."""
        return {
            "seeds": list(self.seeds),
            "stacked": self.stacked,
            "tensors": {part: self.get_tensors(part) for part in self.parts},
            "optimizers": {part: optimizer.state_dict() for part, optimizer in self.optimizers.items()},
            "best": self.best,
            "best_score": self.best_score,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned, in place."""
        for part, tensors in state["tensors"].items():
            copy_tensors(self.get_tensors(part), tensors)
        for part, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][part])
            if self.device.type == "cuda":  # load_state_dict replaces our tensor by that of the file
                for group in optimizer.param_groups:
                    group["lr"] = torch.as_tensor(group["lr"], device=self.device).clone()
        copy_tensors(self.best, state["best"])
        self.best_score = state["best_score"].to(self.device)

    def load_best(self) -> None:
        """Copy the best weights into the network, set evaluation mode and restore the original ``requires_grad``."""
        copy_tensors(self.get_tensors("model"), self.best)
        for params in self._trainable.values():
            for p in params:
                p.requires_grad_(True)
                p.grad = None
        self.net.eval()


def copy_tensors(destination: dict[str, Tensor], values: dict[str, Tensor]) -> None:
    """Copy tensors into tensors of the same names and shapes. Raise before copying if a name or shape differs."""
    for name in sorted(destination.keys() - values.keys()):
        raise ValueError(f"the tensor {name!r} is missing")
    for name in sorted(values.keys() - destination.keys()):
        raise ValueError(f"unexpected tensor {name!r}")
    for name, tensor in destination.items():
        if tensor.shape != values[name].shape:
            raise ValueError(f"{name!r} has shape {tuple(values[name].shape)}, expected {tuple(tensor.shape)}")
    with torch.no_grad():
        for name, tensor in destination.items():
            tensor.copy_(values[name])
