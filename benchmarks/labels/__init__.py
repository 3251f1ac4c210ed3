"""What a few labels of the target are worth: corrections of fitted models compared on real shifts.

``python -m benchmarks.labels`` makes the missing records and writes the tables of ``docs/labels.md``.
"""
