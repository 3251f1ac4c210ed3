"""The finding about target rows in categories that do not occur in the source."""

from __future__ import annotations

from pyspar.estimators.unseen_categories import UnseenRows, count_unseen, describe_columns
from pyspar.inspection.findings import Finding
from pyspar.wording import format_percent

SERIOUS_SHARE = 0.1
"""The finding is serious if at least this share of the target rows has an unseen category."""


def describe_unseen(unseen: UnseenRows) -> Finding | None:
    """Return the finding about rows in unseen categories, or None if there are none."""
    if not unseen.rows:
        return None
    return Finding(
        "SPAR014",
        "serious" if is_serious(unseen) else "warning",
        f"{count_unseen(unseen)} ({format_percent(unseen.rows / unseen.n_target)}) "
        f"{'has' if unseen.rows == 1 else 'have'} categories that do not occur in the source: "
        f"{describe_columns(unseen.columns)}. The labels carry no information about these categories, and the "
        "forecasts do not cover these rows.",
        "Label some of these rows first, or handle them with a separate model.",
    )


def is_serious(unseen: UnseenRows) -> bool:
    """Return whether so many rows have unseen categories that the error on the target is unknown."""
    return unseen.rows > 0 and unseen.rows >= SERIOUS_SHARE * unseen.n_target
