"""Which names a model file may hold: exactly those that saved models need."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
import skops
import skops.io

import pyspar
from pyspar import InputError, SpARRegressor
from pyspar.model_schema import DTYPE, KINDS, TRUSTED


def test_the_trusted_names_are_those_that_saved_models_need(honest):
    needed = {name for data in honest.values() for name in skops.io.get_untrusted_types(data=data)} - {DTYPE}
    paste = "\n    ".join(sorted(needed))
    assert needed == TRUSTED, (
        f"missing {sorted(needed - TRUSTED)}, superfluous {sorted(TRUSTED - needed)}; "
        f"TRUSTED in model_schema.py must be\n    {paste}"
    )
