"""Solve the problems with the installed version."""

from __future__ import annotations

import numpy as np
from problems import PROBES, Problem, make_data, make_target_labels


def solve(problem: Problem) -> dict[str, np.ndarray]:
    """Return the numbers of the answer by name."""
    return {"linear": solve_linear, "correction": solve_correction, "head": solve_head}[problem.question](problem)


def solve_linear(problem: Problem) -> dict[str, np.ndarray]:
    """Fit, adapt, and return predictions before and after, and the noise."""
    from pyspar import BayesSpARRegressor, Moments, SpARRegressor

    data = make_data(problem.seed, **problem.data)
    X, y, Z, weights = data["X"], data["y"], data["Z"], data["sample_weight"]
    kind, options = problem.estimator
    options = dict(options)
    if options.get("centre"):
        d, k = X.shape[1], 1 if y.ndim == 1 else y.shape[1]
        options["centre"] = np.linspace(-1, 1, d) if k == 1 else np.tile(np.linspace(-1, 1, d), (k, 1))
    model = (SpARRegressor if kind == "spar" else BayesSpARRegressor)(**options)
    container = problem.data.get("container", "array")
    if container == "sparse":
        from scipy.sparse import csr_array

        model.fit(csr_array(X), y)
        before, target = model.predict(Z[:PROBES]), csr_array(Z)
    elif container == "batches":
        model.fit_batches((X[i : i + 50], y[i : i + 50]) for i in range(0, len(X), 50))
        before, target = model.predict(Z[:PROBES]), Z
    elif container == "Moments":
        model.fit(Moments.of(X, y))
        before, target = model.predict(Z[:PROBES]), Moments.of(Z)
    elif container == "Dask":
        import dask.array as da

        model.fit(da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=40))
        before, target = model.predict(Z[:PROBES]), da.from_array(Z, chunks=(30, -1))
    else:
        model.fit(X, y, sample_weight=weights)
        before, target = model.predict(Z[:PROBES]), Z
    model.adapt(target)
    after = model.predict(Z[:PROBES])
    answer = {"before": before, "after": after, "sigma2": np.atleast_1d(model.sigma2_)}
    if kind == "bayes":
        answer["tau2"] = np.atleast_1d(model.tau2_)
    forecasts = model.expected_rmse(target)
    forecasts = forecasts if isinstance(forecasts, list) else [forecasts]
    answer["forecast"] = [[forecast.rmse, *forecast.interval95] for forecast in forecasts]
    answer["interval"] = model.predict_interval(Z[:PROBES], level=0.9)
    return {name: np.asarray(value, dtype=float).ravel() for name, value in answer.items()}


def solve_correction(problem: Problem) -> dict[str, np.ndarray]:
    """Correct a model with labels, and return its predictions and scales."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Ridge

    from pyspar import TargetCorrection

    base, options = problem.estimator
    data = make_data(problem.seed, m=200, d=5)
    model = Ridge() if base == "ridge" else RandomForestRegressor(5, random_state=0)
    model.fit(data["X"], data["y"])
    _, known = make_target_labels(problem.seed, data["Z"], int(options["n"]))
    corrected = TargetCorrection(model).fit(data["Z"], known)
    prediction, scale = corrected.predict(data["Z"][:PROBES], return_std=True)
    return {"prediction": prediction, "scale": scale, "rmse": np.atleast_1d(float(corrected.expected_rmse()))}


def solve_head(problem: Problem) -> dict[str, np.ndarray]:
    """Repair the head of a small network, and return its new weights."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from pyspar.nn import adapt_head

    method, options = problem.estimator
    data = make_data(problem.seed, n=300, m=200, d=12)
    generator = torch.Generator().manual_seed(problem.seed)
    body, head = torch.nn.Linear(12, 16), torch.nn.Linear(16, 1, bias=bool(options["bias"]))
    with torch.no_grad():
        for parameter in (*body.parameters(), *head.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    network = torch.nn.Sequential(body, torch.nn.Tanh(), head).double()
    X, y, Z = (torch.from_numpy(np.asarray(data[name])) for name in ("X", "y", "Z"))
    with torch.no_grad():  # a head that was trained on other rows
        features = network[:2](X)[:100]
        head.weight += torch.linalg.lstsq(features, y[:100, None] - head(features)).solution.T
    adapted = adapt_head(
        network,
        DataLoader(TensorDataset(X, y), batch_size=64),
        DataLoader(TensorDataset(Z), batch_size=64),
        method=method,
    )
    with torch.no_grad():
        after = adapted.model(Z[:PROBES]).numpy().ravel()
    return {"after": after, "weights": adapted.model[2].weight.detach().numpy().ravel()}
