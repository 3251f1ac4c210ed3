"""docs/networks.md documents every parameter of adapt_head; tests/test_docs.py runs the page."""

import inspect
import re
from pathlib import Path

import pytest

import pyspar

PAGE = Path(pyspar.__file__).parents[2] / "docs" / "networks.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not part of an installed package")
def test_the_page_documents_every_parameter():
    from pyspar.nn import adapt_head

    for name in inspect.signature(adapt_head).parameters:
        assert re.search(rf"`[^`\n]*\b{name}\b|{name}[,)=]", PAGE.read_text()), name
