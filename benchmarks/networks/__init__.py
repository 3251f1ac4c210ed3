"""Measure whether ``pyspar.nn.adapt_head`` helps or harms trained networks on real shifts.

``choice`` selects the data sets by a fixed rule. ``training`` trains the networks and caches them. ``scoring`` repairs
each network with every method and writes one record per repair. ``report`` prints the tables and writes
``docs/networks-evidence.md``. Run all of it with ``python -m benchmarks.networks``.
"""
