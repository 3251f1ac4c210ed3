"""Real shifts: data sets that packages ship, each with a natural shift between source and target.

``sets`` loads and splits the rows, ``features`` computes the columns, ``methods`` fits, ``run`` writes records, and
``report`` turns records into tables, ``docs/evidence.md`` and ``docs/evidence-sets.md``.
"""
