"""Alternatives to the classes and factors, compared on stored records with data sets left out.

A variant changes only how the records are classified, on which ratios the factors depend, or how far the narrow
interval is stretched. Alternatives that need other numbers than those of the records, such as other tests, are not
compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.shifts.records import Record
from benchmarks.trust.check import leave_sets_out, summarise
from benchmarks.trust.learn import AUC_LIMITS, KINDS, POWERS, separation_of
from benchmarks.trust.page import Table
from pyspar.core.separation import LEVEL
from pyspar.estimators.calibrated_forecasts import EXCESS, HURTS_RATIO, judge_outcome

PART = "new"
"""The scores of this part are also listed alone: the check of an earlier version on it failed."""


@dataclass(frozen=True)
class Variant:
    """A level of the test, the ends of the AUC classes, and whether matched rows are a class of their own."""

    level: float = LEVEL
    limits: Sequence[float] = tuple(AUC_LIMITS)
    has_matched: bool = True

    def classify(self, records: Sequence[Record]) -> list[Record]:
        """Return the records with the p-values and matches by which the kept rule returns the classes of this one."""
        scale = LEVEL / self.level
        return [{**r, "p_value": r["p_value"] * scale, "matched": r["matched"] and self.has_matched} for r in records]


VARIANTS = {
    "kept: level 5 %, AUC limit 0.95": Variant(),
    "matched rows are not a class": Variant(has_matched=False),
    "level 1 %": Variant(level=0.01),
    "level 10 %": Variant(level=0.1),
    "AUC limit 0.9": Variant(limits=(0.9,)),
    "AUC limit 0.99": Variant(limits=(0.99,)),
    "AUC limits 0.8, 0.95": Variant(limits=(0.8, 0.95)),
    "AUC limits 0.7, 0.8, 0.9, 0.95, 0.99": Variant(limits=(0.7, 0.8, 0.9, 0.95, 0.99)),
    "one class of found shifts": Variant(limits=()),
}
RATIOS = {
    "constant factors": ((0.0,), (0.0,)),
    "lower end by expected / home error": (POWERS, (0.0,)),
    "upper end by label spread / home error": ((0.0,), POWERS),
    "kept: both": (POWERS, POWERS),
}
"""The powers that are compared at the lower and the upper end."""
STRETCHES = (0.8, 0.9, 1.0, 1.1, 1.2)


def variant_rows(records: Sequence[Record]) -> Table:
    """Return the interval scores at 95 % of natural shifts, for all data sets and those of one part, by variant."""
    header = ["variant", "linear", f"linear, `{PART}`", "any", f"any, `{PART}`", "random splits with a shift found"]
    rows = []
    for name, variant in VARIANTS.items():
        cells, found = [], 0.0
        for own in _split_kinds(variant.classify(records)).values():
            checked = leave_sets_out(own, limits=variant.limits)
            natural = [r for r in checked if r["split"] == "shift"]
            for part in (natural, [r for r in natural if r["part"] == PART]):
                cells.append(f"{summarise(part)['score95']:.2f}")
            found = found or 1.0 - summarise([r for r in checked if r["split"] == "random"])["no_shift"]
        rows.append([name, *cells, f"{100 * found:.0f} %"])
    return header, rows


def ratio_rows(records: Sequence[Record]) -> Table:
    """Return scores of natural shifts if factors depend on ratios to the error at home, with each part left out.

    Differences from constant factors are paired over data sets, with their standard errors.
    """
    columns = ("95 %", "80 %", "high / low", "score", "difference", "parts better")
    header = ["factors", *(f"{kind}, {column}" for kind in KINDS for column in columns)]
    cells: dict[str, list[str]] = {name: [] for name in RATIOS}
    for own in _split_kinds(records).values():
        parts = [{r["set"] for r in own if r["part"] == part} for part in sorted({r["part"] for r in own})]
        constant: dict[str, float] = {}
        for name, powers in RATIOS.items():
            checked = [r for r in leave_sets_out(own, parts, powers=powers) if r["split"] == "shift"]
            found, scores = summarise(checked), _scores_of_sets(checked)
            constant = constant or scores
            gains = [np.array([scores[key] - constant[key] for key in sorted(part & scores.keys())]) for part in parts]
            joined = np.concatenate(gains)
            error = joined.std(ddof=1) / np.sqrt(len(joined))
            ratio = np.exp(np.mean([np.log(r["width0.95"]) for r in checked]))
            cells[name] += [f"{100 * found[key]:.1f} %" for key in ("covered95", "covered80")]
            cells[name] += [f"{ratio:.2f}", f"{found['score95']:.2f}", f"{joined.mean():+.2f} ± {error:.2f}"]
            cells[name].append(f"{sum(gain.mean() < 0.0 for gain in gains)} of {len(gains)}")
    return header, [[name, *row] for name, row in cells.items()]


def _scores_of_sets(checked: Sequence[Record]) -> dict[str, float]:
    """Return the mean interval score of the tasks of each data set."""
    scores: dict[str, list[float]] = defaultdict(list)
    for r in checked:
        scores[r["set"]].append(r["score0.95"])
    return {name: float(np.mean(values)) for name, values in scores.items()}


def stretch_rows(records: Sequence[Record]) -> Table:
    """Return coverage and scores on random splits in which no shift is found, for a wider or narrower interval."""
    header = ["powers times", *(f"{kind}, {of}" for kind in KINDS for of in ("80 %", "95 %", "score"))]
    rows = []
    for stretch in STRETCHES:
        cells = []
        for own in _split_kinds(records).values():
            checked = leave_sets_out(own, stretch=stretch)
            found = summarise([r for r in checked if r["split"] == "random" and r["class"] == "none"])
            cells += [f"{100 * found[key]:.1f} %" for key in ("covered80", "covered95")]
            cells.append(f"{found['score95']:.3f}")
        rows.append([f"{stretch:g}", *cells])
    return header, rows


def _split_kinds(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Return the records of each kind of regressors, without the factors of rows, which are slow to learn."""
    slim = [{key: value for key, value in r.items() if key != "need"} for r in records]
    return {kind: [r for r in slim if r["regressor"] in names] for kind, names in KINDS.items()}


def threshold_rows(records: Sequence[Record]) -> Table:
    """Return the tasks that a threshold of "hurts" selects at an AUC above the last limit, and the excessive errors."""
    header = ["expected error above", "tasks", "exceeded"]
    distant = [
        r for r in records
        if r["split"] == "shift" and r["regressor"] in KINDS["linear"] and r["auc"] >= AUC_LIMITS[-1] and _hurts(r)
    ]  # fmt: skip
    rows = []
    for threshold in (HURTS_RATIO, EXCESS):
        exceeded = [r["actual"] > EXCESS * r["home"] for r in distant if r["expected"] > threshold * r["home"]]
        rows.append([f"{threshold:g} times the error at home", str(len(exceeded)), f"{sum(exceeded)}"])
    return header, rows


def _hurts(r: Record) -> bool:
    separation, outside = separation_of(r), r["outside"]
    outcome = judge_outcome(expected=r["expected"], home=r["home"], separation=separation, outside=outside)
    return separation.found and outcome == "hurts"
