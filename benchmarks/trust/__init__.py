"""Learn and check ``pyspar/estimators/experience.json``: what real shifts show about forecasts.

``measure`` makes a record of a task: forecasts without target labels, and the actual error. ``learn`` computes factors
and base rates from records, ``check`` applies them to data sets that were not used to learn them, and ``page`` writes
the tables of ``docs/forecasts.md``.
"""
