"""The catalogue of data sets: name, module, expected rows and shape, licence and description.

To add a data set, write a module with two functions and add an entry. ``find(folder)`` returns the ``Location`` of the
data set or raises ``MissingDataError`` with the way to get it. ``load(folder, *, seed, ...)`` returns the
``ShiftTask``, and its other keywords are the options of the data set. A module is imported when it is first used.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DatasetEntry:
    """The name and module of a data set, and its expected content.

    ``parts`` are the rows of training, validation and test, empty if they depend on the user's files. ``shape`` is that
    of one row. ``obtain`` names the files that the user has to obtain, and is empty if a package contains them.
    """

    name: str
    module: str
    parts: tuple[int, ...]
    shape: tuple[int, ...]
    licence: str
    about: str
    obtain: str = ""


_ENTRIES = (
    DatasetEntry(
        "communities-and-crime", "communities", (1390, 231, 373), (122,),
        "CC BY 4.0", "violent crime from census figures, across states",
    ),
    DatasetEntry(
        "skillcraft", "skillcraft", (1878, 806, 711), (17,),
        "CC BY 4.0", "a player's action latency, across leagues",
    ),
    DatasetEntry(
        "rcf-mnist", "rcf_mnist", (40_000, 10_000, 10_000), (3, 28, 28),
        "MIT", "rotation of clothing, with misleading colours",
    ),
    DatasetEntry(
        "chair-angles-tails", "chairs.published", (), (3, 64, 64),
        "its authors'", "rotation of a chair, beyond the training angles", "RC-49, from its authors",
    ),
    DatasetEntry(
        "chair-angles-recreated", "chairs.recreated", (), (3, 64, 64),
        "CC0, CC BY 3.0", "the same with free models, rendered by pyspar",
    ),
    DatasetEntry(
        "povertymap", "povertymap", (9797, 3909, 3963), (8, 224, 224),
        "DHS terms", "wealth from satellite images, across countries", "PovertyMap (13 GB)",
    ),
    DatasetEntry(
        "povertymap-angola", "povertymap_angola", (351, 87, 417), (8, 56, 56),
        "DHS terms", "a small version, from towns to villages", "images computed from PovertyMap",
    ),
)  # fmt: skip
DATASETS = {entry.name: entry for entry in _ENTRIES}
