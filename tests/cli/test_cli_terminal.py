"""The terminal and the system around the command: encodings, signals, folders, names that a terminal would obey."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    X.assign(y=X.a + rng.normal(size=200)).to_csv(tmp_path / "s.csv", index=False)
    X[:50].to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


def spar(*words, cwd, **environment):
    command = [sys.executable, "-m", "pyspar", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, env={**os.environ, **environment}, check=False)


def test_a_terminal_without_arrows_is_no_failure(tables):
    done = spar("adapt", "s.csv", "t.csv", "--label", "y", "-o", "p.csv", cwd=tables, PYTHONIOENCODING="cp1252")
    assert done.returncode == 0
    assert b"least squares" in done.stdout


def test_a_terminal_without_raised_digits_gets_numbers_that_can_be_read(tables):
    frame = pd.read_csv(tables / "s.csv")
    frame.assign(y=3e20 * frame.y).to_csv(tables / "s.csv", index=False)
    for encoding, power in (("cp1252", b"e20"), ("ascii", b"e20"), ("utf-8", "·10²⁰".encode())):
        done = spar("adapt", "s.csv", "t.csv", "--label", "y", cwd=tables, PYTHONIOENCODING=encoding)
        assert done.returncode == 0
        assert power in done.stdout


def test_names_cannot_command_the_terminal(tables):
    for name in ("s.csv", "t.csv"):
        frame = pd.read_csv(tables / name).rename(columns={"b": "\x1b[31mred"})
        frame.to_csv(tables / name, index=False)
    done = spar("inspect", "s.csv", "t.csv", "--label", "y", cwd=tables)
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert b"red" in done.stdout


@pytest.mark.parametrize("verb", [["demo"], ["reproduce", "table1"]])
def test_a_folder_that_is_a_file_is_refused_at_once(tables, verb):
    done = spar(*verb, "--out", "s.csv", cwd=tables)
    assert done.returncode == 2
    assert b"s.csv" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_polite_end_leaves_no_partial_file(tables):
    rng = np.random.default_rng(0)
    big = pd.DataFrame(rng.normal(size=(200_000, 3)), columns=["a", "b", "c"])
    big.to_parquet(tables / "t.parquet")
    (tables / "out").mkdir()
    seen = set()
    for delay in (0.2, 1.5, 2.5):
        command = [sys.executable, "-m", "pyspar", "adapt", "s.csv", "t.parquet", "--label", "y", "-o", "out/p.csv"]
        process = subprocess.Popen(command, cwd=tables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        seen.add(process.wait(timeout=60))
        assert set(os.listdir(tables / "out")) <= {"p.csv"}
    # Done, stopped, or not yet started.
    assert seen <= {0, 130, -signal.SIGTERM}


def test_a_float32_column_does_not_coarsen_its_neighbours(tables):
    rng = np.random.default_rng(0)
    t, k = 1.7e9 + rng.uniform(0, 1000, 500), rng.normal(size=500)
    errors = []
    for kind in ("f4", "f8"):
        frame = pd.DataFrame({"t": t, "k": k.astype(kind), "y": (t - 1.7e9) / 100 + k})
        frame["y"] += 0.01 * np.random.default_rng(1).normal(size=500)
        frame[:400].to_parquet(tables / "a.parquet")
        frame[400:].to_parquet(tables / "b.parquet")
        done = spar("adapt", "a.parquet", "b.parquet", "--label", "y", "-o", "p.csv", cwd=tables)
        assert done.returncode == 0, done.stderr
        predicted = pd.read_csv(tables / "p.csv")["prediction"]
        errors.append(np.sqrt(np.mean((predicted - frame["y"][400:].to_numpy()) ** 2)))
    assert max(errors) < 0.02
