"""``spar label``, ``spar predict``, and ``spar adapt`` with target labels, groups and intervals."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import pyspar
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.label import label_files

LABEL = ("--label", "price")


@pytest.fixture
def drifted(target):
    """Return a target whose labels are larger by 200 than the source says."""
    return target.assign(price=target["price"] + 200.0)


@pytest.fixture
def unlabelled(files, source, drifted, tmp_path):
    """Write the source and the target without labels, and return both paths."""
    return files(source, drifted.drop(columns="price"))


def test_a_saved_model_chooses_the_same_rows_as_its_source(spar, unlabelled, tmp_path):
    model, paths = tmp_path / "m.skops", [tmp_path / "by_source.csv", tmp_path / "by_model.csv"]
    assert spar("adapt", *unlabelled, *LABEL, "--id", "home", "--save", model).exit_code == 0
    for first, output in zip((unlabelled[0], model), paths):
        result = spar("label", first, unlabelled[1], *LABEL, "--id", "home", "-o", output)
        assert result.exit_code == 0, result.output
    assert paths[0].read_text() == paths[1].read_text()

    assert "TargetCorrection" in result.output
    assert "source file" in result.output

    without_name = spar("label", model, unlabelled[1], "--labels", paths[1], "--json")  # the model stores its label
    assert without_name.exit_code == 2
    assert "'price'" in without_name.stderr
    for option, value in (("--drop", "area"), ("--id", "hom")):
        refused = spar("label", model, unlabelled[1], option, value)
        assert refused.exit_code == 2
        assert option in refused.stderr


def test_a_model_without_its_source_is_corrected_in_python(spar, unlabelled, drifted, tmp_path):
    path, to_label, out = tmp_path / "m.skops", tmp_path / "to_label.csv", tmp_path / "p.csv"
    assert spar("adapt", *unlabelled, *LABEL, "--id", "home", "--save", path).exit_code == 0
    assert spar("label", path, unlabelled[1], "--rows", 12, "-o", to_label).exit_code == 0
    rows = pd.read_csv(to_label)["row"]
    labels = dict(zip(rows, drifted["price"].iloc[rows]))
    model = pyspar.load(path)
    target = pd.read_csv(unlabelled[1])[model.feature_names_in_]
    pyspar.save(pyspar.TargetCorrection(model).fit(target, labels), path)
    assert spar("predict", path, unlabelled[1], "-o", out).exit_code == 0
    errors = [np.square(p - drifted["price"]).mean() for p in (model.predict(target), pd.read_csv(out)["prediction"])]
    assert errors[1] < 0.5 * errors[0]


def test_labels_of_chosen_rows_correct_the_predictions(spar, unlabelled, drifted, tmp_path):
    to_label, out, model = tmp_path / "to_label.csv", tmp_path / "p.csv", tmp_path / "m.skops"
    result = spar("label", *unlabelled, *LABEL, "--rows", 12, "--id", "home", "-o", to_label)
    assert result.exit_code == 0, result.output
    rows = pd.read_csv(to_label, dtype={"home": str})
    assert list(rows.columns) == ["row", "price", "reason", "home", "area", "garden", "lift", "town", "sold"]
    assert rows["price"].isna().all()
    assert rows["reason"].notna().all()
    assert rows["row"].is_unique
    assert rows["home"].tolist() == drifted["home"].iloc[rows["row"]].tolist()
    rows.assign(price=drifted["price"].iloc[rows["row"]].to_numpy()).to_csv(to_label, index=False)

    options = ("--id", "home", "--labels", to_label)
    assert spar("adapt", *unlabelled, *LABEL, *options, "-o", out).exit_code == 0
    before = pd.read_csv(out)
    result = spar("adapt", *unlabelled, *LABEL, *options, "--use-target-labels", "-o", out, "--save", model)
    assert result.exit_code == 0, result.output
    after = pd.read_csv(out, dtype={"home": str})
    assert list(after.columns) == ["home", "prediction", "low", "high"]
    others = ~drifted.index.isin(rows["row"])
    errors = [np.sqrt(np.mean((p["prediction"] - drifted["price"])[others] ** 2)) for p in (before, after)]
    assert errors[0] > 150
    assert errors[1] < 80
    assert ((after["low"] < drifted["price"]) & (drifted["price"] < after["high"]))[others].mean() > 0.7

    again = tmp_path / "again.csv"
    result = spar("predict", model, unlabelled[1], "--id", "home", "-o", again)
    assert result.exit_code == 0, result.output
    pd.testing.assert_frame_equal(pd.read_csv(again, dtype={"home": str}), after, rtol=1e-9)
    np.testing.assert_allclose(pyspar.load(model).predict(pd.read_csv(unlabelled[1])), after["prediction"], rtol=1e-9)


def test_target_labels_only_score_by_default(spar, files, source, drifted, tmp_path):
    known = drifted.assign(price=drifted["price"].where(drifted.index % 8 == 0))  # ten labels
    outs = []
    for table in (known, drifted.drop(columns="price")):
        outs.append(tmp_path / f"{len(outs)}.npy")
        assert spar("adapt", *files(source, table), *LABEL, "-o", outs[-1]).exit_code == 0
    np.testing.assert_array_equal(*map(np.load, outs))
    account = adapt_files(Request(*map(type(tmp_path), files(source, known)), "price"), use_target_labels=True)
    assert account.correction.n_labels == account.scored.model.n == 10
    assert account.correction.expected.rmse < account.correction.expected.rmse_uncorrected
    assert account.correction.p_value < 0.01
    lines = spar("adapt", *files(source, known), *LABEL, "--use-target-labels").stdout.splitlines()
    expected, corrected = (next(line for line in lines if line.startswith(word)) for word in ("expected", "corrected"))
    assert f"{account.after.rmse:.4g} (bayes; " in expected
    assert f"{account.correction.expected.rmse_uncorrected:.4g} (bayes) " in corrected
    assert f"{account.correction.expected.rmse:.4g} (corrected; " in corrected


def test_the_next_step_after_labels_in_another_unit_is_to_check_the_findings(spar, files, source, target):
    step = {}
    for factor in (1, 1000):
        known = target.assign(price=factor * target["price"].where(target.index % 4 == 0))
        found = json.loads(spar("adapt", *files(source, known), *LABEL, "--use-target-labels", "--json").stdout)
        step[factor] = found["next_step"]
        serious = [finding["code"] for finding in found["findings"] if finding["severity"] == "serious"]
        assert serious == ([] if factor == 1 else ["SPAR018"])
    assert "SPAR018" in step[1000]
    assert "SPAR" not in step[1]


@pytest.mark.parametrize("factor", [0.001, 1000.0])
def test_target_labels_in_another_unit_are_a_finding(spar, files, source, target, factor):
    for scale in (1.0, factor):
        known = target.assign(price=scale * target["price"].where(target.index % 4 == 0))
        found = json.loads(spar("adapt", *files(source, known), *LABEL, "--use-target-labels", "--json").stdout)
        reported = {finding["code"]: finding["severity"] for finding in found["findings"]}
        assert ("SPAR019" in reported) == (scale != 1.0)
        assert ("SPAR019" in found["next_step"]) == (scale != 1.0)
    assert reported["SPAR019"] == "warning"
    assert json.loads(spar("adapt", *files(source, known), *LABEL, "--json").stdout)["next_step"] != found["next_step"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--use-target-labels",), ("at least 3 labels", "got 0", "spar label")),
        (("--use-target-labels", "--method", "ridge"), ("ridge",)),
        (("--use-target-labels", "--stream"), ("--stream",)),
        (("--level", "1.5"), ("--level", "1.5")),
        (("--labels", "nowhere.csv"), ("nowhere.csv",)),
        (("--groups", "shp"), ("--groups", "'shp'")),
        (("--groups", "town", "--stream"), ("--groups",)),
    ],
)
def test_options_that_cannot_work_are_refused(refused, unlabelled, options, parts):
    message = refused(*unlabelled, *options)
    assert all(part in message for part in parts)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("row,price\n1,5\n1,6\n", "row 1 occurs twice"),
        ("row,price\n80,5\n", "[0, 79], got 80"),
        ("row,price\n3,5\n4,6\n5,much\n", "'much' in column 'price', row 4 "),
        ("number,price\n3,5\n", "'row'"),
    ],
)
def test_a_file_of_labels_that_does_not_fit_is_refused(refused, unlabelled, tmp_path, content, part):
    (tmp_path / "labels.csv").write_text(content)
    assert part in refused(*unlabelled, "--labels", tmp_path / "labels.csv", "--use-target-labels")


def test_labels_of_other_rows_than_those_named_are_refused(spar, refused, unlabelled, drifted, tmp_path):
    path = tmp_path / "labels.csv"
    assert spar("label", *unlabelled, *LABEL, "--id", "home", "-o", path).exit_code == 0
    rows = pd.read_csv(path, dtype={"home": str})
    options = (*unlabelled, "--id", "home", "--labels", str(path), "--use-target-labels")
    assert "all 10 labels are empty" in refused(*options)
    rows = rows.assign(price=1.0)
    other = next(row for row in range(80) if row not in set(rows["row"]))
    rows.loc[3, "row"] = other
    rows.to_csv(path, index=False)
    assert f"row {other} of the target" in refused(*options)


def test_labels_whose_ids_are_not_those_of_the_target_are_refused(spar, refused, files, source, drifted, tmp_path):
    """The rows have no numbers in common with the target, so that only the ids show that the target was sorted."""
    target, path = drifted[["home", "town"]], tmp_path / "labels.csv"
    paths = files(source[["home", "town", "price"]], target)
    assert spar("label", *paths, *LABEL, "--id", "home", "-o", path).exit_code == 0
    rows = pd.read_csv(path, dtype=str).assign(price=1.0)
    rows.to_csv(path, index=False)
    options = ("--id", "home", "--labels", str(path), "--use-target-labels")
    assert spar("adapt", *paths, *LABEL, *options).exit_code == 0
    for same in (rows["home"].astype(int), "'" + rows["home"]):  # of a spreadsheet, and of --safe-csv
        rows.assign(home=same).to_csv(path, index=False)
        assert spar("adapt", *paths, *LABEL, *options).exit_code == 0
    rows.to_csv(path, index=False)
    message = refused(*files(source[["home", "town", "price"]], target[::-1]), *options)
    first = int(rows["row"][0])
    for part in (f"column 'home': '{first:04d}' in row 2 ", f"row {first} of the target", f"'{79 - first:04d}'"):
        assert part in message
    assert "same order" in message


def test_a_file_to_label_has_the_separator_of_the_target_and_the_ids_are_printed(spar, source, drifted, tmp_path):
    paths = tmp_path / "s.csv", tmp_path / "t.csv"
    for table, path in zip((source, drifted.drop(columns="price")), paths, strict=True):
        table.to_csv(path, sep=";", decimal=",", index=False)
    model = tmp_path / "m.skops"
    assert spar("adapt", *paths, *LABEL, "--id", "home", "--save", model).exit_code == 0
    for first, name, separator in ((paths[0], "l.csv", ";"), (model, "m.csv", ";"), (paths[0], "l.tsv", "\t")):
        options = (*LABEL, "--id", "home", "--rows", 4, "-o", tmp_path / name)
        result = spar("label", first, paths[1], *options)
        assert result.exit_code == 0, result.output
        rows = pd.read_csv(tmp_path / name, sep=separator, dtype=str)
        assert list(rows.columns) == ["row", "price", "reason", "home", "area", "garden", "lift", "town", "sold"]
        assert re.findall(r"home (\S+): ", result.stdout) == rows["home"].tolist()
        assert "row 2" not in result.stdout
        chosen = json.loads(spar("label", first, paths[1], *options, "--json").stdout)["rows"]
        assert [row["id"] for row in chosen] == rows["home"].tolist()
    filled = drifted["price"].iloc[rows["row"].astype(int)].to_numpy()
    rows.assign(price=filled).to_csv(tmp_path / "l.csv", sep=";", decimal=",", index=False)
    assert spar("adapt", *paths, *LABEL, "--id", "home", "--labels", tmp_path / "l.csv").exit_code == 0


def test_predict_reads_numbers_as_adapt_does(spar, source, target, tmp_path):
    """In a file with semicolons '8,657' is a decimal number, whatever command reads it."""
    paths = tmp_path / "s.csv", tmp_path / "t.csv"
    for table, path in zip((source, target), paths, strict=True):
        area = [f"{value:.3f} €".replace(".", ",") for value in table["area"]]
        table[["price", "garden"]].assign(area=area).to_csv(path, sep=";", decimal=",", index=False)
    model, outs = tmp_path / "m.skops", (tmp_path / "a.npy", tmp_path / "b.npy")
    assert spar("adapt", *paths, *LABEL, "--save", model, "-o", outs[0]).exit_code == 0
    assert spar("predict", model, paths[1], "-o", outs[1]).exit_code == 0
    np.testing.assert_allclose(*map(np.load, outs), rtol=1e-9)


def test_predict_names_categories_that_do_not_occur_in_the_source(spar, files, source, target, tmp_path):
    model, out = tmp_path / "m.skops", tmp_path / "p.csv"
    paths = files(source, target.assign(town="Atlantis"))
    assert spar("adapt", *paths, *LABEL, "--id", "home", "--save", model).exit_code == 0
    result = spar("predict", model, paths[1], "--id", "home", "-o", out)
    assert result.exit_code == 0, result.output
    assert "Atlantis" in result.output
    batch = spar("watch", model, paths[1], "--once", "--id", "home", "--json")
    assert "Atlantis" in batch.output


def test_rows_are_spread_over_groups_and_cheap_rows_are_preferred(files, source, drifted, tmp_path):
    shops = np.repeat([1, 2, 3, 4], 20)
    target = drifted.drop(columns="price").assign(shop=shops, cost=np.where(np.arange(80) % 4, 9.0, 1.0))
    target.loc[0, "cost"] = np.nan
    paths = tuple(map(type(tmp_path), files(source, target)))
    account = label_files(Request(*paths, "price", groups="shop", cost="cost"), n=8)
    rows = account.choice.rows
    assert 0 not in rows
    assert sorted(shops[rows]) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert np.mean(target["cost"].iloc[rows] == 1.0) > 0.5
    assert {column.column for column in account.data.ignored} & {"shop", "cost"} == set()


def test_labelled_rows_are_not_chosen_again(spar, files, source, drifted, tmp_path):
    known = drifted.assign(price=drifted["price"].where(drifted.index >= 5))
    result = spar("label", *files(source, known), *LABEL, "--rows", 5, "-o", tmp_path / "l.csv")
    assert result.exit_code == 0, result.output
    assert sorted(pd.read_csv(tmp_path / "l.csv")["row"]) == [0, 1, 2, 3, 4]
    result = spar("label", *files(source, known), *LABEL, "--rows", 6, "-o", tmp_path / "m.csv")
    assert result.exit_code == 2
    assert "at most 5" in result.stderr
    assert not (tmp_path / "m.csv").exists()


def test_groups_raise_the_error_at_home_and_are_no_feature(files, source, target, tmp_path):
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(12), 10)
    table = source.assign(shop=shop, price=source["price"] + 60 * rng.normal(size=12)[shop])
    paths = tuple(map(type(tmp_path), files(table, target)))
    plain = adapt_files(Request(*paths, "price", identity="home", drop=("shop",)))
    grouped = adapt_files(Request(*paths, "price", identity="home", groups="shop"))
    assert grouped.data.n_encoded == plain.data.n_encoded
    assert grouped.judgement.home > 1.02 * plain.judgement.home


def test_streamed_intervals_equal_those_in_memory(spar, files, source, target, tmp_path):
    paths = files(source[["area", "garden", "price"]], target[["area", "garden"]])
    for name, options in (("a.csv", ()), ("b.parquet", ("--stream",)), ("c.csv", ("--no-intervals",))):
        assert spar("adapt", *paths, *LABEL, "-o", tmp_path / name, "--level", 0.8, *options).exit_code == 0
    first, second = pd.read_csv(tmp_path / "a.csv"), pd.read_parquet(tmp_path / "b.parquet")
    pd.testing.assert_frame_equal(first, second, rtol=1e-6)
    assert list(pd.read_csv(tmp_path / "c.csv").columns) == ["row", "prediction"]


def test_predict_scores_labels_and_names_what_is_wrong(spar, files, source, target, tmp_path):
    paths, model, out = files(source, target), tmp_path / "m.skops", tmp_path / "p.csv"
    assert spar("adapt", *paths, *LABEL, "--id", "home", "--save", model, "-o", out).exit_code == 0
    truth = np.sqrt(np.mean((pd.read_csv(out)["prediction"] - target["price"]) ** 2))
    result = spar("predict", model, paths[1], *LABEL, "-o", out, "--safe-csv")
    assert result.exit_code == 0, result.output
    assert f"{truth:.4g} RMSE on 80 rows" in result.stdout
    out.unlink()
    bad = target.assign(area=target["area"].astype(object))
    bad.loc[7, "area"] = "large"
    for table, part in ((target.drop(columns="town"), "'town'"), (bad, "'large' in column 'area', row 9 ")):
        result = spar("predict", model, files(source, table)[1], "-o", out)
        assert result.exit_code == 2
        assert part in result.stderr
        assert not out.exists()
    assert spar("predict", model, paths[1], "-o", out, "--bad-cells", "impute").exit_code == 0


def test_a_model_without_intervals_predicts(spar, target, tmp_path):
    numbers = target[["area", "garden"]]
    pyspar.save(LinearRegression().fit(numbers, target["price"]), tmp_path / "m.skops")
    numbers.to_csv(tmp_path / "n.csv", index=False)
    assert spar("predict", tmp_path / "m.skops", tmp_path / "n.csv", "-o", tmp_path / "p.csv").exit_code == 0
    assert list(pd.read_csv(tmp_path / "p.csv").columns) == ["row", "prediction"]


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_text_that_looks_like_a_formula_is_protected_on_request(spar, files, source, target, tmp_path, stream):
    target.loc[:4, "home"] = ["=1+1", "+cmd", "-2", "@x", "-x"]
    paths, out = files(source, target), tmp_path / "p.csv"
    for options, expected in (
        ((), ["=1+1", "+cmd", "-2", "@x", "-x"]),
        (("--safe-csv",), ["'=1+1", "'+cmd", "-2", "'@x", "'-x"]),
    ):
        result = spar("adapt", *paths, *LABEL, "--id", "home", *stream, "-o", out, *options)
        assert result.exit_code == 0, result.output
        assert pd.read_csv(out, dtype=str)["home"].tolist()[:5] == expected
    result = spar("adapt", *paths, *LABEL, "--safe-csv", "-o", tmp_path / "p.parquet")
    assert result.exit_code == 2


def test_the_output_has_the_expected_text(spar, unlabelled, drifted, tmp_path, monkeypatch, golden):
    monkeypatch.chdir(tmp_path)
    texts = []

    def run(*words):
        texts.append(f"$ spar {' '.join(words)}\n{spar(*words).output}")

    run("label", "source.csv", "target.csv", *LABEL, "--rows", "4", "--id", "home", "-o", "to_label.csv")
    rows = pd.read_csv("to_label.csv")
    rows.assign(price=drifted["price"].iloc[rows["row"]].to_numpy()).to_csv("to_label.csv", index=False)
    run("adapt", "source.csv", "target.csv", *LABEL, "--id", "home", "--labels", "to_label.csv", "--use-target-labels",
        "--save", "m.skops")  # fmt: skip
    run("predict", "m.skops", "target.csv", "-o", "p.csv")
    golden("cli-label", "\n".join(texts))
