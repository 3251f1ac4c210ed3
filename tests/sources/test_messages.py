"""The full text of representative error messages for batches, sparse rows, Dask and tensors."""

import numpy as np
import pytest
import scipy.sparse as sp

from pyspar import SpARRegressor

da = pytest.importorskip("dask.array", reason="needs: pip install 'pyspar[dask]'")
torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")


def test_error_messages(golden):
    X, y, sparse = np.ones((3, 2)), np.ones(3), sp.csr_array(np.eye(3, 2))
    lazy, tensor = da.ones((4, 2), chunks=(2, 2)), torch.ones(3, 2)
    inputs = {
        "a batch without labels": [X],
        "batches of another width": [(X, y), (np.ones((3, 4)), y)],
        "a batch with fewer labels than rows": [(X, y[:2])],
        "a batch with one dimension": iter([(y, y)]),
        "sparse labels": [(sparse, y), (X, sparse)],
        "a sparse batch with NaN": [(sparse, y), (sparse * np.nan, y)],
        "sparse batches of another width": [(sparse, y), (sp.csr_array(np.ones((3, 4))), y)],
        "a sparse batch with fewer labels than rows": [(sparse, y), (sparse, y[:2])],
        "sparse rows with NaN": (sp.csr_array(X * np.nan), y),
        "sparse rows whose squares overflow": (sp.csr_array(np.full((9, 2), 1e200)), np.ones(9)),
        "sparse rows whose squares underflow": (sp.csr_array(np.full((9, 2), 1e-200)), np.ones(9)),
        "dask rows and other labels": (lazy, np.ones(4)),
        "an empty dask array": (da.ones((0, 2)), da.ones(0)),
        "a tensor with one dimension": (torch.ones(3), tensor[:, 0]),
        "tensors of different length": (tensor, torch.ones(2)),
        "complex tensors": (tensor + 1j, torch.ones(3)),
        "dask rows without labels": (lazy,),
        "one dask row": (lazy[:1], lazy[:1, 0]),
        "negative weights": (tensor, torch.ones(3), -torch.ones(3)),
        "a tensor with NaN": (tensor * float("nan"), torch.ones(3)),
        "tensor batches of another width": [(tensor, torch.ones(3)), (torch.ones(3, 4), torch.ones(3))],
    }
    messages = []
    for title, rows in inputs.items():
        with pytest.raises((ValueError, TypeError)) as error:
            SpARRegressor().fit(*rows) if isinstance(rows, tuple) else SpARRegressor().fit(rows)
        messages.append(f"{title}\n  {type(error.value).__name__}: {error.value}")
    golden("source-messages", "\n".join(messages))
