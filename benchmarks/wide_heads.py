"""Compare fits of tensors and of a network's head with a fit of the same rows by QR, for fewer rows than features.

The column "adapt_head / equal noise" has the cost of the noise of single rows (decision 24). The network has no other
layers, so the ratio is the largest possible.
"""

from __future__ import annotations

import warnings
from unittest.mock import patch

import torch
from torch import nn

from benchmarks.measure import median_seconds, print_table, save_record, shifted_pair
from pyspar import BayesSpARRegressor, Moments, SpARRegressor, SparWarning
from pyspar.estimators.head_weights import fit_head
from pyspar.nn import adapt_head

SHAPES = ((200, 2048), (100, 4096), (20_000, 256))


def main(turns: int = 5) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", SparWarning)  # with so few rows the noise cannot be estimated
    rows = []
    for n, d in SHAPES:
        X, y, Z = shifted_pair(n, d, dtype="float32")
        model = nn.Linear(d, 1)
        coef, bias = model.weight.detach().double().numpy(), model.bias.detach().double().numpy()
        source, target = [(torch.tensor(X), torch.tensor(y))], [torch.tensor(Z)]

        def fit_by_qr(X=X, y=y, Z=Z, coef=coef, bias=bias):
            moments = Moments.of(X, y, solver="qr"), Moments.of(Z, solver="qr")
            return fit_head(*moments, "bayes", coef=coef, intercept=bias)

        def adapt_with_equal_noise(model=model, source=source, target=target):
            with patch.multiple("pyspar.nn.features.ErrorSums", add=lambda *_: None, roots=lambda _: ()):
                return adapt_head(model, source, target, labels_scale="ignore")

        tasks = {
            "head by QR": fit_by_qr,
            "adapt_head": lambda m=model, s=source, t=target: adapt_head(m, s, t, labels_scale="ignore"),
            "equal noise": adapt_with_equal_noise,
            "rows by QR": lambda X=X, y=y, Z=Z: SpARRegressor(solver="qr").fit(X, y).adapt(Z),
            "tensors": lambda s=source, t=target: SpARRegressor().fit(*s[0]).adapt(t[0]),
            "Bayes, rows by QR": lambda X=X, y=y, Z=Z: BayesSpARRegressor(solver="qr").fit(X, y).adapt(Z),
            "Bayes, tensors": lambda s=source, t=target: BayesSpARRegressor().fit(*s[0]).adapt(t[0]),
        }
        seconds = median_seconds(tasks, turns)
        pairs = (
            ("adapt_head", "equal noise"), ("adapt_head", "head by QR"), ("tensors", "rows by QR"),
            ("Bayes, tensors", "Bayes, rows by QR"),
        )  # fmt: skip
        rows.append([f"{n:,} x {d:,}", seconds["adapt_head"], *(seconds[a] / seconds[b] for a, b in pairs)])
    ratios = ["adapt_head / equal noise", "adapt_head / QR", "tensors / QR", "Bayes on tensors / QR"]
    header = ["rows x features", "adapt_head, s", *ratios]
    print_table("heads, float32", header, rows)
    save_record("wide_heads", [dict(zip(header, row, strict=True)) for row in rows], turns=turns)


if __name__ == "__main__":
    main()
