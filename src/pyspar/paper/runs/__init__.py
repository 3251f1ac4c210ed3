"""Runs: train networks, fit heads to their features, score the heads, store the records."""
