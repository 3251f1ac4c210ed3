"""Real linear shifts: data sets that packages ship, each with a source and a target that nature made different.

``sets`` says where the rows come from and where the source ends, ``features`` makes columns of them by fixed rules,
``methods`` fits, ``run`` keeps records, ``report`` turns records into the table, the plot and ``docs/evidence.md``.
"""
