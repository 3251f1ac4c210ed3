"""Choose the rows of a target to label."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.core.drift_features import TargetUnits
from pyspar.estimators.groups import name_groups
from pyspar.estimators.row_features import check_model, compute_features, count_rows, fit_features
from pyspar.estimators.target_labels import read_predictions
from pyspar.estimators.validation import check_choice
from pyspar.sources import refuse_unread_tables
from pyspar.wording import format_number

Strategy = Literal["quantiles", "greedy"]
Positions = NDArray[np.intp]
Pick = Callable[[Positions, int], tuple[int, str]]
"""Chooses one of the candidates at a step, and returns it with the reason."""

CANDIDATES = 5
"""The random rows of which "greedy" takes the best, so that no row is much more probable than in a random sample."""


@dataclass(frozen=True, eq=False)
class LabelChoice:
    """Rows to label, in an order whose first rows are also a choice of fewer rows.

    Attributes
    ----------
    rows : array of int
        Positions of the rows in the target.
    reasons : tuple of str
        The reason for each row.
    """

    rows: Positions
    reasons: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return "\n".join(f"row {row}: {reason}" for row, reason in zip(self.rows, self.reasons))


def rows_to_label(
    model: Any,
    Z: Any,
    n: int = 10,
    *,
    groups: Any = None,
    cost: Any = None,
    exclude: Any = (),
    strategy: Strategy = "quantiles",
    features: Any = None,
    random_state: Any = 0,
) -> LabelChoice:
    """Choose target rows to label for :class:`pyspar.TargetCorrection`, spread over the range of the predictions.

    Parameters
    ----------
    model : fitted regressor
    Z : array, sparse matrix or data frame of shape (m, D)
        Target rows, as for the model's ``predict``.
    n : int, default 10
        The number of rows to choose.
    groups : array of shape (m,), optional
        The group of each row. The chosen rows are spread over the groups: no group gets a second row before every
        other group with rows left has one, and so on.
    cost : array of shape (m,), optional
        The cost of a label, above zero. Cheaper rows are preferred. Rows with the cost NaN or infinity are not chosen.
    exclude : iterable of row positions, or a mask of shape (m,), optional
        Rows that are not chosen, for example because their labels are known.
    strategy : {"quantiles", "greedy"}, default "quantiles"
        "quantiles" divides the target into n intervals between quantiles of the prediction and takes a random row of
        each, or the cheapest row if there are costs. Without costs and groups every row is equally probable, so the
        rows are also a fair sample to measure the error of the model. "greedy" draws five random rows for each label,
        cheap rows with a higher probability, and takes the one that most reduces the expected squared error on the
        target per unit of cost, if offset, slope and weights drift by as much as the noise. These rows are more useful
        for the correction, but the errors of the model are larger on them than on the target. For several outputs
        the prediction is replaced by a score of all outputs: the first principal component of their standardised
        predictions.
    features : transformer, optional
        As for :class:`pyspar.TargetCorrection`. Only "greedy" uses it.
    random_state : int, RandomState, Generator or None, default 0
        Determines the random rows.

    Returns
    -------
    LabelChoice
        The positions of the rows, with reasons. With "quantiles" the first row is in the middle interval, the next two
        in the middles of both halves, and so on, so that the first rows alone also cover the range of the predictions.
        With "greedy" the rows are in the order of the choice.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from pyspar import rows_to_label
    >>> X = np.arange(11.0)[:, None]
    >>> model = LinearRegression().fit(X, X[:, 0])
    >>> rows_to_label(model, X, n=3).rows
    array([4, 0, 8])
    """
    check_model(model)
    check_choice("strategy", strategy, ("quantiles", "greedy"))
    refuse_unread_tables(Z)
    m = count_rows(Z)
    prediction = read_predictions(model, Z, m)
    costs, codes = _read_costs(cost, m), _read_groups(groups, m)
    allowed = np.isfinite(costs)
    allowed[_read_positions(exclude, m)] = False
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= allowed.sum():
        raise ValueError(
            f"n must be an integer from 1 to the {int(allowed.sum())} rows that can be labelled, got {n!r}"
        )
    if isinstance(random_state, np.random.Generator):
        random_state = np.random.RandomState(random_state.bit_generator)
    rng = check_random_state(random_state)
    value, name = _one_value(prediction)
    if strategy == "greedy":
        pick = _greedy_pick(compute_features(fit_features(features, model, [Z]), Z), value, costs, rng)
    else:
        pick = _quantile_pick(value, name, allowed.copy(), int(n), None if cost is None else costs, rng)
    chosen: list[int] = []
    reasons: list[str] = []
    taken = np.zeros(codes.max() + 1)
    for step in _spread_order(int(n)):
        row, reason = pick(_least_used(allowed, codes, taken), step)
        chosen.append(row)
        reasons.append(reason)
        allowed[row] = False
        taken[codes[row]] += 1
    return LabelChoice(np.array(chosen), tuple(reasons))


def _quantile_pick(
    value: Vector, name: str, allowed: Mask, n: int, costs: Vector | None, rng: np.random.RandomState
) -> Pick:
    """Return a function that takes a random row between two quantiles of the allowed rows, or the cheapest one."""
    shuffled = rng.permutation(len(value))
    order = shuffled[np.argsort(value[shuffled], kind="stable")]
    rank = np.empty(len(value))
    rank[order] = (np.arange(len(value)) + 0.5) / len(value)
    place, free = np.full(len(value), np.nan), order[allowed[order]]
    place[free] = (np.arange(len(free)) + 0.5) / len(free)

    def pick(candidates: Positions, step: int) -> tuple[int, str]:
        distance = np.abs(place[candidates] - (step + rng.random_sample()) / n)
        inside = np.abs(place[candidates] - (step + 0.5) / n) <= 0.5 / n
        row = int(candidates[np.argmin(distance)])
        if costs is not None and inside.any():
            near = candidates[inside]
            row = int(near[np.lexsort((distance[inside], costs[near]))[0]])
        price = "" if costs is None else f"; cost {format_number(costs[row])}"
        return row, f"{name} {format_number(value[row])}, at the {rank[row]:.0%} quantile of the target{price}"

    return pick


def _greedy_pick(features: Matrix, value: Vector, costs: Vector, rng: np.random.RandomState) -> Pick:
    """Return a function that takes the row with the largest reduction of the mean posterior variance of the drift.

    The components of the drift equal the noise, and its covariance is I - known' known. The candidates are those that
    win a race of exponential times with the means ``costs``: a random sample with probabilities proportional to
    1 / cost.
    """
    rows, q = TargetUnits.of(features, value).standardise(features, value)
    basis = np.column_stack([np.ones(len(q)), q, rows])
    is_tall = len(basis) > basis.shape[1]
    root = np.asarray(np.linalg.qr(basis, mode="r")) if is_tall else basis  # root' root = basis' basis
    total = float(np.square(root).sum())
    known = np.zeros((0, basis.shape[1]))

    def pick(candidates: Positions, step: int) -> tuple[int, str]:
        nonlocal known
        times = rng.exponential(size=len(candidates)) * costs[candidates]
        candidates = candidates[np.argsort(times)[:CANDIDATES]]
        gain = basis[candidates] - basis[candidates] @ known.T @ known
        variance = np.einsum("ij,ij->i", gain, basis[candidates])
        reduction = np.square(gain @ root.T).sum(axis=1) / (1.0 + variance)
        best = int(np.argmax(reduction / costs[candidates]))
        known = np.vstack([known, gain[best] / np.sqrt(1.0 + variance[best])])
        share = reduction[best] / total
        return int(candidates[best]), f"reduces the expected squared drift by {share:.0%}, relative to no labels"

    return pick


def _least_used(free: Mask, codes: Positions, taken: Vector) -> Positions:
    """Return the free rows of the groups that have the fewest chosen rows."""
    rows = np.flatnonzero(free)
    used = taken[codes[rows]]
    return np.asarray(rows[used == used.min()])


def _spread_order(n: int) -> list[int]:
    """Return 0 to n - 1 in an order whose first elements are spread: the middle, then the middles of the halves.

    >>> _spread_order(7)
    [3, 1, 5, 0, 2, 4, 6]
    """
    order, parts = [], [(0, n)]
    while parts:
        low, high = parts.pop(0)
        if low < high:
            middle = (low + high) // 2
            order.append(middle)
            parts += [(low, middle), (middle + 1, high)]
    return order


def _one_value(prediction: Matrix) -> tuple[Vector, str]:
    """Return the prediction, or the first principal component of several standardised outputs, and its name."""
    if prediction.shape[1] == 1:
        return prediction[:, 0], "prediction"
    spread = prediction.std(axis=0)
    centred = (prediction - prediction.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ vectors[:, -1]), "score of all outputs"


def _read_costs(cost: Any, m: int) -> Vector:
    try:
        costs = np.ones(m) if cost is None else np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cost must contain numbers, or NaN for rows that cannot be labelled ({error})") from None
    if costs.shape != (m,):
        raise ValueError(f"cost must have one entry for each of {m} rows, got shape {costs.shape}")
    if (costs <= 0.0).any():
        raise ValueError(f"cost must be above zero, got {costs[costs <= 0.0][0]:g} in row {np.argmax(costs <= 0.0)}")
    return costs


def _read_groups(groups: Any, m: int) -> Positions:
    if groups is None:
        return np.zeros(m, dtype=np.intp)
    return np.asarray(np.unique(np.array(name_groups(groups, m)), return_inverse=True)[1])


def _read_positions(rows: Any, m: int) -> Positions:
    positions = np.asarray(rows if hasattr(rows, "shape") or not isinstance(rows, Iterable) else list(rows))
    if positions.dtype == np.bool_ and positions.shape == (m,):
        return np.flatnonzero(positions)
    is_valid = positions.ndim == 1 and (not positions.size or positions.dtype.kind in "iu")
    if not is_valid or ((positions < 0) | (positions >= m)).any():
        got = f"{positions.dtype} {rows!r}"
        raise ValueError(f"exclude must contain row positions from 0 to {m - 1}, or be a mask of {m} rows, got {got}")
    return positions.astype(np.intp)
