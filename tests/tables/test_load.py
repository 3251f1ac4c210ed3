"""Tables in memory: imputed values, unseen categories, dates of the target, and labels."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from pyspar.errors import InputError
from pyspar.tables.columns import CONSTANT, describe_other_values
from pyspar.tables.inputs import Ignored, Request
from pyspar.tables.load import load_files
from pyspar.tables.write import Output
from pyspar.terminal import SILENT

FORMATS = ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y"]


@pytest.fixture
def load(files):
    def run(source, target, **options):
        return load_files(Request(*map(Path, files(source, target)), "price", **options), SILENT)

    return run


def encoded_source(inputs):
    return inputs.fit(SimpleNamespace(fit=lambda X, y: X))


def reformat(table, layout):
    return table.assign(sold=pd.to_datetime(table["sold"]).dt.strftime(layout))


def test_missing_values_are_imputed_and_counted(load, source, target):
    source.loc[:4, ["area", "sold"]] = None
    target.loc[:1, ["area", "sold"]] = None
    target.loc[:2, "town"] = None
    inputs = load(source, target, identity="home")
    counts = {column.column: (column.source, column.target) for column in inputs.data.imputed}
    assert counts == {"area": (5, 2), "town": (0, 3), "sold": (5, 2)}
    values = {column.column: column.value for column in inputs.data.imputed}
    assert f"{source['area'].mean():.4g}" in values["area"]
    assert repr(source["town"].mode()[0]) in values["town"]
    np.testing.assert_allclose(encoded_source(inputs)[:5, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(inputs.target.features[:2, 0], 0.0, atol=1e-12)


def test_missing_categories_of_the_source_are_a_separate_category(load, source, target):
    source.loc[:3, "town"] = None
    target.loc[0, "town"] = None
    inputs = load(source[["town", "price"]], target[["town"]])
    assert inputs.data.n_encoded == 4
    np.testing.assert_array_equal(inputs.target.features[0], encoded_source(inputs)[0])


@pytest.mark.parametrize("column", ["garden", "town", "sold"])
def test_a_column_without_values_in_the_target_is_noted(load, source, target, column):
    notes = load(source, target.assign(**{column: np.nan}), identity="home").notes
    assert [note.partition(":")[0] for note in notes] == [column]


def test_unseen_categories_are_counted(load, source, target):
    target.loc[:2, "town"] = "Trier"
    (unseen,) = load(source, target).data.unseen.columns
    assert (unseen.column, unseen.rows, unseen.categories) == ("town", 3, ("Trier",))


def test_categories_that_look_like_numbers_are_compared_as_text(load, source, target):
    source["town"] = np.where(source["town"] == "Ulm", "x", "007")
    assert load(source, target.assign(town="007")).data.unseen.rows == 0


@pytest.mark.parametrize("layout", FORMATS)
def test_dates_are_encoded_alike_in_every_format(load, source, target, layout):
    expected = load(source, target).target.features
    inputs = load(reformat(source, layout), reformat(target, layout))
    assert inputs.data.n_date == 1
    np.testing.assert_allclose(inputs.target.features, expected, rtol=1e-12)


def test_an_impossible_date_among_dates_is_a_bad_cell(load, source, target):
    table = reformat(source, "%d.%m.%Y")
    table.loc[3, "sold"] = "31.02.2019"
    with pytest.raises(InputError, match=r"'31\.02\.2019' in column 'sold', row 5 .*data row 3 "):
        load(table, reformat(target, "%d.%m.%Y"))
    data = load(table, reformat(target, "%d.%m.%Y"), bad_cells="impute").data
    assert data.n_date == 1
    assert [(column.column, column.source) for column in data.imputed] == [("sold", 1)]


@pytest.mark.parametrize("other", [layout for layout in [*FORMATS, "%d/%m/%Y"] if layout != "%Y-%m-%d"])
def test_target_dates_in_another_format_are_refused(load, source, target, other):
    with pytest.raises(InputError, match=r"target\.csv', column 'sold': .*YYYY-MM-DD"):
        load(source, reformat(target, other))
    if other in FORMATS:
        with pytest.raises(InputError, match=r"target\.csv', column 'sold': "):
            load(reformat(source, other), target)


def test_target_dates_are_new_categories_if_the_dates_of_the_source_are_text(load, source, target):
    inputs = load(source.assign(sold=np.where(source["lift"], "03/04/2021", "05/06/2021")), target)
    assert inputs.data.unseen.rows == len(target)
    assert any(note.startswith("sold: ") and "YYYY-MM-DD" in note for note in inputs.notes)


def test_labels_of_the_target_are_read_with_nan_for_missing_ones(load, source, target):
    target.loc[3, "price"] = np.nan
    labels = load(source, target).target.labels
    np.testing.assert_allclose(labels, target["price"], rtol=1e-12)
    assert load(source, target.drop(columns="price")).target.labels is None
    assert load(source, target.assign(price=np.nan)).target.labels is None


def test_text_instead_of_target_labels_is_noted(load, source, target):
    inputs = load(source, target.assign(price="to come"), identity="home")
    assert inputs.target.labels is None
    (note,) = inputs.notes
    assert "'price'" in note
    assert "'to come' in row 0" in note


@pytest.mark.parametrize("value", ["much", np.inf])
def test_an_error_in_the_label_does_not_suggest_to_drop_the_column(load, source, target, value):
    source["price"] = source["price"].astype(object)
    source.loc[4, "price"] = value
    with pytest.raises(InputError, match=r"source\.csv'.* column 'price'.*row 6 .*data row 4 ") as error:
        load(source, target)
    assert "--drop price" not in str(error.value)


def test_dropped_columns_are_not_used(load, source, target):
    data = load(source, target, drop=("home", "town", "sold")).data
    assert (data.n_numeric, data.n_categorical, data.n_date) == (3, 0, 0)
    assert [column.column for column in data.ignored] == ["home", "town", "sold"]


def test_a_column_of_one_file_can_be_dropped(load, source, target):
    rows = target.drop(columns="garden").assign(agent="x")
    data = load(source, rows, identity="home", drop=("garden", "agent")).data
    assert [column.column for column in data.ignored] == ["garden"]
    data = load(source, target.assign(agent="x"), identity="home").data
    assert [column.column for column in data.ignored] == ["agent"]


def test_an_id_column_of_the_target_alone_is_enough(load, source, target, tmp_path):
    inputs = load(source.drop(columns="home"), target, identity="home")
    assert inputs.data.ignored == ()
    model = inputs.fit(LinearRegression())
    inputs.target.predict_and_score([model], Output(tmp_path / "predictions.csv"), SILENT)
    written = pd.read_csv(tmp_path / "predictions.csv", dtype={"home": target["home"].dtype})
    assert written["home"].tolist() == target["home"].tolist()


def test_values_that_overflow_when_standardised_are_refused(load, source, target, monkeypatch):
    from pyspar.tables import columns as module

    monkeypatch.setattr(module, "MAX_MAGNITUDE", np.inf)
    target.loc[0, "area"] = 1.7e308
    source["area"] *= 1e-20
    with pytest.raises(InputError, match="target, column 'area'"):
        load(source, target)


@pytest.mark.parametrize("days", [-400, 0, 1, 400])
def test_a_target_that_is_later_than_the_source_is_noted(load, source, target, days):
    last = pd.Timestamp(source["sold"].max())
    sold = [(last + pd.Timedelta(days=days + j % 7)).strftime("%Y-%m-%d") for j in range(len(target))]
    notes = load(source, target.assign(sold=sold), identity="home").notes
    assert any("sold" in note and "later" in note for note in notes) == (days > 0)


@pytest.mark.parametrize("types", [(np.float32, np.float64), (np.float64, np.float32)])
def test_a_constant_column_may_be_float32_in_one_table(types):
    source, target = (pd.DataFrame({"extra": np.full(5, 0.1, dtype)}) for dtype in types)
    ignored = Ignored("extra", f"{CONSTANT} (0.1)")
    assert describe_other_values(ignored, source, target) is None
    target.loc[0, "extra"] = 0.1001
    assert "1 of 5 target rows has another value" in str(describe_other_values(ignored, source, target))


@pytest.mark.parametrize(
    ("known", "same", "others"),
    [(5, 5.0, [6]), ("DE", "DE", ["FR", "AT"]), ("2020-01-31", "2020-01-31", ["2021-01-31"])],
)
def test_other_values_of_a_constant_column_are_noted(load, source, target, known, same, others):
    source["extra"], target["extra"] = known, pd.Series([same] * len(target), dtype=object)
    assert "extra" not in str(load(source, target).notes)
    target.loc[0, "extra"] = None
    for row, value in enumerate(others, 1):
        target.loc[row, "extra"] = value
    (note,) = [note for note in load(source, target).notes if "extra" in note]
    count = f"{len(others)} of {len(target)} target rows"
    assert f"extra: constant in the source, but {count}" in note
    assert not [note for note in load(source, target, drop=("extra",)).notes if "extra" in note]
