"""When does refitting the head of a network help under a shift, and when does it harm? A factorial experiment.

``run`` trains the networks and scores their heads. ``analysis`` computes effects and tests of hypotheses from the
records. ``page`` writes ``docs/when-spar-helps.md``. Run all of it with ``python -m benchmarks.when_spar_helps``.
"""
