"""Data sets with a natural distribution shift, each loaded as a ShiftTask."""

from pyspar.paper.data.files import Location
from pyspar.paper.data.registry import load, names, where
from pyspar.paper.data.task import Part, ShiftTask

__all__ = ["Location", "Part", "ShiftTask", "load", "names", "where"]
