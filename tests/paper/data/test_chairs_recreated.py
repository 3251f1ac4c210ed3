"""The re-created chairs: drawn from catalogues, cut as the original, kept once."""

import zipfile

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError, SparWarning
from pyspar.paper.data import load
from pyspar.paper.data.chairs import recreated as chairs_recreated
from pyspar.paper.data.chairs.models import FOLDER, chair_models
from pyspar.paper.data.chairs.recreated import NAME, draw, find, sight_of, yaws_of

SEAT = "v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\nf 1 2 3 4\n"
BACK = "v -1 0 -1\nv 1 0 -1\nv 1 2 -1\nv -1 2 -1\nf 5 6 7 8\n"
ANGLES = (10, 7)


@pytest.fixture(autouse=True)
def no_other_places(tmp_path, monkeypatch):
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


def test_a_stool_whose_yaw_cannot_be_seen_is_left_out(folder):
    told = {chair.id: sight_of(chair).tells_yaw for chair in chair_models(folder)}
    assert told == {"low": True, "square": False, "tall": True}
    assert draw(list(chair_models(folder)), ANGLES)["chairs"].tolist() == ["low", "tall"]


def test_yaws_fill_their_range_evenly(folder):
    yaws = yaws_of(chair_models(folder)[0], (60, 90))
    np.testing.assert_array_equal(np.floor(yaws[:60]), np.arange(15, 75))  # one in each degree
    np.testing.assert_array_equal(np.floor(yaws[60:]), np.arange(90))


def test_images_are_held_out_and_chairs_are_not(folder):
    arrays = draw(list(chair_models(folder)), ANGLES)
    learned = np.isin(np.arange(len(arrays["labels"])), arrays["indx_train"])
    assert set(arrays["chair"][learned]) == set(arrays["chair"][~learned]) == {0, 1}
    assert not set(arrays["labels"][learned]) & set(arrays["labels"][~learned])


def test_the_parts_have_the_counts_and_the_ranges_of_the_rule(folder):
    task = load(NAME, folder=folder)
    assert (len(task.train), len(task.val), len(task.test)) == (16, 4, 14)
    for part, (low, high) in ((task.train, (15, 75)), (task.val, (15, 75)), (task.test, (0, 90))):
        assert part.X.shape == (len(part), 3, 64, 64)
        assert part.X.dtype == np.uint8
        assert low < part.y.min() <= part.y.max() < high
    assert task.test.y.min() < 15
    assert task.test.y.max() > 75
    assert "re-creation" in task.recreation


def test_a_second_load_reads_what_was_kept_and_gives_the_same_bytes(folder, monkeypatch):
    first = load(NAME, folder=folder, seed=2)
    assert find(folder).place == "the cache"
    monkeypatch.setattr(chairs_recreated, "draw", lambda *_: pytest.fail("drawn twice"))
    again = load(NAME, folder=folder, seed=2)
    for a, b in ((first.train, again.train), (first.val, again.val), (first.test, again.test)):
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.y, b.y)


def test_drawing_twice_gives_the_same_bytes(folder):
    first, again = (draw(list(chair_models(folder)), ANGLES) for _ in range(2))
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])


def test_seeds_share_their_images_and_differ_in_what_validates(folder):
    one, two = (load(NAME, folder=folder, seed=seed) for seed in (1, 2))
    assert set(one.train.y) | set(one.val.y) == set(two.train.y) | set(two.val.y)
    assert set(one.val.y) != set(two.val.y)
    np.testing.assert_array_equal(one.test.y, two.test.y)


def test_a_damaged_file_is_drawn_again_and_said(folder):
    first = load(NAME, folder=folder)
    path = find(folder).path
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.warns(SparWarning, match="does not have the checksum"):
        again = load(NAME, folder=folder)
    np.testing.assert_array_equal(first.train.X, again.train.X)


def test_progress_is_told_up_to_the_end(folder):
    told = []
    load(NAME, folder=folder, rows=40, watch=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]


def test_a_miniature_is_small_and_not_kept(folder, tmp_path):
    task = load(NAME, folder=folder, rows=40)
    assert 0 < len(task.train) + len(task.val) + len(task.test) <= 40
    assert not (tmp_path / "cache").exists()


def test_too_small_a_miniature_is_refused(folder):
    with pytest.raises(InputError, match="at least 10"):
        load(NAME, folder=folder, rows=3)


def test_without_the_package_one_is_told_what_to_install():
    for attempt in (find, lambda: load(NAME)):
        with pytest.raises(MissingDataError, match="apt-get install sweethome3d-furniture"):
            attempt()


@pytest.mark.skipif(not any(FOLDER.glob("*.sh3f")), reason="needs the Debian package sweethome3d-furniture")
def test_a_miniature_of_the_package_s_chairs_is_colourful_and_centred(monkeypatch):
    monkeypatch.setattr(chairs_recreated, "FOLDER", FOLDER)
    task = load(NAME, rows=80)
    shown = (task.test.X < 255).any(axis=1)
    across, down = shown.any(axis=1), shown.any(axis=2)
    for filled in (across, down):
        assert filled.any(axis=1).all()
        assert not filled[:, [0, -1]].any()
    assert np.ptp(task.test.X, axis=(0, 2, 3)).min() > 200
