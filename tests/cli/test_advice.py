"""One advice: ``spar adapt`` with any method and ``spar inspect`` judge the same files alike."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_linnerud

METHODS = ("bayes", "spar", "ols", "ridge")
NAMES = {"bayes": "Bayes-SpAR", "spar": "SpAR", "ols": "OLS", "ridge": "ridge"}


def make_rows(rng, n, m, *, shift=1.0, relation=0.0, scale=1.0):
    """Return source and target as frames with the label y and groups g; ``relation`` changes the target's labels."""
    w = np.array([2.0, 1.0, 0.5, 0.1])
    X = rng.normal(size=(n + m, 4)) * [1.0, 1.0, 1.0, scale]
    X[n:, 1] *= shift
    y = X @ w + rng.normal(size=n + m)
    y[n:] += relation * X[n:, 0]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, g=[f"g{i % 8}" for i in range(n + m)])
    return frame[:n], frame[n:]


def hide(frames, known=0):
    """Return source and target with labels for the first target rows only."""
    source, target = frames
    return source, target.assign(y=target["y"].where(np.arange(len(target)) < known))


def make_real_rows():
    X, y = load_linnerud(return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y[:, 0])
    return frame[:14], frame[14:]


RNG = np.random.default_rng(3)
CASES = {  # name: source, target, options
    "shift": (*make_rows(RNG, 200, 80, shift=20.0), "--drop", "g"),
    "shift, no labels": (*hide(make_rows(RNG, 12, 60, shift=20.0)), "--drop", "g"),
    "no shift": (*hide(make_rows(RNG, 300, 90)), "--drop", "g"),
    "few labels": (*hide(make_rows(RNG, 40, 90, shift=4.0, scale=1e-3), 6), "--drop", "g", "--alpha", "0.9"),
    "relation": (*hide(make_rows(RNG, 150, 60, relation=5.0), 20), "--groups", "g"),
    "stream": (*make_rows(RNG, 60, 40, shift=9.0), "--stream", "--drop", "g"),
    "real": make_real_rows(),
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    source, target, *options = CASES[request.param]
    paths = tmp_path / "s.csv", tmp_path / "t.csv"
    for frame, path in zip((source, target), paths, strict=True):
        frame.to_csv(path, index=False)
    methods = METHODS if request.param in ("shift", "relation") else ("spar", "ridge")
    return (*paths, "--label", "y", *options), methods


def run_json(spar, *arguments):
    result = spar(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def named_in_advice(text):
    """Return the weights that a text tells the reader to use or to keep."""
    names = "least squares|Bayes-SpAR|SpAR|ridge|PCR"
    return set(re.findall(rf"\b(?:[Uu]se|[Kk]eep) ({names})(?![\w-])", text))


def test_the_text_and_the_json_of_a_command_name_the_recommended_model_only(spar, case):
    arguments, methods = case
    for command in (("inspect", *arguments), ("adapt", *arguments, "--method", methods[0])):
        data = run_json(spar, *command)
        output = data.get("outputs", [data])[0]
        recommended = output["recommended"].replace("OLS", "least squares")
        text = " ".join(spar(*command).stdout.split())  # long lines are wrapped
        assert output["headline"] in text
        assert output["next_step"] in text
        for each in (text, json.dumps(data, ensure_ascii=False)):
            assert named_in_advice(each) <= {recommended}
            assert named_in_advice(each) or output["outcome"] == "unknown"


def label_rows(spar, path, *arguments):
    """Choose ten rows with ``spar label``, fill in their labels, and return the path."""
    result = spar("label", *arguments, "-o", path)
    assert result.exit_code == 0, result.output
    rows = pd.read_csv(path)
    rows.assign(y=2.0 * rows["a"]).to_csv(path, index=False)
    return path


def test_adapt_with_every_method_judges_as_inspect_does_and_advises_what_is_possible(spar, case, tmp_path):
    arguments, methods = case
    inspected = run_json(spar, "inspect", *arguments)["outputs"][0]
    forecasts = {forecast["name"]: forecast for forecast in inspected["forecasts"]}
    steps = inspected["next_step"]
    for method in methods:
        adapted = run_json(spar, "adapt", *arguments, "--method", method)
        steps += adapted["next_step"]
        for name in ("outcome", "recommended", "home", "home_is_of_groups", "base_rate", "comparison", "experience"):
            assert adapted[name] == inspected[name], name
        for key, name in (("least_squares", "OLS"), ("model", NAMES[method])):
            if name in forecasts:  # inspect does not fit ridge and pcr
                ours = adapted["expected"][key]
                assert ours == {number: forecasts[name][number] for number in ours}, (method, name)
        if NAMES[method] == inspected["recommended"]:
            for name in ("severity", "headline", "next_step"):
                assert adapted[name].replace("Keep", "Use") == inspected[name].replace("Keep", "Use")
        else:
            predicted_by = adapted["headline"].removeprefix(inspected["headline"])
            assert NAMES[method].replace("OLS", "least squares") in predicted_by
            assert (
                f"--method {next(m for m in METHODS if NAMES[m] == inspected['recommended'])}" in adapted["next_step"]
            )
    assert "pyspar." not in steps or "--stream" in arguments or inspected["recommended"] == "OLS"
    for command in set(re.findall(r"spar (?:adapt|label)(?: --[\w-]+(?: \w+)?)*", steps)):
        _, name, *options = command.split()
        given = arguments[: arguments.index("--alpha")] if name == "label" and "--alpha" in arguments else arguments
        if "--use-target-labels" in options and inspected["labels"] is None:
            given = (*given, "--labels", label_rows(spar, tmp_path / "to_label.csv", *given))
        result = spar(name, *given, *options)
        assert result.exit_code == 0, (command, result.output)
