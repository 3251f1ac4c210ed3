"""PyTorch Lightning: train a module, then replace its linear head by one that is adapted to the target."""

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pyspar.nn import adapt_head


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.network(x)

    def training_step(self, batch, _):
        return (self(batch[0]) - batch[1]).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


torch.manual_seed(0)
X, Z = torch.randn(600, 4), torch.randn(200, 4) * torch.tensor([2.0, 1.0, 0.5, 0.5])
source = DataLoader(TensorDataset(X, X.sum(1, keepdim=True) + 0.1 * torch.randn(600, 1)), batch_size=100)
trainer = pl.Trainer(max_epochs=5, logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(module := Regression(), source)
adapted = adapt_head(module, source, DataLoader(TensorDataset(Z), batch_size=100))
print(adapted)
predictions = adapted.model(Z)  # adapted.model is a LightningModule that can be validated, tested and saved
