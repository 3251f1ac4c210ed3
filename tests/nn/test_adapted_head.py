"""The methods of AdaptedHead: the expected error on the target, and the new head written into a model."""

import copy

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, InputError, Moments
from pyspar.core.refit import error_roots_of, refit_head
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


@pytest.mark.parametrize("outputs", [None, 2])
def test_the_expected_error_is_that_of_a_regressor_on_the_features(mlp, make_problem, features_of, outputs):
    problem = make_problem(outputs)
    model = mlp(outputs=outputs or 1, bias=True)
    adapted = adapt_head(model, problem.source, problem.target, labels_scale="ignore")
    X, Z = (features_of(model.body, rows) for rows in (problem.X, problem.Z))
    centre = copy.copy(adapted.estimator.centre)
    estimator = BayesSpARRegressor(prior_scale="equal", centre=centre, fit_intercept=False)
    y = problem.y.double().numpy()
    estimator.fit(X, y)
    roots = error_roots_of(X, y.reshape(len(X), -1), centre.coef_, centre.intercept_)
    new = refit_head(Moments.of(X, y), Moments.of(Z), np.atleast_2d(centre.coef_), centre.intercept_, error_roots=roots)
    estimator._set_head(new.weights, new.adaptation, Moments.of(Z))
    expected = estimator.expected_rmse(Z)
    forecasts = adapted.expected_rmse()
    pairs = [(forecasts, expected)] if outputs is None else list(zip(forecasts, expected, strict=True))
    for forecast, other in pairs:
        assert forecast.rmse == pytest.approx(other.rmse, rel=1e-6)
        assert forecast.interval80 == pytest.approx(other.interval80, rel=1e-6)


@pytest.mark.filterwarnings("ignore:the head corrected:pyspar.SparWarning")
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


@pytest.mark.filterwarnings("ignore:the head corrected:pyspar.SparWarning")
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
