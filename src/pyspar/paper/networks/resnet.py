"""ResNet: the paper's networks for images, ResNet-18 and -34, with a linear head without bias.

He et al. (2016), "Deep Residual Learning for Image Recognition": basic blocks of two 3 x 3 convolutions in four stages
of 64, 128, 256 and 512 channels. The names inside the stages are torchvision's, so its weights can be taken over.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

import torch
from torch import Tensor, nn

from pyspar.errors import InputError, need
from pyspar.paper.objectives.limits import one_of, whole

Stem = Literal["imagenet", "small"]
Normalise = Literal["symmetric", "imagenet", "none"]

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
WIDTHS = (64, 128, 256, 512)

# Mean and standard deviation that pixels in [0, 1] are standardised by; of ImageNet's three channels, and so that the
# result lies in [-1, 1].
SCALES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "symmetric": ((0.5,), (0.5,)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "none": ((0.0,), (1.0,)),
}


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, and the input added to what they return."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output, at half the resolution if the stride is 2."""
        inner = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(inner)) + self.downsample(x))


class ResNet(nn.Module):
    """A residual network with stem, trunk and head; build it with :func:`resnet`.

    Images have the shape (B, C, H, W). ``normalise`` turns those of uint8 into floats; floats are taken as they are.
    """

    pixel_mean: Tensor
    pixel_std: Tensor

    def __init__(self, depth: int, channels: int, outputs: int, stem: Stem, normalise: Normalise) -> None:
        super().__init__()
        self.depth, self.stem_kind, self.normalisation = depth, stem, normalise
        mean, std = (torch.tensor(values).reshape(-1, 1, 1) for values in SCALES[normalise])
        self.register_buffer("pixel_mean", mean, persistent=False)
        self.register_buffer("pixel_std", std, persistent=False)
        self.stem = nn.Sequential(_stem(channels, stem))
        self.trunk = nn.Sequential(_stages(BLOCKS[depth]))
        self.head = nn.Linear(WIDTHS[-1], outputs, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def normalise(self, x: Tensor) -> Tensor:
        """Return uint8 pixels as floats on the scale that the network was built for."""
        return (x.to(self.pixel_mean.dtype) / 255 - self.pixel_mean) / self.pixel_std

    def features(self, x: Tensor) -> Tensor:
        """Return what enters the head: 512 numbers for each image."""
        found: Tensor = self.trunk(self.stem(self.normalise(x) if x.dtype == torch.uint8 else x))
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Return the predictions, of shape (B, outputs)."""
        found: Tensor = self.head(self.features(x))
        return found

    def __repr__(self) -> str:
        channels, outputs = self.stem.get_submodule("conv1").in_channels, self.head.out_features
        return f"ResNet({self.depth}, {channels} channels -> 512 -> {outputs}, stem {self.stem_kind!r})"


def _stem(channels: int, kind: Stem) -> OrderedDict[str, nn.Module]:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    small = kind == "small"
    layers["conv1"] = nn.Conv2d(channels, 64, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False)
    layers["bn1"] = nn.BatchNorm2d(64)
    layers["relu"] = nn.ReLU()
    if not small:
        layers["maxpool"] = nn.MaxPool2d(3, 2, 1)
    return layers


def _stages(blocks: tuple[int, ...]) -> OrderedDict[str, nn.Module]:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    n_in = WIDTHS[0]
    for stage, (count, width) in enumerate(zip(blocks, WIDTHS)):
        strides = [1 if stage == 0 else 2] + [1] * (count - 1)
        inputs = [n_in] + [width] * (count - 1)
        layers[f"layer{stage + 1}"] = nn.Sequential(*(BasicBlock(n, width, s) for n, s in zip(inputs, strides)))
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
    depth : {18, 34}
    channels, outputs : int
        Of the images, and of the labels.
    stem : {"imagenet", "small"}
        A 7 x 7 convolution of stride 2 and a pool of stride 2; or, to keep the resolution of small images, 3 x 3 of
        stride 1 without a pool.
    normalise : {"symmetric", "imagenet", "none"}
        What uint8 pixels become: [-1, 1], ImageNet's standardised channels, or [0, 1]. Floats are taken as they are.
    pretrained : bool
        Start from torchvision's ImageNet weights (torchvision then downloads them). With other than three channels the
        first layer is made of them: see :func:`first_layer`.

    >>> resnet(34, channels=1)
    ResNet(34, 1 channels -> 512 -> 1, stem 'imagenet')
    """
    one_of("depth", depth, tuple(BLOCKS))
    one_of("stem", stem, ("imagenet", "small"))
    one_of("normalise", normalise, tuple(SCALES))
    channels = whole("channels", channels, low=1, cure="colour images have 3")
    outputs = whole("outputs", outputs, low=1, cure="it is the number of label columns")
    if normalise == "imagenet" and channels != 3:
        raise InputError(
            f"normalise='imagenet' has means of 3 channels. Got channels={channels} instead; "
            "use normalise='symmetric', or give floats that are already standardised."
        )
    if pretrained and stem == "small":
        raise InputError(
            "pretrained=True expected stem='imagenet', whose 7 x 7 convolution the weights are of. Got 'small' "
            "instead; use stem='imagenet' or pretrained=False."
        )
    found = ResNet(depth, channels, outputs, stem, normalise)
    return with_imagenet_weights(found) if pretrained else found


def multispectral_resnet18(*, outputs: int = 1, pretrained: bool = False) -> ResNet:
    """Return the network for PovertyMap: a ResNet-18 on eight channels of floats (WILDS, Koh et al. 2021)."""
    return resnet(18, channels=8, outputs=outputs, normalise="none", pretrained=pretrained)


def with_imagenet_weights(model: ResNet) -> ResNet:
    """Return the same model with torchvision's ImageNet weights below its head."""
    models = need("torchvision.models", "vision")
    theirs = getattr(models, f"resnet{model.depth}")(weights="IMAGENET1K_V1").state_dict()
    own = {}
    for name, value in theirs.items():
        part = "stem" if name.startswith(("conv1.", "bn1.")) else "trunk"
        own[f"{part}.{name}"] = value
    own = {name: value for name, value in own.items() if not name.startswith("trunk.fc.")}
    channels = model.state_dict()["stem.conv1.weight"].shape[1]
    own["stem.conv1.weight"] = first_layer(own["stem.conv1.weight"], channels)
    model.load_state_dict({**own, "head.weight": model.head.weight.detach()})
    return model


def first_layer(weight: Tensor, channels: int) -> Tensor:
    """Return first-layer weights for images of any number of channels, made of those for red, green and blue.

    The first three channels take the weights, the others, or all where there are fewer than three, their mean; all are
    scaled by 3 / channels, so that the layer's output keeps its size. WILDS starts its multispectral network so.

    >>> first_layer(torch.tensor([1.0, 2.0, 6.0]).reshape(1, 3, 1, 1), 6).flatten()
    tensor([0.5000, 1.0000, 3.0000, 1.5000, 1.5000, 1.5000])
    """
    if channels == 3:
        return weight
    mean = weight.mean(dim=1, keepdim=True)
    known = weight if channels > 3 else weight[:, :0]
    return torch.cat([known, mean.expand(-1, channels - known.shape[1], -1, -1)], dim=1) * 3 / channels
