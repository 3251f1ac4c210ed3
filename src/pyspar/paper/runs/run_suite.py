"""From runs to records: do what is left of a suite's runs and add what they measured to its file of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspar.errors import InputError, need
from pyspar.paper.data.files import named_folder
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.machine import made_now
from pyspar.paper.runs.parallel import Progress, carry_out_all, one_thread
from pyspar.paper.runs.records import Record, append_records, recorded
from pyspar.paper.runs.run import Job, Outcome
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.tasks import at_hand

MOST_SEEDS = 1000
"""All seeds of a run are trained as one computation, which has to fit into memory."""


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
        if self.seeds is not None and self.seeds > MOST_SEEDS:
            raise InputError(f"--seeds must be at most {MOST_SEEDS}; the paper has 10. Got {self.seeds}.")
        if self.device == "cuda" and not need("torch", "torch").cuda.is_available():
            raise InputError("--device cuda needs a GPU that torch can see. Got none; use --device cpu.")
        if not self.mini:
            named_folder(self.data)  # a path that is no folder is refused once, not told of every data set

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
    *,
    may_diverge: bool = False,
    **job: Any,
) -> Gathered:
    """Do runs, add their records to the suite's file in the order of the runs, and return those from the file.

    ``measured`` says what is recorded of a run that is done; without it, the scores of every head. Where runs
    ``may_diverge``, one that does is a notice and no trouble.
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
    with one_thread():  # as everything else that is timed or measured
        wanted = [
            _stamped(record, spec, outcome, read_now=job.get("needs_features", False))
            for spec, outcome in done
            for record in of(spec, outcome)
        ]
    append_records(file, wanted)
    for outcome in outcomes:
        if outcome.kind == "storage":
            raise InputError(
                f"expected to be able to write. Got: {outcome.reason}. All that was recorded is kept; make room, or "
                "choose another folder with --out, and run the same command again."
            )
    lines = {_told(by_key[o.key], o): o.kind for o in outcomes if o.kind != "done"}
    harmless = [line for line, kind in lines.items() if may_diverge and kind == "diverged"]
    troubles = [line for line in lines if line not in harmless]
    return Gathered(recorded(file, wanted), troubles, notices + harmless + _of_reuse(outcomes, options.out))


def scores_of(suite: Suite, spec: RunSpec, heads: list[Head], outcome: Outcome) -> Iterable[Record]:
    """Yield a record for each head, seed and metric."""
    for head in heads:
        made = made_with(spec, outcome.made.get("training"), outcome.made.get("scores", {}).get(head.key))
        for seed in spec.seeds:
            values = outcome.scores[head.key][str(seed)]
            for metric in suite.metrics:
                name, alpha = head.label(spec.objective), head.params.get("alpha")
                yield Record(spec.task, name, seed, metric, values[metric], at=alpha, recipe=head.recipe, **made)


def made_with(spec: RunSpec, training: Any, scoring: Any) -> dict[str, Any]:
    """Return the versions and the machine of a training; what differed when it was scored has a line of its own.

    Runs from before this was noted in their folders have the versions and the machine of now.

    >>> spec = RunSpec("skillcraft", "mlp", "ERM", (0,))
    >>> old, new = ({"versions": {"numpy": v}, "machine": {"cores": "8"}} for v in "12")
    >>> made_with(spec, old, new)
    {'versions': {'numpy': '1', 'numpy, scoring': '2'}, 'machine': {'cores': '8'}}
    """
    first = training or scoring or made_now(spec.device)
    then = scoring or first
    return {
        kind: first[kind] | {f"{k}, scoring": v for k, v in then[kind].items() if first[kind].get(k) != v}
        for kind in ("versions", "machine")
    }


def _stamped(record: Record, spec: RunSpec, outcome: Outcome, *, read_now: bool) -> Record:
    """Put into a record what it was made with."""
    if not record.versions:
        now = made_now(spec.device) if read_now else None
        record = replace(record, **made_with(spec, outcome.made.get("training"), now))
    return replace(record, run=spec.key, spec=spec.as_dict())


def _of_reuse(outcomes: list[Outcome], out: Path) -> list[str]:
    """Say how many runs cost nothing this time; a table that is there at once should not look like a new one."""
    n, of = sum(o.reused for o in outcomes), len(outcomes)
    return [f"{n} of {of} runs had been trained before and were reused from {out / 'runs'}."] if n else []


def _told(spec: RunSpec, outcome: Outcome) -> str:
    """Return a line on a run that is not done."""
    if outcome.kind == "skipped":  # the same for all methods on a data set, and told once
        return f"{spec.task}: skipped. {' '.join(outcome.reason.split())}"
    return f"{spec.title}: {outcome.kind} ({outcome.reason}), tried again next time; see runs/{spec.key}/failed.json"
