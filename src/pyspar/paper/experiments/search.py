"""Random search by validation, then the chosen setting with all seeds. Paper: ``sec:appendix_hyperparameters``.

Ten draws of each hyperparameter, base x 10^u with u uniform in (-1, 1); a draw is judged by the validation error of the
epoch that it keeps. No test row has a part in the choice.
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
from pyspar.paper.output.tables import NONE, Sheet
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.parallel import Progress
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run import Outcome
from pyspar.paper.runs.run_suite import Gathered, Options, perform
from pyspar.paper.runs.spec import RunSpec

METRIC = "validation mse"
draw = methods.draw


def gather(suite: Suite, options: Options, progress: Progress) -> Gathered:
    """Search for each method on each data set, then train the chosen settings."""
    need("optuna", "paper")
    chosen = []
    bases = options.specs(suite)
    drawn = {base.key: draws(suite, base) for base in bases}
    searched = perform(
        suite,
        [s for specs in drawn.values() for s in specs],
        [],
        options,
        progress,
        _validation,
        may_diverge=True,  # such a draw was tried, and is not the best
        keep=False,
    )
    for base in bases:
        best = best_of(drawn[base.key], searched.records)
        if best is not None:
            chosen.append(replace(best, seeds=base.seeds))
    found = perform(suite, chosen, [Head(name) for name in suite.heads], options, progress)
    return searched + found


def draws(suite: Suite, base: RunSpec) -> list[RunSpec]:
    """Return the settings to try: drawn by Optuna's random sampler, seeded by the names of what is searched."""
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
    return [_with(base, study.ask(space).params, seeds) for _ in range(suite.extra["draws"])]


def _with(base: RunSpec, values: dict[str, Any], seeds: tuple[int, ...]) -> RunSpec:
    config = {k: values.get(k, v) for k, v in base.config.items()}
    params = {k: values.get(k, v) for k, v in base.params.items()}
    return replace(base, config=config, params=params, seeds=seeds)


def best_of(specs: list[RunSpec], records: list[Record]) -> RunSpec | None:
    """Return the setting with the lowest validation error, averaged over its seeds; None where none could be tried."""
    errors = {spec.key: [r.value for r in records if r.run == spec.key and r.metric == METRIC] for spec in specs}
    tried = [spec for spec in specs if errors[spec.key]]
    return min(tried, key=lambda spec: float(np.mean(errors[spec.key]))) if tried else None


def _validation(spec: RunSpec, outcome: Outcome) -> list[Record]:
    return [Record(spec.task, spec.objective, s, METRIC, outcome.validation[str(s)]) for s in spec.seeds]


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the tables of methods, and what was chosen beside what the authors chose."""
    sheets, remarks = methods.present(suite, records)
    theirs = tuned_hyperparameters()
    rows = []
    runs = {r.run: r for r in records if r.metric in suite.metrics}  # those of the chosen settings
    for r in runs.values():
        there = theirs.get(r.task, {}).get(r.spec["objective"], {})
        for name in suite.extra["search"]:
            value = r.spec["config"].get(name, r.spec["params"].get(name))
            if value is not None:
                paper = f"{there[name]:.4g}" if name in there else NONE
                rows.append((r.task, r.spec["objective"], name, paper, f"{value:.4g}"))
    header = ("data", "method", "hyperparameter", "published choice", "our choice")
    n = suite.extra["search_seeds"]
    note = f"The best of {suite.extra['draws']} draws by mean squared error on the validation part, mean of {n} seeds."
    return [*sheets, Sheet("What the search chose", header, rows, (note,))], remarks
