"""Compare centres of the repair: the trained head, and heads that are zero where the labels do not determine them.

``python -m benchmarks.networks.centres --runs FOLDER`` reads the features that
``spar reproduce tabular --seeds 40 --out FOLDER`` stored, computes every centre, repairs it with ``method="bayes"``,
and writes ``benchmarks/results/centres.json``. ``--networks`` does the same with the networks of
``benchmarks.networks`` on the parts ``last``, ``final`` and ``reserve``. Without either it prints the stored results.
Decision 15 quotes them. All repairs use the current test, with the errors of the trained head in single rows. All these
networks are design data.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2, kurtosis

from benchmarks.measure import RESULTS
from benchmarks.networks.report import geometric_mean
from benchmarks.report import table
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.drift_models import NORMAL_KURTOSIS, information_share
from pyspar.core.moments import Moments
from pyspar.core.spectrum import default_cutoff, directions_above
from pyspar.errors import collect_warnings
from pyspar.estimators.head_weights import HeadMethod, NewHead, error_roots_of, fit_head
from pyspar.io.atomic import whole_file

FILE = RESULTS / "centres.json"
ALPHA = 0.999
PENALTIES = np.exp(np.arange(-24.0, 10.0, 0.25))
"""Ridge penalties relative to the largest squared singular value, on which the evidence is maximised."""
ROUNDING = 1e-12
FACTORS = np.linspace(0.0, 1.2, 25)
SUITE_SEEDS = 10
LIMIT = 1.03
BY_LIKELIHOOD = "averaged by likelihood with even odds"
IF_CORRECTED = "averaged by likelihood with even odds, if the trained head is corrected"

Weights = tuple[Vector, float | None]
"""Coefficients and bias; None for a head without bias."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A trained head, labelled source moments and target moments.

    Source and target are centred at the source mean if the head has a bias. Every centre keeps the trained prediction
    at this point. Faint directions are dropped, and all weights below are coordinates along the others.
    """

    source: Moments
    target: Moments
    trained: Weights
    error_roots: tuple[Matrix, ...] = ()
    kurtosis: float = NORMAL_KURTOSIS
    """Of the trained head's errors on the source."""

    @classmethod
    def of_rows(cls, features: Matrix, labels: Vector, target: Matrix, trained: Weights) -> Problem:
        coef, bias = trained
        errors = labels - features.astype(np.float64) @ coef - (bias or 0.0)
        roots = error_roots_of(features, labels[:, None], coef[None], bias or 0.0)
        tails = float(kurtosis(errors, fisher=False))
        return cls(Moments.of(features, labels), Moments.of(target), trained, roots, tails)

    @cached_property
    def directions(self) -> Matrix:
        return directions_above(self.source, default_cutoff(self.source))

    @cached_property
    def origin(self) -> Vector:
        return self.source.mean * (self.trained[1] is not None)

    @cached_property
    def head(self) -> Vector:
        return self.directions @ self.trained[0]

    @cached_property
    def svd(self) -> tuple[Vector, Matrix, Vector, float]:
        """Singular values, directions (columns), the labels along each, and the residual sum of squares."""
        features, labels = np.split(self.source.root_about(self.origin), [self.source.n_features], axis=1)
        U, lam, Vt = np.linalg.svd(features @ self.directions.T, full_matrices=False)
        U, lam, Vt = U[:, lam > ROUNDING * lam[0]], lam[lam > ROUNDING * lam[0]], Vt[lam > ROUNDING * lam[0]]
        along, total = U.T @ labels[:, 0], float(labels[:, 0] @ labels[:, 0])
        return lam, Vt.T, along, max(total - float(along @ along), ROUNDING * total)

    @property
    def rows(self) -> float:
        return self.source.weight - (self.trained[1] is not None)

    @cached_property
    def noise(self) -> float:
        lam, _, _, residual = self.svd
        return residual / max(self.rows - len(lam), 1.0)

    @cached_property
    def target_directions(self) -> Matrix:
        """The target's directions in the order of their significance for least squares, the least significant first."""
        root = self.target.root_about(self.origin[: self.target.n_features]) @ self.directions.T
        _, lam, Vt = np.linalg.svd(root, full_matrices=False)
        directions = Vt[lam > ROUNDING * lam[0]].T
        return np.asarray(directions[:, np.argsort(self.significance(directions))])

    def significance(self, directions: Matrix) -> Vector:
        """Return the squared weight of least squares along each direction, divided by its variance."""
        lam, V, along, _ = self.svd
        gain = (V.T @ directions) / lam[:, None]
        return (gain.T @ along) ** 2 / (self.noise * (gain**2).sum(axis=0))

    def joint_significance(self, directions: Matrix) -> Vector:
        """Return the statistic of the hypothesis that the weights along the first m directions are zero, for each m."""
        lam, V, along, _ = self.svd
        Q, _ = np.linalg.qr((V.T @ directions) / lam[:, None])
        return np.cumsum((Q.T @ along) ** 2) / self.noise

    def log_evidence(self, centres: Matrix) -> tuple[Vector, Vector]:
        """Return the maximum log evidence of each centre (columns), up to a constant, and its ridge penalty."""
        lam, V, along, residual = self.svd
        relative = (lam / lam[0]) ** 2
        misfit = (along[:, None] - lam[:, None] * (V.T @ centres)) ** 2
        quadratic = residual + misfit.T @ (PENALTIES / (relative[:, None] + PENALTIES))
        volume = np.log1p(relative[:, None] / PENALTIES).sum(axis=0)
        values = -0.5 * (self.rows * np.log(quadratic) + volume)
        return values.max(axis=1), PENALTIES[values.argmax(axis=1)]

    def log_likelihood(self, heads: Matrix) -> Vector:
        """Return the log likelihood of each head (columns), up to a constant, with the noise of maximum likelihood."""
        lam, V, along, residual = self.svd
        misfit = (along[:, None] - lam[:, None] * (V.T @ heads)) ** 2
        return np.asarray(-0.5 * self.rows * np.log(residual + misfit.sum(axis=0)))

    def restore(self, coef: Vector) -> Weights:
        """Return weights of the features for coordinates along the kept directions."""
        (trained, bias), new = self.trained, self.directions.T @ coef
        return new, None if bias is None else bias + float((trained - new) @ self.origin[: len(new)])

    def fit(self, centre: Weights, method: HeadMethod) -> NewHead:
        coef, bias = centre
        intercept = None if bias is None else np.array([bias])
        with collect_warnings():
            return fit_head(
                self.source, self.target, method, coef=coef[None], intercept=intercept, error_roots=self.error_roots
            )

    def repair(self, centre: Weights) -> Weights:
        """Return the head of ``adapt_head`` for a centre."""
        return self.weights_of(self.fit(centre, "bayes"))

    def weights_of(self, new: NewHead) -> Weights:
        return new.coef[0], None if self.trained[1] is None else float(new.intercept[0])


def centres(problem: Problem) -> dict[str, Weights]:
    """Return the centres that are compared, by name."""
    p, head = problem, problem.head
    _, V, along, _ = p.svd
    E, threshold = p.target_directions, chi2.ppf(ALPHA, 1)
    counts = np.arange(1, E.shape[1] + 1)
    separate = p.significance(E) <= threshold
    passed = np.nonzero(p.joint_significance(E) <= chi2.ppf(ALPHA, counts))[0]
    joint = counts <= (passed.max() + 1 if len(passed) else 0)
    source = (V.T @ head) * (along**2 > threshold * p.noise)
    scaled = head[:, None] * FACTORS
    to_zero = path_to_zero(head, E)
    of_source = path_to_zero(head, V[:, ::-1])
    evidence, even = p.log_evidence(to_zero)[0], even_odds(len(counts))
    less = information_share(p.kurtosis)
    return {
        "without faint directions": p.restore(head),
        "zero along source directions that noise explains": p.restore(V @ source),
        "zero along target directions that noise explains": p.restore(head - E @ (separate * (E.T @ head))),
        "the same, tested jointly": p.restore(head - E @ (joint * (E.T @ head))),
        "trained head times a factor": p.restore(scaled[:, int(np.argmax(p.log_evidence(scaled)[0]))]),
        "trained head or posterior about zero, averaged": p.restore(average_ends(p)),
        "source directions set to zero, averaged": p.restore(of_source @ shares(p.log_evidence(of_source)[0])),
        "target directions set to zero, averaged": p.restore(to_zero @ shares(evidence)),
        "the same, evidence reduced by heavy tails": p.restore(to_zero @ shares(less * evidence)),
        "averaged with even odds of no zeros": p.restore(to_zero @ shares(evidence + even)),
        "averaged with even odds and heavy tails": p.restore(to_zero @ shares(less * evidence + even)),
        BY_LIKELIHOOD: p.restore(to_zero @ shares(p.log_likelihood(to_zero) + even)),
        "averaged by likelihood with even odds and heavy tails": p.restore(
            to_zero @ shares(less * p.log_likelihood(to_zero) + even)
        ),
    }


def path_to_zero(head: Vector, directions: Matrix) -> Matrix:
    """Return the head with the first 0, 1, ... directions removed, and last the zero vector, as columns."""
    removed = np.cumsum(directions * (directions.T @ head), axis=1)
    return np.column_stack([head, head[:, None] - removed[:, :-1], np.zeros_like(head)])


def shares(log_evidence: Vector) -> Vector:
    """Return the posterior probabilities of models with equal prior probabilities."""
    weights = np.exp(log_evidence - log_evidence.max())
    return np.asarray(weights / weights.sum())


def even_odds(n: int) -> Vector:
    """Return the logarithms of prior probabilities: one half for no zeros, and the rest equal for 1 to n zeros."""
    return np.log(np.concatenate([[0.5], np.full(n, 0.5 / n)]))


def average_ends(problem: Problem) -> Vector:
    """Return the trained head and the posterior mean about zero, averaged by evidence."""
    lam, V, along, _ = problem.svd
    values, penalties = problem.log_evidence(np.column_stack([problem.head, np.zeros_like(problem.head)]))
    about_zero = V @ (along * lam / (lam**2 + penalties[1] * lam[0] ** 2))
    return np.column_stack([problem.head, about_zero]) @ shares(values)


def heads(problem: Problem) -> dict[str, Weights]:
    """Return the trained head, those of the methods, two mixtures that explain SpAR, and those of all centres."""
    coef, bias = problem.trained
    fitted = problem.fit(problem.trained, "spar")
    result = {"trained": problem.trained, "SpAR": problem.weights_of(fitted)}
    adaptation: Any = fitted.estimator.adaptation_
    kept = adaptation.z.V[:, ~adaptation.removed[:, 0]]
    for name, new in (
        ("trained where SpAR keeps, else zero", kept @ (kept.T @ coef)),
        ("SpAR where SpAR keeps, else trained", coef + kept @ (kept.T @ (fitted.coef[0] - coef))),
    ):
        shift = float((coef - new) @ problem.origin[: len(coef)])
        result[name] = new, None if bias is None else bias + shift
    current = problem.fit(problem.trained, "bayes")
    result["bayes"] = problem.weights_of(current)
    result |= {name: problem.repair(centre) for name, centre in centres(problem).items()}
    result[IF_CORRECTED] = result[BY_LIKELIHOOD if current.changed.directions else "trained"]
    return result


def tabular_results(folder: Path) -> dict[str, Any]:
    """Return for each head and cell the RMSE and the worst-group RMSE of each seed, and what faint directions predict.

    "faint" has the root mean square, over source, target and worst group, of the trained head's predictions along
    faint directions.
    """
    errors: dict[str, dict[str, list[list[float]]]] = {}
    faint: dict[str, list[list[float]]] = {}
    for path in sorted((folder / "runs").glob("*/spec.json")):
        spec = json.loads(path.read_text(encoding="utf-8"))
        for seed in spec["seeds"]:
            with np.load(path.with_name(f"features-{seed}.npz")) as archive:
                f = dict(archive)
            problem = Problem.of_rows(f["train"], f["y_train"], f["test"], (f["head"][0], None))
            label, target = f"{spec['task']}, {spec['objective']}", f["test"].astype(np.float64)
            for name, (coef, _) in heads(problem).items():
                squares = (target @ coef - f["y_test"]) ** 2
                worst = max(squares[f["group_test"] == group].mean() for group in np.unique(f["group_test"]))
                cell = errors.setdefault(name, {}).setdefault(label, [])
                cell.append([float(np.sqrt(squares.mean())), float(np.sqrt(worst))])
            trained, _ = problem.trained
            squares = (target @ trained - f["y_test"]) ** 2
            in_worst = max((f["group_test"] == g for g in np.unique(f["group_test"])), key=lambda g: squares[g].mean())
            dropped = trained - problem.restore(problem.head)[0]
            parts = f["train"].astype(np.float64), target, target[in_worst]
            faint.setdefault(label, []).append([float(np.sqrt(np.mean((rows @ dropped) ** 2))) for rows in parts])
        print(spec["task"], spec["objective"], flush=True)
    return {"tabular": errors, "faint": faint}


def network_ratios() -> dict[str, dict[str, list[float]]]:
    """Return for each kind of rows and each head the target RMSE over that of the trained head, per network."""
    ratios: dict[str, dict[str, list[float]]] = {}
    for name, rows, head in _networks():
        target, labels = rows["target"]
        scored = Moments.of(target, labels)
        for kind in ("train", "validation"):
            of_heads = heads(Problem.of_rows(*rows[kind], target, head))
            errors = {label: _rmse(scored, weights) for label, weights in of_heads.items()}
            for label, error in errors.items():
                ratios.setdefault(kind, {}).setdefault(label, []).append(error / errors["trained"])
        print(name, flush=True)
    return ratios


def _networks() -> Iterator[tuple[str, dict[str, tuple[Matrix, Vector]], Weights]]:
    import torch

    from benchmarks.networks.choice import DESIGN_PARTS, chosen
    from benchmarks.networks.training import REQUIRED, trained_network
    from benchmarks.shifts.sets import RESERVE

    for name in (name for names in chosen((*DESIGN_PARTS, RESERVE)).values() for name in names):
        for network in REQUIRED:
            trained = trained_network(name, network)
            layer = trained.model[-1]
            with torch.inference_mode():
                rows = {
                    part: (trained.model[:-1](X).numpy(), y.double().numpy()[:, 0])
                    for part, (X, y) in vars(trained.data).items()
                }
            weights = layer.weight.detach().double().numpy()[0], float(layer.bias)
            yield f"{name}, {network}", rows, weights


def _rmse(moments: Moments, weights: Weights) -> float:
    coef, bias = weights
    return float(np.linalg.norm(moments.root @ np.concatenate([[bias or 0.0], coef, [-1.0]])) / moments.weight**0.5)


def summary(results: dict[str, Any]) -> str:
    """Return one row per head: in how many of the 8 cells it is at most as bad as others, and the real shifts."""
    errors, ratios = results["tabular"], results["networks"]
    header = ["head", "at most trained; SpAR, 40 seeds", f"at most trained; SpAR, {SUITE_SEEDS} seeds"]
    header += ["SkillCraft, ERM: RMSE; worst group"]
    header += [f"{rows} rows: mean; worst; above {LIMIT}" for rows in ("training", "validation")]
    lines = []
    for name, of_head in errors.items():
        line = [name]
        for n in (None, SUITE_SEEDS):
            ours = cell_means(of_head, n)
            counts = [int((ours <= cell_means(errors[other], n)).sum()) for other in ("trained", "SpAR")]
            line.append("; ".join(map(str, counts)))
        line.append("; ".join(f"{value:.3f}" for value in np.mean(of_head["skillcraft, ERM"], axis=0)))
        for rows in ("train", "validation"):
            values = ratios[rows][name]
            above = sum(value > LIMIT for value in values)
            line.append(f"{geometric_mean(values):.3f}; {max(values):.3f}; {above}")
        lines.append(line)
    return table(header, lines)


def cells(results: dict[str, Any]) -> str:
    """Return the mean of every cell of the paper's networks, one row per head."""
    errors = results["tabular"]
    header = ["head", *(f"{cell}{suffix}" for cell in errors["SpAR"] for suffix in ("", ", worst group"))]
    return table(header, [[name, *(f"{v:.4g}" for v in cell_means(of_head))] for name, of_head in errors.items()])


def faint_parts(results: dict[str, Any]) -> str:
    """Return how large the trained head's predictions along faint directions are, one row per network."""
    header = ["predictions along faint directions, root mean square", "source", "target", "worst group"]
    rows = [[name, *(f"{value:.2g}" for value in np.mean(parts, axis=0))] for name, parts in results["faint"].items()]
    return table(header, rows)


def chance(results: dict[str, Any], cells_needed: int = 7, draws: int = 10_000) -> str:
    """Return for each head how often 10 random seeds give an error of at most that of SpAR in 7 cells."""
    rng = np.random.default_rng(0)
    errors = {name: np.array(list(of_head.values())) for name, of_head in results["tabular"].items()}
    seeds = [rng.choice(errors["SpAR"].shape[1], SUITE_SEEDS, replace=False) for _ in range(draws)]
    lines = []
    for name, values in errors.items():
        difference = values - errors["SpAR"]
        counts = np.array([(difference[:, chosen].mean(axis=1) <= 0.0).sum() for chosen in seeds])
        lines.append([name, f"{counts.mean():.1f}", f"{np.mean(counts >= cells_needed):.3f}"])
    return table([f"{SUITE_SEEDS} random seeds", "cells at most SpAR", f"share with at least {cells_needed}"], lines)


def cell_means(of_head: dict[str, list[list[float]]], seeds: int | None = None) -> Vector:
    """Return the mean of each cell over the first seeds: average and worst group of each network."""
    return np.concatenate([np.mean(values[:seeds], axis=0) for values in of_head.values()])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks.centres", description=__doc__)
    parser.add_argument("--runs", type=Path, help="the folder of `spar reproduce tabular --seeds 40 --out FOLDER`")
    parser.add_argument("--networks", action="store_true", help="measure the real shifts; this trains the networks")
    args = parser.parse_args()
    results: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    if args.runs:
        results |= tabular_results(args.runs)
    if args.networks:
        results["networks"] = network_ratios()
    if args.runs or args.networks:
        rounded = json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.6g}"))
        with whole_file(FILE) as temporary:
            temporary.write_text(json.dumps(rounded) + "\n", encoding="utf-8")
    if {"tabular", "networks"} <= set(results):
        print(cells(results), faint_parts(results), chance(results), summary(results), sep="\n")


if __name__ == "__main__":
    main()
