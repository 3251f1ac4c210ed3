"""Adapt the last linear layer of a trained network to the data it will be used on."""

from pyspar.errors import need

need("torch", "torch")  # fail here with the pip command if torch is missing

from pyspar.nn.head import AdaptedHead, adapt_head  # noqa: E402

__all__ = ["AdaptedHead", "adapt_head"]
