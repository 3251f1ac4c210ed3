"""Delimited text: quotes that are never closed, names of columns, and the threads with which Arrow reads ahead."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest

from pyspar.errors import InputError
from pyspar.sources.files import moments_of_file, text

READ_AND_END = """
import os, sys
from contextlib import suppress
from pathlib import Path
from pyspar.errors import InputError
from pyspar.sources.files.text import open_file

ends = []
for _ in range(30):
    child = os.fork()
    if child == 0:
        with suppress(InputError):
            open_file(Path(sys.argv[1]), "file", 1 << 24)
        sys.exit(0)
    ends.append(os.waitpid(child, 0)[1])
assert not any(ends), ends
"""


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("end", ["open", "open\n", "open\r\n", ""])
def test_a_quote_in_the_last_line_that_never_closes_is_refused(tmp_path, end, suffix):
    path, encode = tmp_path / f"q{suffix}", gzip.compress if suffix == ".csv.gz" else bytes
    path.write_bytes(encode(f'a,note\n1,fine\n2,"{end}'.encode()))
    with pytest.raises(InputError, match=rf"q\{suffix}': a quote after line 2"):
        moments_of_file(path)
    path.write_bytes(encode(b'a,note\n1,fine\n2,"closed"'))
    assert moments_of_file(path).rows == 2


def test_each_column_without_a_name_has_its_own_values(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(",a,,b,\n1,2,3,4,5%\n6,7,8,9,10%\n")
    file = text.open_file(path, "file", 1 << 20)
    assert file.names == ("Unnamed: 0", "a", "Unnamed: 2", "b", "Unnamed: 4")
    values = {"Unnamed: 0": [1, 6], "a": [2, 7], "Unnamed: 2": [3, 8], "b": [4, 9], "Unnamed: 4": [0.05, 0.1]}
    assert file.read_columns((), ())[0].to_pydict() == values
    for names in (["Unnamed: 2"], ["b", "Unnamed: 2", "a"], ["Unnamed: 4", "Unnamed: 0"]):
        (batch,) = file.read(names, label="Unnamed: 4")
        assert batch.X.T.tolist() == [values[name] for name in names]
        assert batch.y.tolist() == values["Unnamed: 4"]


@pytest.mark.parametrize("header", ["a,b,a", "a,Unnamed: 2,", "a,b,a,,"])
def test_duplicate_names_are_refused(tmp_path, header):
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\n" + ",".join("12345"[: header.count(",") + 1]) + "\n")
    with pytest.raises(InputError, match=r"x\.csv': duplicate column names"):
        moments_of_file(path)


def test_arrow_reads_from_its_own_files(tmp_path, monkeypatch):
    opened = []

    def open_csv(file, **options):
        opened.append(type(file))
        return original.open_csv(file, **options)

    original = text.csv_reader
    monkeypatch.setattr(text, "csv_reader", SimpleNamespace(**{**vars(original), "open_csv": open_csv}))
    content = b"a,b\n1,2\n3,4\n"
    (tmp_path / "x.csv").write_bytes(content)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(content))
    assert moments_of_file(tmp_path / "x.csv").rows == moments_of_file(tmp_path / "x.csv.gz").rows == 2
    assert set(opened) == {pa.OSFile, pa.CompressedInputStream}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_the_interpreter_may_end_directly_after_a_damaged_file(tmp_path):
    """Threads of Arrow that still released the Python objects of a file aborted about every sixth process."""
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n" + "1,2,3\n" * 30 + "1\n" + "1,2,3\n" * 9)
    command = [sys.executable, "-c", READ_AND_END, str(path)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
