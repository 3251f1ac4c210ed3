"""SpARTrainerCallback repairs the model of a Trainer at the end of training."""

import pytest

from pyspar.errors import InputError
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")
transformers = pytest.importorskip("transformers", reason="needs: pip install 'pyspar[huggingface]'")
pytest.importorskip("accelerate", reason="needs: pip install 'pyspar[huggingface]'")

from pyspar.integrations.huggingface import SpARTrainerCallback  # noqa: E402


def make_rows(n, share, seed):
    """Return rows whose label counts tokens below 10; ``share`` of the tokens are."""
    generator = torch.Generator().manual_seed(seed)
    is_low = torch.rand(n, 8, generator=generator) < share
    low, high = (torch.randint(*ends, (n, 8), generator=generator) for ends in ((1, 10), (10, 40)))
    tokens = torch.where(is_low, low, high)
    labels = is_low.sum(dim=1) / 3 + 0.3 * torch.randn(n, generator=generator)
    return [{"input_ids": row, "labels": label} for row, label in zip(tokens, labels)]


def train(tmp_path, callback_options, **arguments):
    """Return a Trainer after a short training, its callback, and the loader of the target."""
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=8, num_labels=1, problem_type="regression",
    )  # fmt: skip
    settings = transformers.TrainingArguments(
        tmp_path, max_steps=15, learning_rate=5e-3, per_device_train_batch_size=32, per_device_eval_batch_size=128,
        eval_steps=5, save_steps=5, report_to="none", disable_tqdm=True, use_cpu=True, **arguments,
    )  # fmt: skip
    trainer = transformers.Trainer(
        transformers.BertForSequenceClassification(config), settings, train_dataset=make_rows(128, 0.4, 0),
        eval_dataset=make_rows(200, 0.4, 1),
    )  # fmt: skip
    target = trainer.get_test_dataloader(make_rows(100, 0.9, 2))
    callback = SpARTrainerCallback(target, **callback_options)
    trainer.add_callback(callback)
    trainer.train()
    return trainer, callback, target


def test_the_best_model_is_repaired_with_evaluation_rows_and_saved(tmp_path):
    arguments = {"eval_strategy": "steps", "save_strategy": "steps", "load_best_model_at_end": True}
    trainer, callback, target = train(tmp_path, {"method": "spar", "labels_scale": "ignore"}, **arguments)
    Bert = transformers.BertForSequenceClassification
    best = Bert.from_pretrained(trainer.state.best_model_checkpoint)
    expected = adapt_head(best, trainer.get_eval_dataloader(), target, method="spar", labels_scale="ignore")
    head = trainer.model.classifier
    torch.testing.assert_close(head.weight, expected.model.classifier.weight, rtol=1e-4, atol=1e-5)
    assert not torch.equal(head.weight, best.classifier.weight)
    assert callback.adapted.model is trainer.model
    assert callback.adapted.account.adapted == pytest.approx(expected.account.adapted, rel=1e-4)
    last = trainer.state.log_history[-1]
    assert last["spar/changed_directions"] == expected.changed.directions
    assert last["spar/expected_rmse"] == pytest.approx(expected.expected_rmse().rmse, rel=1e-3)
    trainer.save_model(tmp_path / "repaired")
    assert torch.equal(Bert.from_pretrained(tmp_path / "repaired").classifier.weight, head.weight)


def test_without_an_evaluation_the_training_rows_are_the_source(tmp_path):
    _, callback, _ = train(tmp_path, {"labels_scale": "ignore"}, save_strategy="no")
    assert callback.adapted.estimator.moments_.rows == 128


def test_with_bf16_the_features_are_read_in_full_precision(tmp_path):
    options = {"method": "spar", "labels_scale": "ignore"}
    trainer, callback, target = train(tmp_path, options, eval_strategy="steps", bf16=True)
    copied = transformers.BertForSequenceClassification(trainer.model.config)
    copied.load_state_dict(trainer.model.state_dict())  # "spar" does not use the weights of the head
    expected = adapt_head(copied, trainer.get_eval_dataloader(), target, **options)
    assert callback.adapted.adaptation.x.rank == expected.adaptation.x.rank
    torch.testing.assert_close(trainer.model.classifier.weight, expected.model.classifier.weight, rtol=1e-4, atol=1e-5)
    assert "forward" in vars(trainer.model)  # accelerate's autocast is back


def test_a_target_that_shuffles_labelled_rows_stops_the_training_before_it_starts():
    rows = torch.utils.data.DataLoader(torch.zeros(10, 3), shuffle=True)
    settings = transformers.TrainingArguments("unused", use_cpu=True)
    with pytest.raises(InputError, match="shuffle"):
        SpARTrainerCallback(rows, target_labels=[1.0] * 10).on_train_begin(settings, None, None, torch.nn.Linear(3, 1))
    with pytest.raises(InputError, match=r"'tail'"):
        SpARTrainerCallback(rows, head="tail").on_train_begin(settings, None, None, torch.nn.Linear(3, 1))


def test_wrong_arguments_and_several_processes_are_refused_before_training():
    with pytest.raises(InputError, match="target is missing"):
        SpARTrainerCallback()
    with pytest.raises(TypeError, match="'methd'"):
        SpARTrainerCallback([torch.zeros(2, 2)], methd="ols")

    class Arguments:
        world_size = 4

    with pytest.raises(InputError, match="needs one process, got 4"):
        SpARTrainerCallback([torch.zeros(2, 2)]).on_train_begin(Arguments, None, None)
