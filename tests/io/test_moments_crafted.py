"""Files of Moments that are damaged or crafted: each is rejected with InputError, and nothing large is allocated."""

import io
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

import pyspar
from pyspar import InputError, Moments
from pyspar.io.moments import is_moments_file, read_moments_file, write_moments

MAX_BYTES = 2**22  # a valid file of the size below needs far less


@pytest.fixture
def moments():
    rng = np.random.default_rng(0)
    return Moments.of(pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"]), rng.normal(size=30))


@pytest.fixture
def whole(moments, tmp_path):
    """The bytes of a valid file."""
    write_moments(moments, tmp_path / "whole.npz", ["y"])
    return (tmp_path / "whole.npz").read_bytes()


@pytest.fixture
def fields(whole):
    """The entries of a valid file."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def reject(tmp_path):
    """A function that asserts that a reader rejects a file with little memory, and returns the message."""

    def check(content):
        path = tmp_path / "crafted.npz"
        path.write_bytes(content)
        is_moments_file(path)
        tracemalloc.start()
        try:
            with pytest.raises(InputError) as error:
                pyspar.load(path)
            assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
        finally:
            tracemalloc.stop()
        assert str(path) in str(error.value)
        return str(error.value)

    return check


def make_archive(entries, **options):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", **options) as archive:
        warnings.simplefilter("ignore")
        for name, data in entries:
            archive.writestr(name, data)
    return buffer.getvalue()


def make_npy(array):
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array))
    return buffer.getvalue()


def make_header(dtype, shape, data=b""):
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rows", -5),
        ("rows", 0),
        ("rows", np.nan),
        ("rows", "30"),
        ("rows", [30]),
        ("n_features", -1),
        ("n_features", 0),
        ("n_features", [3, 3]),
        ("n_features", 2**62),
        ("n_features", np.uint64(2**64 - 1)),
        ("n_features", 3.0),
        ("weight", "x"),
        ("weight", np.nan),
        ("weight", -1.0),
        ("weight", np.inf),
        ("weight", 1e300),
        ("weight", [30.0]),
        ("weight", 30j),
        ("eps", [0.1, 0.1]),
        ("eps", [0.1, 0.1, np.nan]),
        ("eps", [0.1, 0.1, 1.0]),
        ("eps", np.full(3, 0.1, np.float32)),
        ("names", ["a", "b"]),
        ("names", ["a", "b", "a"]),
        ("names", ["", "", "c"]),
        ("names", [1.0, 2.0, 3.0]),
        ("names", [["a", "b", "c"]]),
        ("names", "abc"),
        ("names", np.array([b"a", b"b", b"c"])),
        ("root", np.ones(5)),
        ("root", np.ones((5, 5))),
        ("root", np.ones((6, 5))),
        ("root", np.ones((5, 3))),
        ("root", np.zeros((0, 5))),
        ("root", np.full((5, 5), 1e300)),
        ("root", np.full((5, 5), np.nan)),
        ("root", np.ones((5, 5), np.float32)),
        ("root", np.ones((5, 5), complex)),
        ("format", "pyspar-moments-2"),
        ("format", ["pyspar-moments-1"]),
        ("format", 1),
    ],
)
def test_a_field_that_cannot_be_is_rejected(fields, reject, key, value):
    reject(make_archive({**fields, f"{key}.npy": make_npy(value)}.items()))


@pytest.mark.parametrize("key", ["root", "names", "eps", "format", "n_features"])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("<f8", "(40000, 40000)"),  # 12.8 GB
        ("<U400000000", "(8,)"),
        ("<U0", "(1000000000000000,)"),
        ("<f8", "(-1, -1)"),
        ("<f8", "(999999999999999999, 999999999999999999)"),
        ("<f8", "(" + "9, " * 40 + ")"),
        ("<f8", "__import__('os')"),
        ("|O", "(1,)"),
        ("<i9", "()"),
        ([("a", "<f8")], "(1,)"),
    ],
)
def test_a_header_that_claims_more_than_the_file_holds_is_rejected(fields, reject, key, dtype, shape):
    for data in (b"", bytes(64)):
        reject(make_archive({**fields, f"{key}.npy": make_header(dtype, shape, data)}.items()))


def test_a_wrong_size_in_the_archive_is_rejected(whole, reject):
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        start = archive.start_dir
        size = archive.getinfo("root.npy").file_size.to_bytes(4, "little")
    directory = whole[start:].replace(size, (2**31).to_bytes(4, "little"))
    reject(whole[:start] + directory)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_entries_are_rejected(fields, reject, method):
    reject(make_archive(fields.items(), compression=method))
    bomb = {**fields, "names.npy": make_npy(np.zeros((10**7,), "<U1"))}
    reject(make_archive(bomb.items(), compression=method))


def test_unknown_zip_methods_and_encryption_are_rejected(whole, reject):
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        start = archive.start_dir
    for offset, value in ((10, 99), (10, 1), (8, 1)):  # of the first entry: the method, and the flags
        changed = bytearray(whole)
        changed[start + offset] = value
        reject(bytes(changed))


def test_an_entry_may_occur_once_and_none_may_be_missing(fields, reject):
    for name in fields:
        reject(make_archive([*fields.items(), (name, fields[name])]))
        if name not in ("outputs.npy", "tails.npy"):
            assert name.removesuffix(".npy") in reject(make_archive((n, d) for n, d in fields.items() if n != name))


def test_the_names_of_labels_are_checked_too(fields, reject, tmp_path):
    for value in (1.0, "y", [["y"]], np.array([b"y"])):
        reject(make_archive({**fields, "outputs.npy": make_npy(value)}.items()))
    reject(b"not a zip archive")
    path = tmp_path / "older.npz"
    path.write_bytes(make_archive((name, data) for name, data in fields.items() if name != "outputs.npy"))
    assert read_moments_file(path).outputs == ()


def test_every_truncated_file_is_rejected(whole, tmp_path):
    path = tmp_path / "cut.npz"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert not is_moments_file(path)
        with pytest.raises(InputError):
            pyspar.load(path)


def test_a_flipped_bit_is_rejected_or_changes_nothing(moments, whole, tmp_path):
    rng, path, rejections = np.random.default_rng(1), tmp_path / "flipped.npz", 0
    for bit in rng.choice(8 * len(whole), size=1000, replace=False):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(changed)
        try:
            loaded, outputs = read_moments_file(path)
        except InputError:
            rejections += 1
            continue
        np.testing.assert_array_equal(loaded.root, moments.root)
        np.testing.assert_array_equal(loaded.eps, moments.eps)
        assert (loaded.rows, loaded.weight, loaded.names) == (moments.rows, moments.weight, moments.names)
        assert outputs == ("y",)
    assert rejections > 700


def test_random_bytes_in_the_entries_are_rejected(fields, reject):
    rng = np.random.default_rng(2)
    for _ in range(200):
        entries = dict(fields)
        name = rng.choice([name for name in fields if name != "outputs.npy"])
        data = bytearray(entries[name])
        for place in rng.integers(0, 128, size=3):  # the header; make_archive writes a matching checksum
            data[place] = rng.integers(0, 256)
        entries[name] = bytes(data)
        if entries[name] != fields[name]:
            reject(make_archive(entries.items()))


def test_repeated_names_are_not_written(tmp_path):
    twice = Moments.of(pd.DataFrame(np.eye(3), columns=["a", "b", "a"]))
    with pytest.raises(InputError, match="'a'"):
        pyspar.save(twice, tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())
