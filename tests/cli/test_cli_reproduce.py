"""``spar reproduce``: what it lists, what it refuses, and where it writes."""

import sys
from dataclasses import replace

import pytest

from pyspar.errors import MissingDataError
from pyspar.paper.experiments.suite import suite_names


def test_without_a_name_the_suites_are_listed_with_whether_their_data_is_here(spar):
    shown = spar("reproduce")
    assert shown.exit_code == 0
    for name in suite_names():
        assert name in shown.stdout
    assert "ready" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tabluar"], "did you mean 'tabular'"),
        (["all", "tabluar"], "did you mean 'tabular'"),
        (["table1", "nothing-like-it"], "There are: alpha, chair-angles"),
        (["tabular", "--jobs", "0"], "--jobs must be at least 1. Got 0."),
        (["tabular", "--device", "gpu"], "'gpu' is not one of 'cpu', 'cuda'"),
        (["tabular", "--seeds", "-3"], "--seeds must be at least 1. Got -3."),
        (["tabular", "--data", "/nowhere/at/all"], "must be a folder with data sets"),
    ],
)
def test_what_cannot_be_begun_is_refused_before_anything_is_written(spar, tmp_path, arguments, said):
    shown = spar("reproduce", *arguments, "--out", tmp_path / "out")
    assert shown.exit_code == 2
    assert said in shown.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_clear_message(spar, tmp_path):
    (tmp_path / "file").write_text("")
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path / "file")
    assert shown.exit_code == 2
    assert str(tmp_path / "file") in shown.stderr
    assert "Traceback" not in shown.output


def test_a_corrupt_line_is_named_and_nothing_is_lost(spar, tmp_path):
    pytest.importorskip("torch")
    records = tmp_path / "alpha" / "records.jsonl"
    records.parent.mkdir()
    records.write_text('{"task": "skillcraft", "method": "E\n')
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path)
    assert shown.exit_code == 2
    assert "records.jsonl, line 1: expected a record" in shown.stderr
    assert records.read_text() == '{"task": "skillcraft", "method": "E\n'
    assert not (tmp_path / "runs").exists()


def test_a_full_disk_stops_with_one_message_and_keeps_what_was_done(spar, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from pyspar.paper.runs import run as stage

    train = stage.train

    def full(spec, *rest):
        if spec.task == "communities-and-crime":
            raise OSError(28, "No space left on device")
        return train(spec, *rest)

    monkeypatch.setattr(stage, "train", full)
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path)
    assert shown.exit_code == 2
    assert "No space left on device" in shown.stderr
    assert "run the same command again" in shown.stderr
    kept = (tmp_path / "alpha" / "records.jsonl").read_bytes()
    assert kept
    monkeypatch.setattr(stage, "train", train)
    assert spar("reproduce", "alpha", "--mini", "--out", tmp_path).exit_code == 0
    assert (tmp_path / "alpha" / "records.jsonl").read_bytes().startswith(kept)


def test_data_that_is_not_here_skips_its_rows_with_the_way_to_get_it(spar, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from pyspar.paper.runs import run as stage

    def missing(spec, folder):
        raise MissingDataError(f"The data set {spec.task!r} was not found. Get it with: a shovel")

    monkeypatch.setattr(stage, "run_data", missing)
    shown = spar("reproduce", "povertymap", "--out", tmp_path, "--seeds", "1")
    assert shown.exit_code == 1
    assert (
        shown.stdout.count("povertymap: skipped. The data set 'povertymap' was not found. Get it with: a shovel") == 1
    )
    assert "a shovel" in (tmp_path / "povertymap" / "table.md").read_text()


def test_tables_are_printed_and_the_files_named(spar, tmp_path):
    pytest.importorskip("torch")
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path)
    assert shown.exit_code == 0
    assert "ERM + SpAR" in shown.stdout
    assert f"wrote {tmp_path / 'alpha' / 'table.md'}" in shown.stdout


@pytest.fixture
def changed(tmp_path):
    """A folder in which one data file is not what was measured."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "SkillCraft1_Dataset.csv").write_text("GameID,LeagueIndex\n1,1\n")
    return folder


def test_a_changed_data_file_skips_what_needs_it_with_both_sums_and_nothing_else(spar, tmp_path, changed, monkeypatch):
    pytest.importorskip("torch")
    from pyspar.paper.data import load
    from pyspar.paper.runs import run as stage

    real = stage.run_data

    def half_generated(spec, folder):
        return load(spec.task, folder=folder) if spec.task == "skillcraft" else real(spec, folder)

    monkeypatch.setattr(stage, "run_data", half_generated)
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path / "out", "--data", changed)
    assert shown.exit_code == 1
    assert "skillcraft: skipped." in shown.stdout
    assert "expected sha256 9201edfe" in shown.stdout
    text = (tmp_path / "out" / "alpha" / "table.md").read_text()
    assert "expected sha256 9201edfe" in text
    assert "**communities-and-crime**" in text


def test_a_changed_data_file_does_not_keep_suites_from_naming_their_runs(changed):
    from pyspar.paper.experiments.suite import suite_named
    from pyspar.paper.runs.run_suite import Options

    options = Options(data=changed)
    assert {spec.task for spec in options.specs(suite_named("alpha"))} == {"skillcraft", "communities-and-crime"}


def test_the_listing_says_which_data_is_changed(spar, changed):
    shown = spar("reproduce", "--data", changed)
    assert shown.exit_code == 0
    assert "changed skillcraft" in shown.stdout


def test_a_synthetic_suite_draws_as_often_as_asked(spar, tmp_path):
    from pyspar.paper.runs.records import read_records

    shown = spar("reproduce", "table1", "--seeds", "2", "--out", tmp_path)
    assert shown.exit_code == 0
    records = read_records(tmp_path / "table1" / "records.jsonl")
    assert {r.seed for r in records} == {123, 124}
    assert len(records) == 5 * 3 * 2
    assert "--seeds 2: so many draws" in shown.stderr


def test_without_a_terminal_progress_is_lines_on_stderr(spar, tmp_path):
    pytest.importorskip("torch")
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path)
    assert "alpha: skillcraft, ERM, 2 seeds: begins" in shown.stderr
    assert "alpha: skillcraft, ERM, 2 seeds: epoch 1 of 2" in shown.stderr
    assert "alpha: skillcraft, ERM, 2 seeds: done" in shown.stderr


def test_without_torch_the_runs_are_skipped_with_what_brings_it(spar, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pyspar.nn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path)
    assert shown.exit_code == 1
    assert "This needs the package 'torch'. Install it with: pip install 'pyspar[torch]'" in " ".join(
        shown.stdout.split()
    )


def test_images_on_a_cpu_are_a_warning_before_the_wait_and_tables_are_not(tmp_path):
    from pyspar.paper.experiments.reproduce import cautions, chosen_suites
    from pyspar.paper.runs.run_suite import Options

    suites = chosen_suites(["tabular", "rcf-mnist"])
    (said,) = cautions(suites, Options(out=tmp_path))
    assert said.startswith("rcf-mnist: training on images takes many hours on a CPU")
    assert cautions(suites, Options(out=tmp_path, mini=True)) == []


@pytest.mark.parametrize("suite", ["table1", "tabular", "rank-cut"])
def test_eighty_columns_break_no_word_of_a_table(capsys, monkeypatch, suite):
    from pyspar.cli import show_paper as show_bench
    from pyspar.paper.experiments.reproduce import kind_of
    from pyspar.paper.experiments.suite import suite_named
    from pyspar.paper.experiments.synthetic import HUNDRED, TABLE_1
    from pyspar.paper.experiments.table1 import measure
    from pyspar.paper.output.tables import Result
    from pyspar.paper.runs.records import Record

    monkeypatch.setenv("COLUMNS", "80")
    made = suite_named(suite)
    records = [
        Record(
            block.tasks[0], f"{method}{' + ' * (head != 'trained')}{head.removeprefix('trained')}", seed, m, 11.0 + seed
        )
        for block in made.blocks
        for method in block.methods
        for head in made.heads
        for seed in range(3)
        for m in made.metrics
    ] or [r for e in (*TABLE_1, HUNDRED) for r in measure(replace(e, repeats=2))]
    sheets, _ = kind_of(made).present(made, records)
    show_bench.reproduction(Result(suite, suite, sheets))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    shown = {word for line in lines for word in line.replace("┃", "│").replace("│", " ").split()}
    meant = {word for sheet in sheets for row in (sheet.header, *sheet.rows) for cell in row for word in cell.split()}
    assert meant <= shown


def test_names_are_folded_and_not_cut_in_a_narrow_terminal(capsys, monkeypatch):
    from pyspar.cli import show_paper as show_bench
    from pyspar.paper.output.tables import Result, Sheet

    monkeypatch.setenv("COLUMNS", "80")
    header = tuple(f"a header of column {i}" for i in range(8))
    name = "communities-and-crime-in-a-long-word"
    show_bench.reproduction(Result("x", "x", [Sheet("t", header, [(name,) * 8])]))
    shown = capsys.readouterr().out
    assert "…" not in shown
    cells = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    assert name in "".join(cells)
