"""The experiments of the paper: the suites, and one module for each kind of suite."""
