"""Speed as ratios measured in one run; see ``python -m benchmarks.run --help``."""
