"""The folder of a run: damaged files are detected, and foreign files stay."""

import json

import numpy as np
import pytest

from pyspar.paper.runs.store import BusyError, DamagedError, Features, RunFolder, hold_lock


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
    folder.write_json("train.json", {str(seed): {"best_epoch": 1, "validation": [3.0, 2.0]} for seed in folder.seeds})
    folder.write_json("timing.json", {"train": 2.0, "features": 1.0})
    folder.finish_training()
    return folder


def test_a_finished_folder_has_everything(folder):
    assert folder.is_done
    assert folder.has_features()
    assert folder.has_readable_features()
    assert folder.validation == {"0": 2.0, "1": 2.0}
    assert folder.timing == {"train": 2.0, "features": 1.0}


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


@pytest.mark.parametrize(
    "change",
    [
        lambda a: {"y_train": a["y_train"][:-1]},
        lambda a: {"group_test": a["group_test"][:3]},
        lambda a: {"test": a["test"][:, :-1]},
        lambda a: {"train": a["train"][0]},
        lambda a: {"head": np.vstack([a["head"], a["head"]])},
        lambda a: {"y_test": a["y_test"].astype(str)},
        lambda a: {"extra": a["y_test"]},
    ],
)
def test_inconsistent_features_are_damaged(folder, change):
    path = folder.path / "features-1.npz"
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, **change(arrays)})
    with pytest.raises(DamagedError, match=r"features-1\.npz"):
        folder.read_features(1)
    assert folder.has_features()
    assert not folder.has_readable_features()


def test_features_without_held_out_rows_do_not_serve_a_run_that_holds_rows_out(folder):
    assert not RunFolder(folder.path, folder.seeds, holds_out=True).has_readable_features()


@pytest.mark.parametrize(
    "change",
    [
        lambda history: history.pop("1"),
        lambda history: history["1"].update(best_epoch=99),
        lambda history: history["1"].update(validation=[True, True]),
        lambda history: history["1"].update(validation=[10**400] * 2),
    ],
)
def test_a_folder_without_the_history_of_a_seed_is_not_done(folder, change):
    history = folder.read_json("train.json")
    change(history)
    (folder.path / "train.json").write_text(json.dumps(history))
    assert folder.validation == {}
    assert not folder.is_done


@pytest.mark.parametrize(
    "content",
    [
        *('{"scores": []}', '{"training": 5}', '{"training": {"versions": {}}}', '{"training": {"versions": 1}}'),
        *('{"scores": {"x": 3}}', '{"training": {"versions": {"numpy": []}, "machine": {}}}', "[" * 5000),
    ],
)
def test_damaged_provenance_is_ignored(folder, content):
    (folder.path / "made.json").write_text(content)
    assert folder.provenance == {"scores": {}}


def test_the_lock_removes_temporary_files_but_not_foreign_folders(folder):
    (folder.path / ".ipynb_checkpoints").mkdir()
    (folder.path / ".ipynb_checkpoints" / "spec-checkpoint.json").write_text("{}")
    (folder.path / ".scores-partial.json").write_text("{")
    with folder.lock():
        assert (folder.path / ".ipynb_checkpoints" / "spec-checkpoint.json").exists()
        assert not (folder.path / ".scores-partial.json").exists()


def test_a_lock_is_exclusive_until_it_is_released(tmp_path):
    pytest.importorskip("fcntl")
    lock = tmp_path / "lock"
    with hold_lock(lock, timeout=0), pytest.raises(BusyError, match=str(tmp_path)), hold_lock(lock, timeout=0):
        pytest.fail("held twice")
    with hold_lock(tmp_path / "lock", timeout=0):
        pass
