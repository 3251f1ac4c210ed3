"""``spar inspect``: the spectral account, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pyspar.tables.job import Request, adapt_files, inspect_files


def test_the_worst_direction_is_named_by_its_raw_column(spar, files, source, target):
    result = spar("inspect", *files(source, target), "--label", "price", "--id", "home", "--top", 3)
    assert result.exit_code == 0, result.output
    worst = next(line for line in result.stdout.splitlines() if line.startswith("1 "))
    assert "remove" in worst
    assert "garden 100 %" in worst
    assert result.stderr == ""


def test_top_limits_the_directions_shown(spar, files, source, target):
    out = spar("inspect", *files(source, target), "--label", "price", "--top", 2).stdout
    assert [line[:2] for line in out.splitlines() if line[:2] in ("1 ", "2 ", "3 ")] == ["1 ", "2 "]


def test_directions_fall_in_cost_and_are_counted_alike_in_terminal_json_and_page(spar, files, source, target, tmp_path):
    html, data = tmp_path / "r.html", tmp_path / "r.json"
    result = spar("inspect", *files(source, target), "--label", "price", "--report", html, "--json", data)
    assert result.exit_code == 0, result.output
    directions = json.loads(data.read_text(encoding="utf-8"))["outputs"][0]["directions"]
    keeping = np.array([d["keeping"] for d in directions])
    assert (np.diff(keeping) <= 0).all()
    gone = sum(d["goes"] for d in directions)
    assert 0 < gone < len(directions)
    assert f"would remove {gone} of {len(directions)} target directions" in " ".join(result.stdout.split())
    assert f'<strong class="count">{gone}</strong> of {len(directions)} directions' in html.read_text(encoding="utf-8")


def test_loads_of_encoded_features_are_summed_per_raw_column(files, source, target):
    columns = ["town", "price"]
    request = Request(*map(Path, files(source[columns], target[columns])), "price")
    account = inspect_files(request)
    assert account.tables.n_encoded == 3
    for direction in account.inspection.outputs[0].directions:
        assert direction.loads == (("town", pytest.approx(1.0)),)


@pytest.mark.parametrize("alpha", [None, 0.9])
def test_adapt_and_inspect_forecast_the_same_of_the_same_files(spar, files, source, target, alpha):
    paths = files(source, target)
    request = Request(*map(Path, paths), "price", alpha=alpha)
    expected = adapt_files(request).expected
    output = inspect_files(request).inspection.outputs[0]
    for one, other in ((expected.before, output.forecast("OLS")), (expected.after, output.forecast("Bayes-SpAR"))):
        # The same weights, but for rounding, drawn upon with the same seed.
        assert one.rmse == pytest.approx(other.rmse, rel=1e-9)
        assert one.interval95 == pytest.approx(other.interval95, rel=1e-9)
    assert expected.outside == pytest.approx(inspect_files(request).inspection.outside_energy, rel=1e-9)
    given = () if alpha is None else ("--alpha", alpha)
    for verb in ("adapt", "inspect"):
        out = spar(verb, *paths, "--label", "price", *given).stdout
        assert f"{output.forecast('OLS').rmse:.4g}" in out
        assert f"{output.forecast('Bayes-SpAR').rmse:.4g}" in out


def test_inspect_announces_what_the_paper_s_method_does(files, source, target):
    request = Request(*map(Path, files(source, target)), "price")
    expected = adapt_files(request, method="spar").expected
    output = inspect_files(request).inspection.outputs[0]
    assert sum(direction.goes for direction in output.directions) == expected.removed > 0
    assert len(output.directions) == expected.directions
    assert output.forecast("SpAR").rmse == pytest.approx(expected.after.rmse, rel=1e-9)


def test_inspect_writes_nothing(spar, files, source, target, tmp_path):
    paths = files(source, target)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert spar("inspect", *paths, "--label", "price").exit_code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_target_energy_outside_the_source_is_told(spar, files, source, target):
    target["town"] = "Trier"
    out = spar("inspect", *files(source[["area", "town", "price"]], target), "--label", "price").stdout
    assert " ".join(out.split()).count("of the target's variation") == 1
    assert "SPAR003" in out


@pytest.mark.parametrize("verb", ["adapt", "inspect"])
def test_inspect_and_adapt_refuse_alike(spar, files, source, target, verb):
    result = spar(verb, *files(source, target), "--label", "prize")
    assert result.exit_code == 2
    assert "did you mean 'price'?" in result.stderr
