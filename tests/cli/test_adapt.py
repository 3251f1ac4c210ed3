"""``spar adapt``, ``predict`` and ``inspect``: what is predicted, written, reported and saved."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyspar
from pyspar import BayesSpARRegressor

HOME = ("--label", "price", "--id", "home")
NUMBERS = ["area", "garden", "price"]


@pytest.fixture
def done(spar):
    """Run a command that must succeed, and return its output."""

    def run(*arguments):
        result = spar(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_predictions_have_ids_and_intervals_and_are_those_of_the_regressor(done, files, source, target, tmp_path):
    X, Z = source[["area", "garden"]], target[["area", "garden"]]
    done("adapt", *files(source[NUMBERS], target[NUMBERS]), "--label", "price", "-o", tmp_path / "p.csv")
    mean, scale = X.mean(), X.std(ddof=0)
    model = BayesSpARRegressor().fit((X - mean) / scale, source["price"]).adapt((Z - mean) / scale)
    written = pd.read_csv(tmp_path / "p.csv")
    assert list(written) == ["row", "prediction", "low", "high"]
    np.testing.assert_allclose(written["prediction"], model.predict((Z - mean) / scale), rtol=1e-9)
    np.testing.assert_allclose(written["low"], model.predict_interval((Z - mean) / scale)[0], rtol=1e-6)
    assert (written["row"] == np.arange(80)).all()


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_predictions_are_the_same_in_every_format(done, files, source, target, tmp_path, ending):
    paths = files(source, target)
    done("adapt", *paths, *HOME, "-o", tmp_path / "p.csv")
    done("adapt", *paths, *HOME, "-o", tmp_path / f"q.{ending}")
    expected, path = pd.read_csv(tmp_path / "p.csv"), tmp_path / f"q.{ending}"
    if ending == "parquet":
        got = pd.read_parquet(path)
    else:
        got = pd.read_csv(path, sep="\t" if ending == "tsv" else ",", dtype={"home": str})
    assert list(got["home"]) == list(target["home"])  # leading zeros survive
    np.testing.assert_array_equal(got["prediction"], expected["prediction"])


IDS = {
    "zeros": [f"{row:05d}" for row in range(80)],
    "large": [2**63 - 1 - row for row in range(80)],
    "null": [None, *range(2**53 + 1, 2**53 + 80)],
    "text": ["NA", "true", "1e5", "=1+1", 'ü,;"x"', *map(str, range(75))],
}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("stream", [(), ("--stream",)])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ids_survive_exactly(done, source, target, tmp_path, kind, stream, ending):
    table = pa.Table.from_pandas(target[["area", "garden"]]).append_column("key", pa.array(IDS[kind]))
    paths = tmp_path / "s.parquet", tmp_path / f"t.{ending}"
    source[NUMBERS].to_parquet(paths[0])
    if ending == "parquet":
        pq.write_table(table, paths[1])
    else:
        pd.DataFrame(table.to_pydict(), dtype=object).to_csv(paths[1], index=False)
    done("adapt", *paths, "--label", "price", "--id", "key", "-o", tmp_path / f"p.{ending}", *stream)
    if ending == "parquet":
        assert pq.read_table(tmp_path / "p.parquet")["key"].to_pylist() == IDS[kind]
    else:
        written = pd.read_csv(tmp_path / "p.csv", dtype=str, keep_default_na=False)["key"]
        assert list(written) == ["" if key is None else str(key) for key in IDS[kind]]


def test_a_stream_gives_the_numbers_of_memory(done, files, source, target, tmp_path, monkeypatch):
    monkeypatch.setattr("pyspar.sources.files.BATCH_BYTES", 3000)
    columns = [*NUMBERS, "sold", "lift"]
    source, target = source[columns].copy(), target[columns].copy()
    source.loc[::11, "area"] = None
    target.loc[::7, "garden"] = None
    paths, arguments = files(source, target), ("--label", "price", "--json")
    memory = json.loads(done("adapt", *paths, *arguments, "-o", tmp_path / "a.csv"))
    saved = ("--save-model", tmp_path / "m.skops")
    stream = json.loads(done("adapt", *paths, *arguments, "--stream", "-o", tmp_path / "b.csv", *saved))
    a, b = pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv")
    np.testing.assert_allclose(b["prediction"], a["prediction"], rtol=1e-8)
    np.testing.assert_allclose(b["low"], a["low"], rtol=1e-6)
    assert stream["data"] == memory["data"]
    np.testing.assert_allclose(stream["expected"]["rmse"], memory["expected"]["rmse"], rtol=1e-3)
    np.testing.assert_allclose(stream["measured"]["rmse"], memory["measured"]["rmse"], rtol=1e-8)
    done("predict", tmp_path / "m.skops", paths[1], "-o", tmp_path / "c.csv")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "c.csv")["prediction"], b["prediction"], rtol=1e-9)


def test_text_in_the_label_column_of_a_target_is_ignored_with_a_note(done, files, source, target, tmp_path):
    paths = files(source[NUMBERS], target[NUMBERS].assign(price="not yet"))
    for arguments in ((), ("--stream",), ("--stream", "-o", tmp_path / "p.csv")):
        result = json.loads(done("adapt", *paths, "--label", "price", *arguments, "--json"))
        assert result["measured"] is None
        assert any("'price' is not numeric" in note for note in result["notes"])
    assert len(pd.read_csv(tmp_path / "p.csv")) == 80


def test_the_result_names_every_column_that_is_imputed_ignored_or_unseen(done, files, source, target):
    added = {"": range(120), "note": [f"text {row}" for row in range(120)]}
    source = source.assign(same=3, empty=None, kind="old", **added)
    source.loc[[1, 2], "area"] = None
    target = target.assign(note="x", same=4, town="Trier", more=1.0, sold="2031-01-01", kind="old")
    text = done("adapt", *files(source, target), *HOME)
    for part in (
        "area: 2 source, 0 target, with the source mean",
        "note: free text (120 different values in 120 rows)",
        "same: constant in the source (3)",
        "same: constant in the source, but 80 of 80 target rows have another value",
        "kind: constant in the source ('old')",
        "empty: no values in the source",
        "no name; assumed to be a row index",
        "sold: all rows of the target are later than those of the source, so it is extrapolated",
        "more: only in the target",
        "Trier",
        "3 numeric, 1 categorical, 1 date",
    ):
        assert part in text
    result = json.loads(done("adapt", *files(source, target), *HOME, "--json"))
    assert set(result["data"]["ignored"]) == {"note", "same", "empty", "more", "kind", "Unnamed: 10"}
    assert not any(note.startswith("kind") for note in result["notes"])


def test_the_chosen_method_alone_is_fitted(done, files, source, target, tmp_path, monkeypatch):
    fitted = []
    for kind in (pyspar.BayesSpARRegressor, pyspar.SpARRegressor):
        fit = kind.fit
        monkeypatch.setattr(
            kind, "fit", lambda self, *a, fit=fit, **k: fitted.append(type(self).__name__) or fit(self, *a, **k)
        )
    paths = files(source[NUMBERS], target[NUMBERS])
    for method, expected in (("bayes", {"BayesSpARRegressor"}), ("spar", {"SpARRegressor"})):
        fitted.clear()
        done("adapt", *paths, "--label", "price", "--method", method, "-o", tmp_path / f"{method}.csv")
        assert set(fitted) == expected
    bayes, spar = (pd.read_csv(tmp_path / f"{method}.csv")["prediction"] for method in ("bayes", "spar"))
    assert not np.allclose(bayes, spar)


def test_the_options_of_the_source_are_those_of_the_target_and_of_the_model(
    done, spar, files, source, target, tmp_path
):
    plain = files(source[NUMBERS], target[NUMBERS])
    done("adapt", *plain, "--label", "price", "-o", tmp_path / "expected.csv")
    comma = [tmp_path / "s.tsv", tmp_path / "t.tsv"]
    for path, table in zip(comma, (source, target)):
        table[NUMBERS].replace({np.nan: "gone"}).to_csv(path, index=False, sep="\t", decimal=",", float_format="%.12f")
    arguments = ("--label", "price", "--decimal", ",", "--na", "gone")
    done("adapt", *comma, *arguments, "-o", tmp_path / "p.csv", "--save-model", tmp_path / "m.skops")
    expected = pd.read_csv(tmp_path / "expected.csv")["prediction"]
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["prediction"], expected, rtol=1e-8)
    done("predict", tmp_path / "m.skops", comma[1], "--na", "lost", "-o", tmp_path / "q.csv")  # another mark
    np.testing.assert_allclose(pd.read_csv(tmp_path / "q.csv")["prediction"], expected, rtol=1e-8)
    (tmp_path / "q.csv").unlink()
    # Cells with three digits after the comma would be thousands of a reader that guesses.
    for path, table in zip(comma, (source, target)):
        table[NUMBERS].to_csv(path, index=False, sep="\t", decimal=",", float_format="%.3f")
    points = ("predict", tmp_path / "m.skops", plain[1])  # points where commas belong
    for command, text in ((points, "--decimal"), (("adapt", *comma, "--label", "price"), "--decimal ,")):
        refused = spar(*command, "-o", tmp_path / "q.csv")
        assert refused.exit_code == 2
        assert text in refused.stderr
    assert not (tmp_path / "q.csv").exists()


def test_a_saved_model_predicts_raw_frames_in_python(done, files, source, target, tmp_path):
    saved = tmp_path / "m.skops"
    done("adapt", *files(source, target), *HOME, "-o", tmp_path / "p.csv", "--save-model", saved)
    expected, model = pd.read_csv(tmp_path / "p.csv")["prediction"], pyspar.load(saved)
    np.testing.assert_allclose(model.predict(target), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(target.assign(sold=pd.to_datetime(target["sold"]))), expected, rtol=1e-12)
    with pytest.raises(pyspar.InputError, match=r"lacks 1 of 5 .*'town'"):
        model.predict(target.drop(columns="town"))
    with pytest.raises(pyspar.InputError, match=r"'large' in column 'area'"):
        model.predict(target.assign(area="large"))
    with pytest.raises(pyspar.InputError, match="data frame"):
        model.predict(target.to_numpy())


def test_predict_scores_labels_before_it_writes(done, spar, files, source, target, tmp_path):
    paths, saved, out = files(source, target.assign(note="x")), tmp_path / "my m.skops", tmp_path / "p.csv"
    program, *words = shlex.split(done("adapt", *paths, *HOME, "--save-model", saved).splitlines()[-1])
    assert (program, words[-4:]) == ("spar", ["--id", "home", "-o", "again.csv"])
    result = json.loads(done(*words[:-1], out, "--label", "price", "--json"))  # the command that adapt prints
    assert result["measured"]["rows"] == 80
    assert list(pd.read_csv(out)) == ["home", "prediction", "low", "high"]
    before = out.read_bytes()
    for arguments in (("--label", "note"), ("--label", "prize"), ("--id", "hom"), ("--level", "2"), ("-o", paths[1])):
        result = spar("predict", saved, paths[1], "-o", out, *arguments)
        assert result.exit_code == 2, result.output
        assert out.read_bytes() == before
    assert len(pd.read_csv(paths[1])) == 80
    assert "must be a .skops file" in spar("predict", paths[1], paths[1], "-o", out).stderr


def test_predict_refuses_a_model_of_python(spar, source, target, tmp_path):
    X, y = source[["area", "garden"]], source["price"]
    pyspar.save(BayesSpARRegressor().fit(X, y), tmp_path / "m.skops")
    target.to_csv(tmp_path / "t.csv", index=False)
    result = spar("predict", tmp_path / "m.skops", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert result.exit_code == 2
    assert "not a model of spar adapt; write one with spar adapt --save-model" in result.stderr


def test_a_missing_category_is_a_category(done, files, source, target, tmp_path):
    target.loc[::9, "town"] = None
    text = done("adapt", *files(source, target), *HOME)
    assert "town: 0 source, 9 target, as a category of their own" in text
    assert "9 of 80 rows have categories that do not occur in the source" in text
    source.loc[::11, "town"] = None
    paths, saved = files(source, target), tmp_path / "m.skops"
    text = done("adapt", *paths, *HOME, "-o", tmp_path / "p.csv", "--save-model", saved)
    assert "do not occur in the source" not in text
    expected = pd.read_csv(tmp_path / "p.csv")["prediction"]
    done("adapt", *files(source.fillna({"town": "none"}), target.fillna({"town": "none"})), *HOME, "-o",
         tmp_path / "named.csv")  # fmt: skip
    np.testing.assert_allclose(pd.read_csv(tmp_path / "named.csv")["prediction"], expected, rtol=1e-9)
    np.testing.assert_allclose(pyspar.load(saved).predict(target), expected, rtol=1e-12)


def test_arrays_are_named_by_position(done, source, target, tmp_path):
    for name, table in (("s", source), ("t", target)):
        np.save(tmp_path / f"{name}.npy", table[["area", "garden", "price"]].to_numpy())
    np.save(tmp_path / "u.npy", target[["area", "garden"]].to_numpy())
    for number, (name, *arguments) in enumerate((("t",), ("t", "--stream"), ("u",))):
        paths = tmp_path / "s.npy", tmp_path / f"{name}.npy"
        done("adapt", *paths, "--label", "x2", *arguments, "-o", tmp_path / f"{number}.csv")
    expected, *others = (pd.read_csv(tmp_path / f"{number}.csv")["prediction"] for number in range(3))
    for each in others:
        np.testing.assert_allclose(each, expected, rtol=1e-9)


def test_inspect_prints_the_report_and_writes_the_page(done, files, source, target, tmp_path):
    paths = files(source, target)
    text = done("inspect", *paths, *HOME)
    assert "120 source, 80 target" in text
    report = json.loads(done("inspect", *paths, *HOME, "--json"))
    assert report["data"]["label"] == "price"
    assert report["outcome"]
    rng = np.random.default_rng(0)
    tables = (t.assign(same=k, rooms=rng.integers(0, 9, len(t)), customer=5000 + rng.permutation(len(t)))
              for k, t in enumerate((source, target)))  # fmt: skip
    noted = json.loads(done("inspect", *files(*tables), *HOME, "--json"))["notes"]
    assert sorted(note.partition(":")[0] for note in noted) == ["customer", "same"]
    done("inspect", *paths, *HOME, "--html", tmp_path / "r.html")
    assert "<html" in (tmp_path / "r.html").read_text()
    streamed = done("inspect", *files(source[NUMBERS], target[NUMBERS]), "--label", "price", "--stream")
    assert all(text in streamed for text in ("2 numeric", "'price' is not used"))


def test_rows_of_one_group_stay_together(done, files, source, target):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 12, 120)
    source = source.assign(who=group, price=source["price"] + 300 * rng.normal(size=12)[group])
    text = done("adapt", *files(source, target), *HOME, "--groups", "who")
    assert "3 numeric" in text  # the groups are no feature
