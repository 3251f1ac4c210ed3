"""From runs to records: do the missing runs of a suite, and append their measurements to its file of records."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspar.errors import InputError, need
from pyspar.paper.data.files import named_folder
from pyspar.paper.data.registry import state_of
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.parameters import check_name
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.records import Record, append_records, find_records, read_records
from pyspar.paper.runs.run import Outcome, Run, one_thread, run_one
from pyspar.paper.runs.spec import RunSpec
from pyspar.progress import progress_bar

MAX_SEEDS = 1000


@dataclass(frozen=True)
class Options:
    """The options of the command line.

    ``seeds=None`` trains as many as the paper. ``jobs=None`` runs one process per core, or one on a GPU. ``keep`` is
    whether the features of trained networks stay on disk. ``mini`` replaces the data by a few generated rows, for
    tests. ``methods`` are the training methods to run, all if empty. ``eval_batch`` are rows per batch where no
    gradient is needed. ``show=None`` shows progress on a terminal.
    """

    out: Path = Path("reproduction")
    seeds: int | None = None
    device: str = "cpu"
    jobs: int | None = None
    data: Path | None = None
    keep: bool = True
    mini: bool = False
    methods: tuple[str, ...] = ()
    eval_batch: int = 256
    show: bool | None = False

    def __post_init__(self) -> None:
        for name, value in (("--seeds", self.seeds), ("--jobs", self.jobs), ("--eval-batch", self.eval_batch)):
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, got {value}.")
        if self.seeds is not None and self.seeds > MAX_SEEDS:
            raise InputError(f"--seeds must be at most {MAX_SEEDS}, got {self.seeds}; the paper uses 10.")
        if self.device == "cuda" and not need("torch", "torch").cuda.is_available():
            raise InputError("--device cuda requires a GPU, but torch found none; use --device cpu.")
        if not self.mini:
            named_folder(self.data)  # report a wrong folder once, not for every data set

    @property
    def n_jobs(self) -> int:
        return self.jobs or (os.cpu_count() or 1 if self.device == "cpu" else 1)

    def specs(self, suite: Suite) -> list[RunSpec]:
        known = {method for block in suite.blocks for method in block.methods}
        for method in self.methods:
            check_name(f"method of suite {suite.name}", method, known)
        n_seeds = suite.seeds if self.seeds is None else self.seeds
        specs = suite.specs(n_seeds, self.device, self._choose_task)
        return [spec for spec in specs if not self.methods or spec.objective in self.methods]

    def _choose_task(self, tasks: tuple[str, ...]) -> str:
        available = [] if self.mini else [name for name in tasks if state_of(name, self.data) == "found"]
        return available[0] if available else tasks[0]


@dataclass(frozen=True)
class SuiteRecords:
    """The records of a suite, the runs that were not done, and notices for the user."""

    records: list[Record]
    failures: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def __add__(self, other: SuiteRecords) -> SuiteRecords:
        return SuiteRecords(self.records + other.records, self.failures + other.failures, self.notices + other.notices)


MakeRecords = Callable[[RunSpec, Outcome], Iterable[Record]]


def run_specs(
    suite: Suite,
    specs: list[RunSpec],
    heads: list[Head],
    options: Options,
    *,
    make_records: MakeRecords | None = None,
    drop_features: bool = False,
    needs_features: bool = False,
    resume: bool = True,
    may_diverge: bool = False,
) -> SuiteRecords:
    """Do runs, append the records of each to the file of the suite, and return them from the file. ``make_records``
    returns the records of a finished run, by default the scores of every head. It may read the features if
    ``needs_features`` is set. ``drop_features`` deletes them for any options. ``resume`` is whether an interrupted
    training continues, and ``may_diverge`` whether a training that diverges is no failure.
    """
    file = prepare_records_file(suite, options)
    keep = needs_features or (options.keep and not drop_features)
    flags: dict[str, Any] = {"keep_features": keep, "resume": resume, "needs_features": needs_features}
    fixed = tuple(heads), suite.metrics, options.out, options.data
    runs = [Run(spec, *fixed, **flags, eval_batch=options.eval_batch) for spec in specs]
    make_records = make_records or (lambda spec, outcome: score_records(suite, spec, heads, outcome))
    records: list[Record] = []
    failures: list[str] = []
    notices: list[str] = []
    n_reused = 0
    with closing(run_all(runs, options.n_jobs, suite.name, options.show)) as outcomes:
        for run, outcome in outcomes:
            n_reused += outcome.reused
            if outcome.kind == "done":
                with one_thread():
                    made = list(make_records(run.spec, outcome))
                origin = {"run": run.spec.key, "spec": run.spec.settings(), **outcome.training["made"]}
                made = [replace(record, **origin) for record in made]
                append_records(file, made)
                records += made
            else:
                lines = notices if may_diverge and outcome.kind == "diverged" else failures
                lines.append(_describe_failure(run.spec, outcome))
    if n_reused:
        notices.append(f"{n_reused} of {len(runs)} networks were trained before and were reused.")
    return SuiteRecords(find_records(file, records), list(dict.fromkeys(failures)), notices)


def run_all(
    runs: list[Run], n_jobs: int, title: str, show: bool | None = False
) -> Generator[tuple[Run, Outcome], None, None]:
    """Do runs, at most ``n_jobs`` at a time, and yield each run with its outcome, in order. Every run uses one thread,
    so the numbers do not depend on how many are active.
    """
    epochs = [int(run.spec.config.get("epochs", 1)) for run in runs]
    n_jobs = min(n_jobs, len(runs))
    with progress_bar(f"{title}, {len(runs)} networks", total=sum(epochs), unit="epochs", show=show) as advance:
        if n_jobs > 1:
            from joblib import Parallel, delayed

            results = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(run_one)(run) for run in runs)
        else:
            before = [sum(epochs[:i]) for i in range(len(runs))]
            results = (run_one(run, lambda n, b=b: advance(b + n)) for run, b in zip(runs, before))  # type: ignore[misc]
        for i, (run, outcome) in enumerate(zip(runs, results), start=1):
            advance(sum(epochs[:i]))
            yield run, outcome


def prepare_records_file(suite: Suite, options: Options) -> Path:
    """Create the folder of a suite, and return the path of its file of records. Raise if the file is invalid."""
    file = options.out / suite.name / "records.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        read_records(file)
    return file


def expected_scores(suite: Suite, specs: Iterable[RunSpec], heads: Iterable[Head]) -> list[Record]:
    """Return a record with the value nan for each run, head and metric."""
    return [record for spec in specs for head in heads for record in _head_records(suite, spec, head)]


def _head_records(suite: Suite, spec: RunSpec, head: Head) -> list[Record]:
    blank = make_blank_record(spec, head.label(spec.objective))
    blank = replace(blank, recipe=head.recipe, at=head.params.get("alpha"))
    return [replace(blank, metric=metric) for metric in suite.metrics]


def make_blank_record(spec: RunSpec, method: str, metric: str = "") -> Record:
    """Return a record of a run with the value nan."""
    return Record(spec.task, method, spec.seed, metric, float("nan"), run=spec.key, spec=spec.settings())


def score_records(suite: Suite, spec: RunSpec, heads: list[Head], outcome: Outcome) -> Iterable[Record]:
    """Yield a record for each head and metric."""
    for head in heads:
        for record in _head_records(suite, spec, head):
            yield replace(record, value=outcome.scores[head.key][record.metric])


def _describe_failure(spec: RunSpec, outcome: Outcome) -> str:
    if outcome.kind == "skipped":  # the same text for all methods on a data set, which is shown once
        return f"{spec.task}: skipped. {' '.join(outcome.reason.split())}"
    return f"{spec.title}: {outcome.kind} ({outcome.reason}); the next call tries again."
