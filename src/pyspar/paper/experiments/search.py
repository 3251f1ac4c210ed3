"""Random search by validation error, then all seeds of the best setting. Paper: ``sec:appendix_hyperparameters``.

Each hyperparameter is drawn ten times as base x 10^u with u uniform in (-1, 1). A draw is scored by the validation
error of its selected epoch. Test rows are not used.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from pyspar.errors import need
from pyspar.paper.experiments import methods
from pyspar.paper.experiments.published import tuned_hyperparameters
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import NO_VALUE, Sheet
from pyspar.paper.runs.records import Record, group_values
from pyspar.paper.runs.run import Outcome
from pyspar.paper.runs.run_suite import Options, SuiteRecords, expected_scores, make_blank_record, run_specs
from pyspar.paper.runs.spec import RunSpec
from pyspar.terminal import Progress

METRIC = "validation mse"
draw_figures = methods.draw_figures


def gather(suite: Suite, options: Options, progress: Progress) -> SuiteRecords:
    """Search for each method on each data set, then train the best settings."""
    need("optuna", "paper")
    bases = options.specs(suite)
    candidates = {base.key: draw_settings(suite, base) for base in bases}
    searched = run_specs(
        suite,
        [spec for specs in candidates.values() for spec in specs],
        [],
        options,
        progress,
        make_records=_make_validation_records,
        drop_features=True,
        may_diverge=True,  # a setting that diverges is simply not the best one
    )
    chosen = _choose_settings(bases, candidates, searched.records)
    return searched + run_specs(suite, chosen, methods.heads_of(suite), options, progress)


def expect(suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
    """Return the records of the search and of the settings that it selects, with nan as their values."""
    need("optuna", "paper")
    candidates = {base.key: draw_settings(suite, base) for base in specs}
    searched = [
        replace(make_blank_record(spec, spec.objective, METRIC), seed=seed)
        for drawn in candidates.values()
        for spec in drawn
        for seed in spec.seeds
    ]
    chosen = _choose_settings(specs, candidates, records)
    return searched + expected_scores(suite, chosen, methods.heads_of(suite))


def _choose_settings(
    bases: list[RunSpec], candidates: dict[str, list[RunSpec]], records: list[Record]
) -> list[RunSpec]:
    """Return the best settings, with all seeds, of the specs that have records of a search."""
    chosen = []
    for base in bases:
        best = find_best(candidates[base.key], records)
        if best is not None:
            chosen.append(replace(best, seeds=base.seeds))
    return chosen


def draw_settings(suite: Suite, base: RunSpec) -> list[RunSpec]:
    """Draw settings with Optuna's random sampler, seeded by the names of the suite, the task and the method."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    name = f"{suite.name}/{base.task}/{base.objective}"
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    centre = {h: base.config.get(h, base.params.get(h)) for h in suite.extra["search"]}
    # Uniform in the logarithm over a factor of ten each way: base x 10^u.
    space: dict[str, Any] = {
        h: optuna.distributions.FloatDistribution(value / 10, value * 10, log=True)
        for h, value in centre.items()
        if value is not None
    }
    seeds = tuple(range(suite.extra["search_seeds"]))
    return [_replace_hyperparameters(base, study.ask(space).params, seeds) for _ in range(suite.extra["draws"])]


def _replace_hyperparameters(base: RunSpec, values: dict[str, Any], seeds: tuple[int, ...]) -> RunSpec:
    config = {k: values.get(k, v) for k, v in base.config.items()}
    params = {k: values.get(k, v) for k, v in base.params.items()}
    return replace(base, config=config, params=params, seeds=seeds)


def find_best(specs: list[RunSpec], records: list[Record]) -> RunSpec | None:
    """Return the setting with the lowest mean validation error over seeds, or None if none has records."""
    errors = group_values((record for record in records if record.metric == METRIC), "run")
    tried = [(float(np.mean(errors[key])), spec) for spec in specs if (key := (spec.key,)) in errors]
    return min(tried, key=lambda pair: pair[0])[1] if tried else None


def _make_validation_records(spec: RunSpec, outcome: Outcome) -> list[Record]:
    return [Record(spec.task, spec.objective, s, METRIC, outcome.training["validation"][str(s)]) for s in spec.seeds]


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the tables of methods, and our selected hyperparameters next to the published ones."""
    sheets, remarks = methods.present(suite, records)
    published_values = tuned_hyperparameters()
    rows = []
    runs = {r.run: r for r in records if r.metric in suite.metrics}  # of the best settings
    for r in runs.values():
        published = published_values.get(r.task, {}).get(r.spec["objective"], {})
        for name in suite.extra["search"]:
            value = r.spec["config"].get(name, r.spec["params"].get(name))
            if value is not None:
                text = f"{published[name]:.4g}" if name in published else NO_VALUE
                rows.append((r.task, r.spec["objective"], name, text, f"{value:.4g}"))
    header = ("data", "method", "hyperparameter", "published choice", "our choice")
    n = suite.extra["search_seeds"]
    note = f"The best of {suite.extra['draws']} draws by mean squared error on the validation part, mean of {n} seeds."
    return [*sheets, Sheet("Selected hyperparameters", header, rows, (note,))], remarks
