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
    kept = 12 if method == "ols" else int(adapted.adaptation.n_kept[0])
    assert adapted.expected_rmse().source_rmse == pytest.approx(adapted.summary.adapted[0] / (1.0 - kept / 40))
    few = [(problem.X[:10], problem.y[:10])]
    with pytest.raises(InputError, match="10 rows and 12 features"):
        adapt_head(mlp(bias=True), few, problem.target, method="ols", labels_scale="ignore").expected_rmse()


@pytest.mark.parametrize("method", ["spar", "ols"])
def test_the_forecast_of_a_refitted_head_is_right_without_a_shift(method):
    """Features of unequal spread, most of which have no effect: SpAR removes most directions."""
    ratios, inside = [], 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        w = rng.normal(size=80) * (np.arange(80) < 10)
        X, Z = (rng.normal(size=(rows, 80)) * np.exp(-np.arange(80) / 20.0) for rows in (400, 2000))
        y, labels = (torch.tensor(of @ w + 0.3 * rng.normal(size=len(of)), dtype=torch.float32) for of in (X, Z))
        X, Z = (torch.tensor(of, dtype=torch.float32) for of in (X, Z))
        model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Linear(80, 1))
        model.load_state_dict({"1.weight": torch.tensor(w[None]), "1.bias": torch.zeros(1)})
        adapted = adapt_head(model, [(X, y)], [Z], method=method)
        truth = float((adapted.model(Z)[:, 0] - labels).square().mean().sqrt())
        forecast = adapted.expected_rmse()
        ratios.append(truth / forecast.rmse)
        inside += forecast.interval95[0] <= truth <= forecast.interval95[1]
    assert 0.95 < np.mean(ratios) < 1.05
    assert inside >= 8


@pytest.mark.parametrize("as_dict", [False, True])
def test_the_forecast_is_refused_for_the_rows_of_the_training(as_dict):
    """A network that was trained too long, on 300 rows; its forecast from them would be half the error on new rows."""
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.normal(size=(900, 3)), dtype=torch.float32)
    y = (X[:, 0].sin() + torch.tensor(rng.normal(size=900), dtype=torch.float32)).float()
    model = torch.nn.Sequential(torch.nn.Linear(3, 100), torch.nn.ReLU(), torch.nn.Linear(100, 100), torch.nn.ReLU())
    model.append(torch.nn.Linear(100, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(400):
        optimizer.zero_grad()
        (model(X[:300])[:, 0] - y[:300]).square().mean().backward()
        optimizer.step()

    def adapted(rows, **options):
        parts = zip(X[rows].split(100), y[rows].split(100), strict=True)
        batches = [{"x": x.numpy(), "label": labels} if as_dict else (x, labels) for x, labels in parts]
        return adapt_head(model, batches, [X[600:] + 1.0], labels_scale="ignore", **options)

    with pytest.raises(InputError, match=r"p = .*held-out"):
        adapted(slice(300)).expected_rmse()
    known, new = (adapted(slice(300), source_rows="held-out"), adapted(slice(300, 600)))
    assert known.expected_rmse().source_rmse < 0.5 * new.expected_rmse().source_rmse


def test_the_test_for_training_rows_reads_inputs_of_any_kind(make_network):
    """Token ids are no coordinates, and sequences may differ in length between batches."""
    table = torch.nn.Embedding(20, 8)
    model = make_network(lambda self, x: self.fc(self.table(x).mean(dim=1)), table=table, fc=torch.nn.Linear(8, 1))
    batches = [(torch.randint(20, (30, length)), torch.randn(30)) for length in (5, 7)]
    assert adapt_head(model, batches, batches, labels_scale="ignore").expected_rmse().rmse > 0.0
    model = make_network(lambda self, x: self.fc(x.mean(dim=1)), fc=torch.nn.Linear(8, 1))
    batches = [(torch.randn(30, length, 8), torch.randn(30)) for length in (5, 7)]
    assert adapt_head(model, batches, batches, labels_scale="ignore").expected_rmse().rmse > 0.0


def test_changed_is_false_if_no_direction_changed(mlp, problem):
    model = mlp(bias=True)
    assert not adapt_head(model, problem.source, problem.target, alpha=1.0, labels_scale="ignore").changed
    assert adapt_head(model, problem.source, problem.target, method="ols", labels_scale="ignore").changed


def test_target_labels_determine_the_expected_error(mlp, problem):
    model = mlp(bias=True)
    labels = {row: float(row % 7) for row in range(12)}
    adapted = adapt_head(model, problem.source, problem.target, target_labels=labels, labels_scale="ignore")
    assert adapted.expected_rmse() is adapted.forecast


def test_a_head_without_bias_gets_one_if_the_new_head_has_one(mlp, problem):
    labels = np.where(np.arange(150) < 20, 5.0 + np.arange(150) % 3, np.nan)
    adapted = adapt_head(mlp(), problem.source, problem.target, target_labels=labels, labels_scale="ignore")
    assert float(adapted.model.fc.bias.detach().abs()) > 0.1
