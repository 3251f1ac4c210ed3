"""The page: a report's plain numbers, figures and words put into one HTML file that needs nothing else."""

from __future__ import annotations

import math
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup
from scipy.special import chdtri

from pyspar.reporting import figures
from pyspar.wording import between, number

OUTPUTS = 6
DIRECTIONS = 400
GROUPS = 40
SLIDER = 16.0
STEP = 0.05
CERTAIN = 399.0
"""The slider runs over ``-log10(1 - alpha)``: 0 is alpha 0, 3 is 0.999, and each unit further a tenth of the doubt.
Alpha 1 is beyond its end, where no float64 is, and so are directions that only alpha 1 removes."""


def page(found: dict[str, Any]) -> str:
    """Return the report as HTML. ``found`` is what ``Report.as_dict`` returns."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters.update(
        number=number, between=between, percent=_percent, count=_count, tidy=_tidy, hundredths=_hundredths
    )
    shown = found["outputs"][:OUTPUTS]
    marks = [_slider_mark(STEP * i) for i in range(round(SLIDER / STEP) + 1)]
    return str(
        environment.from_string(_file("page.html")).render(
            report=found,
            outputs=[_section(found, output, k) for k, output in enumerate(shown)],
            hidden=len(found["outputs"]) - len(shown),
            css=Markup(_file("page.css")),
            js=Markup(_file("page.js")),
            slider={"most": SLIDER, "step": STEP, "lines": marks, "shown": DIRECTIONS},
        )
    )


def _section(found: dict[str, Any], output: dict[str, Any], k: int) -> dict[str, Any]:
    """Gather what one output's section shows."""
    alpha, directions = found["alpha"], output["directions"]
    shown = directions[:DIRECTIONS]
    order = sorted(range(len(directions)), key=lambda j: -(directions[j]["energy"] or 0.0))
    rank = {j: place for place, j in enumerate(order, 1)}
    ranks = [rank[j] for j in range(len(shown))]
    named = {f["name"]: f for f in output["forecasts"]}
    groups = sorted(output["groups"].items(), key=lambda item: -(item[1][-1]["rmse"] or 0.0))
    gone = [d for d in directions if d["goes"]]
    return {
        **output,
        "id": f"o{k}",
        "named": named,
        "alpha": alpha,
        "start": min(SLIDER, -math.log10(1.0 - alpha)) if alpha < 1.0 else SLIDER,
        "headline": output["findings"][0],
        "all_findings": output["findings"] + found["findings"],
        "shown": shown,
        "n_directions": len(directions),
        "two_std": None if output["label_std"] is None else 2.0 * output["label_std"],
        "n_gone": len(gone),
        "energy_gone": sum(d["energy"] or 0.0 for d in gone),
        "ratio": _ratio(named["OLS"]["rmse"], output["in_distribution"]),
        "groups": groups[:GROUPS],
        "n_groups": len(groups),
        "data": _for_script(output, directions, shown, alpha),
        "errors": Markup(figures.expected_errors(output, f"o{k}-errors")),
        "parts": Markup(figures.error_parts(output, f"o{k}-parts")),
        "inflation": Markup(figures.inflation(shown, ranks, found["n_source"], f"o{k}-inflation")),
        "plane": Markup(figures.plane(shown, f"o{k}-plane", alpha, _quantile(alpha))),
        "scatter": Markup(figures.predictions(output, f"o{k}-predictions")) if output["predictions"] else None,
    }


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
    place_of = {name: i for i, name in enumerate(names)}
    points = [
        [
            _place(d), *(_rounded(d[key]) for key in ("keeping", "removing", "inflation", "energy", "outside")),
            [[place_of[name], _rounded(share, 3)] for name, share in d["loads"]],
        ]
        for d in shown
    ]  # fmt: skip
    start = CERTAIN if alpha >= 1.0 else -math.log10(1.0 - alpha)
    return {"base": base, "start": start, "total": len(directions), "steps": steps, "names": names, "points": points}


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


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _percent(value: float | None, digits: int = 1) -> str:
    return "unknown" if value is None else f"{100.0 * value:.{digits}f}\N{NO-BREAK SPACE}%"


def _hundredths(value: float | None) -> str:
    return number(None if value is None else float(f"{100.0 * value:.3g}"))


def _tidy(text: str) -> str:
    """Keep a percent sign with its number."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _file(name: str) -> str:
    return resources.files("pyspar.reporting").joinpath(name).read_text(encoding="utf-8")
