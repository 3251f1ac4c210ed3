"""``spar inspect``: the spectral account, and nothing written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pyspar.tables.job import Request, adapt_files, inspect_files


def test_the_worst_direction_is_named_by_its_raw_column(spar, files, source, target):
    result = spar("inspect", *files(source, target), "--label", "price", "--id", "home", "--top", 3)
    assert result.exit_code == 0, result.output
    worst = next(line for line in result.stdout.splitlines() if line.startswith("1 "))
    assert "remove" in worst
    assert "garden 100%" in worst
    assert result.stderr == ""


def test_top_limits_the_directions_shown(files, source, target):
    request = Request(*map(Path, files(source, target)), "price")
    assert len(inspect_files(request, top=2).directions) == 2


def test_directions_fall_in_expected_error_and_their_shares_sum_to_one(files, source, target):
    request = Request(*map(Path, files(source, target)), "price")
    account = inspect_files(request, top=1000)
    var = np.array([d.var for d in account.directions])
    assert (np.diff(var) <= 0).all()
    assert sum(d.share for d in account.directions) + account.mean_share == pytest.approx(1.0)
    assert len(account.directions) == account.expected.directions
    total = account.expected.rmse_before**2 * len(target)
    assert var.sum() == pytest.approx(total * (1 - account.mean_share))
    for direction in account.directions:
        assert direction.inflation == pytest.approx(direction.var / len(target))


def test_loads_of_encoded_features_are_summed_per_raw_column(files, source, target):
    columns = ["town", "price"]
    request = Request(*map(Path, files(source[columns], target[columns])), "price")
    account = inspect_files(request)
    assert account.tables.n_encoded == 3
    for direction in account.directions:
        assert direction.loads == (("town", pytest.approx(1.0)),)


def test_inspect_announces_what_adapt_does(files, source, target):
    request = Request(*map(Path, files(source, target)), "price", alpha=0.9)
    assert inspect_files(request).expected == adapt_files(request, method="spar").expected


def test_inspect_writes_nothing(spar, files, source, target, tmp_path):
    paths = files(source, target)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert spar("inspect", *paths, "--label", "price").exit_code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_target_energy_outside_the_source_is_told(spar, files, source, target):
    target["town"] = "Trier"
    out = spar("inspect", *files(source[["area", "town", "price"]], target), "--label", "price").stdout
    assert "of the target's energy is outside the source's span" in out


@pytest.mark.parametrize("verb", ["adapt", "inspect"])
def test_inspect_and_adapt_refuse_alike(spar, files, source, target, verb):
    result = spar(verb, *files(source, target), "--label", "prize")
    assert result.exit_code == 2
    assert "did you mean 'price'?" in result.stderr
