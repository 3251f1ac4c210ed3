"""Check the schema of a skops file: which types and which kinds of node it may hold.

skops compares the names in a file with a list of trusted names. This is not enough for files from strangers:

* A name does not say what it names. ``pyspar.io.atomic.os`` is the module ``os``, so a prefix of names is no
  protection. ``TRUSTED`` therefore holds complete names.
* Some kinds of node call what they name, or one of its attributes, with arguments from the file. Only the kinds in
  ``_NODES`` are accepted. An ``ObjectNode`` creates an object without ``__init__`` and fills in its attributes. The
  only constructors that are called are those of numbers, of containers and of the named tuples in ``TRUSTED``.
* numpy reads memory at the address in the attribute ``__array_interface__`` of any object. Attributes with names that
  begin with two underscores are refused.
* A file may use the id of one node for another node, which skops then takes from its cache. Nodes with the same id
  must be equal, apart from ids and the numbers in arrays.

Estimators of scikit-learn, and the universal functions of numpy and scipy, are accepted where skops trusts them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Hashable
from typing import Any
from zipfile import ZipFile

import numpy as np

from pyspar.errors import InputError
from pyspar.io.archives import array_header, checked_entries

TRUSTED = frozenset(
    {
        "pyspar.estimators.bayes.BayesSpARRegressor",
        "pyspar.core.adapt.Adaptation",
        "pyspar.core.belief.FlatBelief",
        "pyspar.core.evidence.Evidence",
        "pyspar.core.moments.Moments",
        "pyspar.core.prior.Prior",
        "pyspar.core.ridge.RidgeBelief",
        "pyspar.core.rules.Terms",
        "pyspar.core.spectrum.Spectrum",
        "pyspar.estimators.pcr.PCRRegressor",
        "pyspar.estimators.spar.SpARRegressor",
        "pyspar.tables.encode.DateParts",
        "pyspar.tables.encode.Numbers",
        "pyspar.tables.encode.TableEncoder",
        "pyspar.tables.encode.Words",
    }
)
"""The types of pyspar in saved models, as ``module.name``. A test in tests/files derives them from such models."""

DTYPE = "numpy.dtype"
"""Accepted as a ``DTypeNode`` only, which is an empty array of that dtype."""

_SCALARS = {f"numpy.{kind.__name__}" for kind in np.sctypeDict.values()} - {"numpy.void", "numpy.object_"}
_KEYS = {"builtins.str", "builtins.int", "builtins.float", "builtins.bool"}
_NODES: dict[str, tuple[set[str], set[str]]] = {  # the fields of each kind, and its types; those with none are below
    "ObjectNode": ({"content"}, set()),
    "FunctionNode": (set(), set()),
    "TypeNode": (set(), _KEYS | _SCALARS),
    "DTypeNode": ({"content"}, {DTYPE}),
    "NdArrayNode": ({"type"}, {"numpy.ndarray"} | _SCALARS),
    "DictNode": ({"content", "key_types"}, {"builtins.dict"}),
    "ListNode": ({"content"}, {"builtins.list"}),
    "SetNode": ({"content"}, {"builtins.set"}),
    "SliceNode": ({"content"}, {"builtins.slice"}),
    "TupleNode": ({"content"}, {"builtins.tuple"} | TRUSTED),
    "JsonNode": ({"content", "is_json"}, {"builtins.str"}),
}
KINDS = frozenset(_NODES)
_PLAIN = {"JsonNode", "ListNode", "TupleNode", "NdArrayNode"}  # what an array of objects may hold
_COMMON = {"__class__", "__module__", "__loader__", "__id__"}
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DEPTH = 100  # nested nodes; a pipeline in a pipeline in a pipeline has about 30


def check_model(data: bytes, where: str) -> set[str]:
    """Return the names in a skops file that pyspar refuses; raise InputError where the file is not well formed."""
    with ZipFile(io.BytesIO(data)) as archive:
        entries = checked_entries(archive, len(data), where)
        schema = entries.pop("schema.json", None)
        if schema is None:
            raise InputError(f"{where} is not a skops file: it has no schema.json.")
        for info in entries.values():
            array_header(archive, info, where)
        root = json.loads(archive.read(schema), object_pairs_hook=_unique)
    if not isinstance(root, dict) or not {"protocol", "_skops_version"} <= set(root):
        raise InputError(f"{where} is not a skops file: its schema has no protocol.")
    check = _Check(where, set(entries))
    check.node({key: value for key, value in root.items() if key not in ("protocol", "_skops_version")})
    if not check.refused and root["__loader__"] != "ObjectNode":
        raise InputError(f"{where} must hold a model. Got {check.name_of(root)}.")
    return check.refused


class _Check:
    """A walk through the nodes of a schema."""

    def __init__(self, where: str, files: set[str]) -> None:
        self.where = where
        self.files = files
        self.refused: set[str] = set()
        self._forms: dict[Hashable, int] = {}
        self._seen: dict[int, int] = {}

    def node(self, node: Any, depth: int = 0, plain: bool = False) -> int:
        """Check one node and those below it, and return a number that equal nodes have in common.

        ``plain`` excludes objects, functions and types.
        """
        name, kind = self.name_of(node), node.get("__loader__")
        self._need(depth < _DEPTH, f"nodes {_DEPTH} levels deep")
        if not isinstance(kind, str) or kind not in _NODES:
            self.refused.add(f"{name} ({kind})")
            return -1
        if (plain and kind not in _PLAIN) or not _accepted(kind, name):
            self.refused.add(name)
        fields = _NODES[kind][0] | _COMMON
        if kind == "NdArrayNode":
            fields = fields | ({"file"} if node.get("type") == "numpy" else {"content", "shape"})
        self._need({*node, "__id__"} == fields, f"a {kind} with the fields {sorted(node)}")
        number = node.get("__id__")
        self._need(number is None or type(number) is int, f"a {kind} with the id {number!r}")
        form = (kind, name, self._content(kind, node, depth + 1, plain))
        count = self._forms.setdefault(form, len(self._forms))
        if number is not None:
            self._need(self._seen.setdefault(number, count) == count, f"two different nodes with the id {number}")
        return count

    def name_of(self, node: Any) -> str:
        """Return ``module.name`` of a node."""
        self._need(isinstance(node, dict), f"{type(node).__name__} in place of a node")
        module, name = node.get("__module__"), node.get("__class__")
        self._need(isinstance(module, str) and isinstance(name, str), "a node without a type")
        return f"{module}.{name}"

    def _content(self, kind: str, node: dict[str, Any], depth: int, plain: bool) -> Hashable:
        """Check what is particular to one kind of node, and return what distinguishes it from others of its kind."""
        content = node.get("content")
        if kind == "DictNode":
            return self._dict(node, depth)
        if kind == "NdArrayNode":
            return self._array(node, depth)
        if kind in ("ListNode", "SetNode", "TupleNode"):
            return self._items(content, depth, plain)
        if kind == "SliceNode":
            return self._slice(content)
        if kind == "JsonNode":
            self._need(isinstance(content, str), "a JsonNode that is not text")
            return str(content)
        if kind == "DTypeNode":
            self._need(isinstance(content, dict) and content.get("__loader__") == "NdArrayNode", "a dtype of no array")
            return self.node(content, depth)
        if kind == "ObjectNode":
            attributes = self.node(content, depth)
            self._attributes(content)
            return attributes
        return None

    def _items(self, items: Any, depth: int, plain: bool) -> Hashable:
        self._need(isinstance(items, list), "a sequence that is not a list")
        return tuple([self.node(item, depth, plain) for item in items])

    def _dict(self, node: dict[str, Any], depth: int) -> Hashable:
        types, content = node["key_types"], node["content"]
        type_form = self.node(types, depth)
        self._need(types["__loader__"] == "ListNode", "types of keys that are not a list")
        self.refused |= {self.name_of(key) for key in types["content"] if key["__loader__"] != "TypeNode"}
        self._need(isinstance(content, dict) and len(content) == len(types["content"]), "keys without a type")
        return type_form, tuple([(key, self.node(value, depth)) for key, value in content.items()])

    def _array(self, node: dict[str, Any], depth: int) -> Hashable:
        if node["type"] == "numpy":  # skops names a file after the id, so one file cannot become many arrays
            file = node["file"]
            self._need(file == f"{node.get('__id__')}.npy" and file in self.files, f"an array in the file {file!r}")
            return None
        self._need(node["type"] == "json", f"an array of type {node['type']!r}")
        return self.node(node["shape"], depth), self._items(node["content"], depth, plain=True)

    def _slice(self, content: Any) -> Hashable:
        self._need(isinstance(content, dict) and set(content) == {"start", "stop", "step"}, "a slice without bounds")
        self._need(all(type(bound) in (int, type(None)) for bound in content.values()), "a slice of no integers")
        return content["start"], content["stop"], content["step"]

    def _attributes(self, content: Any) -> None:
        if content["__loader__"] == "JsonNode" and content["content"] == "null":  # an object without attributes
            return
        self._need(content["__loader__"] == "DictNode", "an object whose attributes are not a dict")
        types = {self.name_of(key) for key in content["key_types"]["content"]}
        self._need(types <= {"builtins.str"}, "attributes whose names are not text")
        reserved = [name for name in content["content"] if name.startswith("__")]
        self._need(not reserved, f"an object with the attributes {reserved}")

    def _need(self, condition: bool, got: str) -> None:
        if not condition:
            raise InputError(f"{self.where} is not a model that pyspar.save wrote. Got {got}; save the model again.")


def _accepted(kind: str, name: str) -> bool:
    """Tell whether a kind of node may have a type; skops decides about scikit-learn, numpy and scipy afterwards."""
    module, _, last = name.rpartition(".")
    if not _MODULE.fullmatch(module) or not last.isidentifier():
        return False
    if kind == "ObjectNode":
        return name in TRUSTED or name.startswith("sklearn.")
    if kind == "FunctionNode":
        return name.startswith(("numpy.", "scipy.")) and name != DTYPE
    return name in _NODES[kind][1]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field occurs twice")
    return found
