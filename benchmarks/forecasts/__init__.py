"""Learn and check the tables of ``pyspar.estimators.calibration``: what real shifts show about forecasts.

``measure`` makes a record of one model on one task: what is known without target labels, and the actual error.
``learn`` computes the tables from the part ``develop``, and ``check`` applies the package to the other parts.
"""
