"""``spar label`` and ``spar adapt --labels``: labels correct the model; labels of other rows are refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

HOME = ("--label", "price", "--id", "home")


@pytest.fixture
def chosen(spar, files, source, target, tmp_path):
    """Write two files and the rows to label; return the paths of source, target and rows, which are filled in."""
    paths, rows = files(source, target.drop(columns="price")), tmp_path / "rows.csv"
    result = spar("label", *paths, "--label", "price", "--drop", "home", "--rows", 12, "-o", rows)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(rows, dtype={"home": str})
    table["price"] = target["price"].to_numpy()[table["row"]] + 500.0
    table.to_csv(rows, index=False)
    return *paths, rows


def test_the_rows_to_label_are_those_of_the_target_as_in_the_file(chosen, target):
    table = pd.read_csv(chosen[2], dtype=str)
    assert list(table)[:3] == ["row", "price", "reason"]
    assert len(table) == table["row"].nunique() == 12
    expected = pd.read_csv(chosen[1], dtype=str).iloc[table["row"].astype(int)]
    assert (table["home"].to_numpy() == expected["home"].to_numpy()).all()
    assert table["area"].astype(float).to_numpy() == pytest.approx(expected["area"].astype(float).to_numpy())


@pytest.mark.parametrize("assume", [(), ("--assume", "relation"), ("--assume", "measurement")])
def test_labels_correct_the_predictions(spar, chosen, target, tmp_path, assume):
    source, unlabelled, rows = chosen
    out = tmp_path / "p.csv"
    arguments = ("adapt", source, unlabelled, *HOME, "-o", out, "--json", *assume)
    before = spar(*arguments)
    assert ("an aligned model has no forecast" in before.stdout) == ("measurement" in assume)
    plain = pd.read_csv(out)["prediction"]
    result = spar(*arguments, "--labels", rows, "--save-model", tmp_path / "m.skops")
    assert result.exit_code == 0, result.output
    truth = target["price"] + 500.0
    assert np.abs(pd.read_csv(out)["prediction"] - truth).mean() < 0.5 * np.abs(plain - truth).mean()
    correction, expected = (json.loads(result.stdout)[name] for name in ("correction", "expected"))
    assert expected["before"] > 2.0 * expected["rmse"], "the labels show the error without a correction"
    assert correction["labels"] == 12
    assert list(correction["candidates"]) == ([assume[1]] if assume else ["relation", "measurement"])
    assert (correction["chosen"] in ("relation", "measurement")) == (not assume)
    predicted = spar("predict", tmp_path / "m.skops", unlabelled, "-o", tmp_path / "q.csv", "--id", "home")
    assert predicted.exit_code == 0, predicted.output
    np.testing.assert_allclose(pd.read_csv(tmp_path / "q.csv")["prediction"], pd.read_csv(out)["prediction"], rtol=1e-9)


def test_labels_of_a_file_are_not_mixed_with_those_of_the_target_unless_asked(spar, chosen, target):
    source, path, rows = chosen
    table = pd.read_csv(path, dtype={"home": str}).assign(price=target["price"].to_numpy())
    table.to_csv(path, index=False)
    arguments = ("adapt", source, path, *HOME, "--labels", rows, "--json")
    result = json.loads(spar(*arguments).stdout)
    assert result["correction"]["labels"] == 12
    assert any("80 labels" in note and "not used" in note for note in result["notes"])
    assert json.loads(spar(*arguments, "--use-target-labels").stdout)["correction"]["labels"] == 80


def test_labels_of_the_target_score_or_correct(spar, files, source, target):
    target.loc[12:, "price"] = None
    paths = files(source, target)
    scored = json.loads(spar("adapt", *paths, *HOME, "--json").stdout)
    assert scored["measured"]["rows"] == 12
    assert scored["correction"] is None
    corrected = json.loads(spar("adapt", *paths, *HOME, "--use-target-labels", "--json").stdout)
    assert corrected["correction"]["labels"] == 12
    assert corrected["measured"] is None
    text = spar("adapt", *paths, *HOME, "--use-target-labels", "--assume", "relation").stdout
    assert "with 12 target labels\n" in text  # no assumption was chosen


def sort_target(chosen):
    pd.read_csv(chosen[1], dtype=str).sort_values("garden").to_csv(chosen[1], index=False)


def scale(formula):
    def apply(chosen):
        source = pd.read_csv(chosen[0])["price"]
        table = pd.read_csv(chosen[2], dtype={"home": str})
        table.assign(price=eval(formula, {"source": source, "price": table["price"]})).to_csv(chosen[2], index=False)

    return apply


def change(column, value, row=3):
    def apply(chosen):
        table = pd.read_csv(chosen[2], dtype=str)
        table.loc[row, column] = value
        table.to_csv(chosen[2], index=False)

    return apply


FAULTS = {
    "sorted target": (sort_target, r"differs from .* of the target; pass the target that spar label was used with"),
    "one other cell": (change("town", "Rom"), r"column 'town': 'Rom' in row 5 .* differs from"),
    "row beyond the target": (change("row", "80"), "no row of the target has the number '80'"),
    "fraction of a row": (change("row", "1.5"), "no row of the target has the number '1.5'"),
    "text as a label": (change("price", "many"), r"'many' in column 'price', row 5"),
    "thousands": (change("price", "2,000"), r"'2,000' in column 'price'"),
    "no labels": (lambda c: pd.read_csv(c[2]).assign(price=None).to_csv(c[2], index=False), "'price': all 12 labels"),
    "no rows": (lambda c: pd.read_csv(c[2]).drop(columns="row").to_csv(c[2], index=False), "no column 'row'"),
    "another unit": (scale("1000 * price"), "another scale"),
    "a small unit": (scale("0.001 * price + 1.1 * source.max()"), "another scale"),
    "twice": (lambda c: pd.concat([pd.read_csv(c[2], dtype=str)] * 2).to_csv(c[2], index=False), "'38', '38'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_labels_that_do_not_belong_to_the_target_are_refused(spar, chosen, tmp_path, fault):
    spoil, message = FAULTS[fault]
    spoil(chosen)
    arguments = ("--label", "price", "--drop", "home", "--labels", chosen[2], "-o", tmp_path / "p.csv")
    result = spar("adapt", chosen[0], chosen[1], *arguments)
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert not (tmp_path / "p.csv").exists()


def test_unique_ids_find_rows_in_any_order(spar, chosen, tmp_path):
    arguments = ("adapt", chosen[0], chosen[1], *HOME, "--labels", chosen[2], "-o", tmp_path / "p.csv")
    assert spar(*arguments).exit_code == 0
    expected = pd.read_csv(tmp_path / "p.csv", index_col="home")["prediction"]
    sort_target(chosen)
    assert spar(*arguments).exit_code == 0
    got = pd.read_csv(tmp_path / "p.csv", index_col="home")["prediction"]
    np.testing.assert_allclose(got[expected.index], expected, rtol=1e-6)
    change("home", "9999")(chosen)
    result = spar(*arguments)
    assert result.exit_code == 2
    assert "no row of the target has the id '9999'" in result.stderr
    pd.read_csv(chosen[1], dtype=str).replace("0001", "7").to_csv(chosen[1], index=False)
    pd.read_csv(chosen[2], dtype=str).drop(columns="row").to_csv(chosen[2], index=False)
    assert re.search(r"no column 'row'.* ids '0007', '7' are not unique", spar(*arguments).stderr)


@pytest.mark.parametrize("sep", [",", ";"])
def test_reformatted_numbers_are_the_same_cells(spar, chosen, sep):
    table = pd.read_csv(chosen[2])  # numbers lose digits and ids their leading zeros, as in a spreadsheet
    table["area"] = table["area"].map("{:.8g}".format)
    table.drop(columns="home").to_csv(chosen[2], index=False, sep=sep)
    for path in chosen[:2]:
        pd.read_csv(path, dtype=str).to_csv(path, index=False, sep=";")
    arguments = ("--label", "price", "--drop", "home", "--sep", ";")
    result = spar("adapt", chosen[0], chosen[1], *arguments, "--labels", chosen[2])
    assert result.exit_code == 0, result.output


def test_labelled_rows_are_not_chosen_again(spar, files, source, target):
    target.loc[::2, "price"] = None
    arguments = ("label", *files(source, target), *HOME, "--json", "--rows")
    chosen = [each["row"] for each in json.loads(spar(*arguments, 8).stdout)["label_rows"]]
    assert all(row % 2 == 0 for row in chosen)
    assert spar(*arguments, 41).exit_code == 2
    assert spar(*arguments, 0).exit_code == 2
    renamed = files(*(table.rename(columns={"home": "row"}) for table in (source, target)))
    refused = spar("label", *renamed, "--label", "price", "--id", "row", "-o", renamed[0].replace("source", "rows"))
    assert "--id must not be 'row'" in refused.stderr
