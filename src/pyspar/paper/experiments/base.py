"""The interface of a kind of suite."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import Sheet
from pyspar.paper.runs.records import Record
from pyspar.paper.runs.run_suite import Options, SuiteRecords
from pyspar.paper.runs.spec import RunSpec
from pyspar.terminal import Progress


class SuiteKind(Protocol):
    """The functions that a module for a kind of suite defines.

    Tables and figures depend on the records only, so that they can be made again without running anything.
    """

    def gather(self, suite: Suite, options: Options, progress: Progress) -> SuiteRecords:
        """Do the missing runs of a suite, and return its records."""

    def expect(self, suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
        """Return the records that the specs of a suite lead to, with nan as their values.

        Where the data decide what is measured, such as the best setting of a search, existing records are used.
        """

    def present(self, suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
        """Return the tables of a suite and remarks about them."""

    def draw_figures(self, suite: Suite, records: list[Record], folder: Path) -> list[Path]:
        """Draw the figures of a suite into a folder, and return their paths."""
