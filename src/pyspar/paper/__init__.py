"""Everything that only the reproduction of the paper needs: data sets, networks, training methods, experiments.

The library does not import this package; only the command line does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
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
    "EpochRecord": "training.outcome",
    "ImageNoise": "objectives.augment",
    "Mixup": "objectives.mixup",
    "NoisyStudent": "objectives.noisy_student",
    "Objective": "objectives.base",
    "SwAV": "objectives.swav",
    "TableNoise": "objectives.augment",
    "TrainConfig": "training.config",
    "Trained": "training.outcome",
    "TrainingError": "training.outcome",
    "load_checkpoint": "training.checkpoint",
    "multispectral_resnet18": "networks.resnet",
    "predict": "training.inference",
    "resnet": "networks.resnet",
    "stack": "networks.stacked",
    "train": "training.train",
    "train_seeds": "training.train",
    "unstack": "networks.stacked",
}
"""The public names that need torch, each with the module that defines it. They are imported on first use."""

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pyspar.paper' has no attribute {name!r}")
    from pyspar.errors import need

    need("torch", "torch")
    return getattr(import_module(f"pyspar.paper.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
