"""Dask collections of any chunks give the fit of one pass, also if a worker fails."""

import os
import signal
import threading
import time
from concurrent.futures import CancelledError
from functools import partial

import numpy as np
import pandas as pd
import pytest

from pyspar import SpARRegressor

da = pytest.importorskip("dask.array", reason="needs: pip install 'pyspar[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="needs: pip install 'pyspar[dask]'")
dask = pytest.importorskip("dask")


@pytest.mark.parametrize("chunks", [(1000, 12), (11, 5), (3000, 1), (7, 12)])
def test_any_chunks_give_the_fit_of_one_pass(problem, in_memory, assert_same, chunks):
    # Chunks of 7 rows have fewer rows than the 12 features; chunks of columns are joined.
    X, y = da.from_array(problem.X, chunks=chunks), da.from_array(problem.y, chunks=501)
    assert_same(SpARRegressor().fit(X, y).adapt(da.from_array(problem.Z, chunks=(90, 12))), in_memory)


def test_frames_with_unknown_sizes_and_empty_partitions_are_supported(problem, in_memory, assert_same):
    names = [f"c{i}" for i in range(12)]
    frame = pd.DataFrame(problem.X, columns=names).assign(y=problem.y, part=np.arange(3000) // 1000)
    lazy = dd.from_pandas(frame, npartitions=5)
    lazy = lazy[lazy.part < 9]
    empty = lazy[lazy.part == 1]  # most of its partitions are empty
    est = SpARRegressor().fit(lazy[names], lazy["y"]).adapt(dd.from_pandas(pd.DataFrame(problem.Z, columns=names), 2))
    assert_same(est, in_memory)
    assert list(est.feature_names_in_) == names
    some = frame[frame.part == 1]
    np.testing.assert_allclose(
        SpARRegressor().fit(empty[names], empty["y"]).coef_,
        SpARRegressor().fit(some[names], some["y"]).coef_,
        rtol=1e-9,
    )


def test_features_and_labels_of_a_parquet_file_may_have_different_partitions(problem, tmp_path):
    # Dask joins more small row groups if there are fewer columns, so features and labels have different partitions.
    names = [f"c{i}" for i in range(12)]
    frame = pd.DataFrame(problem.X, columns=names).assign(y=problem.y, z=-problem.y, w=problem.w)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    lazy = dd.read_parquet(tmp_path / "rows.parquet", split_row_groups=4)
    known = SpARRegressor().fit(frame[names], frame["y"], frame["w"])
    np.testing.assert_allclose(
        SpARRegressor().fit(lazy[names], lazy["y"], lazy["w"]).coef_, known.coef_, rtol=1e-9, atol=1e-12
    )
    both = SpARRegressor().fit(lazy[names], lazy[["y", "z"]])
    np.testing.assert_allclose(both.coef_, SpARRegressor().fit(frame[names], frame[["y", "z"]]).coef_, rtol=1e-8)
    assert list(both.feature_names_in_) == names


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_arrays_of_different_length_are_refused_with_both_lengths(problem, name):
    X, short = da.from_array(problem.X, chunks=(500, 12)), da.from_array(problem.y[:2999], chunks=500)
    y, weight = (short, None) if name == "y" else (da.from_array(problem.y, chunks=500), short)
    with pytest.raises(ValueError, match=rf"{name} .*3,000 and 2,999"):
        SpARRegressor().fit(X, y, weight)


def test_predictions_are_lazy(problem, in_memory):
    Z = da.from_array(problem.Z, chunks=(100, 4))
    lazy = in_memory.predict(Z)
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (500,)
    np.testing.assert_allclose(lazy.compute(), in_memory.predict(problem.Z), rtol=1e-12)
    two = SpARRegressor().fit(problem.X, np.column_stack([problem.y, problem.y]))
    assert two.predict(Z).shape == (500, 2)
    np.testing.assert_allclose(two.predict(Z).compute(), two.predict(problem.Z), rtol=1e-12)
    frame = dd.from_pandas(pd.DataFrame(problem.Z), npartitions=3)
    np.testing.assert_allclose(in_memory.predict(frame).compute(), in_memory.predict(problem.Z), rtol=1e-12)


def test_invalid_collections_are_refused(problem):
    X, y = da.from_array(problem.X, chunks=(500, 12)), da.from_array(problem.y, chunks=500)
    with_nan = problem.X.copy()
    with_nan[1700, 3] = np.nan
    with pytest.raises(ValueError, match=r"row block 3: .*nan in row 200, column 3"):
        SpARRegressor().fit(da.from_array(with_nan, chunks=(500, 12)), y)
    est = SpARRegressor().fit(X, y)
    for call in (est.adapt, est.predict):
        with pytest.raises(ValueError, match="12"):
            call(da.ones((10, 3)))
    keep = y > -1e9
    twice = da.concatenate([y[keep], y[keep]])
    with pytest.raises(ValueError, match=r"\[6, 12\] blocks"):
        SpARRegressor().fit(X[keep], twice)


# Functions that are defined inside another function are sent to a worker by value. A function of this module would be
# imported by name, and an installed package may also be called "tests".
def make_reader(*, fails):
    def read_rows(part, X):
        if part == 5 and fails:
            raise RuntimeError("part 5 cannot be read")
        time.sleep(0.0 if fails else 0.15)
        return X

    return read_rows


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs: pip install 'pyspar[dask]'")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as local, distributed.Client(local):
        yield local


def blocks_of(problem, function, n=24):
    parts = np.array_split(np.arange(3000), n)
    lazy = dask.delayed(function)
    rows = [da.from_delayed(lazy(i, problem.X[p]), shape=(len(p), 12), dtype=float) for i, p in enumerate(parts)]
    return da.concatenate(rows), da.from_array(problem.y, chunks=(tuple(len(p) for p in parts),))


def test_a_killed_worker_does_not_change_the_fit(problem, in_memory, assert_same, cluster):
    X, y = blocks_of(problem, make_reader(fails=False))
    victim = next(iter(cluster.workers.values()))
    timer = threading.Timer(0.7, lambda: os.kill(victim.pid, signal.SIGKILL))
    timer.start()
    try:
        est = SpARRegressor().fit(X, y)
    finally:
        timer.cancel()
    assert_same(est.adapt(problem.Z), in_memory)


def test_a_task_that_always_fails_raises_its_own_error(problem, cluster):
    X, y = blocks_of(problem, make_reader(fails=True))
    with pytest.raises(RuntimeError, match="part 5"):
        SpARRegressor().fit(X, y)


def test_a_lost_scheduler_is_a_connection_error_and_nothing_is_fitted(problem, monkeypatch):
    def lose(*_):
        raise CancelledError("_add_moments-02e63a9f cancelled for reason: scheduler-connection-lost.")

    model = SpARRegressor()
    monkeypatch.setattr(dask, "compute", lose)
    with pytest.raises(ConnectionError, match=r"scheduler.*Client"):
        model.fit(da.from_array(problem.X), da.from_array(problem.y))
    assert not hasattr(model, "coef_")


def test_workers_that_die_repeatedly_are_a_connection_error_about_memory(problem, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs: pip install 'pyspar[dask]'")

    def kill(*_):
        raise distributed.KilledWorker("block", None, 3)

    monkeypatch.setattr(dask, "compute", kill)
    with pytest.raises(ConnectionError, match=r"4 times.*memory"):
        SpARRegressor().fit(da.from_array(problem.X), da.from_array(problem.y))


def test_weights_and_outputs_are_supported_and_blocks_without_weight_are_skipped(problem):
    frame = pd.DataFrame(problem.X, columns=[f"c{i}" for i in range(12)])
    labels = pd.DataFrame({"y": problem.y, "z": 2.0 * problem.y + 1.0})
    weights = pd.Series(np.where(np.arange(3000) < 1000, 0.0, problem.w))
    reference = SpARRegressor().fit(frame, labels, weights)

    def lazy(part):
        return dd.from_pandas(part, npartitions=6)

    assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    est = SpARRegressor().fit(lazy(frame), lazy(labels), lazy(weights))
    assert_close(est.coef_, reference.coef_)
    est.partial_fit(lazy(frame), lazy(labels), lazy(0.0 * weights))
    assert est.moments_.rows == reference.moments_.rows
    est.partial_fit(lazy(frame), lazy(labels), lazy(weights))
    assert est.moments_.rows == 2 * reference.moments_.rows
    assert_close(est.coef_, reference.coef_)
    with pytest.raises(ValueError, match="positive weight"):
        SpARRegressor().fit(lazy(frame), lazy(labels), lazy(0.0 * weights))
