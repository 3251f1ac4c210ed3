"""Tables of ``docs/forecasts.md``, ``docs/report.md`` and decision 18: each lies between two comments that name it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest, fisher_exact

from benchmarks.shifts.records import Record
from benchmarks.trust.check import binomial_interval
from benchmarks.trust.learn import count_outcomes
from pyspar.io.atomic import whole_file

_DOCS = Path(__file__).parents[2] / "docs"
PAGES = (_DOCS / "forecasts.md", _DOCS / "report.md", _DOCS / "decisions" / "0018-intervals-from-experience.md")
CLASS_NAMES = {"none": "no shift found", "matched": "no shift found, matched"}
Table = tuple[list[str], list[list[str]]]


def factor_rows(experience: Mapping[str, Any]) -> Table:
    """Return the factors of the expected RMSE and of row intervals, by separation."""
    header = ["separation", "80 %, linear", "95 %, linear", "80 %, any", "95 %, any", "rows, 90 %"]
    rows = []
    for name in experience["linear"]["rmse"]["0.8"]:
        cells = [
            _span(experience[kind]["rmse"][level][name]) if name != "none" else "narrow"
            for kind in ("linear", "any")
            for level in ("0.8", "0.95")
        ]
        rows.append([CLASS_NAMES.get(name, f"AUC {name}"), *cells,
                     f"{experience['linear']['rows']['0.9'][name]:.2f}"])  # fmt: skip
    return header, rows


def power_rows(experience: Mapping[str, Any]) -> Table:
    """Return the powers of the ratios to the error at home, and what a ratio of 3 changes."""
    header = ["regressors", "a", "b", "lower end, if expected is 3 times home", "upper end, if spread is 3 times home"]
    rows = []
    for kind in ("linear", "any"):
        a, b = experience[kind]["powers"]
        rows.append([kind, f"{a:g}", f"{b:g}", f"divided by {3.0**a:.2f}", f"multiplied by {3.0**b:.2f}"])
    return header, rows


def check_rows(summaries: Mapping[tuple[str, str], Mapping[str, float]]) -> Table:
    """Return the shares of tasks whose intervals held, with binomial confidence intervals."""
    header = ["", "tasks", "data sets", "80 % interval", "CI of 80 %", "95 % interval", "CI of 95 %",
              "if linear", "score", "high / low", "no shift", "no shift, AUC above 0.8", "rows, 90 %",
              "rows below 75 %"]  # fmt: skip
    rows = []
    for (kind, split), s in summaries.items():
        if not s["tasks"]:
            continue
        row = [f"{kind}, {split}", str(s["tasks"]), str(s["sets"])]
        for level in (80, 95):
            share = s[f"covered{level}"]
            row += [f"{100 * share:.0f} %", _show_interval(share, s[f"effective{level}"])]
        row += [f"{100 * s['if_linear95']:.0f} %", f"{s['score95']:.2f}", f"{s['width95']:.2f}",
                f"{100 * s['no_shift']:.0f} %"]  # fmt: skip
        row += [f"{100 * s[key]:.0f} %" if key in s else "" for key in ("no_shift_if_distant", "rows", "rows_below_75")]
        rows.append(row)
    return header, rows


def rate_rows(experience: Mapping[str, Any], checked: Mapping[str, Sequence[Record]]) -> Table:
    """Return the base rates that are printed, and those of the checked records, by kind of regressor.

    The last column is the p-value of the two-sided binomial test that the checked records have the printed rate. The
    column before is that of Fisher's exact test, in which the printed rate is a rate of a sample too.
    """
    header = ["kind", "outcome", "separation", "printed: of shifts", "exceeded", "checked: of shifts", "exceeded ",
              "CI", "p, two samples", "p"]  # fmt: skip
    rows = []
    for kind, records in checked.items():
        printed, seen = experience[kind]["base_rates"], count_outcomes(records)
        keys = {(outcome, name) for rates in (printed, seen) for outcome, of in rates.items() for name in of}
        for outcome, name in sorted(keys):
            counts = [rates.get(outcome, {}).get(name, (0, 0)) for rates in (printed, seen)]
            cells = [cell for n, k in counts for cell in ((str(n), f"{100 * k / n:.0f} %") if n else ("0", ""))]
            (n, k), (n_seen, k_seen) = counts
            cells.append(_show_interval(k_seen / n_seen, n_seen) if n_seen else "")
            if n and n_seen:
                two_samples = fisher_exact([[k, n - k], [k_seen, n_seen - k_seen]]).pvalue
                cells += [f"{two_samples:.2f}", f"{binomtest(k_seen, n_seen, k / n).pvalue:.2f}"]
            else:
                cells += ["", ""]
            rows.append([kind, outcome, name, *cells])
    return header, rows


def describe_rates(rows: Sequence[Sequence[str]], level: float = 0.05) -> str:
    """Return one sentence: how many of the checked rates differ significantly from the printed rates."""
    p_values = [float(row[-1]) for row in rows if row[-1]]
    differ = sum(p <= level for p in p_values)
    return f"{differ} of {len(p_values)} checked rates differ from the printed rates at the level of {100 * level:g} %"


def write_tables(tables: Mapping[str, Table]) -> None:
    """Replace the tables of the pages whose names occur in them."""
    for page in PAGES:
        old = text = page.read_text(encoding="utf-8")
        for name, (header, rows) in tables.items():
            lines = [header, ["---"] * len(header), *rows]
            body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
            text = re.sub(
                rf"(<!-- table {re.escape(name)} -->\n).*?(<!-- end -->)",
                lambda found, body=body: f"{found[1]}\n{body}\n\n{found[2]}",
                text,
                flags=re.DOTALL,
            )
        if text != old:
            with whole_file(page) as part:
                part.write_text(text, encoding="utf-8")


def _span(factors: Sequence[float]) -> str:
    return f"{factors[0]:.2f} to {factors[1]:.2f}"


def _show_interval(share: float, n: float) -> str:
    low, high = binomial_interval(share, n)
    return f"{100 * low:.0f} to {100 * high:.0f} %"
