"""The expected error on the target, and the weights of the new head."""

import numpy as np
import pytest

from pyspar import InputError
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")


def test_the_forecast_needs_rows_that_were_not_used_for_training(mlp, problem):
    model = mlp(bias=True)
    adapted = adapt_head(model, problem.source, problem.target, source_rows="training")
    with pytest.raises(InputError, match="held-out"):
        adapted.expected_rmse()
    adapted = adapt_head(model, problem.source, problem.target)
    with torch.no_grad():
        error = float(((adapted.model.eval()(problem.X)[:, 0] - problem.y) ** 2).mean().sqrt())
    forecast = adapted.expected_rmse()
    assert forecast.source_rmse == pytest.approx(error, rel=1e-4)
    assert forecast.interval95[0] < forecast.rmse < forecast.interval95[1]


@pytest.mark.parametrize("method", ["spar", "ols"])
def test_the_forecast_of_a_refitted_head_is_not_its_error_on_the_rows_of_the_refit(mlp, make_problem, method):
    problem = make_problem(n=40)
    options = {"method": method, "labels_scale": "ignore"}
    adapted = adapt_head(mlp(bias=True), problem.source, problem.target, **options)
    assert adapted.expected_rmse().source_rmse == pytest.approx(adapted.summary.adapted[0] / (1.0 - 12 / 40))
    few = [(problem.X[:10], problem.y[:10])]
    with pytest.raises(InputError, match="10 rows and 12 features"):
        adapt_head(mlp(bias=True), few, problem.target, **options).expected_rmse()


def test_target_labels_determine_the_expected_error(mlp, problem):
    model = mlp(bias=True)
    labels = {row: float(row % 7) for row in range(12)}
    adapted = adapt_head(model, problem.source, problem.target, target_labels=labels, labels_scale="ignore")
    assert adapted.expected_rmse() is adapted.forecast


def test_a_head_without_bias_gets_one_if_the_new_head_has_one(mlp, problem):
    labels = np.where(np.arange(150) < 20, 5.0 + np.arange(150) % 3, np.nan)
    adapted = adapt_head(mlp(), problem.source, problem.target, target_labels=labels, labels_scale="ignore")
    assert float(adapted.model.fc.bias.detach().abs()) > 0.1
