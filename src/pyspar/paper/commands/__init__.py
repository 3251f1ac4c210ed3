"""The commands of ``spar`` that reproduce the paper: ``data`` and ``reproduce``."""
