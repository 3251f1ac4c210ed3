"""How much memory is free, and whether a file is too large to be read whole."""

from __future__ import annotations

import os
from pathlib import Path

_SHARE = 4
"""A table takes several times its size in the file while it is read and encoded."""


def free_memory() -> int | None:
    """Return the free memory in bytes, or None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def size_of(path: Path) -> int:
    """Return the size of a file, or of the files in a folder."""
    if path.is_dir():
        return sum(each.stat().st_size for each in path.iterdir() if each.is_file())
    return path.stat().st_size if path.exists() else 0


def too_large(path: Path) -> bool:
    """Say whether a file is larger than a quarter of the free memory."""
    return scarce(size_of(path))


def scarce(n_bytes: int) -> bool:
    """Say whether so many bytes are more than a quarter of the free memory."""
    free = free_memory()
    return free is not None and n_bytes > free // _SHARE
