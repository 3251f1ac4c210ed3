"""Export fitted estimators to ONNX with skl2onnx. A repaired network is exported with ``torch.onnx``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pyspar.errors import InputError, need
from pyspar.estimators.base import MomentsRegressor
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.pcr import PCRRegressor
from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor

_skl2onnx = need("skl2onnx", "onnx")
_operators = need("skl2onnx.algebra.onnx_ops", "onnx")
_subgraphs = need("skl2onnx.algebra.onnx_operator", "onnx")
_helper = need("onnx.helper", "onnx")
_types = need("skl2onnx.common.data_types", "onnx")

OPSET = 18
"""The default version of the ONNX operators: old enough for most runtimes."""


def to_onnx(model: Any, X: Any = None, **options: Any) -> Any:
    """Return a fitted model as an ONNX graph whose output ``variable`` is the prediction, of shape (n, outputs).

    The current weights are exported: the adapted weights after ``adapt(Z)``, and the corrected weights after
    ``adapt(Z, y)``. The graph contains no intervals and no forecasts.

    Parameters
    ----------
    model : SpARRegressor, BayesSpARRegressor, PCRRegressor, TargetCorrection, or a pipeline that ends in one
        skl2onnx must be able to convert all steps of a pipeline, and the model of a TargetCorrection.
    X : array of shape (n, D), optional
        Rows whose dtype, float32 or float64, is the dtype of the graph's input. The values are not used. Without rows,
        pass ``initial_types`` as for ``skl2onnx.to_onnx``.
    **options
        Arguments of ``skl2onnx.to_onnx``, such as ``target_opset`` (default 18) and ``initial_types``.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import SpARRegressor
    >>> from pyspar.integrations.onnx import to_onnx
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 3)), 5 * rng.normal(size=(20, 3))
    >>> graph = to_onnx(SpARRegressor().fit(X, X[:, 0] + rng.normal(size=50)).adapt(Z), X)
    >>> [node.name for node in graph.graph.input], [node.name for node in graph.graph.output]
    (['X'], ['variable'])
    """
    if hasattr(model, "state_dict") or hasattr(model, "write_to"):  # recognised without torch
        raise InputError(
            f"to_onnx exports fitted estimators, got {type(model).__name__}; export a network with "
            "torch.onnx.export(adapted.model.eval(), (inputs,), dynamo=True)"
        )
    check_is_fitted(model)
    register_converters()
    if X is None and "initial_types" not in options:
        raise InputError("X is missing; pass some rows, or initial_types= as for skl2onnx.to_onnx")
    return _skl2onnx.to_onnx(model, X, **{"target_opset": OPSET, **options})


def register_converters() -> None:
    """Register the estimators of pyspar with skl2onnx, so that ``skl2onnx.to_onnx`` converts them."""
    for kind in (SpARRegressor, BayesSpARRegressor, PCRRegressor):
        _skl2onnx.update_registered_converter(kind, f"Pyspar{kind.__name__}", _set_shape, _convert_linear)
    _skl2onnx.update_registered_converter(TargetCorrection, "PysparTargetCorrection", _set_shape, _convert_correction)


def _set_shape(operator: Any) -> None:
    """Declare the type of the prediction: a matrix of the input's precision."""
    model = operator.raw_operator
    outputs = len(model._drifts) if isinstance(model, TargetCorrection) else np.atleast_2d(model.coef_).shape[0]
    kind = _types.guess_tensor_type(operator.inputs[0].type)
    operator.outputs[0].type = type(kind)([operator.inputs[0].get_first_dimension(), outputs])


def _make_operators(container: Any) -> Callable[..., Any]:
    """Return a function that creates the operator with a name, in the version of a graph."""
    return lambda name, *inputs, **settings: getattr(_operators, f"Onnx{name}")(
        *inputs, op_version=container.target_opset, **settings
    )


def _convert_linear(scope: Any, operator: Any, container: Any) -> None:
    """Convert ``(X - mean) @ weights + offset``, in which columns with large means keep their digits in float32."""
    model: MomentsRegressor = operator.raw_operator
    dtype = _types.guess_numpy_type(operator.outputs[0].type)
    weights = np.atleast_2d(model.coef_).T
    mean = model.moments_.mean[: len(weights)].astype(dtype)
    offset = np.atleast_1d(model.intercept_) + mean.astype(np.float64) @ weights
    add = _make_operators(container)
    rows = add("Cast", operator.inputs[0], to=_helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    product = add("MatMul", add("Sub", rows, mean[None]), weights.astype(dtype))
    add("Add", product, offset[None].astype(dtype), output_names=operator.outputs[:1]).add_to(scope, container)


def _convert_correction(scope: Any, operator: Any, container: Any) -> None:
    """Convert the posterior mean of the drift, added to the prediction (``Drift.correction``)."""
    model: TargetCorrection = operator.raw_operator
    if len(operator.inputs) != 1:
        raise InputError(
            f"a TargetCorrection can be exported with one input, a matrix of numbers, got {len(operator.inputs)} "
            "inputs; encode the columns of data frames first"
        )
    X, opset = operator.inputs[0], container.target_opset
    dtype = _types.guess_numpy_type(X.type)
    parts = [drift.correction() for drift in model._drifts]
    offsets = np.array([[part[0] for part in parts]], dtype)
    factors = np.array([[1.0 + part[1] for part in parts]], dtype)
    weights = np.column_stack([part[2] for part in parts]).astype(dtype)
    add = _make_operators(container)
    before = _subgraphs.OnnxSubEstimator(model.model, X, op_version=opset)
    to = _helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    before = add("Cast", before, to=to)  # trees predict in float32
    before = add("Reshape", before, np.array([-1, len(parts)], np.int64))
    features = model.features_
    steps = [step for _, step in features.steps] if isinstance(features, Pipeline) else [features]
    rows = X
    for step in steps:
        if isinstance(step, SimpleImputer) and step.strategy == "mean" and not step.add_indicator:
            # onnxruntime implements skl2onnx's Imputer for float32 only.
            rows = add("Where", add("IsNaN", rows), step.statistics_.astype(dtype)[None], rows)
        elif step != "passthrough":
            rows = _subgraphs.OnnxSubEstimator(step, rows, op_version=opset)
    total = add("Add", add("Mul", before, factors), add("MatMul", rows, weights))
    for k, (drift, part) in enumerate(zip(model._drifts, parts)):
        if part[3] is not None:
            column = np.eye(len(parts), dtype=dtype)[k : k + 1]
            smooth = _add_smooth(add, rows, drift.basis.features, part[3][:, None], to)
            total = add("Add", total, add("MatMul", smooth, column))
    add("Add", total, offsets, output_names=operator.outputs[:1]).add_to(scope, container)


def _add_smooth(add: Callable[..., Any], rows: Any, features: Any, weights: Any, to: int) -> Any:
    """Return the node of the weighted sum of exp(-d^2 / 2) over the centres of smooth features, of shape (m, 1).

    It is computed in double precision, because large weights of opposite signs cancel, and cast to the type ``to``.
    """
    at, centres = features.units, features.centres
    rows = add("Cast", rows, to=_helper.np_dtype_to_tensor_dtype(np.dtype(np.float64)))
    rows = add("Mul", add("Sub", rows, at.feature_mean[None]), at.feature_scale[None])
    product = add("MatMul", rows, centres.T.copy())  # -d^2 / 2 = product - (|row|^2 + |centre|^2) / 2
    square = add("MatMul", add("Mul", rows, rows), np.full((centres.shape[1], 1), 0.5))
    constant = 0.5 * np.square(centres).sum(axis=1)[None]
    return add("Cast", add("MatMul", add("Exp", add("Sub", add("Sub", product, square), constant)), weights), to=to)
