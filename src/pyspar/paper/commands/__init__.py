"""The commands of ``spar`` that reproduce the paper: ``data``, ``reproduce`` and ``demo``."""
