"""The report: one inspection as a page for people and as JSON for programs."""

from pyspar.reporting.document import Report, report

__all__ = ["Report", "report"]
