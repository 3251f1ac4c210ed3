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

    Attributes
    ----------
    parts : rows of training, validation and test with default options; empty if they depend on the user's files
    shape : shape of one row
    obtain : the files that the user has to obtain; empty if a package contains them
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
        name="communities-and-crime",
        module="pyspar.paper.data.communities",
        parts=(1390, 231, 373),
        shape=(122,),
        licence="CC BY 4.0",
        about="violent crime from census figures, across states",
    ),
    DatasetEntry(
        name="skillcraft",
        module="pyspar.paper.data.skillcraft",
        parts=(1878, 805, 712),
        shape=(17,),
        licence="CC BY 4.0",
        about="a player's action latency, across leagues",
    ),
    DatasetEntry(
        name="rcf-mnist",
        module="pyspar.paper.data.rcf_mnist",
        parts=(40_000, 10_000, 10_000),
        shape=(3, 28, 28),
        licence="MIT",
        about="rotation of clothing, with misleading colours",
    ),
    DatasetEntry(
        name="chair-angles-tails",
        module="pyspar.paper.data.chairs.published",
        parts=(),
        shape=(3, 64, 64),
        licence="its authors'",
        about="rotation of a chair, beyond the training angles",
        obtain="RC-49, from its authors",
    ),
    DatasetEntry(
        name="chair-angles-recreated",
        module="pyspar.paper.data.chairs.recreated",
        parts=(),
        shape=(3, 64, 64),
        licence="CC0, CC BY 3.0",
        about="the same with free models, rendered by pyspar",
    ),
    DatasetEntry(
        name="povertymap",
        module="pyspar.paper.data.povertymap",
        parts=(9797, 3909, 3963),
        shape=(8, 224, 224),
        licence="DHS terms",
        about="wealth from satellite images, across countries",
        obtain="PovertyMap (13 GB)",
    ),
    DatasetEntry(
        name="povertymap-angola",
        module="pyspar.paper.data.povertymap_angola",
        parts=(351, 87, 417),
        shape=(8, 56, 56),
        licence="DHS terms",
        about="a small version, from towns to villages",
        obtain="images computed from PovertyMap",
    ),
)
DATASETS = {entry.name: entry for entry in _ENTRIES}
