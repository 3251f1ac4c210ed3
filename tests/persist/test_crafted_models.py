"""Crafted model files are rejected, and run no code."""

import copy
import io
import json
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import pyspar
from pyspar import BayesSpARRegressor, InputError, SpARRegressor


@pytest.fixture
def valid_model(shift, tmp_path):
    """The bytes of a saved model."""
    pyspar.save(SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z), tmp_path / "valid.skops")
    return (tmp_path / "valid.skops").read_bytes()


def json_node(value):
    return node("builtins.str", "JsonNode", content=json.dumps(value), is_json=True)


def node(name, kind, **fields):
    module, _, last = name.rpartition(".")
    return {"__module__": module, "__class__": last, "__loader__": kind, **fields}


def sequence(kind, *items):
    return node(f"builtins.{kind}", f"{kind.capitalize()}Node", content=list(items))


def mapping(content, types=None):
    types = types or [node("builtins.str", "TypeNode") for _ in content]
    return node("builtins.dict", "DictNode", content=content, key_types=sequence("list", *types))


def model(**attributes):
    """Return a StandardScaler with attributes, in a model."""
    scaler = node("sklearn.preprocessing._data.StandardScaler", "ObjectNode", content=mapping(attributes))
    return node("pyspar.estimators.spar.SpARRegressor", "ObjectNode", content=mapping({"step": scaler}))


def method(name, func):
    return node(name, "MethodNode", content={"func": func, "obj": node(name, "TypeNode")})


def add_ids(part, start=1):
    """Give each node a unique id."""
    if isinstance(part, dict):
        if "__loader__" in part:
            part.setdefault("__id__", start)
            start += 1
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            start = add_ids(item, start)
    return start


@pytest.fixture
def reject(tmp_path):
    """A function that writes a schema as a model file, asserts that load rejects it, and returns the message."""

    def check(schema, entries=()):
        schema = copy.deepcopy(schema)
        add_ids(schema)
        path = tmp_path / "crafted.skops"
        with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
            warnings.simplefilter("ignore")
            for name, data in entries:
                archive.writestr(name, data)
            archive.writestr("schema.json", json.dumps({**schema, "protocol": 2, "_skops_version": skops.__version__}))
        with pytest.raises(InputError) as error:
            pyspar.load(path)
        return str(error.value)

    return check


def test_functions_of_imported_modules_are_not_accessible(reject, tmp_path):
    created = tmp_path / "created"
    call = mapping({f"touch {created}": json_node(1)}, [method("pyspar.persist.os", "system")])
    for schema in (call, model(mean_=call)):
        assert "pyspar.persist.os" in reject(schema)
    assert not created.exists()


def test_functions_of_pyspar_cannot_import_modules(reject):
    sys.modules.pop("this", None)
    call = node("pyspar.import_module", "ConstructorFromReduceNode", content=sequence("tuple", json_node("this")))
    for schema in (call, model(mean_=call)):
        assert "pyspar.import_module" in reject(schema)
    assert "this" not in sys.modules


SPAR = "pyspar.estimators.spar.SpARRegressor"


@pytest.mark.parametrize(
    "part",
    [
        method(SPAR, "fit"),
        node(SPAR, "TypeNode"),
        node(SPAR, "FunctionNode"),
        node(SPAR, "ConstructorFromReduceNode", content=sequence("tuple")),
        node(SPAR, "TreeNode", content=json_node(None), __reduce__={"args": sequence("tuple")}),
        node(SPAR, "LossNode", content=json_node(None), __reduce__={"args": sequence("tuple")}),
        node(SPAR, "ListNode", content=[]),
        node(SPAR, "DictNode", content={}, key_types=sequence("list")),
        node(SPAR, "NdArrayNode", type="json", content=[], shape=sequence("tuple", json_node(0))),
        mapping({"0.9": json_node(1)}, [node(SPAR, "TypeNode")]),
        mapping({"0.9": json_node(1)}, [method(SPAR, "mro")]),
    ],
    ids=lambda part: part["__loader__"],
)
def test_a_trusted_type_can_only_be_the_type_of_an_object(reject, part):
    assert SPAR in reject(model(mean_=part))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("functools.partial", "PartialNode"),
        ("operator.methodcaller", "OperatorFuncNode"),
        ("numpy.random.RandomState", "RandomStateNode"),
        ("numpy.random.mtrand.RandomState", "RandomStateNode"),
        ("numpy.random._generator.Generator", "RandomGeneratorNode"),
        ("sklearn.tree._tree.Tree", "TreeNode"),
        ("scipy.sparse._csr.csr_matrix", "SparseMatrixNode"),
        ("sklearn.datasets._openml.fetch_openml", "ObjectNode"),
        ("sklearn.utils._testing.os", "ObjectNode"),
        ("numpy.dtype", "ObjectNode"),
        ("numpy.dtype", "FunctionNode"),
        ("numpy.fromfile", "FunctionNode"),
        ("numpy.void", "TypeNode"),
        ("builtins.map", "TypeNode"),
        ("builtins.eval", "FunctionNode"),
        ("pyspar.core.moments.np", "ObjectNode"),
        ("os.system", "NoNode"),
        ("os.system", "CachedNode"),
    ],
)
def test_the_names_of_other_nodes_and_types_are_in_the_error(reject, name, kind):
    fields = {"content": json_node(None)} if kind == "ObjectNode" else {}
    assert name in reject(model(mean_=node(name, kind, **fields)))


def test_an_object_with_an_array_interface_is_rejected(reject):
    secret = np.arange(4.0)
    address = sequence("tuple", json_node(secret.ctypes.data), json_node(True))
    interface = mapping(
        {
            "data": address,
            "shape": sequence("tuple", json_node(4)),
            "typestr": json_node("<f8"),
            "version": json_node(3),
        }
    )
    shape = sequence("tuple", json_node(1), json_node(4))
    scaler = node("sklearn.preprocessing._data.StandardScaler", "ObjectNode")
    scaler["content"] = mapping({"__array_interface__": interface})
    assert "__array_interface__" in reject(model(mean_=scaler))
    plain = {**scaler, "content": mapping({})}
    for inside in (plain, sequence("list", plain)):
        array = node("numpy.ndarray", "NdArrayNode", type="json", content=[inside], shape=shape)
        assert "StandardScaler" in reject(model(mean_=array))


def test_two_different_nodes_with_one_id_are_rejected(reject):
    hidden = mapping({"__array_interface__": json_node(1)})
    shown = mapping({"mean_": json_node(1)})
    hidden["__id__"] = shown["__id__"] = 10**6
    scaler = node("sklearn.preprocessing._data.StandardScaler", "ObjectNode", content=shown)
    assert str(10**6) in reject(model(a=hidden, b=scaler))


def npy(shape, dtype="<f8", data=bytes(8)):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def test_arrays_that_contradict_their_header_are_rejected(reject):
    array = node("numpy.ndarray", "NdArrayNode", type="numpy", file="77.npy", __id__=77)
    schema = model(mean_=array)
    for data in (
        npy("(1600000000,)"),
        npy("(2,)"),
        npy("(-1,)"),
        npy("(1,)", "|O8"),
        npy("(1,)", "<f3"),
        npy("(1000000000000000,)", "<U0", b""),
        b"\x80\x04N.",
        b"",
    ):
        reject(schema, [("77.npy", data)])
    reject(schema, [("77.npy", npy("(1,)"))] * 2)
    reject(schema)
    reject(model(mean_={**array, "__id__": 78}), [("77.npy", npy("(1,)"))])


def test_a_file_without_a_model_is_rejected(reject):
    for schema in (
        json_node(1),
        sequence("list"),
        mapping({}),
        node("pyspar.core.moments.Moments", "ObjectNode", content=json_node(None)),
    ):
        reject(schema)


def test_deeply_nested_files_are_rejected(reject):
    deep = json_node(1)
    for _ in range(200):
        deep = sequence("list", deep)
    reject(model(mean_=deep))
    reject(model(mean_=node("builtins.str", "JsonNode", content="[" * 10**6, is_json=True)))


def test_a_compressed_file_is_rejected(valid_model, tmp_path):
    with zipfile.ZipFile(io.BytesIO(valid_model)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for method_ in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / "m.skops", "w", compression=method_) as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
        with pytest.raises(InputError):
            pyspar.load(tmp_path / "m.skops")


SELECTOR = "sklearn.compose._column_transformer.make_column_selector"


@pytest.mark.parametrize("name", ["builtins.object", "numpy.number"])
def test_types_of_columns_are_accepted_as_values_only(name, reject):
    assert name in reject(model(a=mapping({"x": json_node(1)}, [node(name, "TypeNode")])))
    assert name in reject(model(a=node(name, "ObjectNode", content=mapping({}))))


def test_the_constructor_of_a_selector_is_not_called(reject):
    assert SELECTOR in reject(model(a=node(SELECTOR, "TupleNode", content=[json_node("x")])))


PROGRAM = Path(__file__).with_name("fuzz_models.py")


def test_no_mutated_model_imports_opens_or_runs_anything(shift, tmp_path):
    X, Z = (pd.DataFrame(rows, columns=list("abcde")) for rows in (shift.X, shift.Z))
    X["town"], Z["town"] = "Ulm", "Bonn"
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=np.number)),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]),
    )
    models = {
        "array": SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z),
        "frame": BayesSpARRegressor().fit(X.drop(columns="town"), np.column_stack([shift.y, shift.y])),
        "columns": make_pipeline(columns, BayesSpARRegressor()).fit(X, shift.y),
    }
    for name, saved in models.items():
        pyspar.save(saved, tmp_path / f"{name}.skops")
    command = [sys.executable, str(PROGRAM), str(tmp_path), "400", "20240607"]
    result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert result["events"] == []
    assert set(result["outcomes"]) == {"loaded", "InputError"}  # some mutations leave a model intact
    assert sum(result["outcomes"].values()) == 400
