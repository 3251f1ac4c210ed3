"""Adapt two tables without the command line."""

from pathlib import Path

import pytest

from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.write import Output


@pytest.fixture
def adapt(files):
    """Write two tables as CSV, and return the account of ``adapt_files``; options are those of Request."""

    def run(source, target, *, method="bayes", output=None, save=None, **options):
        request = Request(*map(Path, files(source, target)), "price", **options)
        return adapt_files(request, method=method, output=Output(output), save=save)

    return run
