"""Build the wheel and the source distribution, install them into empty environments, and use them.

``make package`` runs this. For each Python version on the path (3.11 to 3.13) it checks that

- the wheel installs numpy, scipy, scikit-learn and what these need, and nothing else;
- a script fits, adapts and predicts, and type checkers find ``py.typed``;
- ``spar`` without its extra prints the command that installs it;
- the source distribution installs with the extra ``cli``, and ``spar adapt`` writes predictions;
- every extra can be resolved.

The command stops with an error at the first check that fails.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13")
PIP_OPTIONS = ("--quiet", "--disable-pip-version-check")

CLOSURE = """
import importlib.metadata as metadata, json, re
def needs(name):
    for line in metadata.requires(name) or ():
        if "extra ==" not in line:
            yield re.match(r"[A-Za-z0-9._-]+", line)[0].lower().replace("_", "-")
known = {d.metadata["Name"].lower().replace("_", "-") for d in metadata.distributions()}
wanted, queue = set(), ["pyspar"]
while queue:
    name = queue.pop()
    if name in known and name not in wanted:
        wanted.add(name)
        queue += needs(name)
print(json.dumps({"installed": sorted(known), "needed": sorted(wanted), "direct": sorted(needs("pyspar"))}))
"""

SCRIPT = """
import numpy as np, pathlib, pyspar
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(80, 4)), 3.0 * rng.normal(size=(30, 4))
est = pyspar.BayesSpARRegressor().fit(X, X[:, 0] + 0.1 * rng.normal(size=80)).adapt(Z)
assert est.predict(Z).shape == (30,) and float(est.expected_rmse(Z)) > 0.0
assert (pathlib.Path(pyspar.__file__).parent / "py.typed").is_file()
print(pyspar.__version__)
"""

ROWS = """
import random
random.seed({seed})
print("area,town,price")
for _ in range(60):
    area, town = random.gauss(0, {scale}), random.choice(["Ulm", "Hof"])
    print(f"{{area}},{{town}},{{2 * area + random.gauss(0, 1)}}")
"""


def main() -> None:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="*", default=PYTHONS, help="interpreters; those that do not start are skipped")
    parser.add_argument("--no-extras", action="store_true", help="do not resolve the extras, which takes longest")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        wheel, sdist = build(work / "dist")
        check_files(wheel, sdist)
        for number, python in enumerate(options.pythons):
            if shutil.which(python) is None or subprocess.run([python, "-V"], capture_output=True).returncode != 0:
                say(f"{python}: not installed here, not checked")
                continue
            check_wheel(python, wheel, work / f"wheel-{number}")
            check_sdist(python, sdist, work / f"sdist-{number}")
        if not options.no_extras:
            check_extras(wheel, work / "extras")


def build(folder: Path) -> tuple[Path, Path]:
    """Build both distributions from a copy of the tracked files, as a clone would."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    sizes = [f"{path.name} ({path.stat().st_size / 1e3:.0f} kB)" for path in (wheel, sdist)]
    say(f"built {' and '.join(sizes)}")
    return wheel, sdist


def check_files(wheel: Path, sdist: Path) -> None:
    """Compare the content and the metadata of the wheel with the repository."""
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "-C", ROOT, "ls-files", "src/pyspar").splitlines()
    missing = {name.removeprefix("src/") for name in tracked} - names
    expect(not missing, f"the wheel lacks {sorted(missing)}")
    expect(not {name for name in names if not name.startswith("pyspar")}, "the wheel has files outside the package")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("LICENSE", "README.md", "CITATION.cff", "CHANGELOG.md", "pyproject.toml"):
        expect(name in packed, f"the source distribution lacks {name}")
    metadata = read_metadata(wheel)
    citation = dict(line.split(": ", 1) for line in (ROOT / "CITATION.cff").read_text().splitlines() if ": " in line)
    expect(metadata["Version"] == citation["version"], f"version {metadata['Version']} is not that of CITATION.cff")
    say(f"version {metadata['Version']}, {len(names)} files in the wheel")


def check_wheel(python: str, wheel: Path, folder: Path) -> None:
    """Install the wheel without extras into an empty environment, and use it."""
    here = make_environment(python, folder)
    run(here, "-m", "pip", "install", *PIP_OPTIONS, wheel)
    found = json.loads(run(here, "-c", CLOSURE, cwd=folder))
    expect(found["direct"] == ["numpy", "scikit-learn", "scipy"], f"direct dependencies: {found['direct']}")
    extra = set(found["installed"]) - set(found["needed"]) - {"pip", "setuptools"}
    expect(not extra, f"installed without need: {sorted(extra)}")
    version = run(here, "-c", SCRIPT, cwd=folder).strip()
    done = subprocess.run([here.parent / "spar"], capture_output=True, text=True)
    expect(done.returncode == 2, f"spar without its extra: exit code {done.returncode}")
    expect("pip install 'pyspar[cli]'" in done.stderr, f"spar without its extra: {done.stderr!r}")
    say(f"{python}: the wheel {version} installs {', '.join(found['needed'])}; fit, adapt and predict work")


def check_sdist(python: str, sdist: Path, folder: Path) -> None:
    """Install the source distribution with the extra ``cli``, and run ``spar adapt`` on two files."""
    here = make_environment(python, folder)
    run(here, "-m", "pip", "install", *PIP_OPTIONS, f"pyspar[cli] @ {sdist.as_uri()}")
    for name, seed, scale in (("source.csv", 0, 1), ("target.csv", 1, 3)):
        (folder / name).write_text(run(here, "-c", ROWS.format(seed=seed, scale=scale)))
    arguments = ("adapt", "source.csv", "target.csv", "--label", "price", "-o", "p.csv", "--json")
    result = json.loads(run(here.parent / "spar", *arguments, cwd=folder))
    header, *rows = (folder / "p.csv").read_text().replace('"', "").splitlines()
    expect(header == "row,prediction,low,high" and len(rows) == 60, f"predictions: {header!r} and {len(rows)} rows")
    expect(result["data"]["target_rows"] == 60, f"spar adapt --json: {result['data']}")
    say(f"{python}: the source distribution with [cli] adapts two CSV files")


def check_extras(wheel: Path, folder: Path) -> None:
    """Resolve each extra with the constraints of the repository. Nothing is installed."""
    here = make_environment(sys.executable, folder)
    extras = read_metadata(wheel).get_all("Provides-Extra")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    expect(set(extras) == set(declared), f"extras of the wheel: {extras}")
    for extra in extras:
        words = ("--dry-run", "--report", "-", "-c", ROOT / "constraints.txt", f"pyspar[{extra}] @ {wheel.as_uri()}")
        report = json.loads(run(here, "-m", "pip", "install", *PIP_OPTIONS, *words))
        say(f"[{extra}]: {len(report['install'])} packages")


def read_metadata(wheel: Path) -> object:
    """Return the metadata of a wheel."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(archive.read(name).decode())


def make_environment(python: str, folder: Path) -> Path:
    """Create an empty environment, and return its interpreter."""
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a command and return its output; stop with its messages if it fails."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    expect(done.returncode == 0, f"{' '.join(map(str, command[:6]))} ...\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def expect(condition: object, problem: str) -> None:
    """Stop with an error if a condition does not hold."""
    if not condition:
        sys.exit(f"package check failed: {problem}")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
