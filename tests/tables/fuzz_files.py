"""Run ``spar`` on mutated files while an audit hook watches; run as a program by test_file_fuzz.py.

Arguments: an empty folder, the number of mutations (0: until the seconds are over), a seed, seconds. Prints events and
outcomes as JSON. Every command must end with exit code 0 (read), 2 (rejected) or 3 (alarm of ``spar watch``).
"""

import codecs
import gzip
import io
import json
import os
import re
import resource
import signal
import sys
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from pyspar.cli.app import app

TRIAL_SECONDS = 60
CELLS = [
    "", " ", "nan", "inf", "-inf", "1e999", "-", "?", "=1+1", '"', '""', "'", "\x00", "\ufeff", "\r", "\u2028", "é",
    "½", "9" * 400, "1" * 20, "0x1F", "1_000", "1,5", "1.599", "1,599.5", "12 %", "$5", "5 €", "2020-13-45",
    "99999-01-01", "0001-01-01", "2024-05-21", "2024-05-21T25:00", "31.12.2023", "TRUE", "a" * 5000, "\ud7ff", "-0",
    "1e-320", "--1",
]  # fmt: skip
NUMBERS = ["-1", "0", "1", "999999", "9" * 30, "1e400", "-1e-400", "NaN", "x", "", "A1", "XFD1048576", "ZZZZ9999999999"]
HEADERS = ["(-1, 4)", "(30,)", "()", "(3, 10, 4)", "(10**12, 4)", "(999999999999, 9)", "(30, 4.0)", "[30, 4]", "(0, 4)"]
DTYPES = [
    "|O",
    "<f2",
    ">f8",
    "|V8",
    "<c16",
    "<U3",
    "|S8",
    "<M8[ns]",
    "<M8[D]",
    "<i1",
    "|b1",
    "<f16",
    "<x8",
    "",
    "f8,i4",
]
COMMANDS = {
    "source": ("adapt", "MUTANT", "target.csv", "--label", "y"),
    "target": ("adapt", "source.csv", "MUTANT", "--label", "y", "-o", "p.csv", "--bad-cells", "impute"),
    "stream": ("adapt", "MUTANT", "target.csv", "--label", "y", "--stream"),
    "stream target": ("adapt", "source.csv", "MUTANT", "--label", "y", "--stream", "-o", "p.parquet"),
    "label": ("label", "source.csv", "MUTANT", "--label", "y", "-o", "l.csv"),
    "labels": ("adapt", "source.csv", "target.csv", "--label", "y", "--labels", "MUTANT", "--use-target-labels"),
    "summarize": ("summarize", "MUTANT", "--label", "y", "-o", "s.npz", "--bad-cells", "impute"),
    "predict": ("predict", "model.skops", "MUTANT", "-o", "q.csv"),
    "watch": ("watch", "model.skops", "MUTANT", "--once"),
    "model": ("predict", "MUTANT", "target.csv", "-o", "q.csv"),
    "summary": ("inspect", "MUTANT", "target.csv"),
}
ODD_TYPES = (pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.date32(), pa.time64("us"), pa.int8())
ROWS = ("source", "target", "stream", "stream target", "label", "summarize", "predict", "watch")


def make_table(rows, seed):
    rng = np.random.default_rng(seed)
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), unit="D")
    table = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
    table = table.assign(town=rng.choice(["Bonn", "Kiel"], rows), sold=dates.strftime("%Y-%m-%d"))
    return table.assign(share=[f"{x:.1f} %" for x in rng.random(rows)], y=table["a"] + rng.normal(size=rows))


def write_files(folder):
    """Write honest files, and return their names with the commands that read them."""
    source, target = make_table(40, 0), make_table(30, 1)
    source.to_csv(folder / "source.csv", index=False)
    target.drop(columns="y").to_csv(folder / "target.csv", index=False)
    target.to_csv(folder / "rows.csv", index=False)
    target.to_csv(folder / "rows.tsv", index=False, sep="\t")
    target.to_csv(folder / "semicolon.csv", index=False, sep=";", decimal=",")
    target.to_csv(folder / "rows.csv.gz", index=False)
    target.assign(sold=pd.to_datetime(target["sold"])).to_parquet(folder / "rows.parquet")
    target.assign(sold=pd.to_datetime(target["sold"])).to_excel(folder / "rows.xlsx", index=False)
    numbers = target[["a", "b", "c", "y"]]
    np.save(folder / "rows.npy", numbers.to_numpy())
    np.savez(folder / "rows.npz", **{name: numbers[name].to_numpy() for name in numbers})
    np.savez_compressed(folder / "small.npz", X=numbers.to_numpy(), y=target["y"].to_numpy())
    labels = target.iloc[:9].copy()
    labels.insert(0, "row", range(9))
    labels.to_csv(folder / "labels.csv", index=False)
    run(folder, ("adapt", "source.csv", "target.csv", "--label", "y", "--save", "model.skops"), "")
    run(folder, ("summarize", "source.csv", "--label", "y", "-o", "summary.npz"), "")
    names = ("rows.csv", "rows.tsv", "semicolon.csv", "rows.csv.gz", "rows.parquet", "rows.xlsx", "rows.npy")
    others = {"labels.csv": ("labels",), "model.skops": ("model",), "summary.npz": ("summary", "target")}
    return {**dict.fromkeys((*names, "rows.npz", "small.npz"), ROWS), **others}


def run(folder, words, mutant):
    files = [str(folder / (mutant if w == "MUTANT" else w)) if "." in w or w == "MUTANT" else w for w in words]
    return CliRunner().invoke(app, [*files, "--debug"])


def mutate(content, name, rng):
    """Return a mutation of a file and its description."""
    suffix = name.partition(".")[2]
    choices = [change_bytes]
    if suffix in ("csv", "tsv"):
        choices += [change_cells] * 4 + [change_encoding, change_header]
    elif suffix == "csv.gz":
        choices += [change_gzip] * 3
    elif suffix in ("npz", "skops", "xlsx"):
        choices += [change_archive] * 5
    elif suffix == "npy":
        choices += [change_array] * 3
    elif suffix == "parquet":
        choices += [change_parquet] * 3
    how = rng.choice(choices)
    return how(content, rng), how.__name__


def change_bytes(content, rng):
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        i = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and i < len(data):
            data[i] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[i : i + rng.choice((1, 4, 50))]
        elif kind == 2:
            data[i:i] = rng.randbytes(rng.choice((1, 4, 50)))
        elif kind == 3:
            data[i:i] = data[i : i + 40]
        else:
            data[i : i + 4] = rng.choice((b"\xff" * 4, b"\x00" * 4, b"\x7f" + b"\xff" * 3))
    return bytes(data)


def change_cells(content, rng):
    lines = content.decode().split("\n")
    mark = next((mark for mark in "\t;" if mark in lines[0]), ",")
    for _ in range(rng.choice((1, 1, 3, 30))):
        i = rng.randrange(len(lines))
        cells = lines[i].split(mark)
        cells[rng.randrange(len(cells))] = rng.choice(CELLS)
        lines[i] = mark.join(cells)
    if rng.random() < 0.1:  # a whole column
        j, cell = rng.randrange(lines[0].count(mark) + 1), rng.choice(CELLS)
        rows = [line.split(mark) for line in lines[1:] if line.count(mark) == lines[0].count(mark)]
        lines[1:] = [mark.join([*row[:j], cell, *row[j + 1 :]]) for row in rows]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def change_header(content, rng):
    head, _, rest = content.decode().partition("\n")
    mark = next((mark for mark in "\t;" if mark in head), ",")
    names = head.split(mark)
    names[rng.randrange(len(names))] = rng.choice([*CELLS, "y", "a", "row", "prediction", "__class__", "0"])
    rest = rng.choice([rest, rest, rest, "", rest[: rest.find("\n") + 1]])
    return (mark.join(rng.choice([names, names, names[1:], [*names, "z"]])) + "\n" + rest).encode("utf-8", "replace")


def change_encoding(content, rng):
    return content.decode().encode(rng.choice(["utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "utf-7"]))


def change_gzip(content, rng):
    change = rng.choice((change_bytes, change_cells))
    data = gzip.compress(change(gzip.decompress(content), rng))
    return data + rng.choice((b"", b"", gzip.compress(b"1,2\n"), b"\x00" * 9, b"tail"))


def change_array(content, rng):
    header = content[10:128].decode("latin1")
    if rng.random() < 0.5:
        header = re.sub(r"\(.*\)", rng.choice(HEADERS), header)
    if rng.random() < 0.5:
        header = re.sub(r"'<?>?[a-z]\d+'", repr(rng.choice(DTYPES)), header)
    if rng.random() < 0.2:
        header = rng.choice(["{}", "__import__('os')", "[" * 100, header.replace("False", "1"), "{'descr': 1}"])
    header = header.strip().ljust(117)[: 0xFFFF - 1] + "\n"
    return content[:8] + len(header).to_bytes(2, "little") + header.encode("latin1") + content[128:]


def change_archive(content, rng):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    for _ in range(rng.choice((1, 1, 2))):
        i = rng.randrange(len(entries))
        name, data = entries[i]
        kind = rng.randrange(8)
        if kind == 0:
            del entries[i]
        elif kind == 1:
            entries.append((rng.choice([name, "y.npy", "../x.npy", "names.npy", "schema.json"]), data))
        elif kind == 2:
            entries[i] = (name, rng.choice(entries)[1])
        elif name.endswith(".npy") and kind < 6:
            entries[i] = (name, change_array(data, rng))
        elif name.endswith((".xml", ".rels", ".json")) and kind < 7:
            entries[i] = (name, change_text(data, rng))
        else:
            entries[i] = (name, change_bytes(data, rng))
        if not entries:
            break
    with warnings.catch_warnings(), io.BytesIO() as file:
        warnings.simplefilter("ignore")
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(file, "w", method) as new:
            for name, data in entries:
                new.writestr(name, data)
        return file.getvalue()


def change_text(data, rng):
    """Change an attribute, a number or a tag of XML or JSON."""
    text = data.decode("utf-8", "surrogateescape")
    for _ in range(rng.choice((1, 1, 2, 5))):
        places = list(re.finditer(rng.choice([r'"[^"]*"', r">[^<>]+<", r"</?\w+", r"\d+"]), text))
        if places:
            match = rng.choice(places)
            old = match.group()
            value = rng.choice([*NUMBERS, *CELLS[:20], "&lt;", "&x;", rng.choice(places).group()[1:-1]])
            new = old[0] + value + (old[-1] if old[-1] in '"<' and len(old) > 1 else "")
            text = text[: match.start()] + new + text[match.end() :]
    if rng.random() < 0.1:
        text = '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + text
    return text.encode("utf-8", "replace")


def change_parquet(content, rng):
    table = pq.read_table(io.BytesIO(content))
    n = table.num_rows
    ones = [1] * n
    odd = [
        *(pa.array(ones, kind) for kind in ODD_TYPES), pa.array([[1.0]] * n), pa.array([{"a": 1}] * n), pa.nulls(n),
        pa.array([b"\xff"] * n), pa.array([None, 1.0] * (n // 2)), pa.array([2**63] * n, pa.uint64()),
        pa.array([-(2**62)] * n, pa.timestamp("us")), pa.array(["a"] * n).dictionary_encode(), pa.array([True] * n),
        pa.array(ones).cast(pa.decimal128(30, 2)), pa.array([float("inf")] * n), pa.array([1.5] * n, pa.float16()),
        pa.array([10**6] * n, pa.date32()), pa.array(["1"] * n), pa.array([""] * n),
    ]  # fmt: skip
    for _ in range(rng.choice((1, 1, 2))):
        i, column = rng.randrange(table.num_columns), rng.choice(odd)
        name = rng.choice([table.column_names[i], table.column_names[i], "", "y", "a", "\x00", "z"])
        table = rng.choice((table.set_column(i, name, column), table.append_column(name, column), table.slice(0, 0)))
        n = table.num_rows
        if n == 0:
            break
    table = rng.choice((table, table, table.replace_schema_metadata({"pandas": rng.choice(["{}", "x", "[]", "null"])})))
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=rng.choice((1, 7, 1000)))
    return file.getvalue()


class Watcher:
    """An audit hook that collects imports, processes, connections, and files outside of a folder."""

    def __init__(self, folder):
        self.armed, self.events = False, Counter()
        known = (sys.prefix, sys.base_prefix, str(Path(app.__module__).resolve()), "/proc/", "/sys/", "/dev/null")
        self._read = (str(folder), *known, *(path for path in sys.path if path))
        self._write = (str(folder), "/dev/null")
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if not self.armed:
            return
        text = ""
        if event == "import" and arguments[0] not in sys.modules:
            text = f"import {arguments[0]}"
        elif event == "open" and not isinstance(arguments[0], int):
            writes = any(c in str(arguments[1] or "r") for c in "wax+")
            path = os.path.abspath(os.fsdecode(arguments[0]))
            text = "" if path.startswith(self._write if writes else self._read) else f"open {arguments[:2]}"
        elif event in ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod"):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            text = "" if path.startswith(self._write) else f"{event} {path}"
        elif event.partition(".")[0] in ("subprocess", "socket", "shutil", "pickle", "urllib", "webbrowser", "ftplib"):
            text = "" if event in ("socket.__new__",) else f"{event} {arguments}"
        elif event in ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "ctypes.dlopen"):
            text = f"{event} {arguments}"
        if text:
            self.events[text[:200]] += 1


def fuzz(folder, count, seed, seconds):
    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    warnings.simplefilter("ignore")
    codecs.lookup("unicode_escape")  # imported for names that are not printable
    readers = write_files(folder)
    contents = {name: (folder / name).read_bytes() for name in readers}
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name, roles in readers.items():  # imports everything that honest files need
        (folder / f"mutant-{name}").write_bytes(contents[name][:-9])
        for role in roles if name == "rows.csv" else roles[:1]:
            run(folder, COMMANDS[role], name)
            run(folder, COMMANDS[role], f"mutant-{name}")

    def stop(number, frame):
        raise TimeoutError(f"longer than {TRIAL_SECONDS} seconds")

    signal.signal(signal.SIGALRM, stop)
    rng, watcher, outcomes, failures = Random(seed), Watcher(folder), Counter(), {}
    end, done = time.monotonic() + seconds, 0
    while done < count if count else time.monotonic() < end:
        done += 1
        name = rng.choice(list(readers))
        content, how = mutate(contents[name], name, rng)
        mutant, role = folder / f"mutant-{name}", rng.choice(readers[name])
        mutant.write_bytes(content)
        signal.alarm(TRIAL_SECONDS)
        watcher.armed = True
        result = run(folder, COMMANDS[role], mutant.name)
        watcher.armed = False
        signal.alarm(0)
        outcomes[str(result.exit_code)] += 1
        if result.exit_code not in (0, 2, 3) or not isinstance(result.exception, (SystemExit, type(None))):
            text = result.output if isinstance(result.exception, (SystemExit, type(None))) else repr(result.exception)
            last = " ".join(text.split())[-1500:]
            failures.setdefault(last[-120:], [name, how, role, done, last])
            if os.environ.get("FUZZ_KEEP"):
                Path(os.environ["FUZZ_KEEP"], f"{seed}-{done}-{role}-{name}").write_bytes(content)
        for other, honest in kept.items():
            if (folder / other).read_bytes() != honest:
                failures[f"changed {other}"] = [name, how, role, done, "an input was changed"]
                (folder / other).write_bytes(honest)
        hidden = [path.name for path in folder.glob(".*")]
        if hidden:
            failures[f"left {hidden}"] = [name, how, role, done, "a temporary file was left"]
    return {"outcomes": outcomes, "events": watcher.events, "failures": list(failures.values())}


if __name__ == "__main__":
    folder, count, seed, seconds = sys.argv[1:]
    result = fuzz(Path(folder).resolve(), int(count), int(seed), float(seconds))
    print(json.dumps(result, indent=1))  # noqa: T201
