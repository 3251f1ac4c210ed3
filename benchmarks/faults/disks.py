"""Full disks, read-only folders, two writers, failing renames, and a clock that goes backwards.

Full disks and read-only folders are real: a small tmpfs is mounted in a namespace of its own (``unshare -rm``). Renames
and the clock are replaced inside the process.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.faults.kills import COMMANDS, Command, identify, write_inputs
from benchmarks.faults.trials import Child, Row, last_line, run
from pyspar.io.atomic import whole_file

DISK_BYTES = 2_000_000
COPY_FAULT = "rename is a copy, killed in its middle"
"""The fault that pyspar does not protect against."""
FAST_COMMANDS = [command for command in COMMANDS if "inspect" not in command.name]


def fail_disks(trials: int) -> Iterator[Row]:
    """Yield the rows of all faults of disks and of the clock."""
    yield from fail_mounted_disks(trials)
    yield from fail_renames(max(1, trials // 10))
    yield kill_copies(trials)
    yield write_twice(trials)
    yield turn_clock_back()


def fail_mounted_disks(trials: int) -> Iterator[Row]:
    """Run commands on a full disk and in a read-only folder, in a process that may mount."""
    with tempfile.TemporaryDirectory() as name:
        command = ["unshare", "-rm", sys.executable, "-m", "benchmarks.faults.disks", name, str(trials)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            done = subprocess.CompletedProcess(command, 1, "", "unshare is not installed")
    if done.returncode:
        raise SystemExit(f"cannot mount a small disk: {last_line(done.stderr)}; run on Linux with user namespaces")
    for line in done.stdout.splitlines():
        if line.startswith("Row("):
            yield eval(line, {"Row": Row})


def fail_renames(trials: int) -> Iterator[Row]:
    """Let ``os.replace`` fail as on network file systems, and let it succeed with a lost answer."""
    for title, code, keeps_old in (
        ("rename fails: stale handle", errno.ESTALE, True),
        ("rename fails: other file system", errno.EXDEV, True),
        ("rename succeeds, its answer is lost", errno.ENOENT, False),
    ):

        def replace(source: Any, target: Any, code: int = code, keeps_old: bool = keeps_old) -> None:
            if not keeps_old:
                os.rename(source, target)
            raise OSError(code, os.strerror(code), str(source))

        lost, message, total = 0, "", 0
        for command in FAST_COMMANDS:
            with _Prepared(command) as prepared:
                for _ in range(trials):
                    prepared.restore()
                    end = run(lambda: _run_with(os, "replace", replace, prepared.run_new), prepared.folder)
                    lost += end.code != (2 if keeps_old else 0) or not prepared.is_whole(new=not keeps_old)
                    message = prepared.clean(last_line(end.text)) if keeps_old else ""
                    total += 1
        outcome = "the old file is kept" if keeps_old else "recognised; the new file is in place"
        yield Row(title, "each writing command", total, lost, outcome, message)


def kill_copies(trials: int) -> Row:
    """Replace the rename by a copy, as some file systems do, and kill the process in the middle of it."""
    refused, partial = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rng = random.Random(0)
        for number in range(trials):
            command = FAST_COMMANDS[number % len(FAST_COMMANDS)]
            path = folder / command.outputs[0]
            write_inputs(folder)
            with redirect_stdout(None):
                command.run_in(folder, "new.csv")
            path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])
            if _is_refused(path):
                refused += 1
            else:
                partial += 1
    outcome = (
        f"not promised: {refused} partial files are refused when they are read (npy, npz, skops, Parquet), {partial} "
        "are not (CSV has no end mark)"
    )
    return Row(COPY_FAULT, "each writing command", trials, partial, outcome)


def write_twice(trials: int) -> Row:
    """Let two processes write one file again and again, while this process reads it."""
    contents = [bytes([letter]) * 300_000 for letter in b"ab"]
    lost = reads = 0
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "shared.csv"
        path.write_bytes(contents[0])

        def write(content: bytes) -> None:
            for _ in range(trials):
                with whole_file(path) as temporary:
                    temporary.write_bytes(content)

        children = [Child(lambda c=c: write(c), folder / f"log{i}.txt") for i, c in enumerate(contents)]
        while any(_is_alive(child.pid) for child in children):
            lost += path.read_bytes() not in contents
            reads += 1
            time.sleep(0.001)
        lost += sum(child.wait().code != 0 for child in children) + len(list(folder.glob(".*")))
    return Row(
        "two writers of one file", "whole_file", 2 * trials, lost, f"whole at each of {reads:,} reads; last wins"
    )


def turn_clock_back() -> Row:
    """Run each command with a clock that goes back an hour at each call, and inputs from the future."""
    lost = 0
    clock = iter(range(4_000_000_000, 0, -3600))
    for command in FAST_COMMANDS:
        with _Prepared(command) as prepared:
            prepared.restore()
            for path in prepared.folder.iterdir():
                os.utime(path, (5_000_000_000, 5_000_000_000))
            end = run(lambda: _run_with(time, "time", lambda: float(next(clock)), prepared.run_new), prepared.folder)
            lost += end.code != 0 or not prepared.is_whole(new=True)
    return Row(
        "clock goes backwards, files from the future", "each writing command", len(FAST_COMMANDS), lost, "same files"
    )


class _Prepared:
    """A folder with inputs, old outputs, and the expected new outputs of a command."""

    def __init__(self, command: Command, folder: Path | None = None) -> None:
        self._command = command
        self._given = folder

    def __enter__(self) -> _Prepared:
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = self._given or Path(self._temporary.name)
        write_inputs(self.folder)
        self._new: dict[str, Any] = {}
        for source, store in (("new.csv", self._new), ("old.csv", {})):
            with redirect_stdout(None):
                assert self._command.run_in(self.folder, source) == 0
            store |= {file: identify(self.folder / file) for file in self._command.outputs}
        self._old = {file: (self.folder / file).read_bytes() for file in self._command.outputs}
        return self

    def __exit__(self, *error: object) -> None:
        self._temporary.cleanup()

    def restore(self) -> None:
        for file, content in self._old.items():
            (self.folder / file).write_bytes(content)

    def run_new(self) -> int:
        return self._command.run_in(self.folder, "new.csv")

    def is_whole(self, *, new: bool) -> bool:
        """Return whether all outputs are the new ones, or all the old ones, and no other file is left."""
        paths = [self.folder / file for file in self._command.outputs]
        if new:
            same = all(identify(path) == self._new[path.name] for path in paths)
        else:
            same = all(path.read_bytes() == self._old[path.name] for path in paths)
        return same and not list(self.folder.glob(".*"))

    def clean(self, message: str) -> str:
        return message.replace(f"{self.folder}/", "")


def _run_with(module: Any, name: str, value: Any, action: Callable[[], int]) -> int:
    setattr(module, name, value)
    return action()


def _is_refused(path: Path) -> bool:
    import pyspar
    from pyspar.errors import InputError
    from pyspar.tables.read import check_input, read_table

    try:
        if path.suffix == ".skops" or path.name == "s.npz":
            pyspar.load(path)
        elif path.suffix == ".npy":
            from pyspar.io.archives import read_npy_header

            with path.open("rb") as file:
                read_npy_header(file, path.stat().st_size)
        else:
            check_input(path, "file")
            read_table(path, "file")
    except (InputError, ValueError):
        return True
    return False


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def _main(folder: Path, trials: int) -> None:
    """Mount a small disk, and print the rows of full disks and read-only folders."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], check=True)
    filler, rng = folder / "filler", random.Random(0)
    for command in COMMANDS:
        with _Prepared(command, folder) as prepared:
            (folder / "log.txt").touch()
            lost, counts, message = 0, [0, 0], ""
            for _ in range(max(2, trials // 10) if "inspect" in command.name else trials):
                filler.unlink(missing_ok=True)
                prepared.restore()
                size = max((folder / file).stat().st_size for file in command.outputs)
                filler.write_bytes(bytes(max(0, shutil.disk_usage(folder).free - rng.randrange(size))))
                end = Child(prepared.run_new, Path(tempfile.gettempdir()) / f"log{os.getpid()}").wait()
                failed = end.code == 2
                counts[failed] += 1
                lost += end.code not in (0, 2) or not prepared.is_whole(new=not failed)
                lost += failed and "no space left" not in end.text
                message = prepared.clean(last_line(end.text)) if failed else message
            filler.unlink()
            outcome = f"{counts[1]} refused with the old files kept, {counts[0]} had enough space"
            print(Row("full disk (tmpfs)", command.name, sum(counts), lost, outcome, message), flush=True)
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
            end = Child(prepared.run_new, Path(tempfile.gettempdir()) / f"log{os.getpid()}").wait()
            lost = end.code != 2 or not prepared.is_whole(new=False)
            message = prepared.clean(last_line(end.text)).replace(str(folder), "folder")
            print(Row("read-only folder (mount)", command.name, 1, int(lost), "refused", message), flush=True)
            subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        for file in command.outputs:
            (folder / file).unlink()


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
