"""RunSpec: everything that the numbers of a training run depend on, and the name of its folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class RunSpec:
    """One group of seeds that is trained as one computation, so that interruptions do not change any number.

    Attributes
    ----------
    task, network, objective : names in the registry
    options : arguments of ``pyspar.paper.data.load``, and ``hold_out``, the share of training rows held out
    network_options, params : arguments of the network and of the objective
    config : the fields of ``pyspar.paper.TrainConfig`` that the suite sets
    """

    task: str
    network: str
    objective: str
    seeds: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    network_options: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def key(self) -> str:
        """The name of the run's folder: sixteen hexadecimal digits of the hash of all fields.

        >>> one = RunSpec("skillcraft", "mlp", "ERM", (0, 1), config={"lr": 0.01, "epochs": 3})
        >>> one.key == RunSpec("skillcraft", "mlp", "ERM", (0, 1), config={"epochs": 3, "lr": 0.01}).key
        True
        >>> one.key == RunSpec("skillcraft", "mlp", "ERM", (0,), config={"epochs": 3, "lr": 0.01}).key
        False
        """
        return hashlib.sha256(canonical_json(self.as_dict()).encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """Return the spec as JSON values."""
        values: dict[str, Any] = json.loads(canonical_json(asdict(self)))
        return values

    @property
    def title(self) -> str:
        """A short description for progress reports."""
        fold = f" {self.options['fold']}" if "fold" in self.options else ""
        seeds = f"{len(self.seeds)} seed{'s' * (len(self.seeds) > 1)}"
        return f"{self.task}{fold}, {self.objective}, {seeds}"


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and without spaces, so that equal values have equal texts.

    >>> canonical_json({"b": (1, 2), "a": 0.001})
    '{"a":0.001,"b":[1,2]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
