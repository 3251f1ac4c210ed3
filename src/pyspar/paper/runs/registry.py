"""From the names that suites use to what they mean. Torch is imported when something is built, not before."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspar.errors import need
from pyspar.paper.experiments.names import known

if TYPE_CHECKING:
    from torch import nn

    from pyspar.paper.data import ShiftTask

OBJECTIVES = {
    "ERM": "base:ERM",
    "Mixup": "mixup:Mixup",
    "C-Mixup": "mixup:CMixup",
    "Deep CORAL": "alignment:DeepCORAL",
    "DANN": "dann:DANN",
    "AFN": "alignment:AFN",
    "RSD": "alignment:RSD",
    "DARE-GRAM": "alignment:DAREGram",
    "Noisy Student": "noisy_student:NoisyStudent",
    "SwAV": "swav:SwAV",
}
"""A method's name in the paper's tables, and the module and class in ``pyspar.paper.objectives``."""

TAUGHT = ("Noisy Student",)
"""Methods that learn from a teacher, which is trained first."""

NETWORKS = ("mlp", "resnet18", "resnet34", "multispectral-resnet18", "efficientnet-lite0")

CUTS = {"": 1.0, "half cut": 0.5, "uncut": 0.0}
"""Which directions of the features count as made by rounding, in multiples of the usual limit."""

HEADS = ("trained", "OLS", "SpAR", "Bayes-SpAR", *(f"{h}, {cut}" for cut in CUTS if cut for h in ("OLS", "SpAR")))
"""What stands behind the features: the head that was trained, or one fitted after training, with its cut."""

RECIPES = {"Bayes-SpAR": 4}
"""By head, which version of its rule is computed: one more whenever a change of the code changes its numbers, 1 where
nothing is said. What an older version scored or recorded is then computed again, from features that are there."""


def recipe_of(head: str) -> int:
    """Return the version of a head's rule, whatever its cut.

    >>> recipe_of("OLS, half cut"), recipe_of("Bayes-SpAR") > 1
    (1, True)
    """
    return RECIPES.get(head.partition(", ")[0], 1)


def objective(name: str, params: dict[str, Any]) -> Any:
    """Build a method by its name in the paper's tables."""
    module, _, kind = OBJECTIVES[known("method", name, OBJECTIVES)].partition(":")
    return getattr(_module("objectives", module), kind)(**params)


def network(name: str, options: dict[str, Any], task: ShiftTask) -> Callable[[], nn.Module]:
    """Return what builds a network for a task's inputs, under whatever seed torch has then."""
    width = int(task.train.X.shape[1])  # columns of a table, channels of an image
    builders: dict[str, Callable[[], nn.Module]] = {
        "mlp": lambda: _module("networks", "mlp").MLP(width, **options),
        "resnet18": lambda: _module("networks", "resnet").resnet(18, channels=width, **options),
        "resnet34": lambda: _module("networks", "resnet").resnet(34, channels=width, **options),
        "multispectral-resnet18": lambda: _module("networks", "resnet").multispectral_resnet18(**options),
        "efficientnet-lite0": lambda: _module("networks", "efficientnet").efficientnet_lite0(**options),
    }
    return builders[known("network", name, builders)]


def _module(package: str, module: str) -> Any:
    need("torch", "torch")
    return importlib.import_module(f"pyspar.paper.{package}.{module}")
