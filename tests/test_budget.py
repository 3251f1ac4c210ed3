"""The size of the repository: the lines of each package, words of the site and bytes of records.

``pytest tests/test_budget.py --update-golden`` writes the table into ARCHITECTURE.md. Its numbers are rounded up to two
digits, so that small changes do not change it.
"""

import subprocess
import sys
from collections.abc import Callable
from math import ceil, floor, log10
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
START, END = "<!-- size -->\n", "<!-- end of size -->"

if not (ROOT / ".git").exists():
    pytest.skip("needs a repository", allow_module_level=True)


class Limit(NamedTuple):
    name: str
    measure: Callable[[], float]
    most: float
    unit: str


def tracked(*folders: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", "--", *folders], cwd=ROOT, capture_output=True, check=True).stdout
    return [path for name in listed.decode().split("\0") if name and (path := ROOT / name).is_file()]


def lines(*folders: str, suffixes: tuple[str, ...] = (".py",)) -> int:
    files = [path for path in tracked(*folders) if path.suffix in suffixes]
    return sum(path.read_bytes().count(b"\n") for path in files)


def megabytes(*folders: str) -> float:
    return sum(path.stat().st_size for path in tracked(*folders)) / 1e6


def words() -> int:
    pages = [path for path in tracked("docs", "README.md") if path.suffix == ".md"]
    return sum(len(path.read_text(encoding="utf-8").split()) for path in pages)


def of_packages(*names: str) -> Callable[[], int]:
    return lambda: lines(*(f"src/pyspar/{name}" for name in names))


def outside_paper() -> int:
    return lines("src/pyspar") - lines("src/pyspar/paper")


PACKAGES = {
    "`core/`, `theory.py`": (("core", "theory.py"), 2_400),
    "`estimators/`": (("estimators",), 2_200),
    "`report/`": (("report",), 1_100),
    "`sources/`": (("sources",), 800),
    "`nn/`": (("nn",), 1_500),
}
NAMED = [name for names, _ in PACKAGES.values() for name in names]


def other_packages() -> int:
    """Return the lines of the command line and of the modules at the top level."""
    return outside_paper() - of_packages(*NAMED)()


LIMITS = [
    *(Limit(title, of_packages(*names), most, "lines") for title, (names, most) in PACKAGES.items()),
    Limit("`cli/` and the modules at the top level", other_packages, 2_000, "lines"),
    Limit("all outside `paper/`", outside_paper, 10_000, "lines"),
    Limit("`paper/`", of_packages("paper"), 7_000, "lines"),
    Limit("`tests/`", lambda: lines("tests"), 18_000, "lines"),
    Limit("`benchmarks/`, the table of data sets included", lambda: lines("benchmarks", suffixes=(".py", ".tsv")),
          10_000, "lines"),
    Limit("`benchmarks/results/`", lambda: megabytes("benchmarks/results"), 4, "MB"),
    Limit("`results/`", lambda: megabytes("results"), 6, "MB"),
    Limit("all tracked files", megabytes, 25, "MB"),
    Limit("`docs/` and README", words, 35_000, "words"),
]  # fmt: skip


def round_up(value: float) -> str:
    """Return a number rounded up to two digits.

    >>> round_up(2345.0), round_up(0.321), round_up(0)
    ('2,400', '0.33', '0')
    """
    if not value:
        return "0"
    unit = 10.0 ** (floor(log10(value)) - 1)
    return f"{round(ceil(round(value / unit, 6)) * unit, 6):,.10g}"


def table() -> str:
    rows = [f"| {x.name} | {round_up(x.measure())} {x.unit} | {x.most:,} {x.unit} |" for x in LIMITS]
    return "\n".join(["| part | size | at most |", "|---|---|---|", *rows]) + "\n"


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_a_part_stays_within_its_budget(limit):
    size = limit.measure()
    sys.stdout.write(f"{limit.name}: {size:,.6g} of {limit.most:,} {limit.unit}\n")  # shown with pytest -rA
    assert size <= limit.most, f"{limit.name} has {size:,.6g} {limit.unit}; delete something of the same size"


def test_the_table_in_the_architecture_is_current(request):
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(START)
    shown, _, tail = rest.partition(END)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(head + START + table() + END + tail, encoding="utf-8")
    else:
        assert shown == table()
