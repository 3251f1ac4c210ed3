"""Inject faults into commands and files, and count lost or corrupted results: ``python -m benchmarks.faults``."""
