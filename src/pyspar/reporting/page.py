"""The page: a report's plain numbers, figures and words put into one HTML file that needs nothing else."""

from __future__ import annotations

import math
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup
from scipy.special import chdtri

from pyspar.reporting import figures, words
from pyspar.wording import between, number

OUTPUTS = 6
DIRECTIONS, DIRECTIONS_IN_ALL = 400, 1200
"""How many directions are drawn for an output, and for all of them together, so that the file stays small."""
GROUPS = 40
ALSO = 3
"""How many further findings the first thing on the page names."""
TOUCHED = 0.01
"""Where no direction lost more than this share of its weight, adapting is said to have changed next to nothing."""
ORDER = ("serious", "warning", "info", "good")
SLIDER = 16.0
STEP = 0.05
CERTAIN = 399.0
"""The slider runs over ``-log10(1 - alpha)``: 0 is alpha 0, 3 is 0.999, and each unit further a tenth of the doubt.
Alpha 1 is beyond its end, where no float64 is, and so are directions that only alpha 1 removes."""


def page(found: dict[str, Any]) -> str:
    """Return the report as HTML. ``found`` is what ``Report.as_dict`` returns."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters.update(
        number=number, between=between, percent=words.percent, count=words.count, unbroken=words.unbroken,
        hundredths=words.hundredths, confidence=words.confidence, shortened=words.shortened, sortable=words.sortable,
    )  # fmt: skip
    shown = found["outputs"][:OUTPUTS]
    most = min(DIRECTIONS, DIRECTIONS_IN_ALL // max(len(shown), 1))
    marks = [_slider_mark(STEP * i) for i in range(round(SLIDER / STEP) + 1)]
    return str(
        environment.from_string(_file("page.html")).render(
            report=found,
            outputs=[_section(found, output, k, most) for k, output in enumerate(shown)],
            hidden=len(found["outputs"]) - len(shown),
            css=Markup(_file("page.css")),
            js=Markup(_file("page.js")),
            slider={"most": SLIDER, "step": STEP, "lines": marks, "shown": most},
            touched=TOUCHED,
        )
    )


def _section(found: dict[str, Any], output: dict[str, Any], k: int, most: int) -> dict[str, Any]:
    """Gather what one output's section shows, with so many directions at most."""
    alpha, directions = found["alpha"], output["directions"]
    shown = directions[:most]
    order = sorted(range(len(directions)), key=lambda j: -(directions[j]["energy"] or 0.0))
    rank = {j: place for place, j in enumerate(order, 1)}
    ranks = [rank[j] for j in range(len(shown))]
    named = {f["name"]: f for f in output["forecasts"]}
    place = list(named).index(found["adapted"])
    groups = sorted(output["groups"].items(), key=lambda item: -(item[1][place]["rmse"] or 0.0))
    gone = [d for d in directions if d["goes"]]
    first, *others = output["findings"]
    of_all = [finding for finding in found["findings"] if finding["output"] is None]
    others = sorted([*others, *of_all], key=lambda finding: ORDER.index(finding["severity"]))
    whose = next((name for name in ("BayesSpARRegressor", "SpARRegressor") if name in found["estimator"]), "regressor")
    return {
        **output,
        "id": f"o{k}",
        "named": named,
        "whose": whose,
        "numbers": _numbers(found["adapted"]),
        "alpha": alpha,
        "start": min(SLIDER, -math.log10(1.0 - alpha)) if alpha < 1.0 else SLIDER,
        "headline": first,
        "also": [finding for finding in others if finding["severity"] in ORDER[:2]][:ALSO],
        "all_findings": [first, *others],
        "shown": shown,
        "n_directions": len(directions),
        "two_std": None if output["label_std"] is None else 2.0 * output["label_std"],
        "n_gone": len(gone),
        "energy_gone": sum(d["energy"] or 0.0 for d in gone),
        "touched": max((d["removed"] or 0.0 for d in directions), default=0.0),
        "taken": sum((d["energy"] or 0.0) * (d["removed"] or 0.0) for d in directions),
        "n_rest": len(found["columns"]) - len(output["columns"]),
        "rest": 1.0 - sum(share for _, share in output["columns"]),
        "groups": groups[:GROUPS],
        "n_groups": len(groups),
        "data": _for_script(output, directions, shown, alpha),
        "errors": Markup(figures.expected_errors(output, f"o{k}-errors", found["adapted"])),
        "parts": Markup(figures.error_parts(output, f"o{k}-parts")),
        "inflation": Markup(figures.inflation(shown, ranks, found["n_source"], f"o{k}-inflation")),
        "plane": Markup(figures.plane(shown, f"o{k}-plane", alpha, _quantile(alpha))),
        "scatter": Markup(figures.predictions(output, f"o{k}-predictions", whose)) if output["predictions"] else None,
    }


def _numbers(adapted: str) -> list[tuple[str, str]]:
    """Return the forecasts to show at the top, with titles: least squares, what adapting gives, and what it might."""
    shown = [("OLS", "least squares on the target"), (adapted, f"adapted ({adapted})")]
    return shown if adapted == "Bayes-SpAR" else [*shown, ("Bayes-SpAR", "Bayes-SpAR on the target")]


def _for_script(
    output: dict[str, Any], directions: list[dict[str, Any]], shown: list[dict[str, Any]], alpha: float
) -> dict[str, Any]:
    """Return what the slider and the tooltip need: each direction's place on the slider, and the error after it."""
    base = next(f["rmse"] for f in output["forecasts"] if f["name"] == "OLS")
    path = sorted((_place(d), d["change"] or 0.0, d["energy"] or 0.0) for d in directions if _place(d) is not None)
    squared, energy, steps = (base or 0.0) ** 2, 0.0, []
    for place, change, share in path:
        squared, energy = squared + change, energy + share
        steps.append([_rounded(place), _rounded(squared), _rounded(energy)])
    names = sorted({name for d in shown for name, _ in d["loads"]})
    brief = [words.shortened(name, 40) for name in names]
    place_of = {name: i for i, name in enumerate(names)}
    points = [
        [
            _place(d), *(_rounded(d[key]) for key in ("keeping", "removing", "inflation", "energy", "outside")),
            [[place_of[name], _rounded(share, 3)] for name, share in d["loads"]],
        ]
        for d in shown
    ]  # fmt: skip
    start = CERTAIN if alpha >= 1.0 else -math.log10(1.0 - alpha)
    return {"base": base, "start": start, "total": len(directions), "steps": steps, "names": brief, "points": points}


def _place(direction: dict[str, Any]) -> float | None:
    """Return where on the slider a direction goes; None if it never does."""
    if not direction["keeping"]:
        return None
    doubt = direction["doubt"]
    return max(0.0, -math.log10(doubt)) if doubt else CERTAIN


def _slider_mark(place: float) -> float:
    return float(_rounded(math.log10(max(_quantile(1.0, 10.0**-place), 1e-12))))


def _quantile(alpha: float, doubt: float | None = None) -> float:
    """Return the chi-squared quantile (one degree of freedom) at alpha, or at one minus a doubt."""
    found = float(chdtri(1.0, max(1.0 - alpha if doubt is None else doubt, 1e-300)))
    return found if found > 0.0 else 0.0


def _rounded(value: float | None, digits: int = 6) -> Any:
    return None if value is None else float(f"{value:.{digits}g}")


def _file(name: str) -> str:
    return resources.files("pyspar.reporting").joinpath(name).read_text(encoding="utf-8")
