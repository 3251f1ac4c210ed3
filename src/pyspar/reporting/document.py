"""The report as an object: an inspection and where it came from, which page and JSON both show."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspar import __version__
from pyspar.errors import InputError, need
from pyspar.inspection import Inspection, inspect
from pyspar.inspection.compare import Weights
from pyspar.inspection.results import to_plain
from pyspar.io.atomic import whole_file

SUFFIXES = (".html", ".json")


@dataclass(frozen=True)
class Report:
    """An inspection that can be saved for people (``.html``) and for programs (``.json``).

    Attributes
    ----------
    inspection : Inspection
        Every number that is shown.
    title : str
    command : str
        The call that made it.
    notes : tuple of str
        What else a reader should know of the data.
    """

    inspection: Inspection
    title: str = "Shift report"
    command: str = ""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dicts; what is not finite is None."""
        about = {
            "format": "pyspar-report-1",
            "title": self.title,
            "command": self.command,
            "versions": versions(),
            "notes": list(self.notes),
        }
        return {**to_plain(about), **self.inspection.as_dict()}

    def json(self) -> str:
        """Return the report as JSON; it never holds NaN."""
        return _writable(json.dumps(self.as_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n")

    def html(self) -> str:
        """Return the report as one self-contained page."""
        need("jinja2", "report")
        need("matplotlib", "report")
        from pyspar.reporting.page import page

        return _writable(page(self.as_dict()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report, whole or not at all, in the form that the suffix says: ``.html`` or ``.json``."""
        suffix = Path(path).suffix.lower()
        if suffix not in SUFFIXES:
            raise InputError(f"expected a report to be named .html or .json. Got {os.fspath(path)!r}.")
        text = self.html() if suffix == ".html" else self.json()
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return f"Report({self.inspection!r})"


def report(
    estimator: Any,
    Z: Any,
    *,
    groups: Any = None,
    weights: Weights | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    title: str = "Shift report",
    command: str | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Make a report of what to expect on an unlabelled target: ``report(est, Z).save("report.html")``.

    Parameters
    ----------
    estimator : fitted SpARRegressor or BayesSpARRegressor, or a Pipeline that ends in one
        It is not changed.
    Z : whatever ``adapt`` takes
        Predictions before and after are shown where it is rows.
    groups, weights, sample_weight, columns, outputs
        As for :func:`pyspar.inspect`.
    title : str
    command : str, optional
        The call to name; by default this one, with the estimator's parameters.
    notes : sequence of str
        What else a reader should know of the data.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import BayesSpARRegressor, report
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 40)), rng.normal(size=(100, 40))
    >>> found = report(BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=50)), Z)
    >>> found.as_dict()["outputs"][0]["worth"]
    True
    """
    found = inspect(
        estimator, Z, groups=groups, weights=weights, sample_weight=sample_weight, columns=columns, outputs=outputs
    )
    given = ", groups=groups" if groups is not None else ""
    call = f"pyspar.report({' '.join(found.estimator.split())}.fit(X, y), Z{given})" if command is None else command
    return Report(found, str(title), call, tuple(map(str, notes)))


def _writable(text: str) -> str:
    r"""Return text that can be written as UTF-8: half of a pair of surrogates, which a name may hold, is escaped.

    Inside JSON the escape is JSON's own, so that a program reads the name as it was.

    >>> _writable("half \ud800 of a pair")
    'half \\ud800 of a pair'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"pyspar": __version__, "python": platform.python_version(), **others}
