"""Moments as files: writing, reading, and the rejection of other files."""

import numpy as np
import pandas as pd
import pytest

import pyspar
from pyspar import InputError, Moments, SpARRegressor
from pyspar.io.moments import is_moments_file


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    return X, X.sum(axis=1) + rng.normal(size=300), rng.normal(size=(50, 4))


def test_saved_moments_can_be_merged(parts, tmp_path):
    X, y, Z = parts
    for name, rows in (("first", slice(0, 100)), ("second", slice(100, 300))):
        pyspar.save(Moments.of(X[rows], y[rows]), tmp_path / f"{name}.npz")
    total = pyspar.load(tmp_path / "first.npz") + pyspar.load(tmp_path / "second.npz")
    est = SpARRegressor().fit(total).adapt(pd.DataFrame(Z, columns=list("abcd")))
    whole = SpARRegressor().fit(X, y).adapt(pd.DataFrame(Z, columns=list("abcd")))
    np.testing.assert_allclose(est.coef_, whole.coef_, rtol=1e-10)
    assert list(est.feature_names_in_) == list("abcd")
    assert (tmp_path / "first.npz").stat().st_size < 5000


def test_every_field_is_restored(parts, tmp_path):
    X, y, _ = parts
    before = Moments.of(X.astype(np.float32), y, np.linspace(0, 2, 300))
    pyspar.save(before, tmp_path / "m.npz")
    after = pyspar.load(tmp_path / "m.npz")
    for name in ("root", "eps"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    for name in ("n_features", "rows", "weight", "names"):
        assert getattr(after, name) == getattr(before, name)


def test_other_files_are_rejected(parts, tmp_path):
    X, y, _ = parts
    path = tmp_path / "m.npz"
    pyspar.save(Moments.of(X, y), path)
    assert is_moments_file(path)
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert not is_moments_file(path)
        with pytest.raises(InputError, match=r"m\.npz' is not a readable"):
            pyspar.load(path)
    np.savez(path, X=np.ones((3, 2)))
    assert not is_moments_file(path)
    with pytest.raises(InputError, match=r"m\.npz' is not a file of Moments.*root"):
        pyspar.load(path)
    np.savez(path, X=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError):
        pyspar.load(path)
    with pytest.raises(InputError, match=r"nothing\.npz"):
        pyspar.load(tmp_path / "nothing.npz")
    with pytest.raises(InputError, match=r"\.npz.*m\.skops"):
        pyspar.save(Moments.of(X, y), tmp_path / "m.skops")


def test_moments_without_labels_cannot_be_fitted(parts):
    X, y, _ = parts
    with pytest.raises(ValueError, match="output"):
        SpARRegressor().fit(Moments.of(X))
    two = SpARRegressor().fit(Moments.of(X, np.column_stack([y, y])))
    assert two.coef_.shape == (2, 4)
