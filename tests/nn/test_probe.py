"""What follows the head is found out, wherever it bends what leaves the head."""

import pytest
import torch
from torch import nn

from pyspar.nn import adapt_head

BENDS = {
    "clipping above one": lambda o: o.clamp(max=1.0),
    "clipping far out": lambda o: o.clamp(-900.0, 900.0),
    "sorting over the batch": lambda o: o.sort(dim=0).values,
    "taking the batch mean off": lambda o: o - 0.5 * o.mean(0),
    "bending near zero": lambda o: torch.where(o.abs() < 1, 0.5 * o, o),
    "a tiny offset": lambda o: o + 1e-6,
}


class Bent(nn.Module):
    def __init__(self, bend):
        super().__init__()
        self.body, self.fc, self.bend = nn.Linear(3, 8), nn.Linear(8, 1), bend

    def forward(self, x):
        return self.bend(self.fc(torch.tanh(self.body(x))))


def batches(size):
    torch.manual_seed(0)
    X = torch.randn(40 * size, 3)
    return list(zip(X.split(size), X.sum(1).split(size), strict=True))


@pytest.mark.parametrize("bend", BENDS.values(), ids=BENDS)
def test_a_head_whose_output_is_bent_is_refused(bend):
    torch.manual_seed(0)
    with pytest.raises(ValueError, match="head"):
        adapt_head(Bent(bend), batches(16), batches(16))


@pytest.mark.parametrize("bend", [BENDS["clipping above one"], lambda o: torch.relu(o)])
def test_one_row_in_the_first_batch_is_enough_to_see_it(bend):
    torch.manual_seed(0)
    with pytest.raises(ValueError, match="head"):
        adapt_head(Bent(bend), batches(1), batches(1))


def test_a_head_that_is_only_reshaped_is_accepted():
    torch.manual_seed(0)
    assert adapt_head(Bent(lambda o: o.squeeze(-1)), batches(16), batches(16)).head_name == "fc"
