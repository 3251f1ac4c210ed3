"""The methods of AdaptedHead: the expected error on the target, and the new head written into a model."""

import copy

import numpy as np
import pytest

from pyspar import InputError
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


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


def test_target_labels_determine_the_expected_error_and_without_a_target_there_is_none(mlp, problem):
    model = mlp(bias=True)
    labels = {row: float(row % 7) for row in range(12)}
    options = {"labels_scale": "ignore"}
    adapted = adapt_head(model, problem.source, problem.target, target_labels=labels, **options)
    assert adapted.expected_rmse() is adapted.forecast
    with pytest.raises(InputError, match="needs a target"):
        adapt_head(model, problem.source, method="ols", **options).expected_rmse()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_new_head_is_written_into_the_given_model_in_its_dtype(mlp, problem, dtype):
    model = mlp(bias=True).to(dtype)
    batches = [(x.to(dtype), y) for x, y in problem.source], [x.to(dtype) for (x,) in problem.target]
    adapted = adapt_head(model, *batches, method="ols", labels_scale="ignore")
    weight = model.fc.weight
    assert not torch.equal(weight, adapted.model.fc.weight)
    adapted.write_to(nn.DataParallel(model))
    assert model.fc.weight is weight  # an optimiser or an exporter that holds the parameter sees the new numbers
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), adapted.model.parameters(), strict=True))


def test_a_head_without_bias_gets_one_if_the_new_head_has_one(mlp, problem):
    model = mlp()
    labels = np.where(np.arange(150) < 20, 5.0 + np.arange(150) % 3, np.nan)
    adapted = adapt_head(model, problem.source, problem.target, target_labels=labels, labels_scale="ignore")
    adapted.write_to(model)
    assert torch.equal(model.fc.bias, adapted.model.fc.bias)
    assert float(model.fc.bias.detach().abs()) > 0.1


def test_a_model_without_such_a_head_is_refused_and_not_changed(mlp, problem):
    adapted = adapt_head(mlp(bias=True), problem.source, method="ols", labels_scale="ignore")
    other = mlp(width=5)
    before = copy.deepcopy(other.state_dict())
    for model in (other, nn.Linear(12, 1)):
        with pytest.raises(InputError, match=r"'fc'.*\(1, 12\)"):
            adapted.write_to(model)
    assert all(torch.equal(value, before[name]) for name, value in other.state_dict().items())
    narrow = mlp(bias=True).to(torch.float16)
    with torch.no_grad():
        adapted.model.fc.weight.mul_(1e8)
    with pytest.raises(InputError, match="float16"):
        adapted.write_to(narrow)
    assert torch.isfinite(narrow.fc.weight).all()
