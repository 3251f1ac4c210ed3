"""The report of an inspection as an HTML page and as JSON."""

from pyspar.reporting.document import Report, report

__all__ = ["Report", "report"]
