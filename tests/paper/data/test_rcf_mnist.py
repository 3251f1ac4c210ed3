"""RCF-MNIST: rotation, colours and split as documented, the cache, and errors for damaged files."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data import load, rcf_mnist
from pyspar.paper.data.files import cache_file
from pyspar.paper.data.rcf_mnist import AGAINST_LABEL, ANY_COLOUR, DEBIAN, LIKE_LABEL, build, colour_images, rotate

debian = pytest.mark.skipif(not DEBIAN.is_dir(), reason="needs the Debian package dataset-fashion-mnist")


def encode_idx(images: np.ndarray) -> bytes:
    return b"".join(int(n).to_bytes(4, "big") for n in (0x0803, *images.shape)) + images.tobytes()


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, (120, 28, 28), np.uint8)


@pytest.fixture
def small(images, tmp_path, monkeypatch) -> Path:
    """A folder with a small file of images instead of the real one, which is not available."""
    monkeypatch.setattr(rcf_mnist, "IMAGES_SHA256", hashlib.sha256(encode_idx(images)).hexdigest())
    monkeypatch.setattr(rcf_mnist, "DEBIAN", tmp_path / "no-debian")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train-images-idx3-ubyte").write_bytes(encode_idx(images))
    return tmp_path / "data"


@pytest.mark.slow
@debian
def test_the_real_data_set_has_60000_images_and_the_cache_returns_equal_arrays():
    built, cached = load("rcf-mnist"), load("rcf-mnist")
    assert [len(part) for part in (built.train, built.val, built.test)] == [40_000, 10_000, 10_000]
    assert built.train.X.shape == (40_000, 3, 28, 28)
    assert built.train.X.dtype == np.uint8
    for part, again in ((built.train, cached.train), (built.val, cached.val), (built.test, cached.test)):
        assert 0 <= part.y.min() < part.y.max() < 1
        assert abs(part.y.mean() - 0.5) < 5 / np.sqrt(12 * len(part))  # five standard errors of a uniform draw
        assert np.array_equal(part.X, again.X)
        assert np.array_equal(part.y, again.y)


def test_rotations_equal_those_of_pillow(images):
    image = pytest.importorskip("PIL.Image")
    degrees = np.random.default_rng(0).uniform(0, 360, 120)
    theirs = np.array([image.fromarray(x).rotate(d) for x, d in zip(images, degrees, strict=True)])
    # Pillow computes in 1/65536 of a pixel, so positions between two pixels may be rounded differently.
    assert (rotate(images, degrees) != theirs).mean() < 1e-3


def test_images_are_red_by_the_share_and_blue_by_the_rest_and_dark_pixels_stay_grey():
    grey = np.array([[[5, 6, 100, 200]]], np.uint8)
    coloured = colour_images(grey, np.array([0.25]))[0, :, 0]
    assert coloured.tolist() == [[5, 2, 25, 50], [5, 0, 0, 0], [5, 4, 75, 150]]


def test_label_angle_and_colour_agree_in_each_part(images):
    arrays = build(np.maximum(images, 50), 1)
    for part, share in (("train", 0.8), ("test", 0.2)):
        label, group = arrays[f"{part}_y"], arrays[f"{part}_group"]
        X = arrays[f"{part}_X"].astype(np.float64)
        # The centre of a rotated image never comes from outside, so it shows only the colour.
        red = (X[:, 0] / np.maximum(X[:, 0] + X[:, 2], 1))[:, 12:16, 12:16].mean(axis=(1, 2))
        expected = np.where(group == LIKE_LABEL, label, 1 - label)
        np.testing.assert_allclose(red, expected, atol=0.01)  # half a grey level of 50 or more
        assert (group == LIKE_LABEL).mean() == pytest.approx(share, abs=1 / len(group))
        assert set(group.tolist()) == {LIKE_LABEL, AGAINST_LABEL}
    assert set(arrays["val_group"].tolist()) == {ANY_COLOUR}
    assert (arrays["train_X"][:, 1] <= 5).all()


def test_each_image_is_in_exactly_one_part():
    labelled = np.zeros((60, 28, 28), np.uint8)
    labelled[:, 13:15, 13:15] = np.arange(60)[:, None, None] * 4 + 7
    arrays = build(labelled, 0)
    # The sum of red and blue is the grey value, up to rounding.
    middles = [arrays[f"{part}_X"].astype(int).sum(axis=1)[:, 13:15, 13:15] for part in ("train", "val", "test")]
    values = np.concatenate(middles).max(axis=(1, 2))
    assert sorted(np.rint((values - 7) / 4).astype(int).tolist()) == list(range(60))


def test_equal_seeds_give_equal_bytes_and_different_seeds_do_not(small, cache):
    load("rcf-mnist", folder=small)
    path = cache_file("rcf-mnist", "v1-nearest-seed0")
    first = path.read_bytes()
    path.unlink()
    load("rcf-mnist", folder=small)
    assert path.read_bytes() == first
    zero, one = (load("rcf-mnist", folder=small, seed=seed).train.X.tobytes() for seed in (0, 1))
    assert zero != one
    assert sorted(file.name for file in path.parent.iterdir()) == [f"v1-nearest-seed{seed}.npz" for seed in (0, 1)]


@pytest.mark.parametrize("layout", ["", "rcf-mnist", "fashion-mnist", "FashionMNIST/raw"])
@pytest.mark.parametrize("zipped", [True, False])
def test_each_layout_is_read_compressed_or_not(images, small, tmp_path, layout, zipped):
    folder = tmp_path / "layout" / layout
    folder.mkdir(parents=True)
    if zipped:
        (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(encode_idx(images)))
    else:
        (folder / "train-images-idx3-ubyte").write_bytes(encode_idx(images))
    task = load("rcf-mnist", folder=tmp_path / "layout")
    np.testing.assert_array_equal(task.test.X, build(images, 0)["test_X"])


def test_changed_images_raise_with_both_checksums_even_if_the_data_set_is_cached(images, small):
    load("rcf-mnist", folder=small)
    other = encode_idx(255 - images)
    (small / "train-images-idx3-ubyte").write_bytes(other)
    both = f"{hashlib.sha256(encode_idx(images)).hexdigest()}.*{hashlib.sha256(other).hexdigest()}"
    with pytest.raises(InputError, match=both):
        load("rcf-mnist", folder=small)


def test_missing_images_raise_with_the_install_command(small, monkeypatch):
    with pytest.raises(MissingDataError, match="apt install dataset-fashion-mnist"):
        load("rcf-mnist")
