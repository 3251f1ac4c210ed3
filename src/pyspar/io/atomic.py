"""Old names of ``pyspar.persist`` (temporary: for callers that have not moved)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspar.persist import write_atomically


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write one file atomically (temporary)."""
    with write_atomically(path) as (part,):
        yield part
