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
from pyspar.paper.experiments.suite import Suite, tuned_hyperparameters
from pyspar.paper.output.tables import NO_VALUE, Sheet
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Options, SuiteRecords, expected_scores, make_blank_record, run_specs
from pyspar.paper.runs.spec import RunSpec, canonical_json

METRIC = "validation mse"
draw_figures = methods.draw_figures


def gather(suite: Suite, options: Options) -> SuiteRecords:
    """Search for each method on each data set, then train the best settings with all seeds."""
    need("optuna", "paper")
    bases = _group_bases(options.specs(suite))
    candidates = {name: draw_settings(suite, specs[0]) for name, specs in bases.items()}
    searched = run_specs(
        suite,
        [spec for specs in candidates.values() for spec in specs],
        [],
        options,
        make_records=lambda spec, outcome: [
            Record(spec.task, spec.objective, spec.seed, METRIC, outcome.training["validation"])
        ],
        drop_features=True,
        may_diverge=True,  # a setting that diverges is simply not the best one
    )
    chosen = _choose_settings(bases, candidates, searched.records)
    return searched + run_specs(suite, chosen, methods.heads_of(suite), options)


def expect(suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
    """Return the records of the search and of the settings that it selects, with nan as their values."""
    need("optuna", "paper")
    bases = _group_bases(specs)
    candidates = {name: draw_settings(suite, group[0]) for name, group in bases.items()}
    searched = [make_blank_record(spec, spec.objective, METRIC) for drawn in candidates.values() for spec in drawn]
    chosen = _choose_settings(bases, candidates, records)
    return searched + expected_scores(suite, chosen, methods.heads_of(suite))


def _group_bases(specs: list[RunSpec]) -> dict[tuple[str, str], list[RunSpec]]:
    bases: dict[tuple[str, str], list[RunSpec]] = {}
    for spec in specs:
        bases.setdefault((spec.task, spec.objective), []).append(spec)
    return bases


def _choose_settings(
    bases: dict[tuple[str, str], list[RunSpec]], candidates: dict[tuple[str, str], list[RunSpec]], records: list[Record]
) -> list[RunSpec]:
    chosen = []
    for name, specs in bases.items():
        best = find_best(candidates[name], records)
        if best is not None:
            chosen += [replace(best, seed=spec.seed) for spec in specs]
    return chosen


def draw_settings(suite: Suite, base: RunSpec) -> list[RunSpec]:
    """Draw settings with Optuna's random sampler, seeded by the names of table, task and method."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    name = f"{suite.published}/{base.task}/{base.objective}"
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    centre = {h: base.config.get(h, base.params.get(h)) for h in suite.extra["search"]}
    # Uniform in the logarithm over a factor of ten each way: base x 10^u.
    space: dict[str, Any] = {
        h: optuna.distributions.FloatDistribution(value / 10, value * 10, log=True)
        for h, value in centre.items()
        if value is not None
    }
    drawn = [study.ask(space).params for _ in range(suite.extra["draws"])]
    seeds = range(suite.extra["search_seeds"])
    return [_replace_hyperparameters(base, values, seed) for values in drawn for seed in seeds]


def _replace_hyperparameters(base: RunSpec, values: dict[str, Any], seed: int) -> RunSpec:
    config = {k: values.get(k, v) for k, v in base.config.items()}
    params = {k: values.get(k, v) for k, v in base.params.items()}
    return replace(base, config=config, params=params, seed=seed)


def find_best(specs: list[RunSpec], records: list[Record]) -> RunSpec | None:
    """Return the setting with the lowest mean validation error over its seeds, or None if none has all records."""
    errors = {record.run: record.value for record in records if record.metric == METRIC}
    settings: dict[str, list[RunSpec]] = {}
    for spec in specs:
        settings.setdefault(canonical_json(spec.settings()), []).append(spec)
    tried = [
        (float(np.mean([errors[spec.key] for spec in group])), group[0])
        for group in settings.values()
        if all(spec.key in errors for spec in group)
    ]
    return min(tried, key=lambda pair: pair[0])[1] if tried else None


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the tables of methods, and our selected hyperparameters next to the published ones."""
    sheets, remarks = methods.present(suite, records)
    published_values = tuned_hyperparameters()
    rows = []
    best = {(r.task, r.spec["objective"]): r for r in records if r.metric in suite.metrics}
    for r in best.values():
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
