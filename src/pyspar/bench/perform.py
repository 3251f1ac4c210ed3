"""From runs to records: do what is left of a suite's runs and add what they measured to its file of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspar.bench.heads import Head
from pyspar.bench.machine import machine, versions
from pyspar.bench.pool import Progress, carry_out_all
from pyspar.bench.records import Record, append_records, read_records
from pyspar.bench.spec import RunSpec
from pyspar.bench.stage import Job, Outcome
from pyspar.bench.suite import Suite
from pyspar.bench.tasks import at_hand
from pyspar.errors import InputError, need


@dataclass(frozen=True)
class Options:
    """What a person chooses: how many seeds, on what device, how many runs at once, and where everything lies."""

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
                raise InputError(f"{name} must be at least 1. Got {value}.")
        if self.device == "cuda" and not need("torch", "torch").cuda.is_available():
            raise InputError("--device cuda needs a GPU that torch can see. Got none; use --device cpu.")

    def specs(self, suite: Suite) -> list[RunSpec]:
        """Return the runs that a suite takes under these options."""
        return suite.specs(self.n_seeds(suite), self.device, self.choose)

    def n_seeds(self, suite: Suite) -> int:
        """Return how many seeds: as asked, or as the paper."""
        return suite.seeds if self.seeds is None else self.seeds

    def choose(self, tasks: tuple[str, ...]) -> str:
        """Return the first of some data sets that is here; a miniature is generated, so it has all of them."""
        return tasks[0] if self.mini else at_hand(tasks, self.data)


@dataclass(frozen=True)
class Gathered:
    """A suite's records, what could not be done, and what was noticed on the way."""

    records: list[Record]
    troubles: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def __add__(self, other: Gathered) -> Gathered:
        return Gathered(self.records + other.records, self.troubles + other.troubles, self.notices + other.notices)


Measured = Callable[[RunSpec, Outcome], Iterable[Record]]


def perform(
    suite: Suite,
    specs: list[RunSpec],
    heads: list[Head],
    options: Options,
    progress: Progress,
    measured: Measured | None = None,
    **job: Any,
) -> Gathered:
    """Do runs, add their records to the suite's file in the order of the runs, and return those from the file.

    ``measured`` says what is recorded of a run that is done; without it, the scores of every head.
    """
    file = options.out / suite.name / "records.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    notices = append_records(file, [])  # a file that cannot be read is refused before anything is computed
    of = measured or (lambda spec, outcome: scores_of(suite, spec, heads, outcome))
    jobs = [
        Job(spec, tuple(heads), suite.metrics, options.out, options.data, **{"keep": options.keep, **job})
        for spec in specs
    ]
    outcomes = carry_out_all(jobs, options.jobs, progress)
    by_key = {spec.key: spec for spec in specs}
    done = [(by_key[o.key], o) for o in outcomes if o.kind == "done"]
    wanted = [stamped(record, spec) for spec, outcome in done for record in of(spec, outcome)]
    append_records(file, wanted)
    for outcome in outcomes:
        if outcome.kind == "storage":
            raise InputError(
                f"expected to be able to write. Got: {outcome.reason}. All that was recorded is kept; make room, or "
                "choose another folder with --out, and run the same command again."
            )
    identities = {record.identity for record in wanted}
    there = [record for record in read_records(file) if record.identity in identities] if wanted else []
    return Gathered(there, list(dict.fromkeys(_troubles(by_key, outcomes))), notices)


def scores_of(suite: Suite, spec: RunSpec, heads: list[Head], outcome: Outcome) -> Iterable[Record]:
    """Yield a record for each head, seed and metric."""
    for head in heads:
        for seed in spec.seeds:
            values = outcome.scores[head.key][str(seed)]
            for metric in suite.metrics:
                yield Record(
                    spec.task, head.label(spec.objective), seed, metric, values[metric], at=head.params.get("alpha")
                )


def stamped(record: Record, spec: RunSpec) -> Record:
    """Put into a record what it was made with."""
    return replace(record, run=spec.key, spec=spec.as_dict(), versions=versions(), machine=machine(spec.device))


def _troubles(specs: dict[str, RunSpec], outcomes: list[Outcome]) -> Iterable[str]:
    for outcome in outcomes:
        spec = specs[outcome.key]
        if outcome.kind == "skipped":  # once for a data set, whatever the number of its methods
            yield f"{spec.task}: skipped. {' '.join(outcome.reason.split())}"
        elif outcome.kind == "failed":
            yield f"{spec.title}: failed ({outcome.reason}), tried again next time; see runs/{spec.key}/failed.json"
