"""Check the schema of a skops file: the types and the kinds of node that it may contain.

skops compares the names in a file with a list of trusted names. This is not enough for untrusted files:

* A prefix of trusted names gives no protection: ``pyspar.io.atomic.os`` is the module ``os``. ``TRUSTED`` therefore
  holds complete names.
* Some kinds of node call the named object, or one of its attributes, with arguments from the file. Only the kinds in
  ``_NODES`` are accepted. An ``ObjectNode`` creates an object without ``__init__`` and fills in its attributes. The
  only constructors that are called are those of numbers, of containers and of the named tuples in ``TRUSTED``.
* numpy reads memory at the address in the attribute ``__array_interface__`` of any object. Attributes with names that
  begin with two underscores are rejected.
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
from pyspar.io.archives import check_entries, read_array_header

TRUSTED = frozenset(
    {
        "pyspar.estimators.spar.BayesSpARRegressor",
        "pyspar.core.adapt.Adaptation",
        "pyspar.core.adapt.Terms",
        "pyspar.core.regression.OLSFit",
        "pyspar.core.regression.Prior",
        "pyspar.core.regression.RidgePosterior",
        "pyspar.core.drift.Drift",
        "pyspar.core.drift.Coordinates",
        "pyspar.core.regression.Evidence",
        "pyspar.core.moments.Moments",
        "pyspar.core.separation.Separation",
        "pyspar.core.spectrum.Spectrum",
        "pyspar.estimators.groups.GroupFolds",
        "pyspar.estimators.correction.TargetCorrection",
        "pyspar.estimators.labels.TextColumns",
        "pyspar.estimators.spar.SpARRegressor",
        "pyspar.estimators.correction.DriftPart",
        "pyspar.estimators.correction.TargetDrift",
        "pyspar.estimators.correction.Candidate",
        "pyspar.tables.encode.DateParts",
        "pyspar.tables.encode.Numbers",
        "pyspar.tables.encode.TableEncoder",
        "pyspar.tables.encode.Words",
        "sklearn.compose._column_transformer.make_column_selector",
    }
)
"""The types in saved models that skops does not trust, as ``module.name``. A test in tests/io derives them from such
models. ``make_column_selector`` stores a pattern and dtypes, and is called by ``fit`` only."""

COLUMN_TYPES = frozenset({"builtins.object", "numpy.number", "numpy.floating", "numpy.integer"})
"""The types of columns that ``make_column_selector`` selects; accepted as a ``TypeNode`` that is not a type of keys."""

DTYPE = "numpy.dtype"
"""Accepted as a ``DTypeNode`` only, which is an empty array of that dtype."""

_SCALARS = {f"numpy.{kind.__name__}" for kind in np.sctypeDict.values()} - {"numpy.void", "numpy.object_"}
_KEYS = {"builtins.str", "builtins.int", "builtins.float", "builtins.bool"}
# The fields and the types of each kind of node. The types of the first two kinds are in _is_accepted.
_NODES: dict[str, tuple[set[str], set[str]]] = {
    "ObjectNode": ({"content"}, set()),
    "FunctionNode": (set(), set()),
    "TypeNode": (set(), _KEYS | _SCALARS | COLUMN_TYPES),
    "DTypeNode": ({"content"}, {DTYPE}),
    "NdArrayNode": ({"type"}, {"numpy.ndarray"} | _SCALARS),
    "DictNode": ({"content", "key_types"}, {"builtins.dict"}),
    "ListNode": ({"content"}, {"builtins.list"}),
    "SetNode": ({"content"}, {"builtins.set"}),
    "SliceNode": ({"content"}, {"builtins.slice"}),
    "TupleNode": ({"content"}, {"builtins.tuple", *(name for name in TRUSTED if name.startswith("pyspar."))}),
    "JsonNode": ({"content", "is_json"}, {"builtins.str"}),
}
KINDS = frozenset(_NODES)
_PLAIN_KINDS = {"JsonNode", "ListNode", "TupleNode", "NdArrayNode"}  # allowed in arrays of objects
_COMMON = {"__class__", "__module__", "__loader__", "__id__"}
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MAX_DEPTH = 100  # of nested nodes; a pipeline in a pipeline in a pipeline has about 30


def check_model(data: bytes, where: str) -> set[str]:
    """Return the names in a skops file that pyspar rejects; raise InputError if the file is malformed."""
    with ZipFile(io.BytesIO(data)) as archive:
        entries = check_entries(archive, len(data), where)
        schema = entries.pop("schema.json", None)
        if schema is None:
            raise InputError(f"{where} is not a skops file: it has no schema.json")
        root = json.loads(archive.read(schema), object_pairs_hook=_make_dict)
        if not isinstance(root, dict) or not {"protocol", "_skops_version"} <= set(root):
            raise InputError(f"{where} is not a skops file: its schema has no protocol")
        check = _SchemaCheck(where, set(entries))
        check.check_node({key: value for key, value in root.items() if key not in ("protocol", "_skops_version")})
        if check.rejected:  # the types are the reason, also for the arrays that only they have
            return check.rejected
        if root["__loader__"] != "ObjectNode":
            raise InputError(f"{where} must contain a model, got {check.name_of(root)}")
        for info in entries.values():
            read_array_header(archive, info, where)
    return set()


class _SchemaCheck:
    """Checks the nodes of a schema recursively, and collects the names that are rejected."""

    def __init__(self, where: str, files: set[str]) -> None:
        self.where = where
        self.files = files
        self.rejected: set[str] = set()
        self._forms: dict[Hashable, int] = {}
        self._ids: dict[int, int] = {}

    def check_node(self, node: Any, depth: int = 0, plain: bool = False) -> int:
        """Check a node and the nodes inside it, and return a number that is the same for equal nodes.

        ``plain`` excludes objects, functions and types.
        """
        name, kind, node_id = self.name_of(node), node.get("__loader__"), node.get("__id__")
        self._require(depth < _MAX_DEPTH, f"nodes {_MAX_DEPTH} levels deep")
        if not isinstance(kind, str) or kind not in _NODES:
            self.rejected.add(f"{name} ({kind})")
            return -1
        if (plain and kind not in _PLAIN_KINDS) or not _is_accepted(kind, name):
            self.rejected.add(name)
        fields = _NODES[kind][0] | _COMMON
        if kind == "NdArrayNode":
            fields = fields | ({"file"} if node.get("type") == "numpy" else {"content", "shape"})
        self._require({*node, "__id__"} == fields, f"a {kind} with the fields {sorted(node)}")
        content = self._check_content(kind, node, depth + 1, plain)
        number = self._forms.setdefault((kind, name, content), len(self._forms))
        if node_id is not None:
            self._require(type(node_id) is int, f"a {kind} with the id {node_id!r}")
            self._require(self._ids.setdefault(node_id, number) == number, f"two different nodes with the id {node_id}")
        return number

    def name_of(self, node: Any) -> str:
        """Return ``module.name`` of a node."""
        self._require(isinstance(node, dict), f"{type(node).__name__} instead of a node")
        module, name = node.get("__module__"), node.get("__class__")
        self._require(isinstance(module, str) and isinstance(name, str), "a node without a type")
        return f"{module}.{name}"

    def _check_content(self, kind: str, node: dict[str, Any], depth: int, plain: bool) -> Hashable:
        """Check the content of a node, and return a value that distinguishes it from other nodes of its kind."""
        content = node.get("content")
        if kind == "DictNode":
            return self._check_dict(node, depth)
        if kind == "NdArrayNode":
            return self._check_array(node, depth)
        if kind in ("ListNode", "SetNode", "TupleNode"):
            return self._check_items(content, depth, plain)
        if kind == "SliceNode":
            return self._check_slice(content)
        if kind == "JsonNode":
            self._require(isinstance(content, str), "a JsonNode that is not text")
            return str(content)
        if kind == "DTypeNode":
            self._require(
                isinstance(content, dict) and content.get("__loader__") == "NdArrayNode", "a dtype without an array"
            )
            return self.check_node(content, depth)
        if kind == "ObjectNode":
            attributes = self.check_node(content, depth)
            self._check_attributes(content)
            return attributes
        return None

    def _check_items(self, items: Any, depth: int, plain: bool) -> Hashable:
        self._require(isinstance(items, list), "a sequence that is not a list")
        return tuple([self.check_node(item, depth, plain) for item in items])

    def _check_dict(self, node: dict[str, Any], depth: int) -> Hashable:
        types, content = node["key_types"], node["content"]
        type_form = self.check_node(types, depth)
        self._require(types["__loader__"] == "ListNode", "types of keys that are not a list")
        self.rejected |= {
            self.name_of(key)
            for key in types["content"]
            if key["__loader__"] != "TypeNode" or self.name_of(key) in COLUMN_TYPES
        }
        self._require(isinstance(content, dict) and len(content) == len(types["content"]), "keys without a type")
        return type_form, tuple([(key, self.check_node(value, depth)) for key, value in content.items()])

    def _check_array(self, node: dict[str, Any], depth: int) -> Hashable:
        if node["type"] == "numpy":  # skops names a file after the id, so one file cannot become many arrays
            file = node["file"]
            self._require(file == f"{node.get('__id__')}.npy" and file in self.files, f"an array in the file {file!r}")
            return None
        self._require(node["type"] == "json", f"an array of type {node['type']!r}")
        return self.check_node(node["shape"], depth), self._check_items(node["content"], depth, plain=True)

    def _check_slice(self, content: Any) -> Hashable:
        self._require(isinstance(content, dict) and set(content) == {"start", "stop", "step"}, "a slice without bounds")
        self._require(
            all(type(bound) in (int, type(None)) for bound in content.values()), "a slice whose bounds are not integers"
        )
        return content["start"], content["stop"], content["step"]

    def _check_attributes(self, content: Any) -> None:
        if content["__loader__"] == "JsonNode" and content["content"] == "null":  # an object without attributes
            return
        self._require(content["__loader__"] == "DictNode", "an object whose attributes are not a dict")
        types = {self.name_of(key) for key in content["key_types"]["content"]}
        self._require(types <= {"builtins.str"}, "attributes whose names are not text")
        reserved = [name for name in content["content"] if name.startswith("__")]
        self._require(not reserved, f"an object with the attributes {reserved}")

    def _require(self, condition: bool, got: str) -> None:
        if not condition:
            raise InputError(f"{self.where} was not written by pyspar.save: it contains {got}; save the model again")


def _is_accepted(kind: str, name: str) -> bool:
    """Return whether a kind of node may have a type. skops checks names in scikit-learn, numpy and scipy afterwards."""
    module, _, last = name.rpartition(".")
    if not _MODULE.fullmatch(module) or not last.isidentifier():
        return False
    if kind == "ObjectNode":
        return name in TRUSTED or name.startswith("sklearn.")
    if kind == "FunctionNode":
        return name.startswith(("numpy.", "scipy.")) and name not in {DTYPE, *COLUMN_TYPES}
    return name in _NODES[kind][1]


def _make_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields
