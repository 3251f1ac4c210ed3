"""The numerical core: pure functions and frozen dataclasses that use only numpy and scipy."""
