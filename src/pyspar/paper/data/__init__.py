"""Real data sets with a natural shift, each as a ShiftTask; knows nothing of models."""

from pyspar.paper.data.communities import communities_and_crime
from pyspar.paper.data.files import Found
from pyspar.paper.data.registry import load, names, where
from pyspar.paper.data.task import Part, ShiftTask

__all__ = ["Found", "Part", "ShiftTask", "communities_and_crime", "load", "names", "where"]
