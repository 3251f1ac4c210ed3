"""PovertyMap: predict a village's wealth from a satellite image, in countries that training never saw.

The folder of WILDS v1.1 is read as it is, without the package: ``poverty_v1.1/dhs_metadata.csv`` and
``images/landsat_poverty_img_{row}.npz``, eight channels of 224 x 224, already standardised by WILDS. Countries make
five folds, A to E; the rows within the countries of training are cut as WILDS does, with its generator and seeds.

Source: Koh et al. (2021), after Yeh et al. (2020); images of Landsat, DMSP and VIIRS, in the public domain in the US.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pyspar.core.arrays import Vector
from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.access import is_file, is_folder
from pyspar.paper.data.files import Found, cached_folder_for, folders_for, require_sum
from pyspar.paper.data.image_files import ImageFiles
from pyspar.paper.data.task import Part, ShiftTask

NAME, FOLDS = "povertymap", "ABCDE"
METADATA, METADATA_SHA256 = "dhs_metadata.csv", "a9260aee2561ba294b0d0e3aec31249499f73780671fdf6fedf267b4988841f2"
UNLABELED, UNLABELED_METADATA = "poverty_unlabeled_v1.0", "unlabeled_metadata.csv"
PATTERN = "landsat_poverty_img_{}.npz"
RURAL, URBAN = 0, 1
_PLACES = {"true": URBAN, "1": URBAN, "1.0": URBAN, "false": RURAL, "0": RURAL, "0.0": RURAL}

# Five sets of countries; a fold is tested on one, validated on the next, and trained on the other three.
_SETS = (
    ("angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda"),
    ("benin", "burkina_faso", "guinea", "sierra_leone", "tanzania"),
    ("cameroon", "ghana", "malawi", "zimbabwe"),
    ("democratic_republic_of_congo", "mozambique", "nigeria", "togo", "uganda"),
    ("kenya", "lesotho", "senegal", "zambia"),
)
_HELD_OUT = 1000  # rows for the validation, and as many for the test, within the countries of training
_WILDS_SEED = 541433

Rows = NDArray[np.int64]
World = Literal["ood", "id"]


@dataclass(frozen=True, eq=False)
class Metadata:
    """One row per image: the label (NaN where there is none), whether it is urban, the country."""

    wealth: Vector
    urban: NDArray[np.int64]
    country: NDArray[np.str_]


def find(folder: str | os.PathLike[str] | None = None) -> Found:
    """Return the folder that holds the metadata and the images."""
    for place in (
        *folders_for("poverty_v1.1", folder), *folders_for(NAME, folder), cached_folder_for("poverty_v1.1"),
    ):  # fmt: skip
        if is_file(place.path / METADATA) and is_folder(place.path / "images"):
            return replace(place, lacks=_lacks(place.path))
    raise MissingDataError(
        "The data set 'povertymap' was not found (13.1 GB). Get it with: pip install wilds && python -c "
        "\"from wilds import get_dataset; get_dataset('poverty', root_dir='data', download=True)\"\n"
        f"then name that folder 'data', which holds poverty_v1.1/{METADATA} and "
        f"poverty_v1.1/images/{PATTERN.format(0)} and so on, by PYSPAR_DATA, --data or folder=."
    )


def _lacks(path: Path) -> str:
    """Say how many images are there if they are fewer than the rows of the metadata; counted, not opened."""
    with (path / METADATA).open("rb") as lines:
        rows = sum(1 for line in lines if line.strip()) - 1
    with os.scandir(path / "images") as entries:
        there = sum(1 for entry in entries if entry.name.endswith(".npz") and not entry.name.startswith("."))
    return f"{there:,} of {rows:,} images" if there < rows else ""


def load(
    folder: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    fold: str | None = None,
    val: World = "ood",
    test: World = "ood",
    unlabeled: bool = False,
    verify: bool = True,
    incomplete: bool = False,
    keep: int = 0,
) -> ShiftTask:
    """Load a fold, by default number ``seed`` modulo 5; images are read when asked for (``ImageFiles``).

    ``val`` and ``test`` are of other countries ("ood"), or held out of those of training ("id"). ``unlabeled`` adds the
    pool of ``poverty_unlabeled_v1.0``, from the countries of the test. ``verify=False`` accepts other metadata in this
    layout, ``incomplete=True`` leaves out rows without an image, ``keep`` images of each part stay in memory.
    """
    fold = FOLDS[seed % 5] if fold is None else fold
    for option, value in (("val", val), ("test", test)):
        if value not in ("ood", "id"):
            raise InputError(f"{option} must be 'ood' or 'id'. Got {value!r} instead.")
    place = find(folder)
    if verify:
        cure = "Get it again, or pass verify=False for data of your own in this layout."
        require_sum(place.path / METADATA, METADATA_SHA256, cure=cure)
    metadata = read_metadata(place.path / METADATA)
    rows = parts_of(metadata, fold)

    def part(name: str) -> Part:
        return _part(place.path / "images", metadata, rows[name], keep, incomplete=incomplete, what=name)

    return ShiftTask(
        name=NAME,
        train=part("train"),
        val=part("val" if val == "ood" else "id_val"),
        test=part("test" if test == "ood" else "id_test"),
        group_kind="urban or rural",
        source=f"PovertyMap-WILDS v1.1 (Koh et al. 2021), fold {fold}",
        licence="images: US public domain; labels: DHS Program",
        unlabeled=_pool(place.path, folder, fold, keep, incomplete=incomplete) if unlabeled else None,
        metric="r",
    )


def read_metadata(path: Path, *, labelled: bool = True) -> Metadata:
    """Read the columns country, wealthpooled and urban; an unlabelled pool needs the country alone."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} must be a table (CSV) in UTF-8. Got: {error}. Get it again.") from error
    needed = ("country", "wealthpooled", "urban") if labelled else ("country",)
    if not rows or any(column not in rows[0] for column in needed):
        got = ", ".join(map(str, rows[0])) if rows else "no rows"
        raise InputError(f"{path} must be a table with the columns {', '.join(needed)}. Got {got}.")
    for line, row in enumerate(rows, 2):
        if not row["country"]:
            raise InputError(f"{path}, line {line}: expected a country. Got a row without one; get the file again.")
    country = np.array([row["country"] for row in rows])
    unknown = sorted(set(country.tolist()) - {name for some in _SETS for name in some})
    if unknown:
        raise InputError(f"{path} names countries of no fold: {', '.join(unknown)}. Spell them as WILDS does.")
    try:
        wealth = np.array([float(row.get("wealthpooled") or "nan") for row in rows])
    except ValueError as error:
        raise InputError(f"{path} must have numbers in the column wealthpooled ({error}).") from error
    if np.isinf(wealth).any():
        line = int(np.flatnonzero(np.isinf(wealth))[0]) + 2
        raise InputError(
            f"{path} must have finite numbers in the column wealthpooled. Got {wealth[line - 2]}, line {line}."
        )
    urban = [_kind_of_place(path, line, row.get("urban")) if labelled else RURAL for line, row in enumerate(rows, 2)]
    return Metadata(wealth, np.array(urban, dtype=np.int64), country)


def _kind_of_place(path: Path, line: int, told: str | None) -> int:
    try:
        return _PLACES[(told or "").strip().lower()]
    except KeyError as error:
        raise InputError(f"{path}, line {line}: urban must be True or False. Got {told!r}.") from error


def countries_of(fold: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the countries of a fold's validation and of its test.

    >>> countries_of("C")[1]
    ('cameroon', 'ghana', 'malawi', 'zimbabwe')
    """
    if fold not in tuple(FOLDS):
        raise InputError(f"fold must be one of {', '.join(FOLDS)}. Got {fold!r} instead.")
    place = FOLDS.index(fold)
    return _SETS[(place + 1) % 5], _SETS[place]


def parts_of(metadata: Metadata, fold: str) -> dict[str, Rows]:
    """Return the rows of WILDS's five parts: train, id_val, id_test (the same countries), val and test (others).

    Rows without a label are left out after the cut, so that they move no other row.
    """
    val, test = countries_of(fold)
    in_val, in_test = np.isin(metadata.country, val), np.isin(metadata.country, test)
    rows = np.flatnonzero(~in_val & ~in_test)
    np.random.default_rng(_WILDS_SEED + ord(fold)).shuffle(rows)
    held = min(_HELD_OUT, rows.size // 10)  # a tenth in small folders; 1000 in every fold of the real one
    parts = {
        "train": rows[2 * held :],
        "id_val": rows[:held],
        "id_test": rows[held : 2 * held],
        "val": np.flatnonzero(in_val),
        "test": np.flatnonzero(in_test),
    }
    return {name: np.sort(some[~np.isnan(metadata.wealth[some])]) for name, some in parts.items()}


def _part(images: Path, metadata: Metadata, rows: Rows, keep: int, *, incomplete: bool, what: str) -> Part:
    rows = _with_images(images, rows, incomplete=incomplete, what=what)
    return Part(ImageFiles(images, rows, pattern=PATTERN, keep=keep), metadata.wealth[rows], metadata.urban[rows])


def _with_images(images: Path, rows: Rows, *, incomplete: bool, what: str) -> Rows:
    missing = ImageFiles(images, rows, pattern=PATTERN).missing()
    if missing.size and not incomplete:
        raise MissingDataError(
            f"{images} lacks {missing.size:,} of the {rows.size:,} images of the part {what}, the first of them "
            f"{PATTERN.format(missing[0])}. Get the whole set, or pass incomplete=True to leave these rows out."
        )
    rows = np.setdiff1d(rows, missing)
    if not rows.size:
        raise MissingDataError(
            f"{images} holds no image of the part {what}. Get the whole set, or choose another fold."
        )
    return rows


def _pool(
    labelled: Path, folder: str | os.PathLike[str] | None, fold: str, keep: int, *, incomplete: bool
) -> ImageFiles:
    """Return the unlabelled images from the countries of the test (WILDS's part test_unlabeled)."""
    beside = [labelled.parent / UNLABELED, *(place.path for place in folders_for(UNLABELED, folder))]
    for path in beside:
        if is_file(path / UNLABELED_METADATA):
            country = read_metadata(path / UNLABELED_METADATA, labelled=False).country
            rows = np.flatnonzero(np.isin(country, countries_of(fold)[1]))
            rows = _with_images(path / "images", rows, incomplete=incomplete, what="test_unlabeled")
            return ImageFiles(path / "images", rows, pattern=PATTERN, keep=keep)
    raise MissingDataError(
        "The unlabelled images of 'povertymap' were not found (172.7 GB). Get them with: pip install wilds && "
        'python -c "from wilds import get_dataset; '
        "get_dataset('poverty', root_dir='data', unlabeled=True, download=True)\"\n"
        f"so that {UNLABELED}/{UNLABELED_METADATA} lies beside {labelled.name}."
    )
