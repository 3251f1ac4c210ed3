"""Temporary: ``benchmarks.measure`` has these names."""

from benchmarks.measure import markdown_table as table
from benchmarks.measure import wrap

__all__ = ["table", "wrap"]
