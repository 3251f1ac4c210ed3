"""Load mutations of saved models while an audit hook watches; run as a program by test_crafted_models.py.

Arguments: a folder with valid .skops files, the number of mutations, a seed. Prints events and outcomes as JSON.
"""

import copy
import io
import json
import sys
import warnings
import zipfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from random import Random

NAMES = [
    ("os", "system"), ("builtins", "eval"), ("builtins", "map"), ("builtins", "object"), ("subprocess", "Popen"),
    ("pyspar", "import_module"), ("pyspar", "errors"), ("pyspar.persist", "os"),
    ("pyspar.core.moments", "Moments.of"), ("pyspar.estimators.spar.SpARRegressor", "fit"),
    ("pyspar.persist", "ZipFile"), ("numpy", "dtype"), ("numpy", "load"), ("numpy", "fromfile"), ("numpy", "void"),
    ("numpy", "memmap"), ("numpy.random", "RandomState"), ("sklearn.datasets", "fetch_openml"),
    ("sklearn.isotonic", "IsotonicRegression"), ("sklearn.frozen._frozen", "FrozenEstimator"),
    ("functools", "partial"), ("operator", "methodcaller"), ("collections", "OrderedDict"),
    ("antigravity", "webbrowser"), ("", ""), (".", "x"), (None, None), ("skops.io._utils", "gettype"),
]  # fmt: skip
OWN = ["pyspar.estimators.spar.SpARRegressor", "pyspar.core.moments.Moments", "pyspar.cli.files.TableColumns"]
VALUES = [
    None, True, -1, 0, 1e308, "", "x", [], {}, [[]], {"a": 1}, "null", '{"__class__": 1}', "0.npy", "../x.npy",
    "[" * 9999,
]  # fmt: skip


def main(folder, count, seed):
    for name in ("torch", "dask"):  # scikit-learn imports them for skops, which takes seconds and is not needed
        sys.modules[f"sklearn.externals.array_api_compat.{name}"] = None
    from sklearn.exceptions import InconsistentVersionWarning
    from skops.io._audit import NODE_TYPE_MAPPING

    import pyspar

    warnings.simplefilter("ignore")
    # The text of this warning contains the version in the file. A mutation can replace the version by an estimator, and
    # printing an estimator causes audit events.
    InconsistentVersionWarning.__str__ = lambda warning: type(warning).__name__
    paths = sorted(Path(folder).glob("*.skops"))
    for name in OWN:
        import_module(name.rpartition(".")[0])
    files = []
    for path in paths:
        pyspar.load(path)
        with zipfile.ZipFile(path) as archive:
            files.append({name: archive.read(name) for name in archive.namelist()})
    kinds = sorted({kind for kind, _ in NODE_TYPE_MAPPING})
    names = NAMES + [tuple(name.rsplit(".", 1)) for name in sorted(OWN)]
    rng, model = Random(seed), Path(folder) / "mutant.skops"
    events, outcomes, armed = [], Counter(), False

    def hook(event, arguments):
        # numpy parses the header of an array with ast.literal_eval, which compiles without executing.
        if not armed or (event == "compile" and arguments[1] == "<unknown>"):
            return
        if event == "open" and arguments[0] == str(model) and arguments[1] == "r":
            return
        events.append([event, repr(arguments)[:200]])
        raise RuntimeError("an audit event that loading must not cause")

    sys.addaudithook(hook)
    for _ in range(count):
        parts = dict(rng.choice(files))
        schema, done = mutated(json.loads(parts["schema.json"]), rng, kinds, names)
        parts["schema.json"] = json.dumps(schema).encode()
        write(model, parts, rng)
        before = set(sys.modules)
        armed = True
        try:
            pyspar.load(model)
            outcome = "loaded"
        except BaseException as error:  # noqa: BLE001 - every type is reported
            outcome = type(error).__name__
        armed = False
        outcomes[outcome] += 1
        if outcome not in ("loaded", "InputError") or set(sys.modules) != before:
            events.append([outcome, repr([*done, sorted(set(sys.modules) - before)])[:500]])
    print(json.dumps({"events": events, "outcomes": outcomes}))  # noqa: T201


def places(part):
    """Return the nodes of a schema."""
    found = [part] if isinstance(part, dict) and "__loader__" in part else []
    for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        found += places(item)
    return found


def mutated(schema, rng, kinds, names):
    done = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        nodes = places(schema)
        node, other = rng.choice(nodes), rng.choice(nodes)
        how = rng.choice(MUTATIONS)
        how(node, other, rng, kinds, names)
        done.append((how.__name__, str(node)[:100]))
    return schema, done


def rename(node, other, rng, kinds, names):
    node["__module__"], node["__class__"] = rng.choice(names)


def swap_names(node, other, rng, kinds, names):
    for key in ("__module__", "__class__"):
        node[key], other[key] = other.get(key), node.get(key)


def change_kind(node, other, rng, kinds, names):
    node["__loader__"] = rng.choice([*kinds, "CachedNode", "NoNode", None])


def become_method(node, other, rng, kinds, names):
    inner = {**copy.deepcopy(other), "__loader__": "TypeNode"}
    inner["__module__"], inner["__class__"] = rng.choice(names)
    content = {"obj": inner, "func": rng.choice(["system", "fit", "__init__", "__class__", "mro"])}
    node.update({**inner, "__loader__": "MethodNode", "content": content})


def become_call(node, other, rng, kinds, names):
    inside = copy.deepcopy(other)
    node.clear()
    node.update(
        {"__loader__": rng.choice(["ConstructorFromReduceNode", "OperatorFuncNode", "PartialNode"]), "__id__": 7}
    )
    node["__module__"], node["__class__"] = rng.choice(names)
    node["content"] = rng.choice([inside, dict.fromkeys(("func", "args", "kwds", "namespace"), inside)])
    node["attrs"] = inside


def replace_node(node, other, rng, kinds, names):
    taken = copy.deepcopy(other)
    node.clear()
    node.update(taken)


def change_key_types(node, other, rng, kinds, names):
    if "key_types" in node:
        types = node["key_types"].get("content") if isinstance(node["key_types"], dict) else None
        if types and rng.random() < 0.7:
            types[rng.randrange(len(types))] = copy.deepcopy(other)
        else:
            node["key_types"] = copy.deepcopy(other)


def call_key(node, other, rng, kinds, names):
    if "key_types" in node and isinstance(node["content"], dict):
        name = {"__module__": "pyspar.persist", "__class__": "os", "__id__": 5}
        call = {"func": rng.choice(["system", "remove", "listdir"]), "obj": {**name, "__loader__": "TypeNode"}}
        types = {"__module__": "builtins", "__class__": "list", "__loader__": "ListNode", "__id__": 6}
        node["key_types"] = {**types, "content": [{**name, "__id__": 8, "__loader__": "MethodNode", "content": call}]}
        node["content"] = {"no-such-file-or-command": copy.deepcopy(other), **node["content"]}


def add_attribute(node, other, rng, kinds, names):
    content = node.get("content")
    if isinstance(content, dict) and isinstance(content.get("content"), dict) and "key_types" in content:
        key = rng.choice(["__array_interface__", "__class__", "__dict__", "predict", "coef_"])
        content["content"][key] = copy.deepcopy(other)
        if rng.random() < 0.5 and isinstance(content["key_types"], dict):
            kind = {"__module__": "builtins", "__class__": "str", "__loader__": "TypeNode", "__id__": 9}
            content["key_types"].setdefault("content", []).append(kind)


def drop_field(node, other, rng, kinds, names):
    node.pop(rng.choice(sorted(node)), None)


def set_field(node, other, rng, kinds, names):
    node[rng.choice([*sorted(node), "extra"])] = rng.choice(VALUES)


def change_json(node, other, rng, kinds, names):
    if node.get("__loader__") == "JsonNode":
        node["content"] = rng.choice(
            ["", "NaN", "{}", "[" * 99999, "1" * 9999, "nul", '"\\ud800"', json.dumps(VALUES[:9])]
        )


def share_id(node, other, rng, kinds, names):
    node["__id__"] = other.get("__id__")


def share_file(node, other, rng, kinds, names):
    if "file" in node:
        node["file"] = other.get("file", "schema.json")


def wrap(node, other, rng, kinds, names):
    inside = copy.deepcopy(node)
    for _ in range(rng.choice((1, 30, 200))):
        inside = {
            **inside,
            "__module__": "builtins",
            "__class__": "list",
            "__loader__": "ListNode",
            "content": [inside],
        }
    node.clear()
    node.update(inside)


MUTATIONS = [
    rename, swap_names, change_kind, become_method, become_call, replace_node, change_key_types, call_key,
    add_attribute, drop_field, set_field, change_json, share_id, share_file, wrap,
]  # fmt: skip


def write(path, parts, rng):
    """Write the entries, sometimes twice, compressed, cut off or in pickle's format."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as archive:
        warnings.simplefilter("ignore")
        for name, data in parts.items():
            chance = rng.random()
            if chance < 0.002:
                archive.writestr(name, data, compress_type=rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)))
            elif chance < 0.004 and name != "schema.json":
                archive.writestr(name, rng.choice([data[:-8], b"", b"\x80\x04N.", data[:20] + data[21:]]))
            else:
                archive.writestr(name, data)
            if chance > 0.998:
                archive.writestr(name, data)
    path.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
