"""Truncate files and flip bits in them. Each trial must end with an InputError or with the undamaged content.

Text and numbers without a checksum cannot be protected: a flipped bit in ``1.5`` gives another valid number. Such
changes are counted separately.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.formats import Format, list_formats
from benchmarks.faults.trials import Row, map_in_children
from pyspar.errors import InputError


def damage_files(trials: int) -> Iterator[Row]:
    """Yield two rows per format: truncated files, and files with one flipped bit."""
    for form in list_formats():
        yield from damage_format(form, trials)


def damage_format(form: Format, trials: int) -> list[Row]:
    """Damage one format in ``trials`` ways of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{form.suffix}"
        form.write(path)
        whole = path.read_bytes()
        expected = form.read(path)
        rng = np.random.default_rng(0)
        lengths = rng.integers(0, len(whole), size=trials)
        bits = rng.integers(0, 8 * len(whole), size=trials)

        def truncate(number: int) -> str:
            return _read_damaged(form, path, whole[: lengths[number]], expected)

        def flip(number: int) -> str:
            changed = bytearray(whole)
            changed[bits[number] // 8] ^= 1 << (bits[number] % 8)
            return _read_damaged(form, path, bytes(changed), expected)

        return [
            _make_row(kind, form, list(map_in_children(function, trials)))
            for kind, function in (("truncated file", truncate), ("flipped bit", flip))
        ]


def _read_damaged(form: Format, path: Path, content: bytes, expected: Any) -> str:
    path.write_bytes(content)
    try:
        value = form.read(path)
    except InputError as error:
        return f"refused {error}"
    except MemoryError:
        return "out of memory"
    except Exception as error:  # noqa: BLE001 - any other exception is the failure that is counted
        return f"raw {type(error).__name__}: {error}"
    return "unchanged" if _is_equal(value, expected) else "changed"


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    try:
        return bool(np.array_equal(one, other)) and type(one) is type(other)
    except (TypeError, ValueError):
        return False


def _make_row(fault: str, form: Format, results: list[str]) -> Row:
    counts = Counter(result.partition(" ")[0] for result in results)
    bad = sum(counts[word] for word in ("raw", "crash", "hang", "out")) + counts["changed"] * form.has_checksum
    words = {"refused": "refused", "unchanged": "read correctly", "changed": "another valid content"}
    outcome = ", ".join(f"{counts[key]} {text}" for key, text in words.items() if counts[key])
    others = Counter(result[:160] for result in results if result.split()[0] in ("raw", "crash", "hang", "out"))
    outcome += "".join(f"; {count} x {text}" for text, count in others.most_common(5))
    message = next((result.removeprefix("refused ") for result in results if result.startswith("refused")), "")
    message = re.sub(r"/[^\s']*/(?=file|features|SkillCraft)", "", message)  # the temporary folder
    return Row(fault, form.name, len(results), bad, outcome, message)
