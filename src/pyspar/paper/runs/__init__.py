"""Runs: train a network, fit its heads, score them, store the records."""
