"""Saved Moments, and damaged or crafted files of them, which are rejected without large allocations."""

import io
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

import pyspar
from pyspar import InputError, Moments

MAX_BYTES = 2**22  # a valid file of the size below needs far less


@pytest.fixture
def moments():
    rng = np.random.default_rng(0)
    return Moments.of(pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"]), rng.normal(size=30))


@pytest.fixture
def whole(moments, tmp_path):
    """The bytes of a valid file."""
    pyspar.save(moments, tmp_path / "whole.npz")
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


VALUES = {
    "rows": [-5, 0, np.nan, "30"],
    "n_features": [-1, 0, [3, 3], 2**62, 3.0],
    "weight": ["x", np.nan, -1.0, np.inf, 1e300, 30j],
    "eps": [[0.1, 0.1], [0.1, 0.1, np.nan], [0.1, 0.1, 1.0]],
    "names": [["a", "b"], ["a", "b", "a"], [1.0, 2.0, 3.0]],
    "root": [np.ones(5), np.ones((5, 5)), np.ones((6, 5)), np.ones((5, 3)), np.full((5, 5), np.nan), np.eye(5) * 1j],
    "format": ["pyspar-moments-1", 1],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in VALUES.items() for value in values])
def test_a_field_that_cannot_be_is_rejected(fields, reject, key, value):
    reject(make_archive({**fields, f"{key}.npy": make_npy(value)}.items()))


@pytest.mark.parametrize("key", ["root", "names"])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("<f8", "(40000, 40000)"),  # 12.8 GB
        ("<U400000000", "(8,)"),
        ("<U0", "(1000000000000000,)"),
        ("<f8", "(-1, -1)"),
        ("<f8", "__import__('os')"),
        ("|O", "(1,)"),
    ],
)
def test_a_header_that_claims_more_than_the_file_holds_is_rejected(fields, reject, key, dtype, shape):
    for data in (b"", bytes(64)):
        reject(make_archive({**fields, f"{key}.npy": make_header(dtype, shape, data)}.items()))


def test_other_archives_are_rejected(fields, whole, reject):
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        reject(make_archive(fields.items(), compression=method))
    for name in fields:
        reject(make_archive([*fields.items(), (name, fields[name])]))
        reject(make_archive((n, d) for n, d in fields.items() if n != name))
    reject(make_archive([*fields.items(), ("other.npy", fields["eps.npy"])]))
    reject(b"not a zip archive")
    for length in range(0, len(whole), 97):
        reject(whole[:length])


def test_a_flipped_bit_is_rejected_or_changes_nothing(moments, whole, tmp_path):
    rng, path, rejections = np.random.default_rng(1), tmp_path / "flipped.npz", 0
    for bit in rng.choice(8 * len(whole), size=300, replace=False):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(changed)
        try:
            loaded = pyspar.load(path)
        except InputError:
            rejections += 1
            continue
        np.testing.assert_array_equal(loaded.root, moments.root)
        assert (loaded.rows, loaded.weight, loaded.names) == (moments.rows, moments.weight, moments.names)
    assert rejections > 100


def test_saved_moments_are_restored_and_can_be_merged(moments, tmp_path):
    pyspar.save(moments, tmp_path / "a.npz")
    loaded = pyspar.load(tmp_path / "a.npz")
    for name in ("root", "n_features", "rows", "weight", "weight2", "eps", "names"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(moments, name))
    assert (loaded + loaded).rows == 60
    with pytest.raises(InputError, match=r"end in \.npz"):
        pyspar.save(moments, tmp_path / "a.skops")
