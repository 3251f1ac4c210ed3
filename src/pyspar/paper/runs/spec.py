"""The names that suites use, and RunSpec: everything that the numbers of one trained network depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pyspar.errors import need
from pyspar.paper.parameters import check_name

if TYPE_CHECKING:
    from torch import nn

    from pyspar.paper.data import ShiftTask

OBJECTIVES = {
    "ERM": "ERM", "Mixup": "Mixup", "C-Mixup": "CMixup", "Deep CORAL": "DeepCORAL", "DANN": "DANN", "AFN": "AFN",
    "RSD": "RSD", "DARE-GRAM": "DAREGram", "Noisy Student": "NoisyStudent", "SwAV": "SwAV",
}  # fmt: skip
"""The name of a method in the paper's tables, and its class in ``pyspar.paper``."""

TAUGHT = ("Noisy Student",)
"""Methods that require a teacher, which is trained first."""

TARGET_METHODS = ("Deep CORAL", "DANN", "AFN", "RSD", "DARE-GRAM", "Noisy Student", "SwAV")
"""Methods whose training uses unlabelled rows of the target. The others do not depend on them."""

NETWORKS = ("mlp", "resnet18", "resnet34", "multispectral-resnet18", "efficientnet-lite0")

CUTS = {"": 1.0, "half cut": 0.5, "uncut": 0.0}
"""The cutoff below which directions of the features count as rounding error, in multiples of the customary one."""

HEADS = (*("trained", "OLS", "SpAR", "Bayes-SpAR"), *(f"{h}, {cut}" for cut in CUTS if cut for h in ("OLS", "SpAR")))
"""The heads that predict from the features: the trained head, or one fitted after training, with its cut."""

RECIPES = {"Bayes-SpAR": 9}
"""The version of the rule of a head; 1 for heads that are not listed. Increase it when a change of the code changes the
numbers of a head. Scores and records of older versions are then computed again, from stored features if possible."""


def recipe_of(head: str) -> int:
    """Return the version of the rule of a head, for any cut."""
    return RECIPES.get(head, RECIPES.get(head.partition(", ")[0], 1))


def objective(name: str, params: dict[str, Any]) -> Any:
    """Build a training objective by its name in the paper's tables."""
    return getattr(need("pyspar.paper", "torch"), OBJECTIVES[check_name("method", name, OBJECTIVES)])(**params)


def network(name: str, options: dict[str, Any], task: ShiftTask) -> Callable[[], nn.Module]:
    """Return a function that builds a network for the inputs of a task, with torch's current random state."""
    paper = need("pyspar.paper", "torch")
    width = int(task.train.X.shape[1])  # columns of a table, channels of an image
    builders: dict[str, Callable[[], nn.Module]] = {
        "mlp": lambda: paper.MLP(width, **options),
        "resnet18": lambda: paper.resnet(18, channels=width, **options),
        "resnet34": lambda: paper.resnet(34, channels=width, **options),
        "multispectral-resnet18": lambda: paper.multispectral_resnet18(**options),
        "efficientnet-lite0": lambda: paper.efficientnet_lite0(**options),
    }
    return builders[check_name("network", name, builders)]


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
        return {name: value for name, value in self.as_dict().items() if name != "seed"}

    @property
    def title(self) -> str:
        fold = f" {self.options['fold']}" if "fold" in self.options else ""
        return f"{self.task}{fold}, {self.objective}, seed {self.seed}"


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and without spaces, so that equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
