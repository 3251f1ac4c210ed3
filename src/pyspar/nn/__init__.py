"""Adapt a trained network to an unlabelled target: its linear head, or, with ``align``, its features."""

from pyspar.errors import need

need("torch", "torch")  # fail here with the pip command if torch is missing

from pyspar.nn.align import Alignment, align, summarize  # noqa: E402
from pyspar.nn.head import AdaptedHead, adapt_head  # noqa: E402
from pyspar.nn.source_summary import SourceSummary  # noqa: E402

__all__ = ["AdaptedHead", "Alignment", "SourceSummary", "adapt_head", "align", "summarize"]
