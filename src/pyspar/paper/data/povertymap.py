"""PovertyMap: predict the wealth of a village from a satellite image, in countries that are not in the training part.

The module reads the folder of WILDS v1.1 without the package: ``poverty_v1.1/dhs_metadata.csv`` and
``images/landsat_poverty_img_{row}.npz``, eight channels of 224 x 224, standardised by WILDS. The countries form five
folds, A to E. Rows within the training countries are split as in WILDS, with its generator and seeds.

Source: Koh et al. (2021), after Yeh et al. (2020); images of Landsat, DMSP and VIIRS, in the public domain in the US.
"""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pyspar.core.moments import Vector
from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.files import Location, cache_folder, cache_location, candidate_folders, check_sha256
from pyspar.paper.data.image_files import ImageFiles
from pyspar.paper.data.task import Part, RowIndices, ShiftTask
from pyspar.paper.parameters import check_choice

NAME, FOLDS = "povertymap", "ABCDE"
METADATA, METADATA_SHA256 = "dhs_metadata.csv", "a9260aee2561ba294b0d0e3aec31249499f73780671fdf6fedf267b4988841f2"
UNLABELED, UNLABELED_METADATA = "poverty_unlabeled_v1.0", "unlabeled_metadata.csv"
PATTERN = "landsat_poverty_img_{}.npz"
RURAL, URBAN = 0, 1
_URBAN_CODES = {"true": URBAN, "1": URBAN, "1.0": URBAN, "false": RURAL, "0": RURAL, "0.0": RURAL}

# Five sets of countries. A fold is tested on one, validated on the next, and trained on the other three.
_COUNTRY_SETS = (
    ("angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda"),
    ("benin", "burkina_faso", "guinea", "sierra_leone", "tanzania"),
    ("cameroon", "ghana", "malawi", "zimbabwe"),
    ("democratic_republic_of_congo", "mozambique", "nigeria", "togo", "uganda"),
    ("kenya", "lesotho", "senegal", "zambia"),
)
_HELD_OUT = 1000  # rows of the training countries for validation, and as many for the test
_WILDS_SEED = 541433


@dataclass(frozen=True, eq=False)
class Metadata:
    """One row per image: the label (NaN if missing), 1 if it is urban, and the country."""

    wealth: Vector
    urban: NDArray[np.int64]
    country: NDArray[np.str_]


def find(folder: str | os.PathLike[str] | None = None, *, unlabeled: bool = False) -> Location:
    """Return the folder with the metadata and the images. ``missing`` says what is absent, also of the pool."""
    for place in (
        *candidate_folders("poverty_v1.1", folder), *candidate_folders(NAME, folder), cache_location("poverty_v1.1"),
    ):  # fmt: skip
        if (place.path / METADATA).is_file() and (place.path / "images").is_dir():
            missing = _count_missing(place.path)
            if unlabeled and _find_pool(place.path, folder) is None:
                missing = ", ".join(filter(None, [missing, "no unlabelled images"]))
            return replace(place, missing=missing)
    raise MissingDataError(
        "data set not found: 'povertymap' (13.1 GB). Get it with: pip install wilds && python -c "
        "\"from wilds import get_dataset; get_dataset('poverty', root_dir='data', download=True)\"\n"
        f"then pass the folder 'data', with poverty_v1.1/{METADATA} and poverty_v1.1/images/{PATTERN.format(0)} etc., "
        "as PYSPAR_DATA, --data or folder=."
    )


def _count_missing(path: Path) -> str:
    with (path / METADATA).open("rb") as lines:
        rows = sum(1 for line in lines if line.strip()) - 1
    with os.scandir(path / "images") as entries:
        images = sum(1 for entry in entries if entry.name.endswith(".npz") and not entry.name.startswith("."))
    return f"{images:,} of {rows:,} images" if images < rows else ""


def load(
    folder: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    fold: str | None = None,
    test: Literal["ood", "id"] = "ood",
    unlabeled: bool = False,
    verify: bool = True,
    incomplete: bool = False,
    cache: bool = True,
) -> ShiftTask:
    """Load a fold, by default number ``seed`` modulo 5. Images are read when they are indexed (``ImageFiles``). The
    test rows are from other countries ("ood"), or held out from the training countries ("id"). ``unlabeled`` adds the
    pool of ``poverty_unlabeled_v1.0`` from the test countries. ``verify=False`` accepts other metadata in this
    layout, ``incomplete=True`` drops rows without an image, and ``cache=False`` stores no images.
    """
    fold = FOLDS[seed % 5] if fold is None else fold
    check_choice("test", test, ("ood", "id"))
    place = find(folder)
    if verify:
        fix = "get it again, or pass verify=False for your own data in this layout"
        check_sha256(place.path / METADATA, METADATA_SHA256, fix=fix)
    metadata = read_metadata(place.path / METADATA)
    rows = split_rows(metadata, fold)
    origin = hashlib.sha256(str(place.path.resolve()).encode()).hexdigest()[:12]
    file = cache_folder() / NAME / f"images-{origin}.float16" if cache else None

    def make_part(name: str) -> Part:
        images = _find_images(place.path / "images", rows[name], incomplete=incomplete, name=name)
        images.cache, images.count = file, len(metadata.wealth)
        return Part(images, metadata.wealth[images.numbers], metadata.urban[images.numbers])

    fit, validation, target = map(make_part, ("train", "val", "test" if test == "ood" else "id_test"))
    pool = _load_pool(place.path, folder, fold, incomplete=incomplete) if unlabeled else None
    source = f"PovertyMap-WILDS v1.1 (Koh et al. 2021), fold {fold}"
    licence = "images: US public domain; labels: DHS Program"
    return ShiftTask(NAME, fit, validation, target, "urban or rural", source, licence, unlabeled=pool, metric="r")


def read_metadata(path: Path, *, labelled: bool = True) -> Metadata:
    """Read the columns country, wealthpooled and urban. An unlabelled pool requires only the country."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        country = np.array([row["country"] for row in rows])
        wealth = np.array([float(row["wealthpooled"] or "nan") if labelled else np.nan for row in rows])
        urban = np.array([_URBAN_CODES[row["urban"].strip().lower()] if labelled else RURAL for row in rows])
    except (KeyError, ValueError, AttributeError, csv.Error) as error:
        needed = "columns country, wealthpooled (numbers) and urban (True or False)" if labelled else "column country"
        raise InputError(
            f"{str(path)!r} must be a CSV file in UTF-8 with the {needed} ({type(error).__name__}: {error})"
        ) from error
    unknown = sorted(set(country.tolist()) - {name for countries in _COUNTRY_SETS for name in countries})
    if unknown or not rows:
        raise InputError(f"{str(path)!r} has no rows or unknown countries: {unknown}; use the spelling of WILDS")
    if np.isinf(wealth).any():
        raise InputError(f"{str(path)!r}: the column wealthpooled must be finite")
    return Metadata(wealth, urban, country)


def countries_of(fold: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the validation countries and the test countries of a fold."""
    check_choice("fold", fold, FOLDS)
    position = FOLDS.index(fold)
    return _COUNTRY_SETS[(position + 1) % 5], _COUNTRY_SETS[position]


def split_rows(metadata: Metadata, fold: str) -> dict[str, RowIndices]:
    """Return the rows of WILDS's five parts: train, id_val, id_test (equal countries), val and test (others). Rows
    without a label are dropped after the split, so that they do not change the split of the others.
    """
    val, test = countries_of(fold)
    in_val, in_test = np.isin(metadata.country, val), np.isin(metadata.country, test)
    rows = np.flatnonzero(~in_val & ~in_test)
    np.random.default_rng(_WILDS_SEED + ord(fold)).shuffle(rows)
    held = min(_HELD_OUT, rows.size // 10)  # a tenth in small folders, 1000 in every real fold
    parts = {
        "train": rows[2 * held :],
        "id_val": rows[:held],
        "id_test": rows[held : 2 * held],
        "val": np.flatnonzero(in_val),
        "test": np.flatnonzero(in_test),
    }
    return {name: np.sort(part[~np.isnan(metadata.wealth[part])]) for name, part in parts.items()}


def _find_images(folder: Path, rows: RowIndices, *, incomplete: bool, name: str) -> ImageFiles:
    """Return the images of rows. If images are missing, raise an error, or drop their rows if ``incomplete``."""
    missing = ImageFiles(folder, rows, pattern=PATTERN).missing()
    if (missing.size and not incomplete) or missing.size == rows.size:
        first = f", first {PATTERN.format(missing[0])}" if missing.size else ""
        raise MissingDataError(
            f"{missing.size:,} of {rows.size:,} images of the part {name!r} are missing in {str(folder)!r}{first}; get "
            "the complete data set, pass incomplete=True to drop these rows, or choose another fold"
        )
    return ImageFiles(folder, np.setdiff1d(rows, missing), pattern=PATTERN)


def _find_pool(labelled: Path, folder: str | os.PathLike[str] | None) -> Path | None:
    candidates = [labelled.parent / UNLABELED, *(place.path for place in candidate_folders(UNLABELED, folder))]
    return next((path for path in candidates if (path / UNLABELED_METADATA).is_file()), None)


def _load_pool(labelled: Path, folder: str | os.PathLike[str] | None, fold: str, *, incomplete: bool) -> ImageFiles:
    path = _find_pool(labelled, folder)
    if path is None:
        raise MissingDataError(
            "unlabelled images of 'povertymap' not found (172.7 GB). Get them with: pip install wilds && "
            'python -c "from wilds import get_dataset; '
            "get_dataset('poverty', root_dir='data', unlabeled=True, download=True)\"\n"
            f"so that {UNLABELED}/{UNLABELED_METADATA} is next to {labelled.name}."
        )
    country = read_metadata(path / UNLABELED_METADATA, labelled=False).country
    rows = np.flatnonzero(np.isin(country, countries_of(fold)[1]))
    return _find_images(path / "images", rows, incomplete=incomplete, name="test_unlabeled")
