"""Benchmarks of speed (``python -m benchmarks.run``) and of errors on real shifts (``shifts``, ``networks``)."""
