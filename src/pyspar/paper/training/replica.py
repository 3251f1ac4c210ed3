"""Lane: one network in training, or several stacked: its optimizers, its step, and the best weights so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pyspar.paper.objectives.base import Batch, Objective
from pyspar.paper.training.config import TrainConfig


class Lane:
    """What one step of one computation changes; ``seeds`` are several where networks are stacked."""

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
        self.names: tuple[str, ...] = ()  # of the loss's parts
        self.parts = {"model": net} if module is None else {"model": net, "module": module}
        self._trainable = {k: [p for p in m.parameters() if p.requires_grad] for k, m in self.parts.items()}
        self.optimizers = {k: self._adam(k, params) for k, params in self._trainable.items() if params}
        self._active = list(self.optimizers.values())
        self._held: dict[str, dict[str, Tensor]] = {}
        # float16 can lose small gradients; their scale differs between seeds, so such networks are never stacked.
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=config.autocast == "float16")
        self.best = {name: tensor.clone() for name, tensor in self.tensors("model").items()}
        self.best_score = torch.full(self.shape, math.inf, dtype=torch.float64, device=self.device)

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of lanes."""
        return (len(self.seeds),) if self.stacked else ()

    def _base_lr(self, part: str) -> float:
        return self.config.lr if part == "model" else self.objective.module_lr(self.config.lr)

    def _adam(self, part: str, params: list[nn.Parameter]) -> torch.optim.Adam:
        on_gpu = self.device.type == "cuda"
        lr: Any = torch.tensor(self._base_lr(part), device=self.device) if on_gpu else self._base_lr(part)
        return torch.optim.Adam(
            params, lr=lr, weight_decay=self.config.weight_decay, fused=True, capturable=on_gpu, foreach=False
        )

    def tensors(self, part: str) -> dict[str, Tensor]:
        """Return every parameter and buffer of a part, to be read or written in place."""
        module = self.parts[part]
        found = [*module.named_parameters(), *module.named_buffers()]
        return {name: tensor.detach() for name, tensor in found}

    def begin(self, epoch: int, phase: str) -> None:
        """Set learning rates, and let gradients reach only what this phase trains."""
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
        # A network that this phase does not train still meets batches, and its running statistics would follow them.
        self._held = {
            part: {name: buffer.clone() for name, buffer in module.named_buffers()}
            for part, module in self.parts.items()
            if part not in updates
        }

    def end(self) -> None:
        """Put back the statistics of what the epoch did not train."""
        for part, buffers in self._held.items():
            put(dict(self.parts[part].named_buffers()), buffers)

    def losses(self, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the parts of the loss."""
        dtype = self.config.autocast_dtype
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            return self.objective.loss(self.net, batch, self.module, phase)  # type: ignore[arg-type]

    def step(self, batch: Batch, phase: str) -> Tensor:
        """Take one step; return the parts of the loss before it, shape (parts, *lanes)."""
        for optimizer in self._active:
            optimizer.zero_grad(set_to_none=True)
        parts = self.losses(batch, phase)
        self.names = tuple(parts)
        values = list(parts.values())
        record = torch.stack([value.detach() for value in values])
        # The lanes' losses are summed: no parameter is in two of them, so each gradient is its own lane's.
        total = sum(values[1:], values[0]).sum()
        if self.scaler.is_enabled():
            self.scaler.scale(total).backward()  # type: ignore[no-untyped-call]
            for optimizer in self._active:
                self.scaler.step(optimizer)
            self.scaler.update()
        else:
            total.backward()  # type: ignore[no-untyped-call]
            for optimizer in self._active:
                optimizer.step()
        return record

    def judge(self, metric: Tensor, epoch: int, *, counts: bool = True) -> Tensor:
        """Keep the weights of each lane that did better than before; return which did.

        An epoch that does not count is kept only until one does, whatever its metric.
        """
        score = {"mse": metric, "worst-group-r": -metric}.get(self.config.select, torch.full_like(metric, -epoch))
        better = score < self.best_score if counts else torch.isinf(self.best_score)
        if counts:
            self.best_score = torch.where(better, score, self.best_score)
        for name, now in self.tensors("model").items():
            mask = better.reshape((*better.shape, *[1] * (now.ndim - better.ndim)))
            torch.where(mask, now, self.best[name], out=self.best[name])
        return better

    def is_finite(self) -> Tensor:
        """Say of each lane whether all its weights are finite, the objective's own part included."""
        axes = len(self.shape)
        weights = [p.detach() for params in self._trainable.values() for p in params]
        return torch.stack([torch.isfinite(p).flatten(axes).all(dim=-1) for p in weights]).all(dim=0)

    def state(self) -> dict[str, Any]:
        """Return everything that the next epoch depends on, as tensors and plain values."""
        return {
            "seeds": list(self.seeds),
            "stacked": self.stacked,
            "tensors": {part: self.tensors(part) for part in self.parts},
            "optimizers": {part: optimizer.state_dict() for part, optimizer in self.optimizers.items()},
            "scaler": self.scaler.state_dict(),
            "best": self.best,
            "best_score": self.best_score,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state, in place."""
        for part, tensors in state["tensors"].items():
            put(self.tensors(part), tensors)
        for part, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][part])
            if self.device.type == "cuda":  # loading puts the file's own tensor in place of ours
                for group in optimizer.param_groups:
                    group["lr"] = torch.as_tensor(group["lr"], device=self.device).clone()
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(state["scaler"])
        put(self.best, state["best"])
        self.best_score = state["best_score"].to(self.device)

    def finish(self) -> None:
        """Put the best weights into the network, in evaluation mode, every parameter as trainable as it was given."""
        put(self.tensors("model"), self.best)
        for params in self._trainable.values():
            for p in params:
                p.requires_grad_(True)
                p.grad = None
        self.net.eval()


def put(into: dict[str, Tensor], values: dict[str, Tensor]) -> None:
    """Copy tensors into others of the same names and shapes; nothing is copied if one does not fit."""
    for name in sorted(into.keys() ^ values.keys()):
        raise ValueError(f"a tensor {name!r} is in one of them and not in the other")
    for name, tensor in into.items():
        if tensor.shape != values[name].shape:
            raise ValueError(f"{name!r} has shape {tuple(values[name].shape)} there and {tuple(tensor.shape)} here")
    with torch.no_grad():
        for name, tensor in into.items():
            tensor.copy_(values[name])
