"""Files: written whole or not at all, and models and Moments without pickle, so that opening a file runs no code."""

from __future__ import annotations

import io
import json
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from pyspar.core.moments import Moments
from pyspar.errors import InputError, need
from pyspar.text import list_some


@contextmanager
def write_atomically(*paths: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """Yield one temporary path for each path, and rename them all if the block raises no exception.

    The temporary file lies in the same folder and keeps the suffix, because many writers choose their format by it. All
    contents are on the disk before the first file is renamed. Links are followed, and an existing file keeps its
    permissions.
    """
    targets = [find_target(path) for path in paths]
    for target in targets:
        _remove_leftovers(target)
    parts = [target.with_name(f".{target.stem[:50]}.{secrets.token_hex(8)}{target.suffix}") for target in targets]
    try:
        for part, target in zip(parts, targets, strict=True):
            # A new file gets the permissions that open() gives. A replaced one may be secret.
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if target.exists() else 0o666))
        yield parts
        for part, target in zip(parts, targets, strict=True):
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            _sync(part)
        for part, target in zip(parts, targets, strict=True):
            os.replace(part, target)
            with suppress(OSError):  # some file systems cannot sync a folder; the file itself is complete
                _sync(target.parent)
    except OSError as error:
        names = {str(part): str(path) for part, path in zip(parts, paths, strict=True)}
        error.filename = names.get(str(error.filename), error.filename or ", ".join(names.values()))
        error.filename2 = None
        raise
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def find_target(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path names, through links; raise InputError if no file can be written there."""
    target = Path(os.path.realpath(path))
    problem = "folder not found; create it first" if not target.parent.is_dir() else ""
    if target.exists() and not target.is_file():  # a rename would replace even /dev/null
        problem = "it is a folder or a device, not a file; choose another name"
    if problem:
        raise InputError(f"cannot write {os.fspath(path)!r}: {problem}")
    return target


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files that killed processes left at least a day ago. Others may belong to a live process."""
    for path in target.parent.glob(f".{escape(target.stem[:50])}.{'[0-9a-f]' * 16}{escape(target.suffix)}"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - 86_400:
                path.unlink()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a ``.skops`` file, or Moments to an ``.npz`` file. On failure no file is changed."""
    suffix, expected = Path(path).suffix, ".npz" if isinstance(thing, Moments) else ".skops"
    if suffix != expected:
        raise InputError(f"the file name must end in {expected}, got {str(path)!r}")
    if not isinstance(thing, Moments) and not hasattr(thing, "predict"):
        raise TypeError(f"expected a fitted model or Moments, got {type(thing).__name__}")
    if hasattr(thing, "cv_results_"):
        raise InputError(f"a {type(thing).__name__} cannot be saved; save its best_estimator_")
    with write_atomically(path) as (part,):
        (_write_moments if isinstance(thing, Moments) else write_model)(thing, part)


def write_model(model: Any, path: Path) -> None:
    """Write a model to a temporary file, without pickle; raise InputError if it cannot be written in this way."""
    skops = need("skops.io", "cli")
    try:
        data = skops.dumps(model)
    except (TypeError, AttributeError, ValueError, RuntimeError) as error:  # RuntimeError: recursion, or of torch
        fix = "; save a network with torch, and fit its correction again" if "ensor" in str(error) else ""
        raise InputError(f"{type(model).__name__} cannot be saved ({error}){fix}") from error
    if unnamed := [name for name in _check_model(skops, data, "the model", any_type=True) if "<" in name]:
        raise InputError(f"the model cannot be saved, because it contains {unnamed[0]}; use a named function")
    path.write_bytes(data)


# numpy reads the headers of arrays with ast.parse, which can fail if two threads of Python 3.11 call it.
_PARSING = Lock()


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Any:
    """Read a file that :func:`save` wrote.

    A model may contain estimators of pyspar, estimators of scikit-learn that skops trusts, and universal functions of
    numpy and scipy. Opening such a file runs no code from the file. Other types are refused by name; list them in
    ``trusted`` if you trust whoever wrote the file. Trees (boosting, forests) are among them: scikit-learn does not
    check their indices, so a crafted tree can crash the process when it predicts.
    """
    where = repr(str(path))
    if not Path(path).is_file():
        raise InputError(f"file not found: {where}")
    data = Path(path).read_bytes()  # read once: the bytes that are loaded are the bytes that were checked
    try:
        with _PARSING:
            if Path(path).suffix == ".npz":
                return _read_moments(data, where)
            skops = need("skops.io", "cli")
            model = skops.loads(data, trusted=_check_model(skops, data, where, trusted))
    except (InputError, MemoryError, ImportError):
        raise
    except Exception as error:  # zipfile, json, numpy and skops raise errors of many types for malformed files
        raise InputError(f"{where} cannot be read ({' '.join(str(error).split())[:200]}); save it again") from error
    if not hasattr(type(model), "predict"):
        raise InputError(f"{where} must contain a model, got {type(model).__name__}, which has no predict")
    return model


_KEYS = {f"builtins.{name}" for name in ("str", "int", "float", "bool")}
_SCALARS = {f"numpy.{kind.__name__}" for kind in np.sctypeDict.values()} - {"numpy.void", "numpy.object_"}
_SELECTOR = {"sklearn.compose._column_transformer.make_column_selector"}
_COLUMN_TYPES = {"builtins.object", "numpy.number", "numpy.floating", "numpy.integer"}  # which that selector selects
_TYPES_OF_NODES = {
    "TypeNode": _KEYS | _SCALARS | _COLUMN_TYPES,
    "DTypeNode": {"numpy.dtype"},
    "NdArrayNode": {"numpy.ndarray"} | _SCALARS,
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "TupleNode": {"builtins.tuple"},
    "JsonNode": {"builtins.str"},
}
"""The types of each kind of node. skops calls constructors and functions in other kinds of nodes."""
_PLAIN = {"JsonNode", "ListNode", "TupleNode", "NdArrayNode"}  # accepted in arrays of objects
_MAX_DEPTH = 300


def _check_model(
    skops: Any, data: bytes, where: str, trusted: Sequence[str] = (), *, any_type: bool = False
) -> list[str]:
    """Return the names in a skops file that are trusted and that skops does not trust by itself.

    The names of a file alone are no protection, because skops calls some of them with arguments from the file. So each
    name must belong to its kind of node, attributes of Python's protocols are refused, and two nodes with one id must
    be equal. ``any_type`` accepts all types, as for a model of the user that is being saved.
    """
    with ZipFile(io.BytesIO(data)) as archive:
        _check_entries(archive)
        schema = json.loads(archive.read("schema.json"))
    rejected: set[str] = set()
    by_id: dict[Any, Any] = {}

    def check(node: Any, depth: int, plain: bool = False) -> None:
        if depth > _MAX_DEPTH:
            raise InputError(f"{where} has nodes {_MAX_DEPTH} levels deep; save the model again")
        if isinstance(node, dict) and "__loader__" in node:
            kind, name = node["__loader__"], f"{node.get('__module__')}.{node.get('__class__')}"
            if name not in trusted and (not _is_accepted(kind, name) or (plain and kind not in _PLAIN)):
                rejected.add(name)
            if kind == "DictNode":
                keys = [f"{key.get('__module__')}.{key.get('__class__')}" for key in node["key_types"]["content"]]
                rejected.update(set(keys) - _KEYS - _SCALARS - set(trusted))
            if kind == "ObjectNode" and isinstance(content := node["content"].get("content"), dict):
                rejected.update(f"{name}.{key}" for key in content if key.startswith("__"))
            if kind == "NdArrayNode" and node.get("type") == "numpy" and node["file"] != f"{node.get('__id__')}.npy":
                rejected.add(f"the array {node['file']!r}")
            first = by_id.setdefault(node.get("__id__"), node)
            if "__id__" in node and first is not node and _strip(first) != _strip(node):
                rejected.add(f"two different nodes with the id {node['__id__']}")
            plain = plain or (kind == "NdArrayNode" and node.get("type") == "json")
        for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            check(part, depth + 1, plain)

    check({key: value for key, value in schema.items() if key not in ("protocol", "_skops_version")}, 0)
    untrusted = set(skops.get_untrusted_types(data=data)) if any_type or not rejected else set()
    known = {name for name in untrusted if _is_ours(name)} | _SELECTOR | _COLUMN_TYPES | {"numpy.dtype"}
    rejected |= untrusted - known - set(trusted)
    if rejected and not any_type:
        names = sorted(rejected | set(trusted))  # all of them, so that the call can be pasted
        raise InputError(
            f"{where} contains types that are not trusted: {', '.join(sorted(rejected))}; if you trust whoever wrote "
            f"the file, use pyspar.load(path, trusted={names})"
        )
    return sorted(untrusted | (set(trusted) - _COLUMN_TYPES))


def _is_accepted(kind: str, name: str) -> bool:
    """Return whether a kind of node may have a type. skops checks names in scikit-learn, numpy and scipy afterwards."""
    if kind == "ObjectNode":
        return name.startswith("sklearn.") or _is_ours(name)
    if kind == "LossNode":
        return name.startswith("sklearn._loss._loss.Cy")
    if kind == "FunctionNode":
        return name.startswith(("numpy.", "scipy.")) and name not in _COLUMN_TYPES | {"numpy.dtype"}
    return name in _TYPES_OF_NODES.get(kind, ()) or (kind == "TupleNode" and _is_ours(name))


def _is_ours(name: str) -> bool:
    """Return whether a name is that of a class which pyspar defines; not of a module or function that it imports."""
    module, _, last = name.rpartition(".")
    if not re.fullmatch(r"pyspar\.(core\.\w+|estimators\.\w+|cli\.files)", module):
        return False
    try:
        kind = getattr(import_module(module), last, None)
    except ImportError:
        return False
    return isinstance(kind, type) and kind.__module__ == module


def _strip(node: Any) -> Any:
    """Return a node without ids, which differ between equal nodes."""
    if isinstance(node, dict):
        return {key: _strip(value) for key, value in node.items() if key not in ("__id__", "file")}
    return [_strip(part) for part in node] if isinstance(node, list) else node


def _check_entries(archive: ZipFile) -> None:
    """Raise ValueError unless all entries are stored once, and arrays have the size that their headers state.

    Then reading needs no more memory than the file occupies on disk.
    """
    names = archive.namelist()
    if len(set(names)) < len(names) or any(info.compress_type != ZIP_STORED for info in archive.infolist()):
        raise ValueError("its entries must be stored uncompressed and have different names")
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    for info in archive.infolist():
        if info.filename.endswith(".npy"):
            with archive.open(info) as file:
                shape, _, dtype = readers[np.lib.format.read_magic(file)](file)
                n_bytes, size = info.file_size - file.tell(), dtype.itemsize
            if dtype.hasobject or size * math.prod(shape) != n_bytes or min(size - 1, *shape, 1) < 0:
                raise ValueError(f"{info.filename} must be an array of {dtype} and shape {shape}, got {n_bytes} bytes")


_FORMAT = "pyspar-moments-2"
_KINDS = {"root": "f", "n_features": "iu", "rows": "iu", "weight": "fiu", "weight2": "fiu", "eps": "f", "names": "U"}


def _write_moments(moments: Moments, path: Path) -> None:
    if len(set(moments.names)) < len(moments.names):
        raise InputError(f"feature names must be unique, got {list_some(moments.names)}; rename them")
    arrays: dict[str, Any] = {name: np.asarray(getattr(moments, name)) for name in _KINDS if name != "names"}
    with path.open("wb") as file:
        np.savez(file, format=np.array(_FORMAT), names=np.array(moments.names, dtype=np.str_), **arrays)


def _read_moments(data: bytes, where: str) -> Moments:
    with ZipFile(io.BytesIO(data)) as archive:
        _check_entries(archive)
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        fields = {name: file[name] for name in file.files}
    if str(fields.pop("format", "none")) != _FORMAT or set(fields) != set(_KINDS):
        raise InputError(f"{where} is not a file of Moments of this version of pyspar; write it again")
    root, eps, d, names = fields["root"], fields["eps"], int(fields["n_features"]), list(map(str, fields["names"]))
    weight, weight2 = float(fields["weight"]), float(fields["weight2"])
    rules = {
        "arrays of other dtypes": all(fields[name].dtype.kind in kinds for name, kinds in _KINDS.items()),
        f"a root of shape {root.shape}": root.ndim == 2 and 1 <= d < root.shape[1] and 1 <= len(root) <= root.shape[1],
        "entries that are not finite": all(np.isfinite(fields[name]).all() for name in ("root", "weight", "weight2")),
        "weights or rows that are not positive": min(weight, weight2, int(fields["rows"])) > 0,
        f"an eps that is not {d} numbers in (0, 1)": eps.shape == (d,) and bool(((eps > 0) & (eps < 1)).all()),
        f"{len(names)} names of {d} features": len(names) in (0, d) and len(set(names)) == len(names),
    }
    problem = next((problem for problem, holds in rules.items() if not holds), None)
    if problem is None and (root[1:, 0].any() or not np.isclose(abs(root[0, 0]), np.sqrt(weight), rtol=1e-9, atol=0.0)):
        problem = f"a first column of the root that does not fit the weight {weight:g}"
    if problem is not None:
        raise InputError(f"{where} is not a valid file of Moments: it has {problem}; write the file again")
    return Moments(root.astype(np.float64), d, int(fields["rows"]), weight, weight2, eps, names=tuple(names))
