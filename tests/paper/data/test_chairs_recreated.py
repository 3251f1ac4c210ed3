"""The re-created chairs: rendered from catalogues, split like the original, and cached."""

import zipfile

import numpy as np
import pytest

from pyspar.errors import MissingDataError, SparWarning
from pyspar.paper.data import load
from pyspar.paper.data.chairs import recreated
from pyspar.paper.data.chairs.recreated import NAME, draw_yaws, find, render_chairs
from pyspar.paper.data.chairs.render import chair_models
from pyspar.paper.data.files import cache_file

SEAT = "v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\nf 1 2 3 4\n"
BACK = "v -1 0 -1\nv 1 0 -1\nv 1 2 -1\nv -1 2 -1\nf 5 6 7 8\n"
ANGLES = (10, 7)


@pytest.fixture(autouse=True)
def no_package(tmp_path, monkeypatch):
    monkeypatch.setattr(recreated, "FOLDER", tmp_path / "no package")
    monkeypatch.setattr(recreated, "ANGLES", ANGLES)


@pytest.fixture
def folder(tmp_path):
    """Two chairs with a back."""
    models = {"tall": SEAT + BACK, "low": SEAT + BACK.replace("2 -1", "1 -1")}
    listed = "".join(f"id#{i}={m}\nname#{i}={m} chair\nmodel#{i}=/{m}.obj\n" for i, m in enumerate(models, 1))
    place = tmp_path / "furniture"
    place.mkdir()
    with zipfile.ZipFile(place / "test.sh3f", "w") as archive:
        archive.writestr("PluginFurnitureCatalog.properties", listed)
        for name, text in models.items():
            archive.writestr(f"{name}.obj", text)
    return place


def test_there_is_one_yaw_in_each_cell_of_the_grid(folder):
    yaws = draw_yaws(chair_models(folder)[0], (60, 90))
    np.testing.assert_array_equal(np.floor(yaws[:60]), np.arange(15, 75))  # one in each degree
    np.testing.assert_array_equal(np.floor(yaws[60:]), np.arange(90))


def test_the_parts_have_the_documented_sizes_and_yaws_and_rendering_is_reproducible(folder):
    task = load(NAME, folder=folder)
    assert (len(task.train), len(task.val), len(task.test)) == (16, 4, 14)
    for part, (low, high) in ((task.train, (15, 75)), (task.val, (15, 75)), (task.test, (0, 90))):
        assert part.X.shape == (len(part), 3, 64, 64)
        assert part.X.dtype == np.uint8
        assert low < part.y.min() <= part.y.max() < high
    assert task.recreation
    first, again = (render_chairs(list(chair_models(folder)), ANGLES) for _ in range(2))
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])


def test_the_second_load_reads_the_cache_and_a_damaged_file_is_rendered_again(folder, monkeypatch):
    first = load(NAME, folder=folder, seed=2)
    with monkeypatch.context() as patch:
        patch.setattr(recreated, "render_chairs", lambda *_: pytest.fail("rendered twice"))
        np.testing.assert_array_equal(first.train.X, load(NAME, folder=folder, seed=2).train.X)
    path = cache_file(NAME, "v2")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.warns(SparWarning, match="building it again"):
        np.testing.assert_array_equal(first.train.X, load(NAME, folder=folder, seed=2).train.X)


def test_seeds_have_equal_images_and_different_validation_parts(folder):
    one, two = (load(NAME, folder=folder, seed=seed) for seed in (1, 2))
    assert set(one.train.y) | set(one.val.y) == set(two.train.y) | set(two.val.y)
    assert set(one.val.y) != set(two.val.y)
    np.testing.assert_array_equal(one.test.y, two.test.y)


def test_a_missing_package_raises_with_the_install_command():
    for attempt in (find, lambda: load(NAME)):
        with pytest.raises(MissingDataError, match="apt-get install sweethome3d-furniture"):
            attempt()
