"""The error for columns whose values are too large or too small to compute with (``VALUE_RANGE``)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspar.core.arrays import VALUE_RANGE


class ExtremeValues(ValueError):
    """The values of a column are too large or too small.

    ``column`` is its number among the features and outputs, ``name`` its name, if it has one, and ``rows`` the rows in
    which it was found, such as "batch 3".
    """

    def __init__(self, column: int, n_features: int, size: float, *, name: str = "", rows: str = "") -> None:
        self.column, self.n_features, self.size, self.name, self.rows = column, n_features, size, name, rows
        shown = repr(name) if name else column if column < n_features else column - n_features
        place = f"column {shown} of X" if column < n_features else f"output {shown} of Y"
        super().__init__(f"{rows}: {place} {self.problem}" if rows else f"{place} {self.problem}")

    @property
    def problem(self) -> str:
        """What is wrong with the column, and the fix."""
        low, high = VALUE_RANGE
        return (
            f"must be zero or have values between {low:g} and {high:g} in size, got about {self.size:.3g}; divide it "
            "by a constant first"
        )

    def describe(self, features: Sequence[str] = (), outputs: Sequence[str] = (), rows: str = "") -> ExtremeValues:
        """Return this error with the name of the column, if there is one, and with the rows.

        >>> print(ExtremeValues(1, 2, 3e-70).describe(["rooms", "area"]))
        column 'area' of X must be zero or have values between 1e-60 and 1e+60 in size, got about 3e-70; divide it ...
        """
        is_feature = self.column < self.n_features
        names, position = (features, self.column) if is_feature else (outputs, self.column - self.n_features)
        name = str(names[position]) if position < len(names) else self.name
        return ExtremeValues(self.column, self.n_features, self.size, name=name, rows=rows or self.rows)
