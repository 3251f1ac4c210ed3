"""The reproduction of the paper: data sets, networks, training methods, experiments and their output.

The library does not import this package. Only the command line does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "objectives.alignment": "AFN RSD DAREGram DeepCORAL",
    "objectives.dann": "DANN",
    "objectives.base": "ERM Batch EpochPlan Objective",
    "networks.models": "MLP multispectral_resnet18 resnet",
    "objectives.mixup": "CMixup Mixup",
    "training.train": "EpochRecord Trained TrainingError train",
    "objectives.unlabeled": "ImageNoise NoisyStudent SwAV TableNoise",
    "training.config": "TrainConfig",
    "networks.efficientnet": "efficientnet_lite0",
    "training.batches": "predict",
}
"""The public names of each module. They require torch and are imported at first use."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pyspar.paper' has no attribute {name!r}")
    from pyspar.errors import need

    need("torch", "torch")
    return getattr(import_module(f"pyspar.paper.{_MODULES[name]}"), name)
