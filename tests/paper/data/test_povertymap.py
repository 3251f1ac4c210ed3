"""PovertyMap: the folds of WILDS, and images from real files and from generated folders of the same layout."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError, SparWarning
from pyspar.paper.data import load, where
from pyspar.paper.data.image_files import ImageFiles
from pyspar.paper.data.povertymap import FOLDS, PATTERN, RURAL, URBAN, countries_of, read_metadata, split_rows
from pyspar.paper.data.registry import check_dataset, state_of

COUNTRIES = sorted({country for fold in FOLDS for country in countries_of(fold)[1]})


def image(number: int, size: int = 4) -> np.ndarray:
    return np.random.default_rng(number).normal(size=(8, size, size)).astype(np.float32)


def write_set(folder: Path, table: str, rows: int, *, labelled: bool = True) -> Path:
    (folder / "images").mkdir(parents=True)
    lines = ["wealthpooled,country,urban" if labelled else "country"]
    for row in range(rows):
        country = COUNTRIES[row % 23]
        lines.append(f"{row / 10},{country},{row % 3 == 0}" if labelled else country)
        np.savez_compressed(folder / "images" / PATTERN.format(row), x=image(row))
    (folder / table).write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def small(tmp_path) -> Path:
    """A folder in the layout of WILDS, with five villages per country and an unlabelled pool of three per country."""
    write_set(tmp_path / "poverty_v1.1", "dhs_metadata.csv", 115)
    write_set(tmp_path / "poverty_unlabeled_v1.0", "unlabeled_metadata.csv", 69, labelled=False)
    return tmp_path


# The rows of train, id_val, id_test, val and test. Those of fold A are published.
ROWS = {
    "A": (9797, 1000, 1000, 3909, 3963),
    "B": (9820, 1000, 1000, 3940, 3909),
    "C": (9800, 1000, 1000, 3929, 3940),
    "D": (9812, 1000, 1000, 3928, 3929),
    "E": (9778, 1000, 1000, 3963, 3928),
}


@pytest.mark.parametrize("fold", FOLDS)
def test_the_folds_of_the_real_metadata_have_the_published_rows(real_povertymap, fold):
    metadata = read_metadata(real_povertymap / "dhs_metadata.csv")
    parts = split_rows(metadata, fold)
    assert tuple(rows.size for rows in parts.values()) == ROWS[fold]
    np.testing.assert_array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(19_669))
    training = set(metadata.country[np.concatenate([parts["train"], parts["id_val"], parts["id_test"]])])
    assert not training & set(metadata.country[parts["val"]])
    assert not training & set(metadata.country[parts["test"]])


def test_each_country_is_tested_in_one_fold_and_validated_in_another():
    assert len(COUNTRIES) == 23
    for side in (0, 1):
        assert sorted(country for fold in FOLDS for country in countries_of(fold)[side]) == COUNTRIES


def test_real_images_are_not_changed_and_average_to_the_small_ones(real_povertymap):
    images = ImageFiles(real_povertymap / "images", np.arange(4), pattern=PATTERN)
    assert images.shape == (4, 8, 224, 224)
    assert images[:].dtype == np.float32
    small = load("povertymap-angola", folder=real_povertymap)
    metadata = read_metadata(real_povertymap / "dhs_metadata.csv")
    assert metadata.urban[:4].tolist() == [RURAL, RURAL, RURAL, URBAN]
    pooled = images[np.arange(3)].reshape(3, 8, 56, 4, 56, 4).mean(axis=(3, 5))
    # The first three rows are rural, so they come first in the test; float16 keeps 11 bits of values below 4.
    np.testing.assert_allclose(pooled, small.test.X[:3], atol=4 / 2**11)
    np.testing.assert_array_equal(small.test.y[:3], metadata.wealth[:3])


def test_angola_is_split_between_towns_and_villages(real_povertymap):
    task = load("povertymap-angola", folder=real_povertymap)
    assert (len(task.train), len(task.val), len(task.test)) == (351, 87, 417)
    assert {*task.train.group.tolist(), *task.val.group.tolist()} == {URBAN}
    assert set(task.test.group.tolist()) == {RURAL}
    assert task.train.y.mean() > task.test.y.mean()  # towns are wealthier
    assert task.metric == "r"
    assert task.recreation


def test_each_row_has_its_own_image_label_and_group(small):
    task = load("povertymap", folder=small, fold="B", verify=False)
    for part in (task.train, task.val, task.test):
        numbers = np.rint(part.y * 10).astype(int)
        np.testing.assert_allclose(part.X[:], np.stack([image(n) for n in numbers]), rtol=1e-3, atol=1e-4)  # float16
        np.testing.assert_array_equal(part.group, np.where(numbers % 3 == 0, URBAN, RURAL))
    assert {COUNTRIES[n % 23] for n in np.rint(task.test.y * 10).astype(int)} == set(countries_of("B")[1])
    assert task.metric == "r"
    assert task.unlabeled is None


def test_rows_of_the_training_countries_can_be_held_out(small):
    task = load("povertymap", folder=small, test="id", verify=False)
    default = load("povertymap", folder=small, verify=False)
    np.testing.assert_array_equal(task.train.y, default.train.y)
    np.testing.assert_array_equal(task.val.y, default.val.y)
    assert not {*task.train.y.tolist()} & {*task.test.y.tolist()}
    assert len(task.test) == 6  # a tenth of the 65 rows in the 13 training countries


def test_the_unlabelled_pool_is_from_the_test_countries(small):
    task = load("povertymap", folder=small, fold="A", unlabeled=True, verify=False)
    rows = [row for row in range(69) if COUNTRIES[row % 23] in countries_of("A")[1]]
    assert len(task.unlabeled) == len(rows) == 15
    np.testing.assert_array_equal(task.target_inputs[:], np.stack([image(row) for row in rows]))


def test_a_missing_image_raises_or_its_row_is_dropped(small):
    task = load("povertymap", folder=small, verify=False)
    lost = int(np.rint(task.val.y[3] * 10))
    (small / "poverty_v1.1" / "images" / PATTERN.format(lost)).unlink()
    with pytest.raises(MissingDataError, match=rf"1 of .*'val'.*_{lost}\.npz"):
        load("povertymap", folder=small, verify=False)
    fewer = load("povertymap", folder=small, verify=False, incomplete=True)
    np.testing.assert_array_equal(fewer.val.y, np.delete(task.val.y, 3))
    np.testing.assert_array_equal(fewer.train.y, task.train.y)


def test_a_row_without_a_label_is_dropped_and_the_others_do_not_move(small):
    table = small / "poverty_v1.1" / "dhs_metadata.csv"
    before = load("povertymap", folder=small, verify=False)
    row = int(np.rint(before.train.y[5] * 10))
    lines = table.read_text().splitlines()
    lines[row + 1] = "," + lines[row + 1].split(",", 1)[1]
    table.write_text("\n".join(lines))
    after = load("povertymap", folder=small, verify=False)
    np.testing.assert_array_equal(after.train.y, np.delete(before.train.y, 5))
    np.testing.assert_array_equal(after.val.y, before.val.y)


def write_single_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, image(0))


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda path: path.write_bytes(b"not a zip file"), "cannot read"),
        (lambda path: path.write_bytes(b""), "cannot read"),
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), "cannot read"),
        (write_single_array, "cannot read"),
        (lambda path: np.savez(path, y=image(0)), "array 'x'"),
        (lambda path: np.savez(path, x=image(0, 5)), r"\(8, 4, 4\).*\(8, 5, 5\)"),
    ],
)
def test_a_damaged_image_raises_with_its_name(small, damage, match):
    task = load("povertymap", folder=small, verify=False)
    path = task.test.X.path(int(task.test.X.numbers[2]))
    damage(path)
    with pytest.raises(InputError, match=match) as raised:
        _ = task.test.X[:]
    assert path.name in str(raised.value)


@pytest.mark.parametrize("cache", [True, False])
def test_images_support_any_index_and_are_read_once_with_a_cache(small, cache):
    images = load("povertymap", folder=small, verify=False, cache=cache).test.X
    all_of_them = images[:]
    assert images.shape == all_of_them.shape == (len(images), 8, 4, 4)
    assert images.dtype == all_of_them.dtype
    rows = np.array([4, 0, 4])
    np.testing.assert_array_equal(images[rows], all_of_them[rows])
    np.testing.assert_array_equal(images[np.arange(len(images)) % 2 == 0], all_of_them[::2])
    images.path(int(images.numbers[1])).unlink()
    worker = pickle.loads(pickle.dumps(images))
    if cache:
        np.testing.assert_array_equal(worker[1:4], all_of_them[1:4])  # from the memory-mapped file
    else:
        with pytest.raises(MissingDataError, match="landsat_poverty_img"):
            worker[1:4]
    with pytest.raises(IndexError):
        images[np.array([len(images)])]


def test_a_full_disk_disables_the_cache_with_a_warning(small, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    images = load("povertymap", folder=small, verify=False).test.X
    with pytest.warns(SparWarning, match="No space left on device; every epoch reads the image files"):
        first = images[:2]
    np.testing.assert_array_equal(images[:2], first)
    assert not list(images.cache.parent.glob("*.float16"))


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ("wealthpooled,urban\n1,True\n", "columns country, .*KeyError: 'country'"),
        ("country\nmali\n", "columns country, .*KeyError: 'wealthpooled'"),
        ("", "no rows"),
        ("wealthpooled,country,urban\n1,atlantis,True\n", "atlantis"),
        ("wealthpooled,country,urban\nrich,mali,True\n", "wealthpooled .*'rich'"),
        ("wealthpooled,country,urban\n1,mali,True\ninf,mali,True\n", "wealthpooled .*finite"),
        ("wealthpooled,country,urban\n1,mali,True\n1,mali,suburb\n", "urban .*'suburb'"),
        ("wealthpooled,country,urban\n1,mali\n", "urban .*None"),
    ],
)
def test_invalid_metadata_raises(small, table, match):
    (small / "poverty_v1.1" / "dhs_metadata.csv").write_text(table)
    with pytest.raises(InputError, match=match):
        load("povertymap", folder=small, verify=False)


def test_other_angola_images_raise_with_both_checksums(real_povertymap, tmp_path):
    (tmp_path / "dhs_metadata.csv").write_bytes((real_povertymap / "dhs_metadata.csv").read_bytes())
    np.savez(tmp_path / "angola_56px.npz", x=np.zeros((855, 8, 56, 56), np.float16))
    with pytest.raises(InputError, match=r"angola_56px\.npz.* 46c527a7\w+, got \w{64}.*verify=False"):
        load("povertymap-angola", folder=tmp_path)
    result = check_dataset("povertymap-angola", tmp_path)
    assert result.state == "wrong"
    assert "46c527a7" in result.detail
    assert check_dataset("povertymap-angola", real_povertymap).state == "good"


def test_a_folder_with_missing_images_is_incomplete(small):
    assert where("povertymap", small).missing == ""
    assert state_of("povertymap", small) == "found"
    for row in range(111):
        (small / "poverty_v1.1" / "images" / PATTERN.format(row)).unlink()
    assert where("povertymap", small).missing == "4 of 115 images"
    assert state_of("povertymap", small) == "incomplete"
