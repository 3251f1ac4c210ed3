"""The suite of training times."""

from pyspar.paper.experiments import cost
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.runs.run_suite import Options


def test_times_are_measured_in_sequential_runs_that_no_other_suite_trains(monkeypatch):
    calls = []
    monkeypatch.setattr(cost, "run_specs", lambda *arguments, **options: calls.append((arguments, options)))
    cost.gather(read_suite("cost"), Options(jobs=4))
    (((_, specs, _, options), keywords),) = calls
    assert options.jobs == 1
    assert keywords["resume"] is False
    assert all(spec.options["timed"] for spec in specs)
    assert not {spec.key for spec in specs} & {spec.key for spec in Options().specs(read_suite("tabular"))}
