"""adapt_head with target labels: the correction of TargetCorrection on the head's features, written into the head."""

import copy

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from pyspar import InputError, SparWarning, TargetCorrection
from pyspar.nn import adapt_head
from pyspar.nn.features import TargetRows

torch = pytest.importorskip("torch")
nn = torch.nn
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


class Drifting:
    """A network, a source that it predicts well, and a target whose labels are larger by 0.25, about a deviation."""

    def __init__(self, bias=True, outputs=1):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, outputs, bias=bias)).double()
        X, self.Z = torch.randn(400, 4).double(), 1.5 * torch.randn(120, 4).double()
        with torch.no_grad():
            self.source = [(X, self.model(X) + 0.05 * torch.randn(400, outputs).double())]
            self.truth = (1.3 * self.model(self.Z) + 0.25 + 0.05 * torch.randn(120, outputs).double()).numpy()
            self.features = self.model[:-1](self.Z).numpy()
        self.known = np.arange(120) % 10 == 0
        self.labels = np.where(self.known[:, None], self.truth, np.nan)
        self.target = DataLoader(TensorDataset(self.Z), batch_size=32)

    def rmse(self, model):
        with torch.no_grad():
            return float(np.sqrt(np.mean((model(self.Z).numpy() - self.truth)[~self.known] ** 2)))


def linear_model(adapted):
    """Return the head of a result as a scikit-learn model of its features."""
    model = LinearRegression()
    model.coef_, model.intercept_ = adapted.weights[0][0], adapted.weights[1][0]
    return model


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("method", ["bayes", "ols"])
def test_the_corrected_network_predicts_as_the_correction_of_its_head(bias, method):
    case = Drifting(bias)
    before = copy.deepcopy(case.model.state_dict())
    plain = adapt_head(case.model, case.source, case.target, method=method)
    adapted = adapt_head(case.model, case.source, case.target, target_labels=case.labels[:, 0], method=method)
    fixed = TargetCorrection(linear_model(plain), smooth=False).fit(case.features, case.labels[:, 0])
    with torch.no_grad():
        predicted = adapted.model(case.Z).numpy()[:, 0]
    np.testing.assert_allclose(predicted, fixed.predict(case.features), rtol=1e-9, atol=1e-9)
    once = adapt_head(case.model, case.source, iter([case.Z]), target_labels=case.labels[:, 0], method=method)
    np.testing.assert_allclose(once.weights[0], adapted.weights[0], rtol=1e-6)  # the rows can be read only once
    assert case.rmse(adapted.model) < 0.5 * case.rmse(case.model)
    assert adapted.changed == (12, 12)
    assert adapted.drift.probability > 0.99
    assert adapted.drift.n_labels == 12
    assert float(adapted.forecast) == pytest.approx(float(fixed.expected_rmse()))
    assert "corrected with labels: " in repr(adapted)
    assert all(torch.equal(before[name], value) for name, value in case.model.state_dict().items())
    # An ordinary module: a bias is added if the head had none, and the state can be saved and loaded.
    head = adapted.model[2]
    assert isinstance(head.bias, nn.Parameter)
    again = copy.deepcopy(adapted.model)
    again.load_state_dict(adapted.model.state_dict())
    assert torch.equal(again(case.Z), adapted.model(case.Z))


def test_several_outputs_have_their_own_labels_and_drifts():
    case = Drifting(outputs=2)
    case.labels[::20, 1] = np.nan  # other rows are labelled for the second output
    adapted = adapt_head(case.model, case.source, case.target, target_labels=case.labels)
    assert [drift.n_labels for drift in adapted.drift] == [12, 6]
    assert case.rmse(adapted.model) < 0.5 * case.rmse(case.model)
    assert len(adapted.forecast) == 2


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.zeros(119), r"120 rows.* 119"),
        (np.full(120, np.nan), r"0 sample.*minimum of 3"),
        ({200: 1.0}, r"200"),
        (np.zeros((120, 2)), r"1 output.* 2"),
        (["high"] * 120, r"target_labels must contain numbers"),
    ],
)
def test_invalid_labels_are_refused(labels, words):
    case = Drifting()
    with pytest.raises(ValueError, match=words):
        adapt_head(case.model, case.source, case.target, target_labels=labels)


def test_labels_of_one_output_of_a_head_with_a_variance():
    case = Drifting(outputs=2)
    X, y = case.source[0]
    with pytest.raises(InputError, match="output=0"):
        adapt_head(case.model, [(X, y[:, 0])], case.target)
    adapted = adapt_head(case.model, [(X, y[:, 0])], case.target, output=0, target_labels=case.labels[:, 0])
    assert torch.equal(adapted.model[2].weight[1], case.model[2].weight[1])
    assert torch.equal(adapted.model[2].bias[1], case.model[2].bias[1])
    with torch.no_grad():
        errors = [
            np.abs(model(case.Z)[:, 0].numpy() - case.truth[:, 0]).mean() for model in (case.model, adapted.model)
        ]
    assert errors[1] < 0.5 * errors[0]


def test_a_label_may_be_known_for_one_of_two_outputs(recwarn):
    case = Drifting(outputs=2)
    labels = {int(row): [float(case.truth[row, 0]), np.nan] for row in np.flatnonzero(case.known)}
    adapted = adapt_head(case.model, case.source, case.target, target_labels=labels)
    assert adapted.forecast[1] is None
    assert torch.equal(adapted.model[2].weight[1], case.model[2].weight[1])
    assert not torch.equal(adapted.model[2].weight[0], case.model[2].weight[0])
    assert 12 <= adapted.changed.directions < 24
    assert not recwarn.list


def test_an_aligned_network_is_repaired_with_the_source_features_of_the_trained_one():
    """Without them, the source rows go through a body that no longer fits them."""
    torch.manual_seed(1)
    trained = nn.Sequential(nn.Linear(4, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 1)).double().eval()
    X = torch.randn(500, 4).double()
    Z = 3.0 * X[:200] + 2.0  # the same rows, measured differently
    aligned = copy.deepcopy(trained)
    for network, rows in ((trained, X), (aligned, Z)):
        hidden = network[0](rows).detach()
        network[1].running_mean.copy_(hidden.mean(0))
        network[1].running_var.copy_(hidden.var(0))
    y = trained(X).detach() + 0.01 * torch.randn(500, 1).double()
    with pytest.warns(SparWarning, match="source_model="):
        adapt_head(aligned, [(X, y)], [Z])
    repaired = adapt_head(aligned, [(X, y)], [Z], source_model=trained)
    assert repaired.changed.directions == 0
    assert torch.equal(repaired.model[1].running_mean, aligned[1].running_mean)


def test_a_large_target_is_sampled_and_every_labelled_row_is_kept(monkeypatch):
    monkeypatch.setattr("pyspar.nn.features.MAX_UNLABELLED", 30)
    case = Drifting()
    rows = TargetRows(case.labels)
    for block in np.array_split(case.features, 9):
        rows.add(torch.tensor(block))
    features, labels, counts = rows.select(1)
    assert len(features) == 12 + 30
    is_known = np.isfinite(labels[:, 0])
    np.testing.assert_array_equal(features[is_known], case.features[case.known])
    np.testing.assert_array_equal(labels[is_known], case.truth[case.known])
    assert counts.sum() == pytest.approx(120)
    assert (counts[is_known] == 1.0).all()
    sampled = {tuple(row) for row in features[~is_known]}
    assert len(sampled) == 30
    assert sampled <= {tuple(row) for row in case.features[~case.known]}


def test_a_wrong_label_is_named_and_does_not_destroy_the_result():
    case = Drifting()
    case.labels[50] = 1e6
    with pytest.warns(SparWarning, match="1e\\+06 of row 50 "):
        adapted = adapt_head(case.model, case.source, case.target, target_labels=case.labels)
    assert case.rmse(adapted.model) < 0.5 * case.rmse(case.model)


def test_labels_on_another_scale_than_the_predictions_are_refused():
    case = Drifting()
    raw = 150 + 30 * case.labels
    with pytest.raises(InputError, match="target_labels are on another scale"):
        adapt_head(case.model, case.source, case.target, target_labels=raw)
    with pytest.warns(SparWarning, match="have the same unit"):
        adapt_head(case.model, case.source, case.target, target_labels=case.labels / 1000)
    for ignored in (case.labels / 1000, raw):  # without a warning
        adapted = adapt_head(case.model, case.source, case.target, target_labels=ignored, labels_scale="ignore")
    assert adapted.summary.adapted[0] > 10 * adapted.summary.trained[0]


@pytest.mark.parametrize("kind", ["tensor", "gradient", "bfloat16", "one-element tensor", "one-element array"])
def test_a_mapping_may_contain_tensors_and_arrays_and_loses_no_label(kind):
    case = Drifting()
    convert = {
        "tensor": torch.tensor,
        "gradient": lambda value: torch.tensor(value, requires_grad=True),
        "bfloat16": lambda value: torch.tensor(value, dtype=torch.bfloat16),
        "one-element tensor": lambda value: torch.tensor([value]),
        "one-element array": lambda value: np.array([value]),
    }[kind]
    truth = {int(row): float(case.truth[row, 0]) for row in np.flatnonzero(case.known)}
    some = {row: convert(label) if row % 20 else label for row, label in truth.items()}
    assert labels_of(some)[case.known, 0] == pytest.approx(list(truth.values()), rel=0.01)
    assert adapt_head(case.model, case.source, case.target, target_labels=some).drift.n_labels == 12


def labels_of(target_labels):
    rows = TargetRows(target_labels)
    rows.add(torch.zeros(120, 1))
    return rows.select(1)[1]
