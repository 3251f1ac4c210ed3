"""docs/methods.md documents every setting of the training loop."""

from dataclasses import fields
from pathlib import Path

import pytest

import pyspar

pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")
PAGE = Path(pyspar.__file__).parents[2] / "docs" / "methods.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not part of an installed package")
def test_every_setting_is_documented():
    from pyspar.paper import TrainConfig

    text = PAGE.read_text()
    assert [field.name for field in fields(TrainConfig) if f"`{field.name}`" not in text] == []
