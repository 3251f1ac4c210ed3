"""Variants of the correction that were compared and not adopted, see ``docs/decisions/0020-three-components.md``.

``python -m benchmarks.labels.variants`` measures them on every second set of the parts from ``design`` to ``new`` and
prints the tables of that page. The parts ``newest`` and ``final`` are not read. ``--rows`` compares ways to choose the
labelled rows instead. "As shipped" is the correction before decision 21 changed its prior
(:mod:`benchmarks.labels.priors`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.labels.bases import OURS, fit_predict, problems
from benchmarks.labels.run import MIN_ROWS_LEFT, RESULTS, Record, append_record, draw_rows, read, tidy
from benchmarks.labels.settings import Setting
from benchmarks.report import table
from benchmarks.shifts.sets import NEW
from pyspar.core.drift import find_outlier
from pyspar.core.drift_models import RATIOS

RECORDS = RESULTS / "labels-variants.jsonl"
BOOSTING = "HistGradientBoosting"
MODELS = (OURS, BOOSTING)
LABELS = (10, 30)
DRAWS = 3
SHIPPED = "as shipped"
NOISE_LABELS = 10.0
"""The number of labels that the noise of the source counts as."""

Variant = Callable[[Setting, np.ndarray], np.ndarray]
"""Takes a setting and labelled rows, and returns the correction of all target rows."""


def shipped(at: Setting, rows: np.ndarray) -> np.ndarray:
    return at.models(rows, at.linear(rows)).correct(at.q)[0]


def weaker_prior(at: Setting, rows: np.ndarray) -> np.ndarray:
    models = at.models(rows, at.linear(rows))
    return models.correct(at.q, models.prior(1.0))[0]


def smooth_component(at: Setting, rows: np.ndarray) -> np.ndarray:
    return at.models(rows, at.linear(rows), at.smooth(rows)).correct(at.q)[0]


def source_noise(at: Setting, rows: np.ndarray) -> np.ndarray:
    return at.models(rows, at.linear(rows), noise=(NOISE_LABELS, at.source_noise2)).correct(at.q)[0]


def student_noise(at: Setting, rows: np.ndarray, degrees: float = 4.0) -> np.ndarray:
    """Give each label the expected precision of Student noise, three times in turn with the correction."""
    precision = np.ones(len(rows))
    for _ in range(3):
        drift, noise2 = at.models(rows, at.linear(rows), precision=precision).correct(at.q)
        precision = (degrees + 1.0) / (degrees + np.square(at.residual(rows) - drift[rows]) / noise2)
        precision /= np.exp(np.log(precision).mean())
    return drift


def source_covariance(at: Setting, rows: np.ndarray) -> np.ndarray:
    return at.models(rows, at.linear(rows, at.uncertainty)).correct(at.q)[0]


def mean_with_append(at: Setting, rows: np.ndarray) -> np.ndarray:
    """Return the mean of the correction and of a refit of the model with the labelled rows appended."""
    X, y = np.vstack([at.X, at.Z[rows]]), np.concatenate([at.y, at.labels[rows]])
    return (shipped(at, rows) + fit_predict(at.base, X, y, at.Z) - at.prediction) / 2.0


VARIANTS: dict[str, Variant] = {
    SHIPPED: shipped,
    "prior weights 1 / (1 + x)": weaker_prior,
    "smooth component": smooth_component,
    "noise of the source": source_noise,
    "Student noise": student_noise,
    "covariance of the source": source_covariance,
    "mean with append": mean_with_append,
}
LEARNT = "learnt prior"
ONE_DRAW = ("mean with append",)


def learn_priors(settings: Sequence[Setting], steps: int = 60) -> dict[str, np.ndarray]:
    """Return, for each package, the prior of each size by maximum evidence over the sets of the other packages.

    The sizes are independent. Expectation maximisation starts at equal weights, and each step adds 1 % to each weight.
    """
    count = len(RATIOS)
    packages = np.array([at.package for at in settings])
    evidence = []
    for at in settings:
        rows = draw_rows(at.problem, LABELS[-1], 0)
        log = at.models(rows, at.linear(rows)).evidence.ravel()
        evidence.append(np.exp(log - log.max()))
    priors = {}
    for package in np.unique(packages):
        likelihood = np.array(evidence)[packages != package]
        prior = np.full(count**3, 1.0)
        for _ in range(steps):
            weight = likelihood * prior
            cube = (weight / weight.sum(axis=1, keepdims=True)).mean(axis=0).reshape((count,) * 3)
            shares = [cube.sum(axis=axes) + 0.01 for axes in ((1, 2), (0, 2), (0, 1))]
            prior = np.einsum("i,j,k->ijk", *shares).ravel()
        priors[str(package)] = np.log(prior).reshape(count, count**2)
    return priors


def choose_middles(at: Setting, n: int, draw: int) -> np.ndarray:
    """Return the rows in the middle of n intervals between quantiles of the prediction."""
    return np.argsort(at.q)[((np.arange(n) + 0.5) / n * len(at.q)).astype(int)]


def choose_spread(at: Setting, n: int, draw: int) -> np.ndarray:
    """Return one random row of each of n intervals between quantiles of the prediction."""
    rng = np.random.default_rng([1, draw])
    order = rng.permutation(len(at.q))
    order = order[np.argsort(at.q[order], kind="stable")]
    return order[((np.arange(n) + rng.random(n)) / n * len(at.q)).astype(int)]


def choose_greedily(at: Setting, n: int, draw: int, candidates: int | None = None) -> np.ndarray:
    """Return rows that reduce the expected drift, each the best of all rows or of some random rows."""
    rng = np.random.default_rng([2, draw])
    basis = np.column_stack([np.ones(len(at.q)), at.q, at.features])
    moment, covariance = basis.T @ basis, np.eye(basis.shape[1])
    chosen: list[int] = []
    for _ in range(n):
        rows = rng.permutation(np.setdiff1d(np.arange(len(basis)), chosen))[:candidates]
        gain = basis[rows] @ covariance
        variance = np.einsum("ij,ij->i", gain, basis[rows])
        best = int(np.argmax(np.einsum("ij,ij->i", gain @ moment, gain) / (1.0 + variance)))
        covariance = covariance - np.outer(gain[best], gain[best]) / (1.0 + variance[best])
        chosen.append(int(rows[best]))
    return np.array(chosen)


RANDOM = "random rows"
CHOICES: dict[str, tuple[int, Callable[[Setting, int, int], np.ndarray]]] = {
    RANDOM: (10, lambda at, n, draw: draw_rows(at.problem, n, draw)),
    "middles of the intervals": (1, choose_middles),
    "random rows of the intervals": (5, choose_spread),
    "greedy, all rows": (1, choose_greedily),
    "greedy, 20 random rows": (5, lambda at, n, draw: choose_greedily(at, n, draw, 20)),
    "greedy, 5 random rows": (5, lambda at, n, draw: choose_greedily(at, n, draw, 5)),
}
"""The number of draws, and the rows of a draw."""


def settings(base: str, every: int) -> Iterator[Setting]:
    """Yield every k-th set of the design data and of the part ``new``, which earlier changes were compared on."""
    for problem in [*problems("design"), *problems(NEW)][::every]:
        if len(problem.arrays[2]) - LABELS[-1] >= MIN_ROWS_LEFT:
            yield Setting(problem, base)


def measure(at: Setting, name: str, n: int, draws: int, variant: Variant, choose: Callable[..., np.ndarray]) -> Record:
    """Measure a variant, with rows by ``choose``, on the rows without a label."""
    rmse, without = [], []
    for draw in range(draws):
        rows = choose(at, n, draw)
        left = np.setdiff1d(np.arange(len(at.q)), rows)
        outlier = find_outlier(at.residual(rows))
        drift = variant(at, rows if outlier is None else np.delete(rows, outlier))
        rmse.append(float(f"{np.sqrt(np.mean(np.square(at.residual(left) - drift[left]))):.5g}"))
        without.append(float(f"{np.sqrt(np.mean(np.square(at.residual(left)))):.5g}"))
    key = {"set": at.problem.shift.name, "base": at.base, "method": name, "n": n, "package": at.package}
    return key | {"rmse": rmse, "without": without}


def run(every: int, choices: bool) -> None:
    """Make the missing records."""
    from rich.progress import track

    known = read(RECORDS)
    random = CHOICES[RANDOM][1]
    for base in MODELS:
        found = list(settings(base, every))
        priors = {} if choices else learn_priors(found)

        def learnt(at: Setting, rows: np.ndarray, priors: dict[str, np.ndarray] = priors) -> np.ndarray:
            return at.models(rows, at.linear(rows)).correct(at.q, priors[at.package])[0]

        variants = {name: (1 if name in ONE_DRAW else DRAWS, v, random) for name, v in VARIANTS.items()}
        todo = variants | {LEARNT: (DRAWS, learnt, random)}
        if choices:
            todo = {name: (draws, shipped, choose) for name, (draws, choose) in CHOICES.items()}
        for at in track(found, description=f"around {base}"):
            for name, task in todo.items():
                for n in LABELS:
                    if (at.problem.shift.name, base, name, n) not in known:
                        append_record(RECORDS, measure(at, name, n, *task))
    tidy(RECORDS)


def compare(names: Sequence[str], reference: str) -> str:
    """Return a table: mean and worst ratio, and the difference from the reference with its 95 % interval.

    The interval is that of a bootstrap over packages. Both use the draws of the rows that both have.
    """
    records = read(RECORDS)
    rows = []
    for name in names:
        row = [name]
        for base in MODELS:
            for n in LABELS:
                pairs = [
                    (r, records[r["set"], base, reference, n])
                    for r in records.values()
                    if (r["base"], r["method"], r["n"]) == (base, name, n) and (r["set"], base, reference, n) in records
                ]
                row.append(_cell(pairs, same_rows=reference == SHIPPED, is_reference=name == reference))
        rows.append(row)
    return table(["", *(f"{base}, {n} labels" for base in MODELS for n in LABELS)], rows)


def compare_limits(every: int) -> str:
    """Return a table of the quartiles of the ratios with 10, with 30 and with all labels of the target.

    All labels are used for least squares of the residuals on (1, q, features). Its RMSE on the same rows is corrected
    for the degrees of freedom.
    """
    records, rows = read(RECORDS), []
    for base in MODELS:
        ratios: dict[str, list[float]] = {}
        for at in settings(base, every):
            for n in LABELS:
                if (record := records.get((at.problem.shift.name, base, SHIPPED, n))) is None:
                    continue
                ratios.setdefault(f"{n}", []).append(np.mean(record["rmse"]) / np.mean(record["without"]))
            basis = np.column_stack([np.ones(len(at.q)), at.q, at.features])
            residual = at.labels - at.prediction
            weights, _, rank, _ = np.linalg.lstsq(basis, residual, rcond=None)
            left2 = np.square(residual - basis @ weights).sum() / max(len(at.q) - rank, 1)
            ratios.setdefault("all", []).append(np.sqrt(left2 / np.square(residual).mean()))
        rows += [[base, n, *(f"{q:.3f}" for q in np.quantile(r, [0.25, 0.5, 0.75]))] for n, r in ratios.items()]
    return table(["model", "labels", "25 % of the sets below", "50 %", "75 %"], rows)


def compare_bias(every: int) -> str:
    """Return a table of the model's RMSE on the labelled rows relative to all target rows: mean over the sets.

    The RMSE on the labelled rows is the root of the mean of the squared errors over the draws.
    """
    cells: dict[str, list[str]] = {name: [] for name in CHOICES}
    for base in MODELS:
        found = list(settings(base, every))
        for n in LABELS:
            for name, (draws, choose) in CHOICES.items():
                ratios = []
                for at in found:
                    squares = [np.square(at.residual(choose(at, n, draw))).mean() for draw in range(draws)]
                    ratios.append(np.sqrt(np.mean(squares) / np.square(at.labels - at.prediction).mean()))
                cells[name].append(f"{np.mean(ratios):.3f}")
    header = ["error on the labelled rows", *(f"{base}, {n} labels" for base in MODELS for n in LABELS)]
    return table(header, [[name, *row] for name, row in cells.items()])


def _cell(pairs: Sequence[tuple[Record, Record]], *, same_rows: bool, is_reference: bool) -> str:
    if not pairs:
        return "-"
    logs = []
    for record, other in pairs:
        draws = len(record["rmse"])
        reference = {key: other[key][:draws] if same_rows else other[key] for key in ("rmse", "without")}
        logs.append([np.log(np.mean(r["rmse"]) / np.mean(r["without"])) for r in (record, reference)])
    own, base = np.array(logs).T
    text = f"{np.exp(own.mean()):.3f} ({np.exp(own.max()):.2f})"
    if is_reference:
        return text
    packages, codes = np.unique([record["package"] for record, _ in pairs], return_inverse=True)
    totals, counts = np.bincount(codes, own - base), np.bincount(codes)
    picked = np.random.default_rng(0).integers(0, len(packages), (2000, len(packages)))
    low, high = np.quantile(totals[picked].sum(axis=1) / counts[picked].sum(axis=1), [0.025, 0.975])
    return f"{text}, {100 * (own - base).mean():+.1f} % [{100 * low:+.1f}, {100 * high:+.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels.variants", description=__doc__)
    parser.add_argument("--rows", action="store_true", help="compare ways to choose the labelled rows")
    parser.add_argument("--every", type=int, default=2, help="use every k-th set (default 2)")
    parser.add_argument("--no-run", action="store_true", help="only print the tables of the existing records")
    args = parser.parse_args()
    if not args.no_run:
        run(args.every, args.rows)
    print(compare_limits(args.every))
    print(compare([*VARIANTS, LEARNT], SHIPPED))
    print(compare(list(CHOICES), RANDOM))
    if args.rows:
        print(compare_bias(args.every))


if __name__ == "__main__":
    main()
