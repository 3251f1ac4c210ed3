"""Hugging Face: adapt the head of a transformer with one output to unlabelled texts of a target."""

import torch
from transformers import BertConfig, BertForSequenceClassification

from pyspar.nn import adapt_head

torch.manual_seed(0)
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=1,
    problem_type="regression",
)  # fmt: skip
model = BertForSequenceClassification(config).eval()  # your trained model; a tokenizer gives batches like these


def make_batches(n, largest):
    tokens = torch.randint(1, largest, (n, 12))
    labels = model(tokens).logits[:, 0].detach() + 0.1 * torch.randn(n)
    return [{"input_ids": tokens[k : k + 50], "labels": labels[k : k + 50]} for k in range(0, n, 50)]


adapted = adapt_head(model, make_batches(300, largest=40), make_batches(100, largest=50))
print(adapted)
print(adapted.model.num_parameters())  # the copy is a transformer: save it with save_pretrained, or use it in a Trainer
