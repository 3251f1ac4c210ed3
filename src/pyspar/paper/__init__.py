"""The reproduction of the paper: data sets, networks, training methods, experiments and their output.

The library does not import this package. Only the command line does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = {
    "AFN": "objectives.alignment",
    "DANN": "objectives.dann",
    "ERM": "objectives.base",
    "MLP": "networks.mlp",
    "RSD": "objectives.alignment",
    "Batch": "objectives.base",
    "CMixup": "objectives.mixup",
    "DAREGram": "objectives.alignment",
    "DeepCORAL": "objectives.alignment",
    "EpochPlan": "objectives.base",
    "EpochRecord": "training.train",
    "ImageNoise": "objectives.augment",
    "Mixup": "objectives.mixup",
    "NoisyStudent": "objectives.noisy_student",
    "Objective": "objectives.base",
    "SwAV": "objectives.swav",
    "TableNoise": "objectives.augment",
    "TrainConfig": "training.config",
    "Trained": "training.train",
    "TrainingError": "training.train",
    "efficientnet_lite0": "networks.efficientnet",
    "load_checkpoint": "training.train",
    "multispectral_resnet18": "networks.resnet",
    "predict": "training.batches",
    "resnet": "networks.resnet",
    "train": "training.train",
}
"""The public names, each with the module that defines it. They require torch and are imported at first use."""

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pyspar.paper' has no attribute {name!r}")
    from pyspar.errors import need

    need("torch", "torch")
    return getattr(import_module(f"pyspar.paper.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
