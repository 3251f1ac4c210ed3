"""The pages docs/integrations/scikit-learn.md and dataframes.md: their code runs, and their output is true.

``pytest --update-golden`` writes the output into the pages.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[1] / "docs" / "integrations"

pytestmark = pytest.mark.skipif(not PAGES.is_dir(), reason="the documentation is not part of an installed package")


@pytest.mark.filterwarnings("default::pyspar.errors.SparWarning")
@pytest.mark.parametrize("name", ["scikit-learn.md", "dataframes.md"])
def test_the_output_of_a_page_is_that_of_its_code(name, request):
    text = (PAGES / name).read_text(encoding="utf-8")
    parts = re.split(r"(```python\n.*?```\n(?:\n```\n.*?```\n)?)", text, flags=re.DOTALL)
    namespace: dict = {}
    for place in range(1, len(parts), 2):
        code = re.match(r"```python\n(.*?)```", parts[place], flags=re.DOTALL)[1]
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, name, "exec"), namespace)
        shown = f"\n```\n{output.getvalue()}```\n" if output.getvalue() else ""
        parts[place] = f"```python\n{code}```\n{shown}"
    if request.config.getoption("--update-golden"):
        (PAGES / name).write_text("".join(parts), encoding="utf-8")
    else:
        assert "".join(parts) == text
