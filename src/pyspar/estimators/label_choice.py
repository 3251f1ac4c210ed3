"""Temporary: import from :mod:`pyspar.estimators.labels` instead."""

from pyspar.estimators.labels import LabelChoice, rows_to_label  # temporary

__all__ = ["LabelChoice", "rows_to_label"]
