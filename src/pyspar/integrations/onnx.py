"""Export fitted estimators to ONNX with skl2onnx. A repaired network is exported with ``torch.onnx``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pyspar.errors import InputError, need
from pyspar.estimators.base import MomentsRegressor
from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor

_skl2onnx = need("skl2onnx", "onnx")
_operators = need("skl2onnx.algebra.onnx_ops", "onnx")
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
    model : SpARRegressor, BayesSpARRegressor, or a pipeline that ends in one
        skl2onnx must be able to convert all steps of a pipeline.
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
    for kind in (SpARRegressor, BayesSpARRegressor):
        _skl2onnx.update_registered_converter(kind, f"Pyspar{kind.__name__}", _set_shape, _convert_linear)


def _set_shape(operator: Any) -> None:
    """Declare the type of the prediction: a matrix of the input's precision."""
    outputs = np.atleast_2d(operator.raw_operator.coef_).shape[0]
    kind = _types.guess_tensor_type(operator.inputs[0].type)
    operator.outputs[0].type = type(kind)([operator.inputs[0].get_first_dimension(), outputs])


def _convert_linear(scope: Any, operator: Any, container: Any) -> None:
    """Convert ``(X - mean) @ weights + offset``, in which columns with large means keep their digits in float32."""
    model: MomentsRegressor = operator.raw_operator
    dtype = _types.guess_numpy_type(operator.outputs[0].type)
    weights = np.atleast_2d(model.coef_).T
    mean = model.moments_.mean[: len(weights)].astype(dtype)
    offset = np.atleast_1d(model.intercept_) + mean.astype(np.float64) @ weights

    def add(name: str, *inputs: Any, **settings: Any) -> Any:
        return getattr(_operators, f"Onnx{name}")(*inputs, op_version=container.target_opset, **settings)

    rows = add("Cast", operator.inputs[0], to=_helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    product = add("MatMul", add("Sub", rows, mean[None]), weights.astype(dtype))
    add("Add", product, offset[None].astype(dtype), output_names=operator.outputs[:1]).add_to(scope, container)
