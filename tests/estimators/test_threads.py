"""Calls from several threads give the results of the same calls one after another, and warnings still arrive."""

import ast
import copy
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pyspar
from pyspar import BayesSpARRegressor, SpARRegressor, SparWarning, inspect
from pyspar.errors import collect_warnings, warn

THREADS, CALLS = 8, 200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(60, 4)), rng.normal(size=(30, 4)) * [1.0, 0.1, 3.0, 1.0]
    return X, X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=60), Z


@pytest.fixture(autouse=True)
def _short_time_slices():
    """Threads alternate a hundred times as often as usual, so that races are likely."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


def numbers_of(estimator):
    return np.append(estimator.coef_, estimator.intercept_)


def make_call(number, data, fitted, folder):
    """Return the numbers of one call; every kind of call occurs, with data that depend on the number."""
    X, y, Z = data
    Z = Z * (1.0 + number % 7)
    fitted = fitted[number % 2]
    kind = number % 40
    path = folder / f"{threading.get_ident()}-{number}"
    if kind == 0:
        return np.array([model.rmse for model in inspect(fitted, Z).outputs[0].models])
    if number == 1:
        pyspar.save(fitted, path.with_suffix(".skops"))
        return numbers_of(pyspar.load(path.with_suffix(".skops")))
    if kind == 1:
        pyspar.save(pyspar.Moments.of(Z), path.with_suffix(".npz"))
        return pyspar.load(path.with_suffix(".npz")).root.ravel()
    if kind < 4:
        return np.array(fitted.expected_rmse(Z).interval95)
    if kind < 16:
        return numbers_of(SpARRegressor().fit(X, y + number % 3).adapt(Z))
    if kind < 28:
        return numbers_of(copy.copy(fitted).adapt(Z))
    return fitted.predict(Z)


def test_headers_of_arrays_are_parsed_by_one_thread_at_a_time(data, tmp_path, monkeypatch):
    # In Python 3.11.7, ast.parse in two threads can fail with a SystemError (CPython issue 106905).
    model, moments = tmp_path / "model.skops", tmp_path / "moments.npz"
    pyspar.save(BayesSpARRegressor().fit(*data[:2]), model)
    pyspar.save(pyspar.Moments.of(data[2]), moments)
    parse, active, most = ast.parse, [], []

    def parse_slowly(*args, **options):
        active.append(1)
        most.append(len(active))
        time.sleep(1e-3)
        active.pop()
        return parse(*args, **options)

    monkeypatch.setattr(ast, "parse", parse_slowly)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(pyspar.load, 4 * [model, moments]))
    assert len(most) > 8
    assert max(most) == 1


def test_mixed_calls_in_threads_equal_calls_one_after_another(data, tmp_path):
    fitted = [kind().fit(*data[:2]) for kind in (BayesSpARRegressor, SpARRegressor)]  # calls share them
    filters = list(warnings.filters)
    numbers = list(range(CALLS)) * THREADS
    expected = [make_call(number, data, fitted, tmp_path) for number in range(CALLS)]
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda number: make_call(number, data, fitted, tmp_path), numbers))
    for number, result in zip(numbers, results, strict=True):
        np.testing.assert_array_equal(result, expected[number])
    # scikit-learn's own checks change the filters, and may leave one for its warning about complex numbers.
    added = [entry for entry in warnings.filters if entry not in filters]
    assert all(entry in warnings.filters for entry in filters)
    assert {entry[2].__name__ for entry in added} <= {"ComplexWarning"}
    with pytest.warns(SparWarning):
        SpARRegressor().fit(data[0][:4], data[1][:4])


def test_warnings_are_collected_in_one_thread_and_arrive_in_others(data):
    X, y, _ = data
    inside, outside = threading.Event(), threading.Event()

    def collect():
        with collect_warnings() as texts:
            inside.set()
            assert outside.wait(10)
            SpARRegressor().fit(X[:4], y[:4])
        return texts

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(collect)
        assert inside.wait(10)
        with pytest.warns(SparWarning) as record:
            SpARRegressor().fit(X[:4], y[:4])
        outside.set()
        assert future.result() == [str(record[0].message)]


def test_collecting_has_no_repetitions_and_nests():
    with collect_warnings() as outer:
        warn("few rows")
        with collect_warnings() as inner:
            warn("many columns")
            warn("many columns")
        warn("few rows")
    assert (outer, inner) == (["few rows"], ["many columns"])
