"""Records survive the way to a file and back, and a table says honestly where it differs."""

import pytest

from pyspar.bench.comparison import Cell, as_csv, as_markdown, scientific
from pyspar.bench.records import Record, read_records, write_records


def test_records_come_back_as_they_went(tmp_path):
    records = [Record("a", "m", 1, "rmse", 0.1 + 0.2), Record("b", "n", 2, "rmse", 1e-300)]
    write_records(tmp_path / "r.jsonl", records)
    assert read_records(tmp_path / "r.jsonl") == records


@pytest.mark.parametrize("line", ["not json", '{"task": "a"}', '{"task":"a","method":"m","seed":1,"metric":"r","v":1}'])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = tmp_path / "r.jsonl"
    write_records(path, [Record("a", "m", 1, "rmse", 0.5)])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match="line 2: expected a record"):
        read_records(path)


@pytest.mark.parametrize(
    ("value", "printed"),
    [(2.54e6, "2.54e6"), (0.77, "0.77e0"), (12.96, "1.30e1"), (999.6, "1.00e3"), (0.0, "0.00e0"), (803.9, "8.04e2")],
)
def test_numbers_print_in_the_style_of_the_published_table(value, printed):
    assert scientific(value) == printed


def test_a_table_says_where_a_digit_differs():
    same = Cell("t", "m", ("1.00e0", "0.10e0"), ("1.00e0", "0.10e0"))
    off = Cell("t", "n", ("2.00e0", "0.10e0"), ("2.10e0", "0.10e0"))
    spread = Cell("t", "o", ("2.00e0", "0.10e0"), ("2.00e0", "0.20e0"))
    assert [c.verdict for c in (same, off, spread)] == ["same", "+5.00 %", "+0.00 %"]
    assert "| t | n | 2.00e0 ± 0.10e0 | 2.10e0 ± 0.10e0 | +5.00 % |" in as_markdown([same, off])
    assert as_csv([off]).splitlines()[1] == "t,n,2.00e0,0.10e0,2.10e0,0.10e0,+5.00 %"
