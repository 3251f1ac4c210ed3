"""The HTML page of a report: one file without external resources, made from the JSON form of the report."""

from __future__ import annotations

import math
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup
from scipy.special import chdtri

from pyspar.inspection.target_rows import name_weights
from pyspar.reporting import figures
from pyspar.reporting.drawing import cut_middle
from pyspar.wording import POWER_EXPONENT, count_noun, format_interval, format_number, format_p_value, format_percent

MAX_OUTPUTS = 6
MAX_DIRECTIONS, MAX_DIRECTIONS_IN_TOTAL = 400, 1200
"""The number of directions drawn for one output and for all outputs, which limits the size of the file."""
MAX_GROUPS = 40
MIN_REMOVED_SHARE = 0.01
"""The columns in the removed directions are listed if a direction lost at least this share of its weight."""
SLIDER_MAX, SLIDER_STEP = 6.0, 0.05
"""The slider shows ``-log10(1 - alpha)``: 0 is alpha 0, 3 is alpha 0.999."""
ALPHA_ONE = 399.0
"""The slider position of alpha 1, where ``1 - alpha`` is below the range of float64; directions that only alpha 1
removes have this position."""
COLUMN_EXPONENT = 4
"""In a column with very large numbers, numbers from this power of ten on are written as powers."""
MIN_DOUBT = 1e-4
_ROUNDING = 1e-9


def render_page(report: dict[str, Any]) -> str:
    """Return the result of ``Report.as_dict`` as HTML."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    no_break = "\N{NO-BREAK SPACE}"

    def keep_percent(text: str) -> str:
        return text.replace(" %", f"{no_break}%")

    environment.filters.update(
        number=format_number, between=format_interval, count="{:,.0f}".format, alpha=format_alpha,
        percent=lambda *value: keep_percent(format_percent(*value)), keep_percent=keep_percent,
        p_value=lambda value: format_p_value(value).replace(" ", no_break),
        sort_key=lambda value: "unknown" if value is None else f"{value:.6g}",  # as JavaScript reads numbers
        hundredths=format_hundredths, cut_middle=cut_middle, in_sentence=name_weights,
    )  # fmt: skip
    outputs = report["outputs"][:MAX_OUTPUTS]
    limit = min(MAX_DIRECTIONS, MAX_DIRECTIONS_IN_TOTAL // max(len(outputs), 1))
    positions = [SLIDER_STEP * i for i in range(round(SLIDER_MAX / SLIDER_STEP) + 1)]
    lines = [_round(math.log10(max(_compute_quantile(10.0**-position), 1e-12))) for position in positions]
    folder = resources.files("pyspar.reporting")
    html, css, js = (folder.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    return environment.from_string(html).render(
        report=report,
        outputs=[_prepare_section(report, output, k, limit) for k, output in enumerate(outputs)],
        hidden=len(report["outputs"]) - len(outputs),
        css=Markup(css),
        js=Markup(js),
        slider={"max": SLIDER_MAX, "step": SLIDER_STEP, "lines": lines},
        max_directions=limit,
        min_removed_share=MIN_REMOVED_SHARE,
    )


def _prepare_section(report: dict[str, Any], output: dict[str, Any], k: int, limit: int) -> dict[str, Any]:
    """Return the values that the section of one output shows, with at most ``limit`` directions."""
    by_name, headline = {forecast["name"]: forecast for forecast in output["forecasts"]}, output["findings"][0]
    place = list(by_name).index(output["recommended"])
    groups = sorted(output["groups"].items(), key=lambda item: -(item[1][place]["rmse"] or 0.0))
    findings = [finding for finding in report["findings"] if finding["output"] in (output["name"], None)]
    before, after, scatter = name_weights(report["before"]), name_weights(report["adapted"]), ""
    if before != after:  # a model that can be adapted
        scatter = figures.draw_predictions(output, f"o{k}-predictions", before, after)
    return {
        **output,
        "id": f"o{k}",
        "by_name": by_name,
        "expected": by_name[output["recommended"]],
        "code": headline["code"],
        "others": [finding for finding in findings if finding != headline],
        "groups": groups[:MAX_GROUPS],
        "n_groups": len(groups),
        "picture": Markup(figures.draw_judgement(output, f"o{k}-errors", _list_errors(report, output, by_name))),
        "parts": Markup(figures.draw_error_parts(output, f"o{k}-parts")),
        "scatter": Markup(scatter),
        "data": None,
        **(_prepare_directions(report, output, k, limit) if output["directions"] else {}),
    }


def _list_errors(
    report: dict[str, Any], output: dict[str, Any], by_name: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the errors of the first figure: at home, expected on the target, and measured if labels are known.

    With labels, the expected error after a correction with them is shown as well.
    """
    recommended, labels = output["recommended"], output["labels"]
    rows = [("home", f"at home{', new groups' if output['home_is_of_groups'] else ''}", output["home"], None, None)]
    for name in dict.fromkeys((report["before"], recommended)):
        kind, forecast = "expected" if name == recommended else "before", by_name[name]
        label = f"expected, {name_weights(name) if name == 'OLS' else name}"
        rows.append((kind, label, *(forecast[key] for key in ("rmse", "interval80", "interval95"))))
    if labels is not None:
        label = f"measured, on {count_noun(labels['n'], 'label')}"
        rows.append(("true", label, labels["rmse"], None, labels["interval"]))
    if (corrected := output["corrected"]) is not None:
        label = f"corrected, {corrected['n_labels']:g} labels"
        rows.append(("expected", label, *(corrected[key] for key in ("rmse", "interval80", "interval95"))))
    return [dict(zip(("kind", "label", "value", "interval80", "interval95"), row)) for row in rows]


def _prepare_directions(report: dict[str, Any], output: dict[str, Any], k: int, limit: int) -> dict[str, Any]:
    """Return the values of the expert sections: the directions, at most ``limit``, and their figures."""
    alpha, directions, has_rule = report["alpha"], output["directions"], report["has_rule"]
    drawn, energy = directions[:limit], [d["energy"] or 0.0 for d in directions]
    by_energy = sorted(range(len(energy)), key=lambda j: -energy[j])
    ranks = [rank for _, rank in sorted(zip(by_energy, range(1, len(energy) + 1)))][:limit]
    inflation = figures.draw_inflation(drawn, ranks, report["n_source"], f"o{k}-inflation", has_rule=has_rule)
    costs = figures.draw_costs(drawn, f"o{k}-plane", alpha, _compute_quantile(1.0 - alpha)) if has_rule else ""
    largest_cost = max(d[key] or 0.0 for d in drawn for key in ("keeping", "removing"))
    data = _prepare_script_data(report, output, drawn)
    return {
        "drawn": drawn,
        "n_removed": sum(d["goes"] for d in directions),
        "removed_energy": sum(share for share, d in zip(energy, directions) if d["goes"]),
        "all_kept": math.sqrt(max(data["base"], 0.0)),
        "max_removed_share": max(d["removed"] or 0.0 for d in directions),
        "adapted_energy": sum(share * (d["removed"] or 0.0) for share, d in zip(energy, directions)),
        "n_other_columns": len(report["columns"]) - len(output["columns"]),
        "other_columns_share": 1.0 - sum(share for _, share in output["columns"]),
        "exponent": COLUMN_EXPONENT if largest_cost >= 10.0**POWER_EXPONENT else POWER_EXPONENT,
        "data": data,
        "inflation": Markup(inflation),
        "costs": Markup(costs),
    }


def _prepare_script_data(report: dict[str, Any], output: dict[str, Any], drawn: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the data of slider and tooltip: the slider position of each direction, and the error after removing it.

    ``base`` is the expected squared error with all directions: that of the adapted weights, less the changes of the
    removed directions.
    """
    alpha, directions = report["alpha"], output["directions"]
    adapted = next(f["rmse"] for f in output["forecasts"] if f["name"] == report["adapted"])
    base = (adapted or 0.0) ** 2 - sum(d["change"] or 0.0 for d in directions if d["goes"])
    positions = [_compute_position(d) for d in directions]
    changes = [(position, d["change"] or 0.0, d["energy"] or 0.0) for position, d in zip(positions, directions)]
    squared, energy, steps = base, 0.0, []
    for position, change, share in sorted(step for step in changes if step[0] is not None):
        squared, energy = squared + change, energy + share
        steps.append([_round(position), _round(squared), _round(energy)])
    names = sorted({name for d in drawn for name, _ in d["loads"]})
    index = {name: i for i, name in enumerate(names)}
    points = [
        [
            position, *(_round(d[key]) for key in ("keeping", "removing", "inflation", "energy", "outside")),
            [[index[name], _round(share, 3)] for name, share in d["loads"]],
        ]
        for position, d in zip(positions, drawn)
    ]  # fmt: skip
    return {
        "base": _round(base),
        "known": adapted is not None,
        "start": ALPHA_ONE if alpha >= 1.0 else -math.log10(1.0 - alpha),
        "steps": steps,
        "names": [cut_middle(name, 40) for name in names],
        "points": points,
    }


def _compute_position(direction: dict[str, Any]) -> float | None:
    """Return the slider position from which a direction is removed; None if it is always kept."""
    if not direction["keeping"]:
        return None
    doubt = direction["doubt"]
    return max(0.0, -math.log10(doubt)) if doubt else ALPHA_ONE


def _compute_quantile(doubt: float) -> float:
    """Return the chi-squared quantile (one degree of freedom) at the confidence ``1 - doubt``."""
    return max(float(chdtri(1.0, max(doubt, 1e-300))), 0.0)


def _round(value: float | None, digits: int = 6) -> Any:
    return None if value is None else float(f"{value:.{digits}g}")


def format_hundredths(value: float | None) -> str:
    """Return a fraction in per cent with three digits and without the sign.

    >>> format_hundredths(0.12345), format_hundredths(1e-16)
    ('12.3', '0')
    """
    if value is not None and abs(value) < _ROUNDING:
        return "0"
    return format_number(None if value is None else float(f"{100.0 * value:.3g}"))


def format_alpha(alpha: float | None, doubt: float | None) -> str:
    """Return the confidence from which a direction is removed; confidences close to one are not distinguished.

    >>> format_alpha(0.5, 0.5), format_alpha(1.0, 2.5e-7), format_alpha(1.0, 0.0)
    ('0.5', 'over 0.9999', '1')
    """
    if alpha is not None and doubt and doubt < MIN_DOUBT:
        return f"over {1.0 - MIN_DOUBT:g}"
    return format_number(alpha)
