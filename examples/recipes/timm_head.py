"""timm: adapt the classifier of an image model with one output."""

import timm
import torch
from torch.utils.data import DataLoader, TensorDataset

from pyspar.nn import adapt_head

torch.manual_seed(0)
brightness = torch.randn(300)
X, Z = (scale * brightness[:, None, None, None] + torch.randn(300, 3, 32, 32) for scale in (1.0, 2.0))
model = timm.create_model("resnet10t", pretrained=False, num_classes=1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for rows in 3 * torch.arange(300).split(50):
    optimizer.zero_grad()
    (model(X[rows])[:, 0] - brightness[rows]).square().mean().backward()
    optimizer.step()
source = DataLoader(TensorDataset(X, brightness), batch_size=100)
adapted = adapt_head(model, source, DataLoader(TensorDataset(Z), batch_size=100))
print(adapted)
print(adapted.model.get_classifier())
