"""RCF-MNIST: what is drawn is what is said, byte by byte, and files that are not what they were are refused."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError, SparWarning
from pyspar.paper.data import load, rcf_mnist, where
from pyspar.paper.data.built import kept_file
from pyspar.paper.data.rcf_mnist import AGAINST_LABEL, ANY_COLOUR, DEBIAN, LIKE_LABEL, build, coloured, turned

debian = pytest.mark.skipif(not DEBIAN.is_dir(), reason="needs the Debian package dataset-fashion-mnist")


def idx(images: np.ndarray, magic: int = 0x0803) -> bytes:
    return b"".join(int(n).to_bytes(4, "big") for n in (magic, *images.shape)) + images.tobytes()


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, (120, 28, 28), np.uint8)


@pytest.fixture
def small(images, tmp_path, monkeypatch) -> Path:
    """A folder with a small file of images in place of the real one, which is out of reach."""
    monkeypatch.setattr(rcf_mnist, "IMAGES_SHA256", hashlib.sha256(idx(images)).hexdigest())
    monkeypatch.setattr(rcf_mnist, "DEBIAN", tmp_path / "no-debian")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train-images-idx3-ubyte").write_bytes(idx(images))
    return tmp_path / "data"


@debian
def test_the_real_images_make_40000_10000_and_10000_and_are_kept_as_built():
    built, kept = load("rcf-mnist"), load("rcf-mnist")
    assert [len(part) for part in (built.train, built.val, built.test)] == [40_000, 10_000, 10_000]
    assert built.train.X.shape == (40_000, 3, 28, 28)
    assert built.train.X.dtype == np.uint8
    for part, again in ((built.train, kept.train), (built.val, kept.val), (built.test, kept.test)):
        assert 0 <= part.y.min() < part.y.max() < 1
        assert abs(part.y.mean() - 0.5) < 5 / np.sqrt(12 * len(part))  # five standard errors of a uniform draw
        assert np.array_equal(part.X, again.X)
        assert np.array_equal(part.y, again.y)


def test_a_quarter_turn_is_a_quarter_turn(images):
    for interpolation in ("nearest", "bilinear"):
        for quarters in range(4):
            found = turned(images, np.full(120, 90.0 * quarters), interpolation)
            # numpy turns counter-clockwise too
            np.testing.assert_array_equal(found, np.rot90(images, quarters, axes=(1, 2)))


def test_turning_agrees_with_an_independent_library(images):
    image = pytest.importorskip("PIL.Image")
    degrees = np.random.default_rng(0).uniform(0, 360, 120)
    theirs = np.array([image.fromarray(x).rotate(d) for x, d in zip(images, degrees, strict=True)])
    # Pillow counts in 1/65536 of a pixel: a place that near to the middle of two pixels may go to the other.
    assert (turned(images, degrees) != theirs).mean() < 1e-3


def test_bilinear_turning_keeps_a_constant_image_constant_inside():
    flat = np.full((40, 28, 28), 200, np.uint8)
    found = turned(flat, np.linspace(0, 359, 40), "bilinear")
    assert (found[:, 8:20, 8:20] == 200).all()


def test_colour_is_red_by_the_share_and_blue_by_the_rest_and_dark_pixels_stay_grey():
    grey = np.array([[[5, 6, 100, 200]]], np.uint8)
    found = coloured(grey, np.array([0.25]))[0, :, 0]
    assert found.tolist() == [[5, 2, 25, 50], [5, 0, 0, 0], [5, 4, 75, 150]]


def test_label_angle_and_colour_agree_in_each_part(images):
    arrays = build(np.maximum(images, 50), 1)
    for part, share in (("train", 0.8), ("test", 0.2)):
        label, group = arrays[f"{part}_y"], arrays[f"{part}_group"]
        X = arrays[f"{part}_X"].astype(np.float64)
        # The middle of a turned image is never from outside it, so it shows the colour alone.
        red = (X[:, 0] / np.maximum(X[:, 0] + X[:, 2], 1))[:, 12:16, 12:16].mean(axis=(1, 2))
        expected = np.where(group == LIKE_LABEL, label, 1 - label)
        np.testing.assert_allclose(red, expected, atol=0.01)  # half a grey level of 50 or more
        assert (group == LIKE_LABEL).mean() == pytest.approx(share, abs=1 / len(group))
        assert set(group.tolist()) == {LIKE_LABEL, AGAINST_LABEL}
    assert set(arrays["val_group"].tolist()) == {ANY_COLOUR}
    assert (arrays["train_X"][:, 1] <= 5).all()


def test_no_image_is_in_two_parts_and_none_is_lost():
    labelled = np.zeros((60, 28, 28), np.uint8)
    labelled[:, 13:15, 13:15] = np.arange(60)[:, None, None] * 4 + 7
    arrays = build(labelled, 0)
    # Red and blue add up to the grey value, to within the rounding of each.
    middles = [arrays[f"{part}_X"].astype(int).sum(axis=1)[:, 13:15, 13:15] for part in ("train", "val", "test")]
    seen = np.concatenate(middles).max(axis=(1, 2))
    assert sorted(np.rint((seen - 7) / 4).astype(int).tolist()) == list(range(60))


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(small, cache):
    load("rcf-mnist", folder=small)
    path = kept_file("rcf-mnist", "v1-nearest-seed0")
    first = path.read_bytes()
    path.unlink()
    load("rcf-mnist", folder=small)
    assert path.read_bytes() == first
    assert (
        load("rcf-mnist", folder=small, seed=1).train.X.tobytes() != load("rcf-mnist", folder=small).train.X.tobytes()
    )
    assert sorted(file.name for file in path.parent.iterdir()) == [
        f"v1-nearest-seed{seed}{ending}" for seed in (0, 1) for ending in (".npz", ".sha256")
    ]


def test_a_damaged_build_is_made_again_and_said(small):
    before = load("rcf-mnist", folder=small)
    path = kept_file("rcf-mnist", "v1-nearest-seed0")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(SparWarning, match="does not have the checksum"):
        after = load("rcf-mnist", folder=small)
    np.testing.assert_array_equal(after.train.X, before.train.X)
    np.testing.assert_array_equal(load("rcf-mnist", folder=small).test.y, before.test.y)


def test_a_build_without_its_checksum_is_made_again(small):
    load("rcf-mnist", folder=small)
    kept_file("rcf-mnist", "v1-nearest-seed0").with_suffix(".sha256").unlink()
    with pytest.warns(SparWarning, match="building it again"):
        load("rcf-mnist", folder=small)


def test_a_cache_that_cannot_be_written_costs_no_result(small, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("PYSPAR_CACHE", str(blocked))
    with pytest.warns(SparWarning, match="could not be written"):
        task = load("rcf-mnist", folder=small)
    assert len(task.train) == 80


def test_what_was_built_is_enough_when_the_images_are_gone(small):
    before = load("rcf-mnist", folder=small)
    (small / "train-images-idx3-ubyte").unlink()
    np.testing.assert_array_equal(load("rcf-mnist").train.X, before.train.X)
    assert where("rcf-mnist").place == "the cache"
    with pytest.raises(MissingDataError, match="other seeds"):
        load("rcf-mnist", seed=9)


@pytest.mark.parametrize("layout", ["", "rcf-mnist", "fashion-mnist", "FashionMNIST/raw"])
@pytest.mark.parametrize("zipped", [True, False])
def test_each_layout_is_read_zipped_or_not(images, small, tmp_path, layout, zipped):
    folder = tmp_path / "layout" / layout
    folder.mkdir(parents=True)
    if zipped:
        (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    else:
        (folder / "train-images-idx3-ubyte").write_bytes(idx(images))
    task = load("rcf-mnist", folder=tmp_path / "layout")
    np.testing.assert_array_equal(task.test.X, build(images, 0)["test_X"])


def test_a_miniature_has_so_many_rows_and_is_not_kept(small, cache):
    task = load("rcf-mnist", folder=small, rows=60)
    assert [len(part) for part in (task.train, task.val, task.test)] == [40, 10, 10]
    assert not (cache / "rcf-mnist").exists()
    with pytest.raises(InputError, match=r"rows must lie in \[6, 120\]"):
        load("rcf-mnist", folder=small, rows=121)


def test_progress_is_told_and_ends_with_all_images(images):
    told = []
    build(images, 0, watch=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (120, 120)


def test_a_wrong_magic_number_is_refused(images, small):
    (small / "train-images-idx3-ubyte").write_bytes(idx(images, 0x0801))
    with pytest.raises(InputError, match=r"magic number 0x0803\. Got 0x0801"):
        load("rcf-mnist", folder=small)


def test_a_short_file_is_refused(images, small):
    (small / "train-images-idx3-ubyte").write_bytes(idx(images)[:-1])
    with pytest.raises(InputError, match="must hold 120 images of 28 x 28"):
        load("rcf-mnist", folder=small)


def test_changed_images_are_refused_with_both_sums_even_if_the_set_was_built_before(images, small):
    load("rcf-mnist", folder=small)
    other = idx(255 - images)
    (small / "train-images-idx3-ubyte").write_bytes(other)
    both = f"{hashlib.sha256(idx(images)).hexdigest()}.*{hashlib.sha256(other).hexdigest()}"
    with pytest.raises(InputError, match=both):
        load("rcf-mnist", folder=small)


def test_a_broken_gzip_file_is_refused(images, small):
    (small / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images))[:-20])
    with pytest.raises(InputError, match="no whole gzip file"):
        load("rcf-mnist", folder=small)


def test_without_images_the_way_to_get_them_is_said(small, monkeypatch):
    with pytest.raises(MissingDataError, match="apt install dataset-fashion-mnist"):
        load("rcf-mnist")


def test_an_unknown_interpolation_is_refused(small):
    with pytest.raises(InputError, match="'nearest' or 'bilinear'"):
        load("rcf-mnist", folder=small, interpolation="cubic")
