"""How often do target labels confirm a model, and how often are they wrong? ``python -m benchmarks.confirmation``.

For each raw task of ``benchmarks.shifts``: random labels of target rows, and the judgement of ``pyspar.inspect`` with
them. A confirmation is wrong if the actual error of the recommended weights on all target rows exceeds 1.3 times the
error at home. The command measures the named parts again, and writes the table of docs/report.md from all records.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.measure import RESULTS, print_table, run_in_processes
from benchmarks.shifts.records import Record
from benchmarks.shifts.sets import EVIDENCE_PARTS, REGISTER, UNSEEN, Task
from benchmarks.trust.check import binomial_interval
from benchmarks.trust.page import Table, write_tables
from pyspar import BayesSpARRegressor, inspect
from pyspar.core.mean_square import SquaredErrors
from pyspar.estimators.calibrated_forecasts import EXCESS
from pyspar.inspection.judgement import Judgement
from pyspar.inspection.target_rows import weigh_evidence
from pyspar.io.atomic import whole_file

RECORDS = RESULTS / "confirmation.jsonl"
DRAWS = 50
SIZES = (10, 20, 30, 50, 100)
DESIGN = "design data"
Shares = tuple[float, float, float]
"""The shares of draws that confirm, that confirm an excessive error, and whose upper end is not too low."""


def measure(name: str, draws: int = DRAWS) -> Record:
    """Return the shares of draws for each number of labels that one data set has."""
    X, y, Z, yz = Task(REGISTER[name], "raw").arrays()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = BayesSpARRegressor().fit(X, y)
        (judgement,) = inspect(est, Z).outputs
        predictions = {judgement.before: est.predict(Z), judgement.adapted: est.adapted(Z).predict(Z)}
    errors = {weights: predicted - yz for weights, predicted in predictions.items()}
    rng, shares = np.random.default_rng(0), {}
    for n in SIZES:
        if n <= len(yz):
            samples = [rng.choice(len(yz), n, replace=False) for _ in range(draws)]
            shares[str(n)] = np.mean([judge_draw(judgement, errors, rows) for rows in samples], axis=0).tolist()
    return {"set": name, "part": REGISTER[name].part, "shares": shares}


def judge_draw(judgement: Judgement, errors: Mapping[str, np.ndarray], rows: np.ndarray) -> Shares:
    """Return whether labels of these rows confirm the model, whether that is wrong, and whether the upper end holds."""
    squares = {weights: SquaredErrors.of(error[rows]) for weights, error in errors.items()}
    judged = replace(judgement, evidence=weigh_evidence(squares, judgement.home))
    actual = SquaredErrors.of(errors[judged.recommended]).rmse
    is_wrong = judged.is_confirmed and actual > EXCESS * judgement.home
    return judged.is_confirmed, is_wrong, judged.labels.interval[1] >= actual


def run(parts: Sequence[str], jobs: int = 1) -> None:
    """Measure the data sets of parts, or all but ``unseen`` without a part, and replace their records."""
    chosen = parts or {shift.part for shift in REGISTER.values()} - {UNSEEN}
    names = [(name,) for name, shift in REGISTER.items() if shift.part in chosen]
    records = {record["set"]: record for record in read()}
    for (name,), record in run_in_processes(measure, names, jobs=jobs, description="labelling"):
        records[name] = record
    with whole_file(RECORDS) as part:
        part.write_text("".join(json.dumps(records[name]) + "\n" for name in sorted(records)), encoding="utf-8")


def read() -> list[Record]:
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()] if RECORDS.exists() else []


def summarise(records: Sequence[Record]) -> Table:
    """Return the rows of the table for each group of data sets."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(DESIGN if record["part"] in EVIDENCE_PARTS else f"`{record['part']}`", []).append(record)
    names = ("data sets", "confirmed", "wrong, of the confirmed", "upper end holds")
    rows = []
    for group in sorted(groups, key=lambda name: (name != DESIGN, name)):
        columns = [
            summarise_shares(np.array([r["shares"][n] for r in groups[group] if n in r["shares"]]).reshape(-1, 3))
            for n in map(str, SIZES)
        ]
        rows += [[f"{group}: {name}", *cells] for name, *cells in zip(names, *columns, strict=True)]
    return ["random labels", *map(str, SIZES)], rows


def summarise_shares(shares: np.ndarray) -> list[str]:
    """Return the cells for the shares of several data sets, which have equal weight.

    Whether a confirmation is wrong depends on the data set, so the share of wrong ones is a mean over data sets whose
    weights are their shares of confirmed draws. "At most" is the upper end of the binomial interval, for the effective
    number of data sets with these weights (Kish).
    """
    if not len(shares):
        return ["0", "", "", ""]
    confirmed, wrong, covered = shares.mean(axis=0)
    cells = [str(len(shares)), f"{100 * confirmed:.0f} %", "", f"{100 * covered:.1f} %"]
    if confirmed:
        effective = shares[:, 0].sum() ** 2 / np.square(shares[:, 0]).sum()
        highest = binomial_interval(wrong / confirmed, effective)[1]
        cells[2] = f"{100 * wrong / confirmed:.1f} % (at most {100 * highest:.0f} %)"
    return cells


def main() -> None:
    """Measure, print the table, and write it to docs/report.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.confirmation", description=__doc__)
    parser.add_argument("parts", nargs="*", help="parts of the tasks, such as last; default: all except unseen")
    parser.add_argument("--no-run", action="store_true", help="use the existing records only")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each, 1 by default")
    args = parser.parse_args()
    if not args.no_run:
        run(args.parts, args.jobs)
    table = summarise(read())
    print_table("confirmed by random labels", *table)
    write_tables({"confirmations": table})


if __name__ == "__main__":
    main()
