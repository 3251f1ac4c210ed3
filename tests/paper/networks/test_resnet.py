"""ResNets: published sizes, torchvision's names and weights, scaling of pixels, and adapting the head."""

import sys
from types import ModuleType

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper.networks.models import convert_first_layer, resnet  # noqa: E402


def torchvision_shapes(blocks):
    """The names and shapes of torchvision's weights, derived from the architecture."""
    shapes = {"conv1.weight": (64, 3, 7, 7), **norm("bn1", 64)}
    n_in = 64
    for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512)), start=1):
        for block in range(count):
            name = f"layer{stage}.{block}"
            shapes[f"{name}.conv1.weight"] = (width, n_in, 3, 3)
            shapes[f"{name}.conv2.weight"] = (width, width, 3, 3)
            shapes |= norm(f"{name}.bn1", width) | norm(f"{name}.bn2", width)
            if block == 0 and stage > 1:
                shapes[f"{name}.downsample.0.weight"] = (width, n_in, 1, 1)
                shapes |= norm(f"{name}.downsample.1", width)
            n_in = width
    return shapes | {"fc.weight": (1000, 512), "fc.bias": (1000,)}


def norm(name, width):
    parts = ("weight", "bias", "running_mean", "running_var")
    return {f"{name}.{part}": (width,) for part in parts} | {f"{name}.num_batches_tracked": ()}


@pytest.fixture
def torchvision(monkeypatch):
    """A fake torchvision whose ResNets have random weights with the real names."""
    draw = torch.Generator().manual_seed(0)

    def network(blocks):
        def build(weights):
            assert weights == "IMAGENET1K_V1"
            values = {
                name: torch.tensor(9) if not shape else torch.rand(shape, generator=draw)
                for name, shape in torchvision_shapes(blocks).items()
            }
            built.append(values)
            model = torch.nn.Module()
            model.state_dict = lambda: values
            return model

        return build

    built = []
    models = ModuleType("torchvision.models")
    models.resnet18, models.resnet34 = network((2, 2, 2, 2)), network((3, 4, 6, 3))
    package = ModuleType("torchvision")
    package.models = models
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return built


@pytest.mark.parametrize(("depth", "published"), [(18, 11_689_512), (34, 21_797_672)])
def test_the_number_of_parameters_is_the_published_one(depth, published):
    """The published count includes a head of 1000 classes with bias, 513,000 numbers. Our head has 512."""
    count = sum(p.numel() for p in resnet(depth).parameters())
    assert count - 512 == published - 513_000


@pytest.mark.parametrize(("depth", "stem", "side"), [(18, "imagenet", 64), (34, "imagenet", 28), (18, "small", 16)])
def test_features_are_512_and_the_head_is_linear_without_bias(depth, stem, side):
    torch.manual_seed(0)
    net = resnet(depth, outputs=2, stem=stem).eval()
    x = torch.rand(2, 3, side, side)
    with torch.no_grad():
        features = net.features(x)
        assert features.shape == (2, 512)
        assert torch.equal(features, net.trunk(net.stem(x)))
        torch.testing.assert_close(net(x), features @ net.head.weight.T)
    assert net.head.bias is None


@pytest.mark.parametrize(("scale", "low", "high"), [("symmetric", -1, 1), ("none", 0, 1), ("imagenet", None, None)])
def test_uint8_pixels_are_scaled_and_floats_are_not(scale, low, high):
    torch.manual_seed(0)
    net = resnet(normalise=scale).eval()
    pixels = torch.randint(0, 256, (2, 3, 28, 28), dtype=torch.uint8)
    expected = pixels.float() / 255
    if scale == "imagenet":
        mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        expected = (expected - mean[:, None, None]) / std[:, None, None]
    else:
        expected = low + (high - low) * expected
    torch.testing.assert_close(net.normalise(pixels), expected)
    with torch.no_grad():
        torch.testing.assert_close(net(pixels), net(net.normalise(pixels)))


@pytest.mark.parametrize("depth", [18, 34])
def test_every_weight_of_torchvision_is_loaded(depth, torchvision):
    net = resnet(depth, pretrained=True)
    (original,) = torchvision
    loaded = net.state_dict()
    assert len(loaded) == len(original) - 2 + 1  # without the two of fc, with that of the head
    for name, value in original.items():
        if not name.startswith("fc."):
            part = "stem" if name.split(".")[0] in ("conv1", "bn1") else "trunk"
            assert torch.equal(loaded[f"{part}.{name}"], value)


def test_pretrained_weights_for_other_channels_give_equal_outputs_for_grey_images(torchvision):
    """The output for an image with equal channels depends on the sum of the first layer's weights over channels."""
    for channels in (1, 2, 8):
        torchvision.clear()
        net = resnet(channels=channels, pretrained=True)
        weight, rgb = net.stem.conv1.weight.detach(), torchvision[0]["conv1.weight"]
        torch.testing.assert_close(weight.sum(dim=1), rgb.sum(dim=1))
    torch.testing.assert_close(weight[:, :3], rgb * 3 / 8)
    torch.testing.assert_close(weight[:, 5], rgb.mean(dim=1) * 3 / 8)
    assert torch.equal(convert_first_layer(rgb, 3), rgb)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"depth": 50}, "depth .*50"),
        ({"stem": "large"}, "stem .*'large'"),
        ({"normalise": "minmax"}, "normalise .*'minmax'"),
        ({"channels": 0}, "channels .*0"),
        ({"outputs": 1.0}, r"outputs .*1\.0"),
        ({"channels": 8, "normalise": "imagenet"}, "normalise='imagenet' .*8"),
        ({"stem": "small", "pretrained": True}, "pretrained=True .*'small'"),
    ],
)
def test_invalid_options_raise(options, match):
    with pytest.raises(InputError, match=match):
        resnet(**options)


def test_the_chair_network_has_the_strides_activations_and_shortcuts_of_the_authors():
    net = resnet(34, stem="chairs", normalise="imagenet").eval()
    stages = [net.trunk.get_submodule(f"layer{i}") for i in range(1, 5)]
    x = net.stem(torch.rand(1, 3, 64, 64))
    assert x.shape == (1, 64, 64, 64)  # stride 1 and no pool
    for stage, side, width in zip(stages, (32, 16, 8, 4), (64, 128, 256, 512)):
        shortcut = stage[0].downsample(x)
        assert shortcut.shape == (1, width, side, side)
        torch.testing.assert_close(shortcut[:, : x.shape[1]], torch.nn.functional.avg_pool2d(x, 2))
        assert not shortcut[:, x.shape[1] :].any()
        assert not list(stage[0].downsample.parameters())
        x = stage(x)
    assert {type(block.activation) for stage in stages for block in stage} == {torch.nn.LeakyReLU}
    assert x.min() < 0
    torch.testing.assert_close(net.pool(x), x.mean(dim=(2, 3)))
