"""Saved models of every estimator, alone and in pipelines, and models that the command line writes."""

import copy
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from pyspar import BayesSpARRegressor, Moments, SpARRegressor, TargetCorrection, adapt_pipeline
from pyspar.cli.app import app
from pyspar.cli.options import Method


def table(rows, seed, spread):
    rng = np.random.default_rng(seed)
    numbers = pd.DataFrame(rng.normal(size=(rows, 3)) * [1.0, 0.1, spread], columns=["a", "b", "c"])
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), unit="D")
    return numbers.assign(
        town=rng.choice(["Bonn", "Kiel", None], rows), new=rng.random(rows) < 0.5, sold=dates.strftime("%Y-%m-%d")
    )


def estimators():
    """Return regressors, fitted and adapted, of one output and two, with and without feature names."""
    frame, target = table(60, 0, 0.05)[["a", "b", "c"]], table(30, 1, 3.0)[["a", "b", "c"]]
    y = frame.sum(axis=1).to_numpy() + np.random.default_rng(2).normal(size=60)
    kinds = {
        "spar": SpARRegressor,
        "unbiased": lambda: SpARRegressor(0.99, noise="unbiased"),
        "bayes": BayesSpARRegressor,
    }
    for name, kind in kinds.items():
        for form, X, Z in (("frame", frame, target), ("array", frame.to_numpy(), target.to_numpy())):
            for outputs, Y in ((1, y), (2, np.column_stack([y, -y]))):
                model = kind().fit(X, Y)
                yield f"{name}-{form}-{outputs}", model
                if hasattr(model, "adapt"):
                    yield f"{name}-{form}-{outputs}-adapted", copy.copy(model).adapt(Z)
        yield f"{name}-moments", kind().fit(Moments.of(frame, y))
        if hasattr(kind(), "partial_fit"):
            yield f"{name}-partial", kind().partial_fit(frame, y).partial_fit(frame, y)
        if hasattr(kind(), "fit_batches"):
            yield f"{name}-groups", kind().fit(frame, y, groups=np.arange(60) % 3)
            yield f"{name}-batches", kind().fit_batches([(frame, y), (frame, y)])


def pipelines():
    X, Z = table(60, 0, 0.05), table(30, 1, 3.0)
    y = X[["a", "b", "c"]].sum(axis=1).to_numpy() + np.random.default_rng(2).normal(size=60)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = ColumnTransformer([("n", numbers, ["a", "b"]), ("w", words, ["town"]), ("c", "passthrough", slice(2, 3))])
    columns.sparse_threshold = 0.0
    yield "scaled", make_pipeline(StandardScaler(), SpARRegressor()).fit(X[["a", "b", "c"]], y)
    for kind in (SpARRegressor, BayesSpARRegressor):
        model = make_pipeline(columns, FunctionTransformer(np.tanh), kind()).fit(X, y)
        yield f"columns-{kind.__name__}", model
        if hasattr(kind, "adapt"):
            yield f"columns-{kind.__name__}-adapted", adapt_pipeline(model, Z)
    kinds = (
        {"dtype_include": np.number},
        {"dtype_include": [np.floating, np.integer]},
        {"dtype_exclude": [object, "str"]},
    )
    for number, kind in enumerate(kinds):
        selected = ColumnTransformer([("n", StandardScaler(), make_column_selector("^[abc]$", **kind))])
        yield f"selected-{number}", make_pipeline(selected, SpARRegressor()).fit(X, y)
    text = ColumnTransformer([("t", TfidfVectorizer(vocabulary={"bonn", "kiel"}), "town")], sparse_threshold=0.0)
    yield "text", make_pipeline(text, SpARRegressor()).fit(X.fillna("none"), y)


def corrections():
    """Yield models that a few labels of the target corrected: linear ones, and TargetCorrection around others."""
    X, Z = table(60, 0, 0.05), table(30, 1, 3.0)
    y, labels = X["a"].to_numpy(), np.where(np.arange(30) < 8, Z["a"].to_numpy() + 1.0, np.nan)
    numbers = ["a", "b", "c"]
    yield "labelled", BayesSpARRegressor().fit(X[numbers], y).adapt(Z[numbers], labels)
    two = np.column_stack([labels, labels])
    yield "labelled-2", SpARRegressor().fit(X[numbers], np.column_stack([y, -y])).adapt(Z[numbers], two)
    yield "correction", TargetCorrection(LinearRegression().fit(X[numbers], y)).fit(Z[numbers], labels)
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), ["town"]))
    columns.sparse_threshold = 0.0
    pipe = make_pipeline(columns, BayesSpARRegressor()).fit(X, y)
    yield "correction-pipeline", TargetCorrection(pipe).fit(Z, labels)
    yield "correction-columns", TargetCorrection(FrozenEstimator(pipe)).fit(Z, labels)


def command_line(folder):
    """Yield the models that ``spar adapt --save`` writes for every method, in memory and streamed."""
    source, target = table(60, 0, 0.05), table(30, 1, 3.0)
    source["y"] = source[["a", "b", "c"]].sum(axis=1) + np.random.default_rng(2).normal(size=60)
    numeric = source[["a", "b", "c", "y"]], target[["a", "b", "c"]]
    for stem, tables in (("mixed", (source, target)), ("numeric", numeric)):
        for role, frame in zip(("source", "target"), tables):
            frame.to_csv(folder / f"{stem}-{role}.csv", index=False)
    for method in Method:
        for stem, options in (("mixed", []), ("numeric", []), ("numeric", ["--stream"])):
            if method == "ridge" and options:
                continue
            path = folder / "model.skops"
            files = [str(folder / f"{stem}-{role}.csv") for role in ("source", "target")]
            arguments = ["adapt", *files, "--label", "y", "--method", str(method), "--save", str(path), *options]
            with pytest.MonkeyPatch.context() as patch:  # save rejects names that are missing from TRUSTED
                patch.setattr("pyspar.io.models.save", skops.io.dump)
                result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, result.output
            yield f"adapt-{method}-{stem}{''.join(options)}", path.read_bytes()
            path.unlink()


@pytest.fixture(scope="session")
def valid_models(tmp_path_factory):
    """The bytes of saved models by name, as skops writes them."""
    models = {name: skops.io.dumps(model) for name, model in (*estimators(), *pipelines(), *corrections())}
    return models | dict(command_line(tmp_path_factory.mktemp("saved")))


@pytest.fixture(scope="session")
def nodes():
    """A function that returns all nodes of a skops file."""

    def walk(part):
        if isinstance(part, dict):
            if "__loader__" in part:
                yield part
            part = list(part.values())
        if isinstance(part, list):
            for item in part:
                yield from walk(item)

    return lambda data: walk(json.loads(zipfile.ZipFile(io.BytesIO(data)).read("schema.json")))
