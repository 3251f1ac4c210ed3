"""Networks: adapt the linear head of a trained torch model to the world it is going to be used in."""

from pyspar.errors import need

need("torch", "torch")  # before the modules below import it: a missing torch is reported with what brings it

from pyspar.nn.head import AdaptedHead, adapt_head  # noqa: E402

__all__ = ["AdaptedHead", "adapt_head"]
