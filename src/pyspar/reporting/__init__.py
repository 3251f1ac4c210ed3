"""``report``: an inspection with its title, command and versions, which can be saved as HTML or JSON."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspar import __version__
from pyspar.errors import InputError, need
from pyspar.inspection import Inspection, inspect
from pyspar.io.atomic import whole_file
from pyspar.wording import list_some


@dataclass(frozen=True)
class Report:
    """An inspection that can be saved as a page (``.html``) or as data (``.json``).

    Attributes
    ----------
    inspection : Inspection
        All numbers of the report.
    title : str
    command : str
        The call that created the report.
    notes : tuple of str
        Further remarks about the data.
    date : str
        The day on which the report was created, as YYYY-MM-DD.
    """

    inspection: Inspection
    title: str = "Shift report"
    command: str = ""
    notes: tuple[str, ...] = ()
    date: str = field(default_factory=lambda: datetime.date.today().isoformat())

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, text, lists and dicts; numbers that are not finite become None."""
        versions = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
        return {
            "format": "pyspar-report-1",
            "title": self.title,
            "date": self.date,
            "command": self.command,
            "versions": {"pyspar": __version__, "python": platform.python_version(), **versions},
            "notes": list(self.notes),
            **self.inspection.as_dict(),
        }

    def json(self) -> str:
        """Return the report as JSON without NaN."""
        return _escape_surrogates(json.dumps(self.as_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n")

    def html(self) -> str:
        """Return the report as one HTML page without external resources."""
        need("jinja2", "report")
        need("matplotlib", "report")
        from pyspar.reporting.page import render_page

        return _escape_surrogates(render_page(self.as_dict()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report in the format of the suffix, ``.html`` or ``.json``. On failure no file is changed."""
        suffix = Path(path).suffix.lower()
        if suffix not in (".html", ".json"):
            raise InputError(f"the name of a report must end in .html or .json, got {os.fspath(path)!r}")
        text = self.html() if suffix == ".html" else self.json()
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return f"Report({self.inspection!r})"

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        style = "width: 100%; height: 50rem; border: 1px solid #d0d7de"
        return f'<iframe srcdoc="{escape(self.html())}" style="{style}" title="{escape(self.title)}"></iframe>'


def report(
    estimator: Any,
    Z: Any,
    *,
    title: str | None = None,
    command: str | None = None,
    notes: Sequence[str] = (),
    **options: Any,
) -> Report:
    """Create a report of the expected errors on a target: ``report(est, Z).save("report.html")``.

    Parameters
    ----------
    estimator, Z, **options
        The arguments of :func:`pyspar.inspect`. The report shows predictions if Z has rows in memory.
    title : str, optional
        By default the names of the labels.
    command : str, optional
        The call to show; by default this call, with the estimator's parameters.
    notes : sequence of str
        Further remarks about the data.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import BayesSpARRegressor, report
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 40)), rng.normal(size=(100, 40))
    >>> result = report(BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=50)), Z)
    >>> result.as_dict()["outcome"]
    'no-shift'
    """
    inspection = inspect(estimator, Z, **options)
    if command is None:
        shown = {"source": "(X, y)", "y": "y_target", "groups": "groups", "target_groups": "target_groups"}
        given = "".join(f", {name}={text}" for name, text in shown.items() if options.get(name) is not None)
        command = f"pyspar.report({' '.join(inspection.estimator.split())}.fit(X, y), Z{given})"
    if title is None:
        names = [output.name for output in inspection.outputs]
        title = f"Error of label{'s' if len(names) > 1 else ''} {list_some(names)} on the target rows"
    return Report(inspection, str(title), command, tuple(map(str, notes)))


def _escape_surrogates(text: str) -> str:
    r"""Return text that can be written as UTF-8: unpaired surrogates, which names may contain, are escaped.

    The escape is also that of JSON, so that a JSON parser restores the name.

    >>> _escape_surrogates("one \ud800 alone")
    'one \\ud800 alone'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
