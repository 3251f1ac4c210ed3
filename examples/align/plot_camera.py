"""
.. _example-camera:

A second camera: align a network
================================

A network predicts the angle of a bar in small images. A second camera has less contrast, is brighter and adds noise.
The bars are the same, so only the measurement changed. ``nn.align`` changes the normalisation layers of a copy of the
network until the features of the new images vary as those of the old ones. No labels are needed.

If the population changed instead, aligning would do harm. A target inside the support of the source is left alone, as
the last lines show for a part of the angles.
"""

# %%
# Images of two cameras
# ---------------------

import matplotlib.pyplot as plt
import torch
from torch import nn

from pyspar.nn import align, summarize

torch.set_num_threads(1)
torch.manual_seed(0)
at = torch.linspace(-1.0, 1.0, 16)
rows, columns = torch.meshgrid(at, at, indexing="ij")


def draw_bars(n, low=-1.0, high=1.0):
    """Return images of bars with random widths and places, and their angles in radians."""
    angles = low + (high - low) * torch.rand(n)
    width, x, y = 0.15 + 0.15 * torch.rand(n), *(0.4 * (torch.rand(2, n) - 0.5))
    cosine, sine = (f(angles)[:, None, None] for f in (torch.cos, torch.sin))
    across = (rows - y[:, None, None]) * cosine - (columns - x[:, None, None]) * sine
    bars = torch.sigmoid(12.0 * (width[:, None, None] - across.abs()))
    return bars[:, None] + 0.05 * torch.randn(n, 1, 16, 16), angles


def second_camera(images):
    """Return what another camera would have measured."""
    return (0.45 * images + 0.4 + 0.1 * torch.randn_like(images)).clamp(0.0, 1.0)


# %%
# Train on the first camera
# -------------------------

layers = [nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU()]
layers += [nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten()]
model = nn.Sequential(*layers, nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
X, y = draw_bars(4000)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(6):
    for part in torch.randperm(len(X)).split(64):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(X[part]), y[part]).backward()
        optimizer.step()
model.eval()
source = summarize(model, X)  # a small file; the images can stay where they are

# %%
# Align with the second camera
# ----------------------------

ideal, truth = draw_bars(1500)
Z = second_camera(ideal)
result = align(model, source, Z)
networks = {"first camera": (model, ideal), "second camera": (model, Z), "aligned": (result.model, Z)}
with torch.no_grad():
    errors = {name: float((net(Z) - truth).square().mean().sqrt()) for name, (net, Z) in networks.items()}
print(result, {name: round(error, 3) for name, error in errors.items()}, sep="\n")
print(align(model, source, draw_bars(1500, low=0.5)[0]))  # a part of the angles: nothing to align
plt.figure(figsize=(4.5, 3.0), layout="constrained")
plt.bar(list(errors), list(errors.values()), color=["#888888", "#D55E00", "#0072B2"])
plt.ylabel("RMSE of the angle (radians)")
plt.show()
