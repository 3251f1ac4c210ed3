"""The random search for hyperparameters."""

from dataclasses import replace

import pytest

from pyspar.paper.experiments.reproduce import reproduce
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs import run as run_module


def test_a_setting_that_diverges_is_a_notice_and_not_a_failure(mini, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("optuna")
    from pyspar.paper import TrainingError

    train, calls = run_module.train_network, []

    def diverge_first(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            raise TrainingError("the loss is infinite")
        return train(*arguments, **options)

    monkeypatch.setattr(run_module, "train_network", diverge_first)
    result = reproduce(read_suite("tabular-search"), replace(mini, jobs=1))
    assert result.failures == []
    assert any("diverged (TrainingError: the loss is infinite)" in notice for notice in result.notices)
