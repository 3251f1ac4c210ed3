"""The names that suites use for objectives, networks and heads, and their meaning.

Torch is imported when a network or an objective is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspar.errors import need
from pyspar.paper.parameters import check_name

if TYPE_CHECKING:
    from torch import nn

    from pyspar.paper.data import ShiftTask

OBJECTIVES = {
    "ERM": "ERM",
    "Mixup": "Mixup",
    "C-Mixup": "CMixup",
    "Deep CORAL": "DeepCORAL",
    "DANN": "DANN",
    "AFN": "AFN",
    "RSD": "RSD",
    "DARE-GRAM": "DAREGram",
    "Noisy Student": "NoisyStudent",
    "SwAV": "SwAV",
}
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
