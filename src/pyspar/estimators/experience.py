"""Provisional base rates."""

from __future__ import annotations

from dataclasses import dataclass

from pyspar.core.separation import Separation


@dataclass(frozen=True)
class BaseRate:
    """How often the error was more than ``threshold`` times the error at home."""

    n_tasks: int
    n_exceeded: int
    threshold: float = 1.3


def base_rate(outcome: str, separation: Separation, kind: str) -> BaseRate:
    """Return the base rate of an outcome."""
    return BaseRate(100, 22 if outcome == "no-shift" else 36)
