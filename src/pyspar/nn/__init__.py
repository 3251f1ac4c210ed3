"""Adapt the last linear layer of a trained network to the data it will be used on."""

from pyspar.errors import need

need("torch", "torch")  # before the modules below import it: the error for a missing torch has the pip line

from pyspar.nn.head import AdaptedHead, adapt_head  # noqa: E402

__all__ = ["AdaptedHead", "adapt_head"]
