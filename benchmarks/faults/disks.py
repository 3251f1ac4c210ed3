"""Full disks, read-only folders, failing renames, power failures, and two writers.

Full disks and read-only folders are real: a small tmpfs is mounted in a namespace of its own (``unshare -rm``). Renames
are replaced inside the process.
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
from pathlib import Path
from typing import Any

from benchmarks.faults.commands import CHECK_DATA, COMMANDS, FAST_COMMANDS, LONG_COMMANDS, REPRODUCE, Prepared
from benchmarks.faults.kills import is_resumed, list_hidden, make_folder, run_undisturbed
from benchmarks.faults.trials import COPY_FAULT, Child, Ended, Row, last_line, run
from pyspar.io.atomic import whole_file

DISK_BYTES = 8_000_000
EACH_FAST = f"each of {len(FAST_COMMANDS)} commands"
FULL, READ_ONLY = "full disk (tmpfs)", "read-only folder (mount)"


def fail_renames_and_power(trials: int) -> Iterator[Row]:
    """Yield the rows of renames and of power failures."""
    yield from fail_renames(max(1, trials // 5))
    yield kill_copies(13 * trials)
    yield check_order()


def fail_writers(trials: int) -> Iterator[Row]:
    """Yield the rows of two writers."""
    yield write_twice(50 * trials)
    yield run_twice(max(1, trials // 3))
    yield reproduce_twice(trials)


def fail_mounted_disks(trials: int) -> Iterator[Row]:
    """Run commands on a full disk and in a read-only folder, in a process that may mount."""
    with tempfile.TemporaryDirectory() as name:
        command = ["unshare", "-rm", sys.executable, "-m", "benchmarks.faults.disks", name, str(trials)]
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        except FileNotFoundError as error:
            raise SystemExit("cannot mount a small disk: unshare is not installed; run on Linux") from error
        with process:
            for line in process.stdout or ():  # as they are measured, so that a row is stored at once
                if line.startswith("Row("):
                    yield eval(line, {"Row": Row})
    if process.returncode:
        raise SystemExit("cannot mount a small disk, or a trial failed (see above); run on Linux with user namespaces")


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
            with tempfile.TemporaryDirectory() as name:
                prepared = Prepared(command, Path(name))
                for _ in range(trials):
                    prepared.restore()
                    end = run(lambda p=prepared: _run_with({"replace": replace}, p.run_new), prepared.folder)
                    lost += end.code != (2 if keeps_old else 0) or bool(prepared.list_others())
                    lost += set(prepared.list_states()) != {"old" if keeps_old else "new"}
                    message = prepared.clean(last_line(end.text)) if keeps_old else ""
                    total += 1
        outcome = "the old file is kept" if keeps_old else "recognised; the new file is in place"
        yield Row(title, EACH_FAST, total, lost, outcome, message)


def kill_copies(trials: int) -> Row:
    """Replace the rename by a copy, as some file systems do, and kill the process in the middle of it."""
    rng, refused, partial = random.Random(0), 0, 0
    per_command = max(1, trials // len(FAST_COMMANDS))
    for command in FAST_COMMANDS:
        with tempfile.TemporaryDirectory() as name:
            prepared = Prepared(command, Path(name))
            path = prepared.folder / command.outputs[0]
            whole = path.read_bytes()
            for _ in range(per_command):
                path.write_bytes(whole[: rng.randrange(len(whole))])
                is_refused = _is_refused(path)
                refused += is_refused
                partial += not is_refused
    outcome = (
        f"not promised: {refused} partial files are refused when they are read (npy, npz, skops, Parquet, JSON), "
        f"{partial} are not (CSV has no end mark)"
    )
    return Row(COPY_FAULT, EACH_FAST, per_command * len(FAST_COMMANDS), partial, outcome)


def check_order() -> Row:
    """Watch every rename: its file must be on the disk with its whole content, and the folder must follow."""
    renames = lost = 0
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as name:
            prepared = Prepared(command, Path(name))
            end = run(lambda p=prepared: _check_order_of(p.run_new), prepared.folder)
            renames, lost = renames + end.text.count(_SAFE), lost + (end.code != 0) + end.text.count(_UNSAFE)
    for long_command in LONG_COMMANDS:
        with tempfile.TemporaryDirectory() as name:
            out = make_folder(Path(name))
            end = run(lambda c=long_command, o=out: _check_order_of(lambda: c.run_in(o)), out.parent, 600)
            renames, lost = renames + end.text.count(_SAFE), lost + (end.code != 0) + end.text.count(_UNSAFE)
    outcome = "before each rename the whole file was on the disk (fsync), after it the folder"
    where = f"each rename of {len(COMMANDS) + len(LONG_COMMANDS)} commands"
    return Row("power failure: data not on the disk", where, renames, lost, outcome)


_SAFE, _UNSAFE = "<rename after fsync>", "<rename before fsync>"


def _check_order_of(action: Callable[[], object]) -> object:
    """Run an action, and print for each rename whether the content and then the folder were written to the disk."""
    fsync, replace = os.fsync, os.replace
    synced: dict[tuple[int, int], tuple[int, int]] = {}
    waiting: list[tuple[int, int]] = []

    def mark(handle: int) -> None:
        fsync(handle)
        info = os.fstat(handle)
        key = (info.st_dev, info.st_ino)
        synced[key] = (info.st_size, info.st_mtime_ns)
        if key in waiting:
            waiting.remove(key)
            print(_SAFE)

    def check(source: Any, target: Any) -> None:
        info, folder = os.stat(source), os.stat(os.path.dirname(target))
        if synced.get((info.st_dev, info.st_ino)) != (info.st_size, info.st_mtime_ns):
            print(_UNSAFE)
        replace(source, target)
        waiting.append((folder.st_dev, folder.st_ino))

    code = _run_with({"fsync": mark, "replace": check}, action)
    print(_UNSAFE * len(waiting))
    return code


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


def run_twice(trials: int) -> Row:
    """Run each command twice at the same time, with two sources."""
    rng, lost, mixed, total = random.Random(0), 0, 0, 0
    for command in FAST_COMMANDS:
        with tempfile.TemporaryDirectory() as name:
            prepared = Prepared(command, Path(name))
            logs = [prepared.folder / "log.txt", prepared.folder / "filler"]
            for _ in range(trials):
                first = Child(lambda p=prepared: p.command.run_in(p.folder, "old"), logs[0])
                time.sleep(rng.uniform(0, 0.1))
                second = Child(prepared.run_new, logs[1])
                codes = {first.wait().code, second.wait().code}
                states = set(prepared.list_states())
                lost += codes != {0} or "damaged" in states or bool(prepared.list_others())
                mixed += len(states) > 1
                total += 1
    outcome = f"each file is whole and of one of the two runs; {mixed} pairs of files are of different runs"
    return Row("two writers of one file", EACH_FAST, total, lost, outcome)


def reproduce_twice(trials: int) -> Row:
    """Run ``spar reproduce`` twice at the same time in one folder; each waits for runs of the other."""
    rng, lost = random.Random(0), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected, seconds = run_undisturbed(REPRODUCE, folder)
        for _ in range(trials):
            out = make_folder(folder)
            first = Child(lambda out=out: REPRODUCE.run_in(out), folder / "log.txt")
            time.sleep(rng.uniform(0, seconds))
            second = Child(lambda out=out: REPRODUCE.run_in(out), folder / "log2.txt")
            ends = [first.wait(600), second.wait(600)]
            is_lost = any(end.code != 0 for end in ends)
            if is_lost:
                print("lost:", *(f"{end.code}: {end.text[-1000:]}" for end in ends), file=sys.stderr)
            lost += not is_resumed(REPRODUCE, out, expected) or is_lost
    outcome = "each call waited for the runs of the other one; the results are those of one call"
    return Row("two writers of one folder", REPRODUCE.name, trials, lost, outcome)


def _run_with(functions: dict[str, Any], action: Callable[[], object]) -> object:
    """Run an action with functions of ``os`` replaced. Only child processes call this."""
    for name, function in functions.items():
        setattr(os, name, function)
    return action()


def _is_refused(path: Path) -> bool:
    import json

    import pyspar
    from pyspar.io.archives import read_npy_header
    from pyspar.tables.load import load_table

    try:
        if path.suffix in (".skops", ".npz"):
            pyspar.load(path)
        elif path.suffix == ".npy":
            with path.open("rb") as file:
                read_npy_header(file, path.stat().st_size)
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        else:
            load_table(path, "file")
    except ValueError:  # InputError is a ValueError
        return True
    return False


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def _main(folder: Path, trials: int) -> None:
    """Mount a small disk, and print the rows of full disks and read-only folders."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], check=True)
    log, rng = Path(tempfile.gettempdir()) / f"log{os.getpid()}", random.Random(0)
    for command in COMMANDS:
        prepared = Prepared(command, folder)
        for row in (_fill_disk(prepared, _few(trials, command.is_slow), log, rng), _forbid_writing(prepared, log)):
            print(row, flush=True)
        for path in folder.iterdir():
            path.unlink()
    for long_row in (
        _fill_long(_few(trials), folder, log, rng),
        _forbid_long(folder, log),
        _fill_cache(_few(trials), folder, log),
        _forbid_cache(folder, log),
    ):
        print(long_row, flush=True)
    log.unlink()


def _fill_disk(prepared: Prepared, trials: int, log: Path, rng: random.Random) -> Row:
    lost, counts, message = 0, [0, 0], ""
    for _ in range(trials):
        (prepared.folder / "filler").unlink(missing_ok=True)
        prepared.restore()
        _leave_space(prepared.folder, rng.randrange(max(len(content) for content in prepared.old.values()) + 1))
        end = Child(prepared.run_new, log).wait()
        failed = end.code == 2
        counts[failed] += 1
        lost += end.code not in (0, 2) or set(prepared.list_states()) != {"old" if failed else "new"}
        lost += bool(prepared.list_others()) or (failed and "no space left" not in end.text.lower())
        message = prepared.clean(last_line(end.text)) if failed else message
    (prepared.folder / "filler").unlink()
    outcome = f"{counts[1]} refused with the old files kept, {counts[0]} had enough space"
    return Row(FULL, prepared.command.name, trials, lost, outcome, message)


def _forbid_writing(prepared: Prepared, log: Path) -> Row:
    prepared.restore()
    end = _run_read_only(prepared.run_new, prepared.folder, log)
    lost = end.code != 2 or set(prepared.list_states()) != {"old"} or bool(prepared.list_others())
    return Row(READ_ONLY, prepared.command.name, 1, int(lost), "refused", prepared.clean(last_line(end.text)))


def _run_read_only(action: Callable[[], object], folder: Path, log: Path) -> Ended:
    """Run an action while its disk is read-only."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    end = Child(action, log).wait(600)
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    return end


def _forbid_long(folder: Path, log: Path) -> Row:
    """Run ``spar reproduce`` in a read-only folder that has the results of a run."""
    expected, _ = run_undisturbed(REPRODUCE, folder)
    end = _run_read_only(lambda: REPRODUCE.run_in(folder / "out"), folder, log)
    lost = end.code != 2 or REPRODUCE.read(folder / "out") != expected or bool(list_hidden(folder / "out"))
    return Row(READ_ONLY, REPRODUCE.name, 1, int(lost), "refused", last_line(end.text).replace(f"{folder}/", ""))


def _forbid_cache(folder: Path, log: Path) -> Row:
    """Let the cache of ``spar data check`` be read-only: the data set is built in memory."""
    out = make_folder(folder)
    end = _run_read_only(lambda: CHECK_DATA.run_in(out), folder, log)
    lost = end.code != 0 or any(out.iterdir())
    message = last_line(end.text).replace(f"{out}/", "").partition("note: ")[2]
    return Row(READ_ONLY, CHECK_DATA.name, 1, int(lost), "built in memory; no file was left", message)


def _fill_long(trials: int, folder: Path, log: Path, rng: random.Random) -> Row:
    """Let the disk become full during ``spar reproduce``, then free space and run it again."""
    lost, counts, message = 0, [0, 0], ""
    expected, _ = run_undisturbed(REPRODUCE, folder)
    size = sum(path.stat().st_size for path in (folder / "out").rglob("*"))
    for _ in range(trials):
        out = make_folder(folder)
        _leave_space(folder, rng.randrange(size))
        end = Child(lambda out=out: REPRODUCE.run_in(out), log).wait(600)
        (folder / "filler").unlink()
        counts[end.code == 2] += 1
        message = last_line(end.text).replace(f"{out}/", "") if end.code == 2 else message
        lost += end.code not in (0, 2) or bool(list_hidden(out)) or not is_resumed(REPRODUCE, out, expected)
    outcome = f"{counts[1]} refused, {counts[0]} had enough space; the next call ended with the undisturbed results"
    return Row(FULL, REPRODUCE.name, trials, lost, outcome, message)


def _fill_cache(trials: int, folder: Path, log: Path) -> Row:
    """Let the cache of ``spar data check`` have no space: the data set is built in memory."""
    lost, message = 0, ""
    for _ in range(trials):
        out = make_folder(folder)
        end = Child(lambda out=out: CHECK_DATA.run_in(out), log).wait(600)
        lost += end.code != 0 or any(path.is_file() for path in out.rglob("*"))
        message = last_line(end.text).replace(f"{out}/", "").partition("note: ")[2]
    return Row(FULL, CHECK_DATA.name, trials, lost, "built in memory; no file was left", message)


def _few(trials: int, is_slow: bool = True) -> int:
    return max(1, trials // 2) if is_slow else trials


def _leave_space(folder: Path, n_bytes: int) -> None:
    """Fill the disk of a folder except for some bytes."""
    free = shutil.disk_usage(folder).free
    (folder / "filler").write_bytes(bytes(max(0, free - n_bytes)))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
