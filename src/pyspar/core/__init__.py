"""The mathematics: pure functions and frozen dataclasses over numpy and scipy, no checks, no output."""
