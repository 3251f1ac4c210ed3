"""RunSpec: everything that the numbers of one trained network depend on, and the name of its folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspar.paper.runs.registry import TARGET_METHODS


@dataclass(frozen=True)
class RunSpec:
    """One network that is trained with one seed.

    Attributes
    ----------
    task, network, objective : names in the registry
    options
        Arguments of ``pyspar.paper.data.load``, and ``hold_out``: the share of training rows that are held out, or "id"
        for the test rows from the training countries of PovertyMap.
    network_options, params : arguments of the network and of the objective
    config : the fields of ``pyspar.paper.TrainConfig`` that the suite sets
    """

    task: str
    network: str
    objective: str
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    network_options: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def key(self) -> str:
        """The name of the run's folder: sixteen hexadecimal digits of the hash of all fields that training depends on.

        A suite that adapts a network to other rows uses the network of another suite.
        """
        values = self.as_dict()
        if self.objective not in TARGET_METHODS:
            values["options"].pop("unlabeled", None)
        if values["options"].get("hold_out") == "id":
            del values["options"]["hold_out"]
        return hashlib.sha256(canonical_json(values).encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(canonical_json(asdict(self)))
        return values

    def settings(self) -> dict[str, Any]:
        """Return the spec without the seed."""
        return {name: value for name, value in self.as_dict().items() if name != "seed"}

    @property
    def title(self) -> str:
        """A short description for progress reports."""
        fold = f" {self.options['fold']}" if "fold" in self.options else ""
        return f"{self.task}{fold}, {self.objective}, seed {self.seed}"


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and without spaces, so that equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
