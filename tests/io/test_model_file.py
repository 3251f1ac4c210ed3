"""Which names and nodes a model file may hold: exactly those that saved models need."""

import copy
import io
import json
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import pyspar
from pyspar import InputError, SpARRegressor, TargetWatch
from pyspar.io.model_schema import DTYPE, KINDS, TRUSTED


def test_the_trusted_names_are_those_that_saved_models_need(honest):
    needed = {name for data in honest.values() for name in skops.io.get_untrusted_types(data=data)} - {DTYPE}
    paste = "\n        ".join(f'"{name}",' for name in sorted(needed))
    assert needed == TRUSTED, (
        f"missing {sorted(needed - TRUSTED)}, superfluous {sorted(TRUSTED - needed)}; "
        f"TRUSTED in model_schema.py must be\n        {paste}"
    )


def test_the_accepted_kinds_of_node_are_those_that_saved_models_need(honest, nodes):
    assert {node["__loader__"] for data in honest.values() for node in nodes(data)} == KINDS


def test_every_saved_model_is_loaded(honest, tmp_path):
    path = tmp_path / "model.skops"
    for name, data in honest.items():
        path.write_bytes(data)
        assert type(pyspar.load(path)) is type(skops.io.loads(data, trusted=[*TRUSTED, DTYPE])), name


def test_trusted_names_are_classes_of_pyspar_under_their_own_names():
    for name in TRUSTED:
        module, _, last = name.rpartition(".")
        found = getattr(sys.modules[module], last)
        assert isinstance(found, type), name
        assert (found.__module__, found.__name__) == (module, last)


def js(value):
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


def number(part, start=1):
    """Give each node an id of its own."""
    if isinstance(part, dict):
        if "__loader__" in part:
            part.setdefault("__id__", start)
            start += 1
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            start = number(item, start)
    return start


@pytest.fixture
def refused(tmp_path):
    """Write a schema as a model file, assert that it is refused, and return the message."""

    def check(schema, entries=()):
        schema = copy.deepcopy(schema)
        number(schema)
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


def test_a_module_that_pyspar_imports_gives_no_way_to_its_functions(refused, tmp_path):
    mark = tmp_path / "mark"
    call = mapping({f"touch {mark}": js(1)}, [method("pyspar.io.atomic.os", "system")])
    for schema in (call, model(mean_=call)):
        assert "pyspar.io.atomic.os" in refused(schema)
    assert not mark.exists()


def test_a_function_of_pyspar_gives_no_way_to_import_modules(refused):
    sys.modules.pop("this", None)
    call = node("pyspar.import_module", "ConstructorFromReduceNode", content=sequence("tuple", js("this")))
    for schema in (call, model(mean_=call)):
        assert "pyspar.import_module" in refused(schema)
    assert "this" not in sys.modules


SPAR = "pyspar.estimators.spar.SpARRegressor"


@pytest.mark.parametrize(
    "part",
    [
        method(SPAR, "fit"),
        node(SPAR, "TypeNode"),
        node(SPAR, "FunctionNode"),
        node(SPAR, "ConstructorFromReduceNode", content=sequence("tuple")),
        node(SPAR, "TreeNode", content=js(None), __reduce__={"args": sequence("tuple")}),
        node(SPAR, "LossNode", content=js(None), __reduce__={"args": sequence("tuple")}),
        node(SPAR, "ListNode", content=[]),
        node(SPAR, "DictNode", content={}, key_types=sequence("list")),
        node(SPAR, "NdArrayNode", type="json", content=[], shape=sequence("tuple", js(0))),
        mapping({"0.9": js(1)}, [node(SPAR, "TypeNode")]),
        mapping({"0.9": js(1)}, [method(SPAR, "mro")]),
    ],
    ids=lambda part: part["__loader__"],
)
def test_a_trusted_type_can_only_be_the_type_of_an_object(refused, part):
    assert SPAR in refused(model(mean_=part))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("functools.partial", "PartialNode"),
        ("operator.methodcaller", "OperatorFuncNode"),
        ("numpy.random.RandomState", "RandomStateNode"),
        ("scipy.sparse._csr.csr_matrix", "SparseMatrixNode"),
        ("sklearn.tree._tree.Tree", "TreeNode"),
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
def test_other_kinds_of_node_and_other_names_are_refused_by_name(refused, name, kind):
    fields = {"content": js(None)} if kind == "ObjectNode" else {}
    assert name in refused(model(mean_=node(name, kind, **fields)))


def test_an_object_with_an_address_for_an_array_is_refused(refused):
    secret = np.arange(4.0)
    address = sequence("tuple", js(secret.ctypes.data), js(True))
    interface = mapping({"data": address, "shape": sequence("tuple", js(4)), "typestr": js("<f8"), "version": js(3)})
    shape = sequence("tuple", js(1), js(4))
    scaler = node("sklearn.preprocessing._data.StandardScaler", "ObjectNode")
    scaler["content"] = mapping({"__array_interface__": interface})
    assert "__array_interface__" in refused(model(mean_=scaler))
    plain = {**scaler, "content": mapping({})}
    for inside in (plain, sequence("list", plain)):
        array = node("numpy.ndarray", "NdArrayNode", type="json", content=[inside], shape=shape)
        assert "StandardScaler" in refused(model(mean_=array))


def test_the_id_of_another_node_does_not_replace_what_was_checked(refused):
    hidden = mapping({"__array_interface__": js(1)})
    shown = mapping({"mean_": js(1)})
    hidden["__id__"] = shown["__id__"] = 10**6
    scaler = node("sklearn.preprocessing._data.StandardScaler", "ObjectNode", content=shown)
    assert str(10**6) in refused(model(a=hidden, b=scaler))


def npy(shape, dtype="<f8", data=bytes(8)):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def test_arrays_that_are_not_what_their_header_says_are_refused(refused):
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
        assert "77.npy" in refused(schema, [("77.npy", data)])
    refused(schema, [("77.npy", npy("(1,)"))] * 2)
    refused(schema)
    refused(model(mean_={**array, "__id__": 78}), [("77.npy", npy("(1,)"))])


def test_a_file_that_holds_no_model_is_refused(refused):
    for schema in (
        js(1),
        sequence("list"),
        mapping({}),
        node("pyspar.core.moments.Moments", "ObjectNode", content=js(None)),
    ):
        refused(schema)


def test_deeply_nested_files_are_refused(refused):
    deep = js(1)
    for _ in range(200):
        deep = sequence("list", deep)
    refused(model(mean_=deep))
    refused(model(mean_=node("builtins.str", "JsonNode", content="[" * 10**6, is_json=True)))


def test_a_compressed_file_is_refused(honest, tmp_path):
    with zipfile.ZipFile(io.BytesIO(honest["spar-frame-1"])) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for method_ in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / "m.skops", "w", compression=method_) as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
        with pytest.raises(InputError):
            pyspar.load(tmp_path / "m.skops")


def test_what_load_refuses_is_not_saved(shift, tmp_path):
    for step in (
        FunctionTransformer(lambda X: X),
        FunctionTransformer(np.nan_to_num),
        make_column_transformer((StandardScaler(), make_column_selector())),
    ):
        X = shift.X
        if not isinstance(step, FunctionTransformer):
            pd = pytest.importorskip("pandas")
            X = pd.DataFrame(X, columns=list("abcde"))
        with pytest.raises(InputError):
            pyspar.save(make_pipeline(step, SpARRegressor()).fit(X, shift.y), tmp_path / "m.skops")
    watch = TargetWatch(SpARRegressor().fit(shift.X, shift.y), limit=1.0, window=2)
    with pytest.raises(TypeError):
        pyspar.save(watch, tmp_path / "m.skops")
    assert list(Path(tmp_path).iterdir()) == []
