"""Arrays of users are checked before memory is allocated: headers against sizes, and sizes against free memory."""

import io
import os
import zipfile

import numpy as np
import pytest

from pyspar.errors import InputError
from pyspar.sources.files import moments_of_file, open_rows
from pyspar.tables.load import load_table


def make_npy(shape, data=b"", *, dtype="<f8"):
    """Return an .npy file with any header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


def make_npz(path, method=zipfile.ZIP_STORED, **entries):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)


@pytest.fixture
def no_allocation(monkeypatch):
    """Fail if numpy reads the data of an array."""
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("the data were read"))


CLAIMS = [
    make_npy((1_500_000_000, 1), bytes(64)),  # 12 GB
    make_npy((10**30, 2), bytes(64)),
    make_npy((-4, -2), bytes(64)),
    make_npy((4, 1), bytes(64)),  # smaller than the data
    make_npy((8, 1), bytes(64), dtype="|O"),
    make_npy((8, 1), bytes(64)).replace(b"(8, 1)", b"(8, 1.)"),
    make_npy((8, 1), bytes(64)).replace(b"{", b"["),
    make_npy((8, 1), bytes(64)).replace(b"\x01\x00v", b"\x03\x00v"),
]


@pytest.mark.parametrize("content", CLAIMS, ids=range(len(CLAIMS)))
def test_a_header_that_contradicts_the_size_is_refused_before_the_data_are_read(tmp_path, no_allocation, content):
    array, archive = tmp_path / "a.npy", tmp_path / "a.npz"
    array.write_bytes(content)
    make_npz(archive, X=content)
    for read in (open_rows, lambda path: load_table(path, "source")):
        with pytest.raises(InputError, match=r"a\.npy"):
            read(array)
    with pytest.raises(InputError, match=r"a\.npz"):
        load_table(archive, "source")


def test_an_archive_that_needs_more_than_the_free_memory_is_refused(tmp_path, no_allocation, monkeypatch):
    monkeypatch.setattr("pyspar.tables.read.free_memory", lambda: 10**6)
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((100_000, 3)))
    assert (tmp_path / "a.npz").stat().st_size < 10_000
    with pytest.raises(InputError, match=r"0\.0024 GB .*0\.001 GB"):
        load_table(tmp_path / "a.npz", "source")


def test_a_size_that_deflate_cannot_express_is_refused(tmp_path, no_allocation):
    path = tmp_path / "a.npz"
    make_npz(path, zipfile.ZIP_DEFLATED, X=make_npy((1000, 1), bytes(8000)))
    with zipfile.ZipFile(path) as archive:
        start, size = archive.start_dir, archive.getinfo("X.npy").file_size
    content = path.read_bytes()
    directory = content[start:].replace(size.to_bytes(4, "little"), (2**31).to_bytes(4, "little"))
    path.write_bytes(content[:start] + directory)
    with pytest.raises(InputError, match="2147483648"):
        load_table(path, "source")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_zip_methods_are_refused(tmp_path, no_allocation, method):
    make_npz(tmp_path / "a.npz", method, X=make_npy((1000, 1), bytes(8000)))
    with pytest.raises(InputError, match=rf"'X\.npy'.*method {method}"):
        load_table(tmp_path / "a.npz", "source")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_bit_in_the_data_of_an_archive_is_detected(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, X=np.arange(600.0).reshape(200, 3))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.npz"):
        load_table(path, "source")


def test_an_array_that_is_truncated_while_it_is_read_is_an_error_and_no_crash(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.random.default_rng(0).normal(size=(5000, 4)))
    batches = open_rows(path, batch_bytes=4000).read(["x0", "x1", "x2", "x3"])
    next(batches)
    os.truncate(path, 10_000)
    with pytest.raises(InputError, match="shorter"):
        list(batches)


def test_an_array_that_is_replaced_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.ones((50, 2)))
    rows = open_rows(path)
    np.save(path, np.ones((40, 2)))
    with pytest.raises(InputError, match="replaced"):
        moments_of_file(rows)


def test_a_flipped_bit_in_the_directory_never_hides_an_array(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.ones((3, 2)), y=np.arange(3.0))
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    for bit in range(8 * start, 8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(changed)
        try:
            names = list(load_table(path, "source").frame.columns)
        except InputError:
            continue
        assert names == ["x0", "x1", "y"]
