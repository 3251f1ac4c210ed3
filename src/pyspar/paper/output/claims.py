"""The paper's statements one by one, each answered from the committed records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pyspar.paper.experiments.methods import compute_gains, judge_gain
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.output.overview import cost_ratios, inflation_ratios
from pyspar.paper.output.tables import Sheet
from pyspar.paper.runs.records import group_values, read_suite_records

TABLES = ("tabular", "tabular-tuned")
IMAGES = ("rcf-mnist", "rcf-mnist-pretrained", "chair-angles", "chair-angles-pretrained")
Answer = tuple[str, str]
UNKNOWN: Answer = ("not verified", "no records")


def make_claims(results: Path) -> Sheet:
    """Return one row for each statement: the answer, and the figures it rests on."""
    rows = [
        ("Theorems 1 to 3, Proposition 1, Lemma 1", "yes", "simulated in `tests/theory`"),
        ("Table 1: SpAR beats least squares, and PCR where nothing is inflated", "yes", "every printed digit"),
        ("SpAR beats the trained head on tables", *_judge_gains(results, TABLES)),
        ("SpAR beats least squares on tables", *_judge_gains(results, TABLES, " + OLS")),
        ("SpAR consistently improves every method on images", *_judge_gains(results, IMAGES)),
        (
            "The projection, not the refit, gives the gain on images (the paper has no OLS row)",
            *_judge_gains(results, IMAGES, " + OLS"),
        ),
        ("A higher alpha could give a better worst group on Communities and Crime", *_judge_higher_alpha(results)),
        ("Alpha too close to 1 gives a poor worst group on SkillCraft", *_judge_alpha_near_one(results)),
        ("Test directions are inflated where training directions are not", *_judge_inflation(results)),
        ("SpAR adds little time", *_judge_cost(results)),
        ("SpAR improves the worst group of PovertyMap, also with unlabelled data", "not verified", "no data here"),
    ]
    return Sheet("", ("statement", "answer", "figures"), rows)


def _judge_gains(results: Path, names: Iterable[str], other_head: str = "") -> Answer:
    """Judge the gain of SpAR over another head in all cells of suites."""
    gains, n_former = [], 0
    for name in names:
        suite = read_suite(name)
        for (_, _, method, other), gain in compute_gains(suite, read_suite_records(results, name)).items():
            base = method.removesuffix(" + SpAR")
            if base != method and other == base + other_head:
                gains.append(gain)
                n_former += suite.is_former(method)
    if not gains:
        return UNKNOWN
    verdicts = [judge_gain(gain) for gain in gains]
    lower, better, worse = sum(gain.mean() > 0 for gain in gains), verdicts.count("better"), verdicts.count("worse")
    answer = "yes" if lower >= 0.9 * len(gains) and not worse else "partly" if better > worse else "no"
    figures = f"better in {lower} of {len(gains)} cells, significantly in {better}; significantly worse in {worse}"
    return answer, figures + (f"; {n_former} of the cells are of the former protocol" if n_former else "")


def _worst_group_by_alpha(results: Path, task: str) -> dict[float, float]:
    records = read_suite_records(results, "alpha")
    chosen = (r for r in records if r.task == task and r.metric == "worst-group rmse" and r.at is not None)
    return {at: float(np.mean(numbers)) for (at,), numbers in group_values(chosen, "at").items()}


def _judge_higher_alpha(results: Path) -> Answer:
    means = _worst_group_by_alpha(results, "communities-and-crime")
    higher = {at: mean for at, mean in means.items() if at > 0.999}
    if 0.999 not in means or not higher:
        return UNKNOWN
    best = min(higher, key=lambda at: higher[at])
    gain = means[0.999] - higher[best]
    answer = "yes" if gain > 0.01 * means[0.999] else "partly" if gain > 0 else "no"
    return answer, f"{means[0.999]:.4f} at 0.999, {higher[best]:.4f} at {best:.10g}"


def _judge_alpha_near_one(results: Path) -> Answer:
    means = _worst_group_by_alpha(results, "skillcraft")
    if not {0.999, 1.0} <= means.keys():
        return UNKNOWN
    below = max(at for at in means if at < 1)
    answer = "yes" if means[below] > 1.5 * means[0.999] else "partly"
    return answer, f"{means[0.999]:.2f} at 0.999, {means[below]:.2f} at {below:.10g}, {means[1.0]:.2f} at 1"


def _judge_inflation(results: Path) -> Answer:
    records = read_suite_records(results, "spectral-inflation")
    if not records:
        return UNKNOWN
    ratios = inflation_ratios(records)
    figures = " and ".join(f"{ratio:.3g}" for ratio in ratios)
    return "yes" if min(ratios) > 1 else "no", f"tables only: largest value {figures} times as large on the target"


def _judge_cost(results: Path) -> Answer:
    records = read_suite_records(results, "cost")
    if not records:
        return UNKNOWN
    ours, theirs = cost_ratios(records)
    return "yes" if ours < 1.5 else "no", f"tables only: {ours:.2f} times the time of ERM; published {theirs:.2f}"
