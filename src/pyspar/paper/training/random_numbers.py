"""Random numbers of a model from generators of our own, without touching torch's generators.

Layers such as dropout draw from torch's generator, which all threads of a process share. Seeding it for a run would
make other threads draw the same numbers again, and numbers that they draw would change the run.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class OwnRandomNumbers(TorchDispatchMode):
    """A ``with`` block, in the current thread, in which torch draws from generators with a given seed.

    The numbers are those of ``torch.manual_seed(seed)``. ``drawn`` is set if any operation drew numbers.

    >>> with OwnRandomNumbers(7):
    ...     a = torch.rand(2)
    >>> b = torch.rand(2, generator=torch.Generator().manual_seed(7))
    >>> torch.equal(a, b)
    True
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}
        self.drawn = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        self.drawn = True
        tensor = next((value for value in args if isinstance(value, Tensor)), None)
        generator = self._generator_for(kwargs.get("device") or (tensor.device if tensor is not None else "cpu"))
        if func is torch.ops.aten.native_dropout.default:  # the only common operation without a generator
            return _drop_out(generator, *args)
        if "generator" in {argument.name for argument in func._schema.arguments}:
            return func(*args, **{**kwargs, "generator": generator})
        # Some operations have a second version with a generator, such as aten.rand.generator.
        overload = func._overloadname
        name = "generator" if overload == "default" else f"{overload}_generator"
        if name in func.overloadpacket.overloads():
            return getattr(func.overloadpacket, name)(*args, **{**kwargs, "generator": generator})
        return func(*args, **kwargs)

    def _generator_for(self, device: Any) -> torch.Generator:
        device = torch.device(device)
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def _drop_out(generator: torch.Generator, values: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return the values after dropout, and the mask of the kept ones, as ``aten.native_dropout`` does."""
    if not train:
        return values.clone(), torch.ones_like(values, dtype=torch.bool)
    kept = torch.empty_like(values, dtype=torch.bool).bernoulli_(1.0 - p, generator=generator)
    return values * kept * (0.0 if p == 1.0 else 1.0 / (1.0 - p)), kept
