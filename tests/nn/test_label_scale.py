"""Labels on another scale are refused, and the summary has the errors on the source."""

import numpy as np
import pytest

from pyspar import InputError
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


def linear(weights, bias=0.0):
    layer = nn.Linear(len(weights), 1).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([weights]))
        layer.bias.fill_(bias)
    return layer


@pytest.fixture
def rows():
    """Source rows, standardised labels of the model (1, -1, 0.5), and target rows."""
    torch.manual_seed(0)
    X, Z = torch.randn(300, 3).double(), 2.0 * torch.randn(100, 3).double()
    return X, X @ torch.tensor([1.0, -1.0, 0.5]).double() + 0.3 * torch.randn(300).double(), Z


MODEL = (1.0, -1.0, 0.5)


@pytest.mark.parametrize("method", ["bayes", "spar", "ols"])
@pytest.mark.parametrize(("slope", "offset"), [(1e5, 3e6), (50.0, 0.0), (0.02, 0.0), (1.0, 40.0)])
def test_labels_on_another_scale_are_refused_before_the_target_is_read(rows, never_read, method, slope, offset):
    X, y, _ = rows
    with pytest.raises(InputError, match=r"labels_scale='ignore'"):
        adapt_head(linear(MODEL), [(X, slope * y + offset)], never_read, method=method)


@pytest.mark.parametrize("weights", [MODEL, (0.5, -0.5, 0.2), (0.0, 0.0, 0.0), (1.3, 0.0, 1.0)])
def test_trained_and_weak_heads_pass(rows, weights):
    X, y, Z = rows
    assert adapt_head(linear(weights), [(X, y)], [Z], method="ols").summary.trained > 0.2


def test_a_wrong_scale_of_one_of_several_outputs_is_named(rows):
    X, y, Z = rows
    model = nn.Linear(3, 2).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([MODEL, MODEL]))
    with pytest.raises(InputError, match=r"output 1"):
        adapt_head(model, [(X, torch.stack([y, 100.0 * y], dim=1))], [Z])


def test_the_summary_has_the_errors_of_the_given_head_of_least_squares_and_of_the_new_head(rows):
    X, y, Z = rows
    model = linear((1.3, -1.0, 0.5), bias=0.2)
    adapted = adapt_head(model, [(X, y)], [Z])
    design = np.column_stack([X.numpy(), np.ones(300)])
    refit = design @ np.linalg.lstsq(design, y.numpy(), rcond=None)[0]
    with torch.no_grad():
        expected = [np.sqrt(np.mean((p - y.numpy()) ** 2)) for p in (model(X)[:, 0].numpy(), refit)]
        after = float(((adapted.model(X)[:, 0] - y) ** 2).mean().sqrt())
    summary = adapted.summary
    np.testing.assert_allclose([summary.trained[0], summary.least_squares[0], summary.adapted[0]], [*expected, after])
    assert summary.least_squares < summary.adapted < summary.trained
