"""Records survive the way to a file and back, only grow, and a table says honestly where it differs."""

import errno
import os

import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments.comparison import Cell, scientific
from pyspar.paper.runs.records import Record, append_records, read_records, write_records

ONE = Record("a", "m", 1, "rmse", 0.1 + 0.2)
TWO = Record("b", "n", 2, "rmse", 1e-300, at=0.999, run="abc", spec={"lr": 0.01}, versions={"numpy": "2"})


def test_records_come_back_as_they_went(tmp_path):
    write_records(tmp_path / "r.jsonl", [ONE, TWO])
    assert read_records(tmp_path / "r.jsonl") == [ONE, TWO]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_that_did_not_come_to_be_survives_as_nan(tmp_path, value):
    write_records(tmp_path / "r.jsonl", [Record("a", "m", 1, "r", float(value))])
    (found,) = read_records(tmp_path / "r.jsonl")
    assert found.value != found.value
    assert '"value": null' in (tmp_path / "r.jsonl").read_text()  # nan and inf are no JSON


GOOD = '"task":"a","method":"m","seed":1,"metric":"r","value":1'


@pytest.mark.parametrize(
    "line",
    [
        *("not json", "[]", "", '{"task": "a"}', '{"task":"a","method":"m","seed":1,"metric":"r","v":1}'),
        *(f"{{{GOOD},{more}}}" for more in ('"at":"x"', '"at":true', '"run":3', '"spec":[]', '"versions":"2"')),
    ],
)
def test_a_line_that_is_no_record_is_named_and_the_file_left_alone(tmp_path, line):
    path = tmp_path / "r.jsonl"
    write_records(path, [ONE])
    path.write_text(path.read_text() + line + "\n")
    before = path.read_bytes()
    with pytest.raises(InputError, match="line 2: expected a record"):
        append_records(path, [TWO])
    assert path.read_bytes() == before


def test_a_file_of_records_only_grows_and_holds_each_number_once(tmp_path):
    path = tmp_path / "r.jsonl"
    append_records(path, [ONE])
    before = path.read_bytes()
    append_records(path, [ONE, TWO, TWO])
    assert path.read_bytes().startswith(before)
    assert read_records(path) == [ONE, TWO]


def test_a_last_line_that_was_cut_off_is_dropped_with_a_notice(tmp_path):
    path = tmp_path / "r.jsonl"
    append_records(path, [ONE, TWO])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    (notice,) = append_records(path, [TWO])
    assert "cut off" in notice
    assert path.read_bytes() == whole


def test_a_full_disk_loses_nothing_that_was_recorded(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    append_records(path, [ONE])
    before = path.read_bytes()
    write = os.write

    def half(handle, content):
        if len(content) > 10:
            return write(handle, content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space left"):
        append_records(path, [TWO])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("value", "printed"),
    [(2.54e6, "2.54e6"), (0.77, "0.77e0"), (12.96, "1.30e1"), (999.6, "1.00e3"), (0.0, "0.00e0"), (803.9, "8.04e2")],
)
def test_numbers_print_in_the_style_of_the_published_table(value, printed):
    assert scientific(value) == printed


def test_a_table_says_where_a_digit_differs():
    same = Cell("t", "m", ("1.00e0", "0.10e0"), ("1.00e0", "0.10e0"))
    off = Cell("t", "n", ("2.00e0", "0.30e0"), ("2.10e0", "0.40e0"), draws=25)  # 0.1 / (0.5 / 5)
    spread = Cell("t", "o", ("2.00e0", "0.10e0"), ("2.00e0", "0.20e0"), draws=25)
    alone = Cell("t", "p", ("2.00e0", "0.10e0"), ("2.00e0", "0.20e0"))
    assert [c.verdict for c in (same, off, spread, alone)] == ["same", "+1.0 SE", "+0.0 SE", "differs"]
