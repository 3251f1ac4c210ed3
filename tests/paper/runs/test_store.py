"""The folder of a run: damaged files are detected, and foreign files stay."""

import threading

import numpy as np
import pytest

from pyspar.paper.runs.store import DamagedError, Features, RunFolder, hold_lock


def make_features(rng, n=12, m=8, d=3):
    return Features(
        train=rng.normal(size=(n, d)).astype(np.float32),
        val=rng.normal(size=(m, d)).astype(np.float32),
        test=rng.normal(size=(m, d)).astype(np.float32),
        head=rng.normal(size=(1, d)),
        y_train=rng.normal(size=n),
        y_val=rng.normal(size=m),
        y_test=rng.normal(size=m),
        group_val=np.arange(m) % 2,
        group_test=np.arange(m) % 2,
    )


@pytest.fixture
def folder(tmp_path, rng):
    """A folder with the features, the history and the times of two seeds, as after training."""
    folder = RunFolder(tmp_path / "run", (0, 1))
    folder.path.mkdir()
    for seed in folder.seeds:
        folder.write_features(seed, make_features(rng))
    folder.write_json("done.json", {"validation": {"0": 2.0, "1": 2.0}, "seconds": {"train": 2.0}})
    return folder


def test_a_finished_folder_has_everything(folder):
    assert folder.is_done
    assert folder.has_features()
    assert folder.read_json("done.json")["seconds"] == {"train": 2.0}


@pytest.mark.parametrize("content", ["", "{}", "[1]", "3", '{"content": {"a": 1}}', "[" * 5000])
def test_a_json_file_without_a_digest_is_treated_as_missing(folder, content):
    (folder.path / "done.json").write_text(content)
    assert folder.read_json("done.json") == {}
    assert not folder.is_done


def test_every_flipped_bit_of_a_json_file_is_detected_or_harmless(folder):
    path = folder.path / "done.json"
    content, expected = path.read_bytes(), folder.read_json("done.json")
    for position in range(len(content)):
        for bit in range(8):
            path.write_bytes(content[:position] + bytes([content[position] ^ (1 << bit)]) + content[position + 1 :])
            assert folder.read_json("done.json") in ({}, expected)
    for length in range(len(content) - 1):
        path.write_bytes(content[:length])
        assert folder.read_json("done.json") in ({}, expected)


def test_every_flipped_bit_in_the_headers_of_features_is_detected_or_harmless(folder):
    # A reader of the headers, of the zip entries and of the arrays, may fail before a checksum is compared.
    path = folder.path / "features-0.npz"
    content, expected = path.read_bytes(), folder.read_features(0)
    positions = [*range(192), *range(len(content) - 900, len(content))]
    detected = 0
    for position in positions:
        flipped = bytes([content[position] ^ (1 << position % 8)])
        path.write_bytes(content[:position] + flipped + content[position + 1 :])
        try:
            features = folder.read_features(0)
        except DamagedError:
            detected += 1
        else:
            for name, value in vars(expected).items():
                np.testing.assert_array_equal(vars(features)[name], value)
    assert detected > len(positions) / 3


@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: b"", lambda c: c.replace(b"y_val", b"y_xyz")])
def test_damaged_features_are_not_used(folder, damage):
    path = folder.path / "features-1.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedError, match=r"features-1\.npz"):
        folder.read_features(1)
    assert not folder.has_features()


def test_the_lock_removes_temporary_files_but_not_foreign_folders(folder):
    (folder.path / ".ipynb_checkpoints").mkdir()
    (folder.path / ".ipynb_checkpoints" / "spec-checkpoint.json").write_text("{}")
    (folder.path / ".scores-partial.json").write_text("{")
    with folder.lock(lambda: pytest.fail("waited")):
        assert (folder.path / ".ipynb_checkpoints" / "spec-checkpoint.json").exists()
        assert not (folder.path / ".scores-partial.json").exists()


def test_a_lock_is_exclusive_until_it_is_released(tmp_path):
    pytest.importorskip("fcntl")
    events, waiting = [], threading.Event()

    def wait_for_lock():
        with hold_lock(tmp_path / "lock", waiting.set):
            events.append("second")

    other = threading.Thread(target=wait_for_lock)
    with hold_lock(tmp_path / "lock", lambda: pytest.fail("waited")):
        other.start()
        assert waiting.wait(60)
        events.append("first")
    other.join()
    assert events == ["first", "second"]
