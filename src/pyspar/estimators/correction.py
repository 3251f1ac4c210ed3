"""TargetCorrection: correct any fitted regressor with a few labels of the target."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from pyspar.core.arrays import Matrix
from pyspar.core.drift import Drift
from pyspar.estimators.base import AdaptableRegressor
from pyspar.estimators.row_features import (
    check_model,
    compute_features,
    fit_features,
    is_frame,
    name_regressor,
    split_model,
)
from pyspar.estimators.target_labels import (
    LabelForecast,
    TargetDrift,
    check_counts,
    check_index,
    fit_outputs,
    forecast_error,
    read_labels,
    read_predictions,
)
from pyspar.estimators.unseen_categories import warn_of_unseen
from pyspar.estimators.validation import check_boolean, check_level, clone_without, read_dense_rows
from pyspar.sources import refuse_unread_tables


class TargetCorrection(MultiOutputMixin, RegressorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Correct a fitted regressor with a few labels of the target, from about 5 to several thousand.

    The residuals of the labelled rows are modelled as the sum of an offset, a slope in the prediction, a smooth
    function of the features, and noise. The correction is averaged over all combinations of the sizes of these
    components, weighted by prior and evidence, so no parameter has to be tuned. The prior probability of no drift is
    1/2, and larger drifts have lower prior probabilities. If the labels do not indicate a drift, the predictions change
    little. With many labels the result approaches a model of the residuals fitted on the target. The model itself is
    not refitted, and no source rows are needed.

    Parameters
    ----------
    model : fitted regressor
        Any object with ``predict``. A scikit-learn estimator with ``fit`` must be fitted. ``clone`` does not clone it,
        as for scikit-learn's ``FrozenEstimator``.
    features : transformer, optional
        Computes the numeric features of the correction from the rows. A fitted transformer is used unchanged. An
        unfitted one is cloned and fitted on the target rows. By default, the features are those that the last step of
        ``model`` receives if ``model`` is a Pipeline of several steps, or a search over one, and otherwise the columns
        of the rows. In data frames, numbers and booleans are used unchanged, dates and durations are ignored, and other
        columns are one-hot encoded as text. In both cases, missing numbers are imputed by the mean of the target.
        Features are always standardised by the target.
    smooth : bool, default True
        If True, the function of the features can be any smooth function. If False, it is linear in the features, and
        the corrected model is linear if ``model`` is, as after ``adapt(Z, y)`` of our estimators.

    Attributes
    ----------
    drift_ : TargetDrift, or a list with one per output if y had two dimensions
        Offset, slope and weights: their sizes with intervals, a test of each, and a test for any changed relation.
    features_ : the fitted transformer
    n_labels_ : int
        The number of rows with at least one label that was used. Rows of weight zero and ignored outliers do not count.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The tests compare the labels with the model's predictions plus independent normal noise. They are exact for every
    number of labels if the noise is normal. An estimation error of the model counts as a changed relation, unless the
    model is a SpARRegressor or BayesSpARRegressor (also in a Pipeline or a search), whose uncertainty is estimated. The
    level of the tests is then approximate.

    Invalid labels:

    - fewer than 3 known labels, for example if all are NaN: ValueError
    - a wrong number of labels, or a label of a row that does not exist: ValueError
    - infinite labels, or text: ValueError
    - all labels equal, or equal to the predictions: SparWarning, and the labels are used
    - at least 4 labels, one of which is far from all others: SparWarning, and this label is ignored

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from pyspar import TargetCorrection
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    >>> model = LinearRegression().fit(X, X[:, 0] + 0.1 * rng.normal(size=200))
    >>> truth = Z[:, 0] + 2.0 + 0.1 * rng.normal(size=200)  # the target's labels are larger by 2
    >>> y = np.where(np.arange(200) < 10, truth, np.nan)    # ten labels
    >>> fixed = TargetCorrection(model).fit(Z, y)
    >>> bool(np.abs(fixed.predict(Z) - truth)[10:].mean() < 0.2)
    True
    >>> round(fixed.drift_.offset.size), fixed.drift_.p_value < 0.001
    (2, True)
    """

    drift_: TargetDrift | list[TargetDrift]
    _drifts: list[Drift]
    _y_ndim: int

    def __init__(self, model: Any, features: Any = None, smooth: bool = True) -> None:
        self.model = model
        self.features = features
        self.smooth = smooth

    def __sklearn_clone__(self) -> Any:
        return clone_without(self, "model")

    def fit(self, Z: Any, y: Any, sample_weight: Any = None, *, unlabelled: Any = None) -> Self:
        """Fit the correction to a target with some known labels.

        Parameters
        ----------
        Z : array or data frame of shape (m, D)
            Target rows, as for the model's ``predict``.
        y : array of shape (m,) or (m, K), or mapping
            Labels, with NaN where unknown. A mapping has row positions as keys, ``{3: 1.7, 12: 0.4}``.
            Labels are matched to rows by position. If Z and y have a pandas index, it must be the same.
        sample_weight : array of shape (m,), optional
            Counts of rows: a weight of 2 is the same as two copies of the row. The result depends on their sum, so
            weights of which only the ratios matter, such as inverse probabilities, must be divided by their mean.
        unlabelled : array or data frame, optional
            More rows of the target. All rows of the target determine its means and spreads, and the expected error.

        Returns
        -------
        self
        """
        check_model(self.model)
        check_boolean("smooth", self.smooth)
        check_index(Z, y)
        new = clone(self)  # compute everything first, so that an error leaves a fitted correction unchanged
        Z = new._read(Z, reset=True)
        labels, y_ndim = read_labels(y, len(Z), type(self).__name__)
        counts = check_counts(sample_weight, len(Z))
        prediction = read_predictions(self.model, Z, len(Z), labels.shape[1])
        blocks = [Z]
        if unlabelled is not None:
            more = new._read(unlabelled)
            blocks.append(more)
            prediction = np.vstack([prediction, read_predictions(self.model, more, len(more))])
            labels = np.vstack([labels, np.full((len(more), labels.shape[1]), np.nan)])
            counts = np.append(counts, np.ones(len(more)))
        new.features_ = fit_features(self.features, self.model, blocks)
        features = np.vstack([compute_features(new.features_, block) for block in blocks])
        known = _predict_if_known(self.model, blocks)
        new._drifts, reports, used = fit_outputs(features, prediction, labels, counts, *known, smooth=self.smooth)
        new.drift_ = reports[0] if y_ndim == 1 else reports
        new.n_labels_ = int(used.sum())
        new._y_ndim = y_ndim
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(new.__dict__ | self.get_params(deep=False))
        return self

    def predict(self, Z: Any, return_std: bool = False) -> Any:
        """Predict with the corrected model.

        Parameters
        ----------
        Z : array or data frame of shape (m, D)
        return_std : bool, default False
            Also return the scale of each row's label about its prediction: noise, and uncertainty of the correction.

        Returns
        -------
        array of shape (m,), or (m, K) if y had two dimensions; with ``return_std`` a pair of such arrays.
        """
        check_is_fitted(self)
        check_boolean("return_std", return_std)
        Z = self._read(Z)
        before, features = read_predictions(self.model, Z, len(Z)), compute_features(self.features_, Z)
        prediction = self._shape([drift.correct(features, before[:, k]) for k, drift in enumerate(self._drifts)])
        if not return_std:
            return prediction
        scales = [drift.predictive_scale(features, before[:, k]) for k, drift in enumerate(self._drifts)]
        return prediction, self._shape(scales)

    def predict_interval(self, Z: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return an interval for each row that contains its label with a given probability.

        The interval is that of a Student t distribution whose degrees of freedom are the number of labels.

        Parameters
        ----------
        Z : array or data frame of shape (m, D)
        level : float in (0, 1), default 0.9

        Returns
        -------
        low, high : arrays of shape (m,), or (m, K) if y had two dimensions
        """
        check_level(level)
        prediction, scale = self.predict(Z, return_std=True)
        warn_of_unseen(split_model(self.model)[0], Z)
        widths = [drift.quantile(level) for drift in self._drifts]
        half = scale * (widths[0] if self._y_ndim == 1 else np.array(widths))
        return prediction - half, prediction + half

    def expected_rmse(self, Z: Any = None) -> LabelForecast | list[LabelForecast]:
        """Return the expected error of the corrected model on target rows, with intervals.

        Z contains the rows, by default those of the fit. ``float(forecast)`` is the expected RMSE on noisy labels. If y
        had two dimensions, return a list with one forecast per output.
        """
        check_is_fitted(self)
        drifts = self._drifts
        if Z is not None:
            Z = self._read(Z)
            before, features = read_predictions(self.model, Z, len(Z)), compute_features(self.features_, Z)
            warn_of_unseen(split_model(self.model)[0], Z)
            drifts = [drift.on(features, before[:, k], np.ones(len(Z))) for k, drift in enumerate(drifts)]
        forecasts = [forecast_error(drift, name_regressor(self.model)) for drift in drifts]
        return forecasts[0] if self._y_ndim == 1 else forecasts

    def _read(self, Z: Any, *, reset: bool = False) -> Any:
        """Check rows and return them; data frames stay data frames."""
        refuse_unread_tables(Z)
        if is_frame(Z):
            repeated = [name for name, count in Counter(Z.columns).items() if count > 1]
            if repeated:
                raise ValueError(f"column names must be unique, got {repeated[0]!r} twice; rename the columns")
            validate_data(self, Z, reset=reset, skip_check_array=True)
            if len(Z) == 0:
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            complex_columns = [name for name, dtype in zip(Z.columns, Z.dtypes) if str(dtype).startswith("complex")]
            if complex_columns:
                raise ValueError(f"Complex data not supported, got column {complex_columns[0]!r}; drop it")
            return Z
        allow_nan = self.__sklearn_tags__().input_tags.allow_nan
        return validate_data(
            self, Z, reset=reset, dtype="numeric", ensure_all_finite="allow-nan" if allow_nan else True
        )

    def _shape(self, outputs: list[Any]) -> Any:
        return outputs[0] if self._y_ndim == 1 else np.column_stack(outputs)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_drifts")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.model, BaseEstimator):
            is_pipeline = isinstance(self.model, Pipeline)  # its tag is always False; its predict refuses NaN
            tags.input_tags.allow_nan = is_pipeline or get_tags(self.model).input_tags.allow_nan
        return tags


def _predict_if_known(model: Any, blocks: list[Any]) -> tuple[Matrix | None, list[Matrix] | None]:
    """Return what ``SourceModel.predict`` returns for the rows of one of our estimators, also in a Pipeline or search.

    For other models both are None.
    """
    steps, model = split_model(model)
    if not isinstance(model, AdaptableRegressor):
        return None, None
    rows = [read_dense_rows(model, Z if steps is None else steps.transform(Z)) for Z in blocks]
    return model._model.predict(np.vstack(rows))
