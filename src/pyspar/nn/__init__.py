"""Networks: train them by any method of the paper's tables, and adapt a trained one's head to where it will be used."""

from pyspar.errors import need

need("torch", "torch")  # before the modules below import it: a missing torch is reported with what brings it

from pyspar.nn.alignment import AFN, RSD, DAREGram, DeepCORAL  # noqa: E402
from pyspar.nn.augment import ImageNoise, TableNoise  # noqa: E402
from pyspar.nn.checkpoint import load_checkpoint  # noqa: E402
from pyspar.nn.config import TrainConfig  # noqa: E402
from pyspar.nn.dann import DANN  # noqa: E402
from pyspar.nn.evaluate import predict  # noqa: E402
from pyspar.nn.head import AdaptedHead, adapt_head  # noqa: E402
from pyspar.nn.mixup import CMixup, Mixup  # noqa: E402
from pyspar.nn.mlp import MLP  # noqa: E402
from pyspar.nn.noisy_student import NoisyStudent  # noqa: E402
from pyspar.nn.objective import ERM, Batch, EpochPlan, Objective  # noqa: E402
from pyspar.nn.outcome import EpochRecord, Trained, TrainingError  # noqa: E402
from pyspar.nn.resnet import multispectral_resnet18, resnet  # noqa: E402
from pyspar.nn.stacked import stack, unstack  # noqa: E402
from pyspar.nn.swav import SwAV  # noqa: E402
from pyspar.nn.train import train, train_seeds  # noqa: E402

__all__ = [
    "AFN",
    "DANN",
    "ERM",
    "MLP",
    "RSD",
    "AdaptedHead",
    "Batch",
    "CMixup",
    "DAREGram",
    "DeepCORAL",
    "EpochPlan",
    "EpochRecord",
    "ImageNoise",
    "Mixup",
    "NoisyStudent",
    "Objective",
    "SwAV",
    "TableNoise",
    "TrainConfig",
    "Trained",
    "TrainingError",
    "adapt_head",
    "load_checkpoint",
    "multispectral_resnet18",
    "predict",
    "resnet",
    "stack",
    "train",
    "train_seeds",
    "unstack",
]
