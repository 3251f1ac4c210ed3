"""The published ChairAngles-Tails: the split, and reading the user's file in each layout."""

from pathlib import Path

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data import load
from pyspar.paper.data.chairs.published import find, split_tails
from pyspar.paper.data.registry import check_dataset


@pytest.fixture
def rc49():
    """A small version of RC-49: 30 chairs in steps of 5°. Each image contains its row number."""
    angle = np.tile(np.arange(0, 95, 5.0), 30)
    images = np.zeros((len(angle), 3, 64, 64), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = np.arange(len(angle)) // 256, np.arange(len(angle)) % 256
    training = np.random.default_rng(5).permutation(len(angle))[:100]
    return {"images": images, "labels": angle, "indx_train": training}


def write_h5(folder, arrays):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "RC-49_64x64.h5", "w") as file:
        for key, value in arrays.items():
            file[key] = value


def read_rows(part):
    return part.X[:, 0, 0, 0].astype(int) * 256 + part.X[:, 0, 0, 1]


def brute_force(rc49):
    """Return the rows for training and validation, and the candidates for the test, by a loop over images."""
    training = set(rc49["indx_train"].tolist())
    angle = rc49["labels"]
    pool = {i for i in training if 15 < angle[i] < 75}
    return pool, {i for i in range(len(angle)) if i not in training and 0 < angle[i] < 90}


def test_the_split_equals_a_loop_over_images(rc49):
    angle = rc49["labels"]
    train, val, test = split_tails(angle, np.isin(np.arange(len(angle)), rc49["indx_train"]), seed=3)
    pool, candidates = brute_force(rc49)
    assert set(train) | set(val) == pool
    assert not set(train) & set(val)
    assert len(train) == int(0.8 * len(pool))
    assert set(test) <= candidates
    for step in np.unique(angle[list(candidates)]):
        assert (angle[test] == step).sum() == min(25, (angle[list(candidates)] == step).sum())


@pytest.mark.parametrize("layout", ["h5", "npz"])
def test_the_file_of_rc49_is_split(rc49, tmp_path, layout):
    if layout == "h5":
        write_h5(tmp_path, rc49)
    else:
        np.savez(tmp_path / "RC-49_64x64.npz", **rc49)
    task = load("chair-angles-tails", folder=tmp_path, seed=4)
    pool, candidates = brute_force(rc49)
    assert set(read_rows(task.train)) | set(read_rows(task.val)) == pool
    assert set(read_rows(task.test)) <= candidates
    for part in (task.train, task.val, task.test):
        np.testing.assert_array_equal(part.y, rc49["labels"][read_rows(part)])
        assert part.X.dtype == np.uint8
        assert set(part.group) == {0}
    assert task.recreation == ""


def test_a_missing_file_raises_with_its_source():
    with pytest.raises(MissingDataError, match=r"RC-49_64x64\.h5.*chair-angles-recreated"):
        find()


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        ({"labels": None}, "labels"),
        ({"labels": np.zeros(3)}, r"labels of .*\(3,\)"),
        ({"indx_train": np.array([10**6])}, "indx_train of"),
        ({"indx_train": np.array([0, 3.5])}, "indx_train of"),
        ({"indx_train": np.array([0, np.nan])}, "indx_train of"),
        ({"indx_train": np.array([-1])}, "indx_train of"),
        ({"labels": np.full(570, "far")}, "labels of .*<U3"),
        ({"labels": np.append(np.ones(569), np.nan)}, "labels of .*finite"),
        ({"images": np.full((570, 3, 64, 64), 0.5, np.float32)}, "images of .*float32"),
        ({"images": np.zeros((570, 3, 32, 32), np.uint8)}, r"images of .*uint8 of shape \(570, 3, 32, 32\)"),
        ({"images": np.zeros((570, 64, 64, 3), np.uint8)}, r"images of .*uint8 of shape \(570, 64, 64, 3\)"),
    ],
)
@pytest.mark.parametrize("layout", ["h5", "npz"])
def test_invalid_arrays_raise(rc49, tmp_path, broken, match, layout):
    arrays = {key: value for key, value in (rc49 | broken).items() if value is not None}
    if layout == "h5":
        if arrays.get("labels", np.ones(1)).dtype.kind == "U":
            arrays["labels"] = arrays["labels"].astype("S")
            match = match.replace("<U3", "|S3").replace("|", r"\|")
        write_h5(tmp_path, arrays)
    else:
        np.savez(tmp_path / "RC-49_64x64.npz", **arrays)
    with pytest.raises(InputError, match=match):
        load("chair-angles-tails", folder=tmp_path)
    assert check_dataset("chair-angles-tails", tmp_path).state == "wrong"


def write_pickled(path):
    np.savez(path, images=np.array([{}], dtype=object), labels=np.ones(1), indx_train=np.zeros(1, int))


def write_truncated(path):
    np.savez(path, images=np.zeros((4, 3, 64, 64), np.uint8), labels=np.ones(4), indx_train=np.zeros(1, int))
    path.write_bytes(path.read_bytes()[:20_000])


def write_single_array(path):
    with path.open("wb") as file:
        np.save(file, np.ones(3))


@pytest.mark.parametrize("damage", [write_pickled, Path.touch, write_truncated, write_single_array])
def test_a_damaged_npz_file_raises_with_its_name(tmp_path, damage):
    damage(tmp_path / "RC-49_64x64.npz")
    with pytest.raises(InputError, match=r"RC-49_64x64\.npz"):
        load("chair-angles-tails", folder=tmp_path)
