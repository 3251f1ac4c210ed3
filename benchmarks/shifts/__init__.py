"""Real shifts: data sets that packages ship, each with a natural shift between source and target.

``sets`` loads and splits the rows, ``features`` computes the columns, ``methods`` fits, and ``run`` writes records.
"""
