"""The paper's networks: an MLP for tables, and residual networks for images.

He et al. (2016), "Deep Residual Learning for Image Recognition": basic blocks of two 3 x 3 convolutions in four stages
of 64, 128, 256 and 512 channels. The layers have torchvision's names, so that its weights can be loaded.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from pyspar.errors import InputError, need
from pyspar.paper.parameters import check_choice, check_integer

Stem = Literal["imagenet", "small", "chairs"]
Normalise = Literal["symmetric", "imagenet", "none"]

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
WIDTHS = (64, 128, 256, 512)

# Mean and standard deviation that standardise pixels in [0, 1]: to [-1, 1], by ImageNet's channels, or not at all.
SCALES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "symmetric": ((0.5,), (0.5,)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "none": ((0.0,), (1.0,)),
}


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with a residual connection. A ``plain`` block has a LeakyReLU, and a shortcut without
    weights: average pooling and channels of zeros.
    """

    def __init__(self, n_in: int, n_out: int, stride: int, *, plain: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.activation: nn.Module = nn.LeakyReLU() if plain else nn.ReLU()
        self.downsample: nn.Module = nn.Identity()
        if stride == 1 and n_in == n_out:
            return
        if plain:
            added = nn.ZeroPad3d((0, 0, 0, 0, 0, n_out - n_in))  # channels of zeros after those of the input
            self.downsample = nn.Sequential(nn.AvgPool2d(stride, ceil_mode=True), added)
        else:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.activation(self.bn1(self.conv1(x)))
        output: Tensor = self.activation(self.bn2(self.conv2(inner)) + self.downsample(x))
        return output


class ResNet(nn.Module):
    """A residual network with stem, trunk and head. Create it with :func:`resnet`. Images have shape (B, C, H, W).
    ``normalise`` converts uint8 images to floats. Float images are not scaled.
    """

    capturable = True
    pixel_mean: Tensor
    pixel_std: Tensor

    def __init__(self, depth: int, channels: int, outputs: int, stem: Stem, normalise: Normalise) -> None:
        super().__init__()
        self.depth, self.stem_kind, self.normalisation = depth, stem, normalise
        mean, std = (torch.tensor(values).reshape(-1, 1, 1) for values in SCALES[normalise])
        self.register_buffer("pixel_mean", mean, persistent=False)
        self.register_buffer("pixel_std", std, persistent=False)
        self.stem = nn.Sequential(_make_stem(channels, stem))
        self.trunk = nn.Sequential(_make_stages(BLOCKS[depth], plain=stem == "chairs"))
        self.head = nn.Linear(WIDTHS[-1], outputs, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def normalise(self, x: Tensor) -> Tensor:
        """Return uint8 pixels as floats, standardised as chosen when the network was created."""
        return (x.to(self.pixel_mean.dtype) / 255 - self.pixel_mean) / self.pixel_std

    def feature_maps(self, x: Tensor) -> Tensor:
        maps: Tensor = self.trunk[:-2](self.stem(self.normalise(x) if x.dtype == torch.uint8 else x))
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
        channels, outputs = self.stem.get_submodule("conv1").in_channels, self.head.out_features
        return f"ResNet({self.depth}, {channels} channels -> 512 -> {outputs}, stem {self.stem_kind!r})"


def _make_stem(channels: int, kind: Stem) -> OrderedDict[str, nn.Module]:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    large = kind == "imagenet"
    layers["conv1"] = nn.Conv2d(channels, 64, 7 if large else 3, 2 if large else 1, 3 if large else 1, bias=False)
    layers["bn1"] = nn.BatchNorm2d(64)
    layers["relu"] = nn.ReLU()
    if large:
        layers["maxpool"] = nn.MaxPool2d(3, 2, 1)
    return layers


def _make_stages(blocks: tuple[int, ...], *, plain: bool) -> OrderedDict[str, nn.Module]:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    n_in = WIDTHS[0]
    for stage, (count, width) in enumerate(zip(blocks, WIDTHS)):
        strides = [1 if stage == 0 and not plain else 2] + [1] * (count - 1)
        inputs = [n_in] + [width] * (count - 1)
        stack = [BasicBlock(n, width, s, plain=plain) for n, s in zip(inputs, strides)]
        layers[f"layer{stage + 1}"] = nn.Sequential(*stack)
        n_in = width
    layers["pool"] = nn.AdaptiveAvgPool2d(1)
    layers["flatten"] = nn.Flatten()
    return layers


def resnet(
    depth: int = 18,
    *,
    channels: int = 3,
    outputs: int = 1,
    stem: Stem = "imagenet",
    normalise: Normalise = "symmetric",
    pretrained: bool = False,
) -> ResNet:
    """Return a ResNet-18 or -34 for regression.

    Parameters
    ----------
    stem : "imagenet", "small" or "chairs"
        "imagenet" is a 7 x 7 convolution with stride 2 and a pool with stride 2. "small" is a 3 x 3 convolution with
        stride 1 and no pool. "chairs" is the authors' network for ChairAngles-Tails: the small stem, stride 2 in all
        four stages, LeakyReLU in the blocks, and shortcuts by average pooling and zero channels.
    normalise : "symmetric", "imagenet" or "none"
        The scale of uint8 pixels: [-1, 1], ImageNet's standardised channels, or [0, 1]. Floats are not scaled.
    pretrained : bool
        Start from ImageNet weights, which torchvision downloads, for any number of channels
        (:func:`convert_first_layer`).
    """
    check_choice("depth", depth, tuple(BLOCKS))
    check_choice("stem", stem, get_args(Stem))
    check_choice("normalise", normalise, tuple(SCALES))
    channels = check_integer("channels", channels, low=1, hint="colour images have 3")
    outputs = check_integer("outputs", outputs, low=1, hint="it is the number of label columns")
    if normalise == "imagenet" and channels != 3:
        raise InputError(
            f"normalise='imagenet' requires channels=3, got {channels}; use normalise='symmetric' or floats"
        )
    if pretrained and stem != "imagenet":
        raise InputError(
            f"pretrained=True requires stem='imagenet', because the weights are for its 7 x 7 convolution, got {stem!r}"
        )
    model = ResNet(depth, channels, outputs, stem, normalise)
    return load_imagenet_weights(model) if pretrained else model


def multispectral_resnet18(*, outputs: int = 1, pretrained: bool = False) -> ResNet:
    """Return the network for PovertyMap: a ResNet-18 for eight channels of floats (WILDS, Koh et al. 2021)."""
    return resnet(18, channels=8, outputs=outputs, normalise="none", pretrained=pretrained)


def load_imagenet_weights(model: ResNet) -> ResNet:
    """Load torchvision's ImageNet weights into all layers except the head, and return the model."""
    models = need("torchvision.models", "vision")
    theirs = getattr(models, f"resnet{model.depth}")(weights="IMAGENET1K_V1").state_dict()
    own = {
        f"{'stem' if name.startswith(('conv1.', 'bn1.')) else 'trunk'}.{name}": value
        for name, value in theirs.items()
        if not name.startswith("fc.")
    }
    channels = model.state_dict()["stem.conv1.weight"].shape[1]
    own["stem.conv1.weight"] = convert_first_layer(own["stem.conv1.weight"], channels)
    model.load_state_dict({**own, "head.weight": model.head.weight.detach()})
    return model


def convert_first_layer(weight: Tensor, channels: int) -> Tensor:
    """Return first-layer weights for any number of channels, from those for red, green and blue, as WILDS does. The
    first three channels use these weights and the others their mean. With fewer than three channels all use the mean.
    All are scaled by 3 / channels, so that the output keeps its size.
    """
    if channels == 3:
        return weight
    mean = weight.mean(dim=1, keepdim=True)
    known = weight if channels > 3 else weight[:, :0]
    return torch.cat([known, mean.expand(-1, channels - known.shape[1], -1, -1)], dim=1) * 3 / channels


class MLP(nn.Module):
    """Two hidden layers with LeakyReLU(0.1), and a linear head without bias.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of both hidden layers. The paper's text has one layer, the authors' code has two.
    outputs : int
    """

    capturable = True

    def __init__(self, n_features: int, *, hidden: int = 128, outputs: int = 1) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(n_features, hidden), nn.LeakyReLU(0.1))
        self.trunk = nn.Sequential(nn.Linear(hidden, hidden), nn.LeakyReLU(0.1))
        self.head: nn.Module = nn.Linear(hidden, outputs, bias=False)
        self.sizes = (n_features, hidden, hidden, outputs)

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.trunk(self.stem(x))
        return features

    def forward(self, x: Tensor) -> Tensor:
        prediction: Tensor = self.head(self.features(x))
        return prediction

    def __repr__(self) -> str:
        return f"MLP({' -> '.join(map(str, self.sizes))})"
