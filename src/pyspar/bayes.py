"""BayesSpARRegressor: the paper's spectral rule on a ridge posterior, with nothing to tune.

Least squares is replaced by the posterior mean under a normal prior whose variance, and that of the noise, are chosen
by maximum evidence; the target's directions are then shrunk by how uncertain the posterior is along them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

import numpy as np

from pyspar._adaptable import AdaptableRegressor
from pyspar._cells import Gathering, Rows, asked_of, cells_of, check_gathered
from pyspar._checks import batch_moments, check_alpha, check_choice, check_strength, warn_if_scales_are_too_far_apart
from pyspar.core.adapt import Adaptation, Rule, adapt
from pyspar.core.arrays import Matrix
from pyspar.core.candidates import Asked
from pyspar.core.cells import Cells
from pyspar.core.extrapolation import average, moved_to
from pyspar.core.moments import Moments, Solver
from pyspar.core.ridge import RidgeBelief, ridge_belief
from pyspar.core.rules import chi2_rule, positive_part_rule
from pyspar.core.scaling import all_in_units_of, in_units_of, inverse, spread_of_features
from pyspar.core.votes import RuleScores

RuleName = Literal["auto", "positive-part", "chi2"]
_RULES = ("auto", "positive-part", "chi2")
_SOLVERS = ("auto", "gram", "qr")


class BayesSpARRegressor(AdaptableRegressor):
    """Ridge regression that can be adapted to an unlabelled target, its penalty chosen by maximum evidence.

    Parameters
    ----------
    fit_intercept : bool, default True
        Centre source and target at the source mean.
    rule : {"auto", "positive-part", "chi2"}, default "auto"
        What is taken away of a target direction. "positive-part" keeps the fraction ``1 - c v / m^2`` of a direction
        whose weight has the posterior mean m and variance v, and nothing where that is negative; "chi2" is the paper's
        rule at confidence ``alpha``; "auto" averages several ridge regressions, most of them in units of the larger of
        source and target spread, with the paper's rule, each by how well it does on the parts of the source that look
        most like the target (extrapolation cross-validation). Where the source was given as Moments or by Dask, its
        rows cannot be held out, and the average is a fixed one.
    scale : bool, default True
        Measure each feature in units of its spread over the source, so that the prior treats them alike.
    c : float, default 1.0
        The strength of "positive-part"; 0 keeps the posterior mean.
    alpha : float in [0, 1], default 0.999
        The confidence of "chi2", and of the paper's rule within "auto".
    solver : {"auto", "gram", "qr"}, default "auto"
        How rows are summarised; see :class:`pyspar.Moments`.

    Attributes
    ----------
    coef_, intercept_
        The current weights, shaped as those of scikit-learn's ``LinearRegression``.
    sigma2_, tau2_ : float or arrays of shape (K,)
        The variances of the label noise and of a weight (per unit of ``scale_``), by maximum evidence.
    evidence_ : Evidence
        The same with the log evidence, and whether the maximum lies at a limit (``evidence_.limit``).
    scale_ : array of shape (D,)
        The unit of each feature; zero for one that does not vary, which gets no weight.
    rank_ : int
        How many directions the source has.
    moments_ : Moments
        The summary of the source. With "auto" that of each of a few groups of its rows is kept too.
    rule_scores_ : RuleScores
        With "auto": what each candidate scored for the last target, and its share in the weights.
    strength_ : float
        With "positive-part": the strength that the last ``adapt`` used.
    adaptation_ : Adaptation
        Every number of the last adaptation, in units of ``scale_``; there only after ``adapt``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import BayesSpARRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 40)) * np.geomspace(1, 0.01, 40)
    >>> Z = rng.normal(size=(500, 40)) * np.geomspace(0.01, 1, 40)
    >>> w = np.geomspace(1, 0.1, 40)
    >>> y = X @ w + rng.normal(size=60)
    >>> est = BayesSpARRegressor(rule="positive-part", scale=False).fit(X, y).adapt(Z)
    >>> est.evidence_.limit
    ('interior',)
    """

    _belief: RidgeBelief
    _cells: Cells | None
    _asked: Asked | None
    _at_hand: Rows | None
    _scaled: bool

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        rule: RuleName = "auto",
        scale: bool = True,
        c: float = 1.0,
        alpha: float = 0.999,
        solver: Solver = "auto",
    ) -> None:
        self.fit_intercept = fit_intercept
        self.rule = rule
        self.scale = scale
        self.c = c
        self.alpha = alpha
        self.solver = solver

    def fit_moments(self, moments: Moments, *, cells: Cells | None = None, rows: Rows | None = None) -> Self:
        """Fit on the summary of a labelled source, ``Moments.of(X, y)`` or a sum of such: no rows are needed.

        With one output the weights have the shape they would have for a one-dimensional y. ``cells`` are the same rows
        in groups, where they were gathered when the rows were read; "auto" holds out some of them in turn. ``rows`` are
        some of them, ``(X, y, sample_weight)``, which leave-one-out is asked of; they are not kept.
        """

        def read() -> tuple[Moments, int]:
            found = self._read_moments(moments)
            check_gathered(found[0], cells, rows)
            auto = self.rule == "auto"
            self._cells, self._at_hand = (cells, rows) if auto else (None, None)
            return found

        self._learn(read, add=False)
        self._warn_of_limits()
        return self

    def reset(self) -> Self:
        """Go back to the posterior mean, which no target has changed."""
        self.__dict__.pop("rule_scores_", None)
        self.__dict__.pop("strength_", None)
        return super().reset()

    def _adaptation(self, target: Moments) -> Adaptation:
        target = in_units_of(target, self.scale_)
        rules: dict[str, Rule] = {
            "auto": partial(positive_part_rule, c=0.0),
            "positive-part": partial(positive_part_rule, c=float(self.c)),
            "chi2": partial(chi2_rule, alpha=float(self.alpha)),
        }
        found = adapt(self._belief, target, rules[self.rule])
        if self.rule != "auto":
            self._tell(None)
            return found
        source = in_units_of(self.moments_, self.scale_)
        cells = () if self._cells is None else self._cells.occupied()
        w, scores = average(
            source,
            self._belief,
            target,
            found.z,
            found.terms,
            all_in_units_of(cells, self.scale_),
            scale=self._scaled,
            alpha=float(self.alpha),
            asked=self._asked,
        )
        self._tell(scores)
        return moved_to(found, w)

    def _tell(self, scores: RuleScores | None) -> None:
        """Publish how the last target was adapted to, once that is certain."""
        self.strength_: float | None = float(self.c) if self.rule == "positive-part" else None
        self.rule_scores_: RuleScores | None = scores

    def _look_at_rows(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> None:
        before = None if first else self._cells
        auto = self.rule == "auto"
        there = auto and (first or before is not None)
        self._cells = cells_of(before, X, y, sample_weight, solver=self.solver) if there else None
        self._at_hand = (X, y, sample_weight) if auto and first else None

    def _read_batches(self, batches: Any) -> tuple[Moments, int]:
        if self.rule != "auto":
            self._cells = None
            return super()._read_batches(batches)
        gathering = Gathering(self.solver)
        found = batch_moments(self, batches, solver=self.solver, look=gathering.add)
        self._cells, self._at_hand = gathering.flush(), gathering.sample.rows()
        return found

    def _warn_of_limits(self) -> None:
        warn_if_scales_are_too_far_apart(self._belief)

    def _check_params(self) -> None:
        check_choice("rule", self.rule, _RULES)
        check_choice("solver", self.solver, _SOLVERS)
        check_alpha(self.alpha)
        check_strength(self.c)

    def _solve(self) -> None:
        centred, self._scaled = bool(self.fit_intercept), bool(self.scale)
        d = self.moments_.n_features
        self.scale_ = spread_of_features(self.moments_, fit_intercept=centred) if self.scale else np.ones(d)
        self._belief = ridge_belief(in_units_of(self.moments_, self.scale_), fit_intercept=centred)
        self.evidence_ = self._belief.evidence
        self.sigma2_ = self._per_output(self.evidence_.sigma2)
        self.tau2_ = self._per_output(self.evidence_.tau2)
        self.rank_ = self._belief.x.rank
        rows = self.__dict__.pop("_at_hand", None)  # never kept
        self._asked = None if rows is None else asked_of(self._belief, self.scale_, *rows)
        self.reset()

    def _publish(self, w: Matrix) -> None:
        # The mean is that of the features in their own units; a constant one has no weight, so its mean does not count.
        x_mean = self.moments_.mean[: len(w)] if self._belief.centred else np.zeros(len(w))
        self._set_weights(w * inverse(self.scale_)[:, None], x_mean, self._belief.y_mean)

    def _per_output(self, values: Any) -> Any:
        return float(values[0]) if self._y_ndim == 1 else values
