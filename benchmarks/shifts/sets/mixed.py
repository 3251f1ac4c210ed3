"""Tables of several subjects: data sets that need more than a row of ``sets.tsv``."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.io import loadmat
from sklearn.datasets import load_diabetes

from benchmarks.shifts.sets.readers import common, r_data
from benchmarks.shifts.sets.shift import Loaded, last_third


def ball_clubs() -> Loaded:
    d = r_data("openintro/mlb_teams")
    counts = ["at_bats", "hits", "doubles", "triples", "homeruns", "walks", "strikeouts_by_batters", "stolen_bases",
              "errors", "double_plays", "complete_games", "saves"]  # fmt: skip
    X = d[counts].div(d["games_played"], axis=0).assign(year=d["year"], league=d["league_id"])
    return X, d["runs_scored"] / d["games_played"], d["year"] >= 1969


def births() -> Loaded:
    d = r_data("mosaicData/Births")
    angle = 2 * np.pi * d["day_of_year"] / 365.25
    X = d[["wday", "year"]].assign(**{f"{f.__name__}{k}": f(k * angle) for k in (1, 2, 3) for f in (np.sin, np.cos)})
    return X, d["births"], d["year"] >= 1982


def chicago() -> Loaded:
    d = r_data("modeldata/Chicago")
    day = pd.to_datetime(d["date"])
    X = d.drop(columns=["ridership", "date"]).assign(weekday=day.dt.day_name(), month=day.dt.month_name())
    return X, d["ridership"], last_third(day.astype("int64"))


def children() -> Loaded:
    d = r_data("wooldridge/fertil1")
    unused = ["kids", *(c for c in d if c[0] == "y" and c[1:3].isdigit())]
    return d.drop(columns=unused), d["kids"], d["year"] >= 80


def coffee() -> Loaded:
    d = r_data("stevedata/commodity_prices")
    X = np.log(d.drop(columns=["date", "coffee_arabica"]))
    return X, np.log(d["coffee_arabica"]), d["date"].map(str).str[:4].astype(int) >= 2000


SOUTH = {1, 5, 10, 11, 12, 13, 21, 22, 24, 28, 37, 40, 45, 47, 48, 51, 54}


def communities() -> Loaded:
    d = pd.read_csv(common("communities/communities.data"), header=None, na_values="?")
    complete = d.iloc[:, 5:-1].loc[:, d.iloc[:, 5:-1].notna().mean() > 0.9]
    return complete.rename(columns=str), d.iloc[:, -1], d[0].isin(SOUTH)


def concrete() -> Loaded:
    d = pd.read_excel(common("concrete/Concrete_Data.xlsx"))
    return d.iloc[:, :-1], d.iloc[:, -1], d["Age (day)"] > 28


def diabetes() -> Loaded:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X, y, last_third(X["age"])


def driving() -> Loaded:
    d = r_data("wooldridge/driving")
    unused = [c for c in d if "fat" in c or (c.startswith("d") and c[1:].isdigit())]
    return d.drop(columns=[*unused, "state"]), d["totfatrte"], d["year"] >= 1996


def electricity() -> Loaded:
    d = r_data("fpp2/elecdemand")
    angle = 2 * np.pi * (np.arange(len(d)) % 48) / 48
    waves = {f"{f.__name__}{k}": f(k * angle) for k in (1, 2, 3) for f in (np.sin, np.cos)}
    return d[["WorkDay", "Temperature"]].assign(**waves), d["Demand"], last_third(d["Temperature"])


def freedom() -> Loaded:
    d = r_data("openintro/hfi")
    economic = [c for c in d if c.startswith("ef_") and c not in ("ef_score", "ef_rank")]
    return d[["year", "region", *economic]], d["pf_score"], d["year"] >= 2014


def fuel_economy() -> Loaded:
    d = pd.concat([r_data("openintro/epa2012"), r_data("openintro/epa2021")], ignore_index=True)
    columns = ["mfr_name", "engine_displacement", "no_cylinders", "air_aspir_method_desc", "transmission_desc",
               "no_gears", "trans_lockup", "drive_desc", "regen_brake"]  # fmt: skip
    return d[[c for c in columns if c in d]], d["comb_mpg"], d["model_yr"] >= 2021


def hotel() -> Loaded:
    d = r_data("modeldata/hotel_rates").query("avg_price_per_room > 0")
    X = d.drop(columns=["avg_price_per_room", "arrival_date", "arrival_date_num"], errors="ignore")
    return X, np.log(d["avg_price_per_room"]), last_third(pd.to_datetime(d["arrival_date"]).astype("int64"))


def leeds_air() -> Loaded:
    winter, summer = r_data("texmex/winter"), r_data("texmex/summer")
    d = pd.concat([winter, summer], ignore_index=True)
    return d.drop(columns="O3"), d["O3"], np.arange(len(d)) >= len(winter)


def loans() -> Loaded:
    d = r_data("openintro/loans_full_schema")
    after = ["grade", "sub_grade", "interest_rate", "installment", "balance", "issue_month", "loan_status",
             "initial_listing_status", "disbursement_method"]  # known only once the rate is set  # fmt: skip
    unused = [c for c in d if c in after or c.startswith("paid_") or "joint" in c]
    X = d.drop(columns=[*unused, "emp_title", "application_type"])
    return X, d["interest_rate"], d["application_type"] == "joint"


def meats() -> Loaded:
    d = r_data("modeldata/meats")
    return d[[c for c in d if c.startswith("x_")]], d["protein"], last_third(d["fat"])


def rain() -> Loaded:
    d = r_data("crch/RainIbk")
    return np.sqrt(d.drop(columns="rain")), np.sqrt(d["rain"]), last_third(pd.Series(np.arange(len(d))))


def residential() -> Loaded:
    d = pd.read_excel(common("residential_building/Residential-Building-Data-Set.xlsx"), header=1).astype(float)
    clock = d["START YEAR"] + d["START QUARTER"] / 4
    return d.drop(columns=["V-9", "V-10", "COMPLETION YEAR", "COMPLETION QUARTER"]), np.log(d["V-9"]), last_third(clock)


def taipei() -> Loaded:
    d = pd.read_excel(common("real_estate_valuation/Real estate valuation data set.xlsx")).drop(columns="No")
    return d.iloc[:, :-1], np.log(d.iloc[:, -1]), d["X1 transaction date"] >= 2013


def wagepan() -> Loaded:
    d = r_data("wooldridge/wagepan")
    unused = ["lwage", "nr", *(c for c in d if c.startswith("d8"))]
    return d.drop(columns=unused), d["lwage"], d["year"] >= 1985


def water() -> Loaded:
    m = loadmat(common("water_quality/water_dataset.mat"))
    days = [*m["X_tr"][0], *m["X_te"][0]]
    y = np.concatenate([m["Y_tr"].T.ravel(), m["Y_te"].T.ravel()])
    target = np.repeat(np.arange(len(days)) >= m["X_tr"].shape[1], days[0].shape[0])
    return pd.DataFrame(np.vstack(days)).rename(columns=str), pd.Series(y), target


def wine() -> Loaded:
    red, white = (pd.read_csv(common(f"winequality_{c}/winequality-{c}.csv"), sep=";") for c in ("red", "white"))
    d = pd.concat([red, white], ignore_index=True)
    return d.drop(columns="quality"), d["quality"], np.arange(len(d)) >= len(red)
