"""Fixtures for runs: a small run, and the same run after it was done."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from pyspar.paper.experiments.reproduce import make_miniature
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.run import Run, run_one
from pyspar.paper.runs.run_suite import Options


def make_run(options):
    spec = options.specs(make_miniature(read_suite("alpha")))[0]
    return Run(spec, (Head("OLS"), Head("SpAR")), ("rmse",), options.out)


@pytest.fixture
def run(mini):
    """A run that was not done yet."""
    return make_run(mini)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run and its outcome, for ``finished_run``."""
    pytest.importorskip("torch")
    run = make_run(Options(out=tmp_path_factory.mktemp("finished"), mini=True))
    return run, run_one(run)


@pytest.fixture
def finished_run(finished, tmp_path):
    """A finished run in a folder that the test may change, and its outcome."""
    run, outcome = finished
    shutil.copytree(run.out, tmp_path / "out")
    return replace(run, out=tmp_path / "out"), outcome
