"""What a pipe sees of a suite: few lines, in the words of what is done, and what was not done again."""

import pytest

from pyspar.paper.experiments.reproduce import reproduce
from pyspar.paper.experiments.suite import suite_named
from pyspar.paper.output.lines import Lines


def said_of(step, total, first=1):
    said = []
    lines = Lines(said.append)
    lines.started("k", "run", step)
    for done in range(first, total + 1):
        lines.advanced("k", done, total)
    lines.ended("k", "done")
    return said


def test_ten_draws_are_not_a_line_each_and_are_not_called_epochs():
    assert said_of("draw", 10) == ["run: begins", "run: done"]
    assert said_of("draw", 100)[1:-1] == [f"run: draw {n} of 100" for n in (25, 50, 75)]


def test_epochs_are_told_by_the_tenth():
    assert said_of("epoch", 100)[1:-1] == [f"run: epoch {n} of 100" for n in range(10, 100, 10)]


def test_an_epoch_is_told_once_and_not_before_it_is_done(mini):
    pytest.importorskip("torch")
    said = []
    reproduce(suite_named("alpha"), mini, Lines(said.append))
    assert [line for line in said if "skillcraft" in line] == [
        f"skillcraft, ERM, 2 seeds: {what}" for what in ("begins", "epoch 1 of 2", "done")
    ]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_call_says_that_the_runs_were_reused(mini, jobs):
    pytest.importorskip("torch")
    options = type(mini)(out=mini.out, mini=True, jobs=jobs)
    first = reproduce(suite_named("alpha"), options)
    assert not any("reused" in notice for notice in first.notices)
    table = (mini.out / "alpha" / "table.md").read_bytes()
    said = []
    again = reproduce(suite_named("alpha"), options, Lines(said.append))
    assert sorted(line for line in said if "reused" in line) == [
        f"{task}, ERM, 2 seeds: reused, trained before" for task in ("communities-and-crime", "skillcraft")
    ]
    assert f"2 of 2 runs had been trained before and were reused from {mini.out / 'runs'}." in again.notices
    assert (mini.out / "alpha" / "table.md").read_bytes() == table
