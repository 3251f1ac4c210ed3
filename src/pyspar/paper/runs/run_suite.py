"""From runs to records: do the missing runs of a suite, and append their measurements to its file of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspar.errors import InputError, need
from pyspar.paper.data.files import named_folder
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.runs.features import choose_available
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.parallel import one_thread, run_parallel
from pyspar.paper.runs.records import Record, append_records, current_provenance, find_records, read_records
from pyspar.paper.runs.run import Outcome, Run
from pyspar.paper.runs.spec import RunSpec
from pyspar.terminal import Progress

MAX_SEEDS = 1000
"""All seeds of a run are trained as one computation, which has to fit into memory."""


@dataclass(frozen=True)
class Options:
    """The options of the command line.

    Attributes
    ----------
    out : the folder for runs, records, tables and figures
    seeds : how many seeds to train; None for as many as the paper
    jobs : how many runs are active at a time
    data : the folder with the data sets, or None for the default ones
    keep : whether the features of trained networks stay on disk
    mini : whether to replace the data by a few generated rows, for tests
    """

    out: Path = Path("reproduction")
    seeds: int | None = None
    device: str = "cpu"
    jobs: int = 1
    data: Path | None = None
    keep: bool = True
    mini: bool = False

    def __post_init__(self) -> None:
        for name, value in (("--seeds", self.seeds), ("--jobs", self.jobs)):
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, got {value}.")
        if self.seeds is not None and self.seeds > MAX_SEEDS:
            raise InputError(f"--seeds must be at most {MAX_SEEDS}, got {self.seeds}; the paper uses 10.")
        if self.device == "cuda" and not need("torch", "torch").cuda.is_available():
            raise InputError("--device cuda requires a GPU, but torch found none; use --device cpu.")
        if not self.mini:
            named_folder(self.data)  # report a wrong folder once, not for every data set

    def specs(self, suite: Suite) -> list[RunSpec]:
        """Return the specs of a suite under these options."""
        n_seeds = suite.seeds if self.seeds is None else self.seeds
        return suite.specs(n_seeds, self.device, self._choose_task)

    def _choose_task(self, tasks: tuple[str, ...]) -> str:
        """Return the first of several data sets that is available; generated data replaces any of them."""
        return tasks[0] if self.mini else choose_available(tasks, self.data)


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
    progress: Progress,
    *,
    make_records: MakeRecords | None = None,
    drop_features: bool = False,
    needs_features: bool = False,
    resume: bool = True,
    may_diverge: bool = False,
) -> SuiteRecords:
    """Do runs, append their records to the file of the suite in the order of the specs, and return them from the file.

    Parameters
    ----------
    make_records : returns the records of a finished run; by default the scores of every head
    drop_features : whether the features are deleted for any options
    needs_features : whether ``make_records`` reads the features, so that they stay on disk
    resume : whether an interrupted training continues from its checkpoint
    may_diverge : whether a training that diverges is a notice instead of a failure
    """
    file = prepare_records_file(suite, options)
    runs = [
        Run(
            spec,
            tuple(heads),
            suite.metrics,
            options.out,
            options.data,
            keep_features=needs_features or (options.keep and not drop_features),
            resume=resume,
            needs_features=needs_features,
        )
        for spec in specs
    ]
    outcomes = run_parallel(runs, options.jobs, progress, title=suite.name)
    spec_of = {spec.key: spec for spec in specs}
    make_records = make_records or (lambda spec, outcome: score_records(suite, spec, heads, outcome))
    with one_thread():
        records = [
            _complete_record(record, spec_of[outcome.key], outcome, measured_now=needs_features)
            for outcome in outcomes
            if outcome.kind == "done"
            for record in make_records(spec_of[outcome.key], outcome)
        ]
    append_records(file, records)
    failures: list[str] = []
    notices: list[str] = []
    for outcome in outcomes:
        if outcome.kind == "storage":
            raise InputError(
                f"cannot write files: {outcome.reason}. All recorded results are kept. Free disk space, or choose "
                "another folder with --out, and run the same command again."
            )
        if outcome.kind != "done":
            lines = notices if may_diverge and outcome.kind == "diverged" else failures
            lines.append(_describe_failure(spec_of[outcome.key], outcome))
    n_reused = sum(outcome.reused for outcome in outcomes)
    if n_reused:
        notices.append(
            f"{n_reused} of {len(outcomes)} runs were trained before and were reused from {options.out / 'runs'}."
        )
    return SuiteRecords(find_records(file, records), list(dict.fromkeys(failures)), notices)


def prepare_records_file(suite: Suite, options: Options) -> Path:
    """Create the folder of a suite, and return the path of its file of records. Raise if the file is invalid."""
    file = options.out / suite.name / "records.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        read_records(file)
    return file


def expected_scores(suite: Suite, specs: Iterable[RunSpec], heads: Iterable[Head]) -> list[Record]:
    """Return a record with the value nan for each run, head, seed and metric."""
    return [record for spec in specs for head in heads for record in _head_records(suite, spec, head)]


def _head_records(suite: Suite, spec: RunSpec, head: Head) -> list[Record]:
    blank = make_blank_record(spec, head.label(spec.objective))
    blank = replace(blank, recipe=head.recipe, at=head.params.get("alpha"))
    return [replace(blank, seed=seed, metric=metric) for seed in spec.seeds for metric in suite.metrics]


def make_blank_record(spec: RunSpec, method: str, metric: str = "") -> Record:
    """Return a record of the first seed of a run, with the value nan."""
    return Record(spec.task, method, spec.seeds[0], metric, float("nan"), run=spec.key, spec=spec.as_dict())


def score_records(suite: Suite, spec: RunSpec, heads: list[Head], outcome: Outcome) -> Iterable[Record]:
    """Yield a record for each head, seed and metric."""
    for head in heads:
        scores = outcome.scores[head.key]
        for record in _head_records(suite, spec, head):
            yield replace(record, value=scores["seeds"][str(record.seed)][record.metric], **scores["made"])


def _complete_record(record: Record, spec: RunSpec, outcome: Outcome, *, measured_now: bool) -> Record:
    """Add the run, its spec and the provenance of the training to a record.

    Versions and machine of the measurement are added under other names if they differ from those of the training.
    """
    training = outcome.training["made"]
    measured = {"versions": record.versions, "machine": record.machine}
    if not record.versions:
        measured = current_provenance(spec.device) if measured_now else training
    provenance = {
        kind: training[kind]
        | {f"{name}, scoring": text for name, text in measured[kind].items() if training[kind].get(name) != text}
        for kind in ("versions", "machine")
    }
    return replace(record, run=spec.key, spec=spec.as_dict(), **provenance)


def _describe_failure(spec: RunSpec, outcome: Outcome) -> str:
    if outcome.kind == "skipped":  # the same text for all methods on a data set, which is shown once
        return f"{spec.task}: skipped. {' '.join(outcome.reason.split())}"
    return (
        f"{spec.title}: {outcome.kind} ({outcome.reason}); the next call tries again. See runs/{spec.key}/failed.json."
    )
