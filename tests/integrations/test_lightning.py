"""SpARCallback repairs the module of the trainer at the right time, and logs."""

import csv
import inspect

import numpy as np
import pytest

from pyspar.errors import InputError, SparWarning
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")
L = pytest.importorskip("pytorch_lightning", reason="needs: pip install 'pyspar[lightning]'")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from pyspar.integrations.lightning import SpARCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning:pytorch_lightning", "ignore::FutureWarning")


class Network(L.LightningModule):
    def __init__(self, outputs=1, output="vector"):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(4, 16), nn.ReLU()), nn.Linear(16, outputs)
        self.output = output

    def forward(self, x):
        prediction = self.head(self.body(x))
        if self.output == "dict":
            return {"prediction": prediction[:, 0], "size": len(x)}
        return prediction if self.output == "matrix" else prediction[:, 0]

    def loss(self, batch):
        prediction = self(batch[0])
        prediction = prediction["prediction"] if self.output == "dict" else prediction
        return (prediction - batch[1]).square().mean()

    def training_step(self, batch, _):
        return self.loss(batch)

    def validation_step(self, batch, _):
        self.log("val", self.loss(batch))

    def predict_step(self, batch, _):
        return self(batch[0])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


@pytest.fixture
def data():
    """Loaders of training, validation and target rows; the target's batches have labels that must not be used."""
    generator = torch.Generator().manual_seed(0)
    X, Z = torch.randn(500, 4, generator=generator), 3 * torch.randn(200, 4, generator=generator)
    y = X.sum(dim=1) + 0.1 * torch.randn(500, generator=generator)
    sets = [(X[:300], y[:300]), (X[300:], y[300:]), (Z, torch.full((200,), torch.nan))]
    return [DataLoader(TensorDataset(*rows), 64) for rows in sets]


@pytest.fixture
def make_trainer(tmp_path):
    def make(*callbacks, **options):
        quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
        quiet |= {"accelerator": "cpu", "default_root_dir": tmp_path, "enable_checkpointing": False, "max_epochs": 4}
        return L.Trainer(callbacks=list(callbacks), **{**quiet, **options})

    return make


def make_network(**options):
    torch.manual_seed(0)
    return Network(**options)


@pytest.mark.parametrize(
    ("options", "outputs"), [({}, 1), ({"output": "dict"}, 1), ({"output": "matrix", "outputs": 2}, 2)]
)
def test_the_head_after_fit_is_that_of_adapt_head_on_validation_rows(data, make_trainer, options, outputs):
    train, valid, target = data
    if outputs > 1:
        sets = [(x, torch.stack([y, -2 * y], 1)) for x, y in (loader.dataset.tensors for loader in (train, valid))]
        train, valid = (DataLoader(TensorDataset(*rows), 64) for rows in sets)
    plain, repaired = make_network(**options), make_network(**options)
    make_trainer().fit(plain, train, valid)
    callback = SpARCallback(target)
    make_trainer(callback).fit(repaired, train, valid)
    expected = adapt_head(plain, valid, target)
    assert expected.changed.directions > 0
    assert torch.equal(repaired.head.weight, expected.model.head.weight)
    assert torch.equal(repaired.body[0].weight, plain.body[0].weight)
    assert callback.adapted.model is repaired
    assert callback.adapted.changed == expected.changed
    np.testing.assert_array_equal(callback.adapted.account.adapted, expected.account.adapted)
    assert len([name for name in callback.metrics if name.startswith("spar/expected_rmse_high")]) == outputs
    assert not repaired._forward_pre_hooks


def test_without_validation_rows_the_training_rows_are_the_source(data, make_trainer):
    train, _, target = data
    plain, repaired = make_network(), make_network()
    make_trainer().fit(plain, train)
    make_trainer(SpARCallback(lambda: target, method="spar")).fit(repaired, train)
    assert torch.equal(repaired.head.weight, adapt_head(plain, train, target, method="spar").model.head.weight)


def test_the_forecast_and_the_changed_directions_are_logged(data, make_trainer, tmp_path):
    train, valid, target = data
    callback = SpARCallback(target)
    trainer = make_trainer(callback, logger=L.loggers.CSVLogger(tmp_path, name="run", version=0))
    trainer.fit(make_network(), train, valid)
    *_, last = csv.DictReader((tmp_path / "run" / "version_0" / "metrics.csv").open())
    assert float(last["spar/changed_directions"]) == callback.adapted.changed.directions
    forecast = callback.adapted.expected_rmse()
    assert float(last["spar/expected_rmse"]) == pytest.approx(forecast.rmse)
    assert float(last["spar/expected_rmse_high"]) == pytest.approx(forecast.interval80[1])
    assert forecast.interval80[0] <= forecast.rmse <= forecast.interval80[1]


def test_before_predict_the_weights_of_the_best_checkpoint_are_repaired_and_never_twice(data, make_trainer, tmp_path):
    train, valid, target = data
    model, callback = make_network(), SpARCallback(when="predict_start")
    best = L.callbacks.ModelCheckpoint(tmp_path, monitor="val")
    stop = L.callbacks.EarlyStopping("val", patience=1, min_delta=1.0)
    trainer = make_trainer(callback, best, stop, enable_checkpointing=True)
    trainer.fit(model, train, valid)
    assert callback.adapted is None
    trained = Network.load_from_checkpoint(best.best_model_path)
    expected = adapt_head(trained, valid, target).model
    assert not torch.equal(trained.head.weight, expected.head.weight)
    predictions = torch.cat(trainer.predict(model, target, ckpt_path="best"))
    torch.testing.assert_close(predictions, expected(target.dataset.tensors[0]))
    assert torch.equal(model.head.weight, trained.head.weight)  # so that no head is repaired twice
    again = torch.cat(trainer.predict(model, target))
    torch.testing.assert_close(again, predictions)
    assert not callback.adapted.model._forward_pre_hooks
    with torch.no_grad():
        torch.testing.assert_close(callback.adapted.model(target.dataset.tensors[0]), predictions)

    fresh, other = make_network(), SpARCallback(source=valid, when="predict_start")
    predictions = torch.cat(make_trainer(other).predict(fresh, target, ckpt_path=best.best_model_path))
    torch.testing.assert_close(predictions, again)
    with pytest.raises(InputError, match="batch 0 of target_loader"):
        make_trainer(other).predict(fresh, DataLoader(torch.zeros(3, 5)))
    assert torch.equal(fresh.head.weight, trained.head.weight)


def test_after_an_error_in_predict_the_module_has_its_trained_head(data, make_trainer):
    class Failing(Network):
        def predict_step(self, batch, _):
            raise RuntimeError("failed")

    _, valid, target = data
    torch.manual_seed(0)
    model, callback = Failing(), SpARCallback(source=valid, when="predict_start", labels_scale="ignore")
    before = model.head.weight.detach().clone()
    with pytest.raises(RuntimeError, match="failed"):
        make_trainer(callback).predict(model, target)
    assert callback.adapted.changed.directions > 0
    assert torch.equal(model.head.weight, before)


def test_a_checkpoint_that_replaces_the_repaired_head_causes_a_warning(data, make_trainer, tmp_path):
    train, valid, target = data
    model = make_network()
    trainer = make_trainer(
        SpARCallback(target), L.callbacks.ModelCheckpoint(tmp_path, monitor="val"), enable_checkpointing=True
    )
    trainer.fit(model, train, valid)
    trainer.predict(model, target)  # no warning: SparWarning is an error in the tests
    with pytest.warns(SparWarning, match="predict_start"):
        trainer.predict(model, target, ckpt_path="best")


def test_a_bfloat16_model_is_repaired_with_labels_of_full_precision(data, make_trainer):
    train, valid, target = data
    model, callback = make_network(), SpARCallback(target, labels_scale="ignore")
    make_trainer(callback, precision="bf16-true").fit(model, train, valid)
    assert model.head.weight.dtype == torch.bfloat16
    labels = valid.dataset.tensors[1].double()
    assert callback.adapted.account.label_spread[0] == pytest.approx(float(labels.std(correction=0)), rel=1e-6)


def test_batches_pass_the_transfer_hooks_as_in_validation(data, make_trainer):
    class Doubled(Network):
        def on_after_batch_transfer(self, batch, dataloader_idx):
            return [batch[0] if self.trainer.training else 2 * batch[0], *batch[1:]]

    train, valid, target = data
    torch.manual_seed(0)
    model, callback = Doubled(), SpARCallback(target, labels_scale="ignore", method="ols")
    make_trainer(callback).fit(model, train, valid)
    X, y = (rows.double().numpy() for rows in valid.dataset.tensors)
    features = model.body(2 * torch.tensor(X, dtype=torch.float32)).detach().double().numpy()
    design = np.column_stack([features, np.ones(len(y))])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert callback.adapted.account.adapted[0] == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-4)


def test_a_submodule_can_be_the_model_and_a_smoke_run_reads_one_batch(data, make_trainer):
    class Wrapped(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = make_network()

        def training_step(self, batch, _):
            return self.net.loss(batch)

        def configure_optimizers(self):
            return self.net.configure_optimizers()

    train, _, target = data
    with pytest.raises(InputError, match="'net'"):
        make_trainer(SpARCallback(target)).fit(Wrapped(), train)
    callback = SpARCallback(target, module="net", method="ols")
    make_trainer(callback, fast_dev_run=True).fit(Wrapped(), train)
    assert callback.adapted.estimator.moments_.rows == 64


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "ridge"}, "method.*'ridge'"),
        ({"alpha": 1.5}, r"alpha.*1\.5"),
        ({"noise": "none"}, "noise.*'none'"),
        ({"cutoff": 1.0}, r"cutoff.*1\.0"),
        ({"labels_scale": "any"}, "labels_scale.*'any'"),
        ({"autocast": "bf16"}, "autocast.*'bf16'"),
        ({"head": 3}, "head.*int"),
        ({"inputs": "x"}, "inputs.*str"),
        ({"labels": "y"}, "labels.*str"),
        ({"mask": [True]}, "mask.*list"),
        ({"sample_weight": 2.0}, "sample_weight.*float"),
        ({"progress": "yes"}, "progress.*'yes'"),
        ({"target_labels": ["low"]}, "target_labels"),
        ({"target_labels": [1.0], "mask": len}, "mask"),
    ],
)
def test_every_invalid_option_of_adapt_head_is_refused_before_training(data, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        SpARCallback(data[2], **options)
    with pytest.raises((ValueError, TypeError), match=words):
        adapt_head(nn.Linear(4, 1), data[1], data[2], **options)


def test_every_option_of_adapt_head_is_checked():
    options = set(inspect.signature(adapt_head).parameters) - {"model", "source_loader", "target_loader"}
    cases = test_every_invalid_option_of_adapt_head_is_refused_before_training.pytestmark[0].args[1]
    assert {name for case, _ in cases for name in case} == options


def test_wrong_arguments_are_refused_before_training(data):
    with pytest.raises(TypeError, match="'alpah'"):
        SpARCallback(data[2], alpah=0.9)
    with pytest.raises(ValueError, match="'fit_start'"):
        SpARCallback(data[2], when="fit_start")
    with pytest.raises(InputError, match="target is missing"):
        SpARCallback()
    with pytest.raises(InputError, match="target is missing"):
        SpARCallback(method="ols", target_labels=[1.0])
    with pytest.raises(TypeError, match=r"module.*int"):
        SpARCallback(data[2], module=3)
    with pytest.raises(TypeError, match="DataLoader"):
        SpARCallback(data[2].dataset)


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ([torch.zeros(3, 5)], {}, "batch 0 of target_loader"),
        ([torch.zeros(3, 4)], {"head": "tail"}, "'tail'"),
        (None, {"target_labels": np.zeros(200)}, "shuffle"),
    ],
)
def test_a_target_that_cannot_be_used_stops_the_fit_before_training(data, make_trainer, target, options, words):
    train, _, usual = data
    model = make_network()
    before = model.head.weight.detach().clone()
    with pytest.raises(ValueError, match=words):
        make_trainer(SpARCallback(target or DataLoader(usual.dataset, 64, shuffle=True), **options)).fit(model, train)
    assert torch.equal(model.head.weight, before)


def test_an_iterator_is_read_once_and_a_shuffled_training_is_the_same_with_the_callback(data, make_trainer):
    train, valid, target = data
    train = DataLoader(train.dataset, 64, shuffle=True)
    plain, repaired, third = make_network(), make_network(), make_network()
    for model, callbacks in (
        (plain, []),
        (repaired, [SpARCallback(target)]),
        (third, [SpARCallback(iter(list(target)))]),
    ):
        torch.manual_seed(1)
        make_trainer(*callbacks, max_epochs=1).fit(model, train, valid)
    assert torch.equal(repaired.body[0].weight, plain.body[0].weight)
    assert torch.equal(repaired.head.weight, third.head.weight)


def test_weight_averaging_after_the_repair_causes_a_warning(data, make_trainer):
    train, valid, target = data
    average = L.callbacks.StochasticWeightAveraging(swa_lrs=0.01)
    with pytest.warns(SparWarning, match="put SpARCallback last"):
        make_trainer(SpARCallback(target), average).fit(make_network(), train, valid)
    model, callback = make_network(), SpARCallback(target)
    make_trainer(L.callbacks.StochasticWeightAveraging(swa_lrs=0.01), callback).fit(model, train, valid)
    assert torch.equal(model.head.weight, callback._written)


def test_several_processes_are_refused_at_the_start(data, make_trainer, monkeypatch):
    trainer = make_trainer(SpARCallback(data[2]))
    monkeypatch.setattr(type(trainer), "world_size", 2)
    with pytest.raises(InputError, match=r"needs one process, got 2.*devices=1"):
        trainer.fit(make_network(), data[0])


def test_several_validation_loaders_need_a_choice(data, make_trainer):
    train, valid, target = data
    with pytest.raises(InputError, match=r"2 validation loaders.*source="):
        make_trainer(SpARCallback(target)).fit(make_network_with_two_loaders(), train, [valid, valid])


def make_network_with_two_loaders():
    class Two(Network):
        def validation_step(self, batch, _, dataloader_idx=0):
            self.log("val", self.loss(batch))

    return Two()
