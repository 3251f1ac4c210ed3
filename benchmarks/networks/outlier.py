"""Show how one outlying row of ``cities-1950`` leads to a harmful repair.

``python -m benchmarks.networks.outlier`` trains the small networks on two splits of the source: that of the benchmark,
in which the row with the largest error is a validation row, and a split in which it is a training row. It repairs each
network with training rows, with validation rows, and with validation rows without this row, by the former test, which
assumes that all rows have the same noise, and by the current one. Then it tests the directions that the former test
changes with three sandwich estimates of the variance. Decisions 22 and 24 quote the tables as they were before the
refitted correction was tested too (decision 27). They use labels of the target, so ``cities-1950`` is design data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.networks.training import NETWORKS, REQUIRED, TrainedNetwork, _data, _fit, _split
from benchmarks.report import table
from benchmarks.shifts.sets import REGISTER, Task
from pyspar.core.adapt import chi2_threshold
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.estimators.head_weights import NewHead, error_roots_of, fit_head

SET = "cities-1950"
ALPHA = 0.999


def train(network: str, outlier: int | None = None) -> TrainedNetwork:
    """Train a network on the split of the benchmark. Validation row number ``outlier`` becomes a training row."""
    arrays = Task(REGISTER[SET], "raw").arrays()
    split = _split(len(arrays[0]))
    if outlier is not None:
        split["train"] = np.sort(np.append(split["train"], split["validation"][outlier]))
        split["validation"] = np.delete(split["validation"], outlier)
    data = _data(arrays, split)
    model, epoch = _fit(NETWORKS[network], data)
    return TrainedNetwork(model, data, epoch)


def repair(trained: TrainedNetwork, rows: tuple[Tensor, Tensor], *, equal_noise: bool = False) -> tuple[NewHead, str]:
    """Return the repaired head, and as text the number of changed directions and the ratio of the target RMSE."""
    layer = trained.model[-1]
    coef, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    features, target = (_features(trained, part) for part in (rows[0], trained.data.target[0]))
    labels, truth = rows[1].double().numpy(), trained.data.target[1].double().numpy()
    roots = () if equal_noise else error_roots_of(features, labels, coef, bias)
    source = Moments.of(features, labels)
    new = fit_head(source, Moments.of(target), "bayes", coef=coef, intercept=bias, alpha=ALPHA, error_roots=roots)
    before, after = (np.linalg.norm(target.astype(np.float64) @ w.T + bias - truth) for w in (coef, new.coef))
    return new, f"{new.changed.directions}; {after / before:.3f}"


def _features(trained: TrainedNetwork, rows: Tensor) -> Any:
    with torch.inference_mode():
        return trained.model[:-1](rows).numpy()


def errors_of(trained: TrainedNetwork, rows: tuple[Tensor, Tensor]) -> Vector:
    """Return label minus prediction of each row."""
    with torch.inference_mode():
        return np.asarray((rows[1].double() - trained.model(rows[0]).double()).numpy()[:, 0])


def check_corrections(new: NewHead, features: Matrix, errors: Vector, row: int) -> list[object]:
    """Return the leverage and the influence of a row, and how many changed directions three sandwich tests confirm.

    The correction along a direction is a weighted sum of the errors of the trained network. The tests estimate its
    variance from these errors, from the residuals after the correction (HC0), and from these residuals divided by
    1 - leverage (HC3).
    """
    estimator: Any = new.estimator
    adaptation: Any = estimator.adaptation_
    x, kappa = estimator._belief.x, estimator._belief.evidence.kappa[0]
    along = estimator._fitted_prior.transform_rows(features) @ x.V
    shrunk = along / (x.lam**2 + kappa * x.lam[0] ** 2)
    leverage = np.einsum("ij,ij->i", shrunk, along)
    weights = shrunk @ (x.V.T @ adaptation.z.V[:, ~adaptation.removed[:, 0]])  # rows x changed directions
    corrections = weights.T @ errors
    fitted = errors - along @ (shrunk.T @ errors)
    confirmed = [
        int(np.sum(np.abs(corrections) > chi2_threshold(ALPHA) * np.sqrt(weights.T**2 @ residuals**2)))
        for residuals in (errors, fitted, fitted / (1.0 - leverage))
    ]
    share = f"{np.median(weights[row] * errors[row] / corrections):.2f}" if len(corrections) else "-"
    return [f"{leverage[row]:.2f}", share, len(corrections), *confirmed]


def main() -> None:
    torch.set_num_threads(1)
    repairs, tests = [], []
    for network in REQUIRED:
        trained = train(network)
        X, y = trained.data.validation
        errors = errors_of(trained, (X, y))
        row = int(np.argmax(np.abs(errors)))
        others = torch.arange(len(y)) != row
        moved = train(network, row)
        rows_of = [
            (trained, trained.data.train), (trained, (X, y)), (trained, (X[others], y[others])),
            (moved, moved.data.train), (moved, moved.data.validation),
        ]  # fmt: skip
        for equal_noise, name in ((True, "equal noise"), (False, "current")):
            texts = [repair(model, rows, equal_noise=equal_noise)[1] for model, rows in rows_of]
            repairs.append([network, name, *texts])
        share, learnt = errors[row] ** 2 / np.sum(errors**2), errors_of(moved, moved.data.train)
        sizes = [f"{errors[row]:.1f}", f"{learnt[np.argmax(np.abs(learnt))]:.1f}", f"{share:.2f}"]
        new, _ = repair(trained, (X, y), equal_noise=True)
        tests.append([network, *sizes, *check_corrections(new, _features(trained, X).astype(np.float64), errors, row)])
    variants = ["training rows", "validation rows", "validation rows without the row"]
    header = ["network", "test", *variants, "row in training: training rows", "row in training: validation rows"]
    print(table(header, repairs))
    header = ["network", "error", "error if trained on", "share of squares", "leverage", "share of corrections"]
    print(table([*header, "changed", "confirmed: trained errors", "HC0", "HC3"], tests))


if __name__ == "__main__":
    main()
