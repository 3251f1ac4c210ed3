"""The generated task of a miniature."""

import pytest

from pyspar.paper.experiments.reproduce import reproduce
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.records import read_records


def test_adaptation_changes_the_predictions_on_a_generated_task_but_does_not_remove_everything(mini):
    pytest.importorskip("torch")
    reproduce(read_suite("tabular"), mini)
    records = read_records(mini.out / "tabular" / "records.jsonl")
    values = {(r.task, r.method, r.seed): r.value for r in records if r.metric == "rmse"}
    pairs = [(value, values[t, "ERM + SpAR", s]) for (t, m, s), value in values.items() if m == "ERM + OLS"]
    assert pairs
    assert all(ols != adapted for ols, adapted in pairs)
    # If everything were removed, all seeds would predict zero and have the same error.
    assert len({adapted for _, adapted in pairs}) == len(pairs)
