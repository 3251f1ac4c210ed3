"""ChairAngles-Tails: the cut, and reading the user's file in each of its layouts."""

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data import load
from pyspar.paper.data.chairs.folder import cut_tails, find
from pyspar.paper.data.check import checked


@pytest.fixture(autouse=True)
def no_other_places(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPAR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYSPAR_DATA", raising=False)


@pytest.fixture
def rc49():
    """What RC-49 looks like, smaller: 30 chairs at steps of 5°, images that hold their own row number."""
    angle = np.tile(np.arange(0, 95, 5.0), 30)
    images = np.zeros((len(angle), 3, 64, 64), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = np.arange(len(angle)) // 256, np.arange(len(angle)) % 256
    learned = np.random.default_rng(5).permutation(len(angle))[:100]
    return {"images": images, "labels": angle, "indx_train": learned}


def write_h5(folder, arrays):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "RC-49_64x64.h5", "w") as file:
        for key, value in arrays.items():
            file[key] = value


def rows_of(part):
    return part.X[:, 0, 0, 0].astype(int) * 256 + part.X[:, 0, 0, 1]


def brute_force(rc49):
    """The rule, image by image: rows to learn from or validate on, and rows that may be in the test."""
    learned = set(rc49["indx_train"].tolist())
    angle = rc49["labels"]
    pool = {i for i in learned if 15 < angle[i] < 75}
    return pool, {i for i in range(len(angle)) if i not in learned and 0 < angle[i] < 90}


def test_the_cut_follows_the_rule_image_by_image(rc49):
    angle = rc49["labels"]
    train, val, test = cut_tails(angle, np.isin(np.arange(len(angle)), rc49["indx_train"]), seed=3)
    pool, offered = brute_force(rc49)
    assert set(train) | set(val) == pool
    assert not set(train) & set(val)
    assert len(train) == int(0.8 * len(pool))
    assert set(test) <= offered
    for step in np.unique(angle[list(offered)]):
        assert (angle[test] == step).sum() == min(25, (angle[list(offered)] == step).sum())


def test_more_than_25_images_of_an_angle_are_thinned():
    angle = np.full(100, 30.0)
    _, _, test = cut_tails(angle, np.zeros(100, bool), seed=0)
    assert len(test) == len(set(test)) == 25


def test_seeds_change_the_cut_and_repeat_it(rc49):
    training = np.isin(np.arange(len(rc49["labels"])), rc49["indx_train"])
    first, again, other = (cut_tails(rc49["labels"], training, seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("layout", ["h5", "npz"])
def test_the_file_of_rc49_is_cut(rc49, tmp_path, layout):
    if layout == "h5":
        write_h5(tmp_path, rc49)
    else:
        np.savez(tmp_path / "RC-49_64x64.npz", **rc49)
    task = load("chair-angles-tails", folder=tmp_path, seed=4)
    pool, offered = brute_force(rc49)
    assert set(rows_of(task.train)) | set(rows_of(task.val)) == pool
    assert set(rows_of(task.test)) <= offered
    for part in (task.train, task.val, task.test):
        np.testing.assert_array_equal(part.y, rc49["labels"][rows_of(part)])
        assert part.X.dtype == np.uint8
        assert set(part.group) == {0}
    assert task.recreation == ""


def test_arrays_that_are_already_cut_are_taken_as_they_are(rc49, tmp_path):
    cut = {
        f"{what}_{kind}": rc49[what][i : i + 4]
        for i, kind in enumerate(("train", "val", "test"))
        for what in ("images", "labels")
    }
    np.savez(tmp_path / "chair-angles-tails.npz", **cut)
    task = load("chair-angles-tails", folder=tmp_path)
    np.testing.assert_array_equal(task.val.X, rc49["images"][1:5])
    np.testing.assert_array_equal(task.test.y, rc49["labels"][2:6])


def test_without_the_file_one_is_told_where_it_comes_from():
    with pytest.raises(MissingDataError, match=r"RC-49_64x64\.h5.*chair-angles-recreated"):
        find()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"labels": None}, "has no labels"),
        ({"labels": np.zeros(3)}, "one label for each image"),
        ({"indx_train": np.array([10**6])}, r"must number its .* Got 1e\+06; get it again"),
        ({"indx_train": np.array([0, 3.5])}, r"must number its .* Got 3\.5"),
        ({"indx_train": np.array([0, np.nan])}, "must number its .* Got nan"),
        ({"indx_train": np.array([-1])}, "must number its .* Got -1"),
        ({"labels": np.full(570, "far")}, "labels of .* must be numbers. Got the type <U3"),
        ({"labels": np.append(np.ones(569), np.nan)}, "finite angles in degrees. Got nan in row 569"),
        ({"images": np.full((570, 3, 64, 64), 0.5, np.float32)}, "must be uint8 .* Got float32 .* from its authors"),
        ({"images": np.zeros((570, 3, 32, 32), np.uint8)}, r"\(n, 3, 64, 64\).* Got uint8 of shape \(570, 3, 32, 32\)"),
        ({"images": np.zeros((570, 64, 64, 3), np.uint8)}, r"Got uint8 of shape \(570, 64, 64, 3\)"),
    ],
)
@pytest.mark.parametrize("layout", ["h5", "npz"])
def test_arrays_that_do_not_fit_are_refused(rc49, tmp_path, broken, message, layout):
    arrays = {key: value for key, value in (rc49 | broken).items() if value is not None}
    if layout == "h5":
        if arrays.get("labels", np.ones(1)).dtype.kind == "U":
            arrays["labels"] = arrays["labels"].astype("S")
            message = message.replace("<U3", "|S3").replace("|", r"\|")
        write_h5(tmp_path, arrays)
    else:
        np.savez(tmp_path / "RC-49_64x64.npz", **arrays)
    with pytest.raises(InputError, match=message):
        load("chair-angles-tails", folder=tmp_path)
    assert checked("chair-angles-tails", tmp_path).state == "wrong"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"labels_val": np.array([1.0, np.nan])}, "labels_val of .* finite angles in degrees. Got nan in row 1"),
        ({"labels_val": np.array([1.0, np.inf])}, "labels_val of .* finite angles in degrees. Got inf in row 1"),
        ({"images_test": np.ones((2, 3, 64, 64))}, "images_test of .* must be uint8 .* Got float64"),
        (
            {"images_train": np.zeros((2, 3, 32, 32), np.uint8)},
            r"images_train of .* Got uint8 of shape \(2, 3, 32, 32\)",
        ),
    ],
)
def test_cut_arrays_that_are_no_bytes_or_no_angles_are_refused(tmp_path, broken, message):
    arrays = {f"images_{k}": np.zeros((2, 3, 64, 64), np.uint8) for k in ("train", "val", "test")}
    arrays |= {f"labels_{k}": np.ones(2) for k in ("train", "val", "test")}
    np.savez(tmp_path / "chair-angles-tails.npz", **arrays | broken)
    with pytest.raises(InputError, match=message):
        load("chair-angles-tails", folder=tmp_path)


def test_whole_numbers_stored_as_floats_number_the_images(rc49, tmp_path):
    np.savez(tmp_path / "RC-49_64x64.npz", **rc49)
    expected = load("chair-angles-tails", folder=tmp_path)
    np.savez(tmp_path / "RC-49_64x64.npz", **rc49 | {"indx_train": rc49["indx_train"].astype(np.float64)})
    np.testing.assert_array_equal(rows_of(load("chair-angles-tails", folder=tmp_path).train), rows_of(expected.train))


def test_a_half_downloaded_file_is_refused(tmp_path):
    pytest.importorskip("h5py")
    (tmp_path / "RC-49_64x64.h5").write_bytes(b"\x89HDF\r\n\x1a\n only the beginning")
    with pytest.raises(InputError, match="Download it again"):
        load("chair-angles-tails", folder=tmp_path)


def pickled(path):
    np.savez(path, images=np.array([{}], dtype=object), labels=np.ones(1), indx_train=np.zeros(1, int))


def empty_file(path):
    path.write_bytes(b"")


def cut_off(path):
    np.savez(path, images=np.zeros((4, 3, 64, 64), np.uint8), labels=np.ones(4), indx_train=np.zeros(1, int))
    path.write_bytes(path.read_bytes()[:20_000])


def one_array(path):
    with path.open("wb") as file:
        np.save(file, np.ones(3))


@pytest.mark.parametrize("name", ["RC-49_64x64.npz", "chair-angles-tails.npz"])
@pytest.mark.parametrize("damage", [pickled, empty_file, cut_off, one_array])
def test_a_damaged_npz_file_is_refused_by_its_name(tmp_path, name, damage):
    damage(tmp_path / name)
    with pytest.raises(InputError, match=name):
        load("chair-angles-tails", folder=tmp_path)


def test_arrays_that_are_empty_or_of_unlike_length_are_refused(tmp_path):
    arrays = {f"images_{k}": np.zeros((2, 3, 64, 64), np.uint8) for k in ("train", "val", "test")}
    arrays |= {f"labels_{k}": np.ones(2) for k in ("train", "val", "test")}
    path = tmp_path / "chair-angles-tails.npz"
    np.savez(path, **arrays | {"images_val": arrays["images_val"][:0], "labels_val": np.ones(0)})
    with pytest.raises(InputError, match="Got none for the validation"):
        load("chair-angles-tails", folder=tmp_path)
    np.savez(path, **arrays | {"labels_test": np.ones(5)})
    with pytest.raises(InputError, match=r"one label for each image\. Got 2 images and 5 labels_test"):
        load("chair-angles-tails", folder=tmp_path)
