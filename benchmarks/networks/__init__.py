"""Whether ``pyspar.nn.adapt_head`` helps or harms networks that are already well trained, on real shifts.

``training`` trains the networks and caches them. ``scoring`` repairs each one and writes a record per repair. Run both
with ``python -m benchmarks.networks``. ``benchmarks.evidence`` writes the table.
"""
