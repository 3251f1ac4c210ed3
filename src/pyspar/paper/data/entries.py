"""What is known of each data set without reading it: one small entry each, and the module that reads it.

To add a set, write a module with two functions and add an entry. ``find(folder)`` returns where the set lies (a
``Found``) or raises ``MissingDataError`` with the way to get it; ``load(folder, *, seed, ...)`` returns the
``ShiftTask``, and its further keywords are the set's options. A module is imported when its set is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A data set's name, its module, and what it should be found to hold.

    ``parts`` are the rows of training, validation and test with default options (empty: they depend on the user's
    files), ``shape`` is that of one row. ``obtain`` says in short what has to be got by hand, empty where a package
    ships the set.
    """

    name: str
    module: str
    parts: tuple[int, ...]
    shape: tuple[int, ...]
    licence: str
    about: str
    obtain: str = ""


_ALL = (
    Entry(
        name="communities-and-crime",
        module="pyspar.paper.data.communities",
        parts=(1390, 231, 373),
        shape=(122,),
        licence="CC BY 4.0",
        about="violent crime from census figures, across states",
    ),
    Entry(
        name="skillcraft",
        module="pyspar.paper.data.skillcraft",
        parts=(1878, 805, 712),
        shape=(17,),
        licence="CC BY 4.0",
        about="a player's action latency, across leagues",
    ),
    Entry(
        name="rcf-mnist",
        module="pyspar.paper.data.rcf_mnist",
        parts=(40_000, 10_000, 10_000),
        shape=(3, 28, 28),
        licence="MIT",
        about="how far clothing is turned, its colour misleading",
    ),
    Entry(
        name="chair-angles-tails",
        module="pyspar.paper.data.chairs.folder",
        parts=(),
        shape=(3, 64, 64),
        licence="its authors'",
        about="how far a chair is turned, beyond the angles seen",
        obtain="RC-49, from its authors",
    ),
    Entry(
        name="chair-angles-recreated",
        module="pyspar.paper.data.chairs.recreated",
        parts=(),
        shape=(3, 64, 64),
        licence="CC0, CC BY 3.0",
        about="the same on free models, drawn by pyspar",
    ),
    Entry(
        name="povertymap",
        module="pyspar.paper.data.povertymap",
        parts=(9797, 3909, 3963),
        shape=(8, 224, 224),
        licence="public domain",
        about="wealth from satellite images, across countries",
        obtain="PovertyMap, 13 GB",
    ),
    Entry(
        name="povertymap-angola",
        module="pyspar.paper.data.povertymap_angola",
        parts=(351, 87, 417),
        shape=(8, 56, 56),
        licence="public domain",
        about="the same in small, from towns to villages",
        obtain="images made from PovertyMap",
    ),
)
ENTRIES = {entry.name: entry for entry in _ALL}
