"""The re-created chairs: rendered from catalogues, split like the original, and cached."""

import zipfile

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError, SparWarning
from pyspar.paper.data import load
from pyspar.paper.data.chairs import recreated as chairs_recreated
from pyspar.paper.data.chairs.recreated import NAME, draw_yaws, find, render_chairs, sample_chair
from pyspar.paper.data.chairs.render import FOLDER, chair_models

SEAT = "v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\nf 1 2 3 4\n"
BACK = "v -1 0 -1\nv 1 0 -1\nv 1 2 -1\nv -1 2 -1\nf 5 6 7 8\n"
ANGLES = (10, 7)


@pytest.fixture(autouse=True)
def no_other_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPAR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYSPAR_DATA", raising=False)
    monkeypatch.setattr(chairs_recreated, "FOLDER", tmp_path / "no package")
    monkeypatch.setattr(chairs_recreated, "ANGLES", ANGLES)


@pytest.fixture
def folder(tmp_path):
    """Two chairs with a back, and a square seat that looks the same after a quarter turn."""
    models = {"tall": SEAT + BACK, "low": SEAT + BACK.replace("2 -1", "1 -1"), "square": SEAT}
    listed = "".join(f"id#{i}={m}\nname#{i}={m} chair\nmodel#{i}=/{m}.obj\n" for i, m in enumerate(models, 1))
    place = tmp_path / "furniture"
    place.mkdir()
    with zipfile.ZipFile(place / "test.sh3f", "w") as archive:
        archive.writestr("PluginFurnitureCatalog.properties", listed)
        for name, text in models.items():
            archive.writestr(f"{name}.obj", text)
    return place


def test_a_stool_without_a_visible_yaw_is_not_rendered(folder):
    visible = {chair.id: sample_chair(chair)[1] > 2.0 for chair in chair_models(folder)}
    assert visible == {"low": True, "square": False, "tall": True}
    assert render_chairs(list(chair_models(folder)), ANGLES)["chairs"].tolist() == ["low", "tall"]


def test_there_is_one_yaw_in_each_cell_of_the_grid(folder):
    yaws = draw_yaws(chair_models(folder)[0], (60, 90))
    np.testing.assert_array_equal(np.floor(yaws[:60]), np.arange(15, 75))  # one in each degree
    np.testing.assert_array_equal(np.floor(yaws[60:]), np.arange(90))


def test_training_and_test_have_equal_chairs_and_different_images(folder):
    arrays = render_chairs(list(chair_models(folder)), ANGLES)
    training = np.isin(np.arange(len(arrays["labels"])), arrays["indx_train"])
    assert set(arrays["chair"][training]) == set(arrays["chair"][~training]) == {0, 1}
    assert not set(arrays["labels"][training]) & set(arrays["labels"][~training])


def test_the_parts_have_the_documented_sizes_and_yaws(folder):
    task = load(NAME, folder=folder)
    assert (len(task.train), len(task.val), len(task.test)) == (16, 4, 14)
    for part, (low, high) in ((task.train, (15, 75)), (task.val, (15, 75)), (task.test, (0, 90))):
        assert part.X.shape == (len(part), 3, 64, 64)
        assert part.X.dtype == np.uint8
        assert low < part.y.min() <= part.y.max() < high
    assert task.test.y.min() < 15
    assert task.test.y.max() > 75
    assert task.recreation


def test_the_second_load_reads_equal_bytes_from_the_cache(folder, monkeypatch):
    first = load(NAME, folder=folder, seed=2)
    assert find(folder).place == "the cache"
    monkeypatch.setattr(chairs_recreated, "render_chairs", lambda *_: pytest.fail("rendered twice"))
    again = load(NAME, folder=folder, seed=2)
    for a, b in ((first.train, again.train), (first.val, again.val), (first.test, again.test)):
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.y, b.y)


def test_rendering_twice_gives_equal_bytes(folder):
    first, again = (render_chairs(list(chair_models(folder)), ANGLES) for _ in range(2))
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])


def test_seeds_have_equal_images_and_different_validation_parts(folder):
    one, two = (load(NAME, folder=folder, seed=seed) for seed in (1, 2))
    assert set(one.train.y) | set(one.val.y) == set(two.train.y) | set(two.val.y)
    assert set(one.val.y) != set(two.val.y)
    np.testing.assert_array_equal(one.test.y, two.test.y)


def test_a_damaged_cache_file_is_rendered_again_with_a_warning(folder):
    first = load(NAME, folder=folder)
    path = find(folder).path
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.warns(SparWarning, match=r"v2.*\.npz.*building it again"):
        again = load(NAME, folder=folder)
    np.testing.assert_array_equal(first.train.X, again.train.X)


def test_a_small_version_is_not_cached(folder, tmp_path):
    task = load(NAME, folder=folder, rows=40)
    assert 0 < len(task.train) + len(task.val) + len(task.test) <= 40
    assert not (tmp_path / "cache").exists()


def test_too_few_rows_raise(folder):
    with pytest.raises(InputError, match=r"rows .*10, got 3"):
        load(NAME, folder=folder, rows=3)


def test_a_missing_package_raises_with_the_install_command():
    for attempt in (find, lambda: load(NAME)):
        with pytest.raises(MissingDataError, match="apt-get install sweethome3d-furniture"):
            attempt()


@pytest.mark.slow
@pytest.mark.skipif(not any(FOLDER.glob("*.sh3f")), reason="needs the Debian package sweethome3d-furniture")
def test_images_of_the_package_are_coloured_and_centred(monkeypatch):
    monkeypatch.setattr(chairs_recreated, "FOLDER", FOLDER)
    task = load(NAME, rows=80)
    shown = (task.test.X < 255).any(axis=1)
    across, down = shown.any(axis=1), shown.any(axis=2)
    for filled in (across, down):
        assert filled.any(axis=1).all()
        assert not filled[:, [0, -1]].any()
    assert np.ptp(task.test.X, axis=(0, 2, 3)).min() > 200
