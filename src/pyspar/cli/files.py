"""Tables of the command line: read and check two files, encode their columns, write predictions and rows to label.

Only the source determines which columns are features, of which kind, and how cells are written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pyspar import cells
from pyspar.cells import PLAIN, BadCell, ReadOptions, describe_file, describe_rows, is_number, suggest_column
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.labels import MAX_CATEGORIES
from pyspar.persist import find_target
from pyspar.progress import progress_bar
from pyspar.sources.files import RowFile, open_rows
from pyspar.sources.stream import moments_of_batches
from pyspar.text import count_noun, list_some

WRITERS: dict[str, Callable[[Any, Any], Any]] = {  # of a file and a schema, by suffix
    ".csv": pcsv.CSVWriter,
    ".tsv": partial(pcsv.CSVWriter, write_options=pcsv.WriteOptions(delimiter="\t")),
    ".parquet": partial(pq.ParquetWriter, write_page_checksum=True),
}
ROW, REASON = "row", "reason"
"""The columns of a file of ``spar label``: the position of a row in the target, and the reason to label it."""
CONSTANT = "constant in the source"


@dataclass(frozen=True)
class Request:
    """Two files and how to read them, with the names of the options."""

    source: Path
    target: Path
    label: str | None = None
    identity: str | None = None
    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    groups: str | None = None
    labels: Path | None = None
    use_target_labels: bool = False
    options: ReadOptions = PLAIN
    impute: bool = False
    drop_unlabelled: bool = False
    stream: bool = False


class Table(NamedTuple):
    """Cells of a file in memory, as in the file; ``first`` is the number of the first row."""

    file: RowFile
    cells: Any
    first: int = 0

    @property
    def names(self) -> list[str]:
        return list(self.cells.column_names)

    def kind(self, name: str) -> str:
        return cells.infer_kind(self.cells[name], self.file.options)

    def numbers(self, name: str, kind: str = "number") -> tuple[Any, list[BadCell]]:
        """Return a column as numbers, and its bad cells, which are NaN."""
        values, wrong = cells.to_numbers(self.cells[name], kind, self.file.options)
        return values, [BadCell(name, self.first + row, text) for row, text in wrong]

    def words(self, name: str) -> Any:
        """Return a column as text, NaN where missing. Whole numbers have no decimal point."""
        text = cells.as_text(self.cells[name], self.file.options)
        text = self.cells[name].cast(pa.large_string()) if text is None else text
        for pattern, plain in ((r"^(-?\d+)\.0$", r"\1"), ("(?i)^true$", "true"), ("(?i)^false$", "false")):
            text = pc.replace_substring_regex(text, pattern, plain)
        text = cells.as_text(text, self.file.options)
        words = text.to_numpy(zero_copy_only=False).astype(object)
        words[pd.isna(words)] = np.nan
        return words

    def labels(self, name: str) -> Any:
        """Return a column as labels, NaN where missing. Bad cells raise an InputError."""
        kind, where = self.kind(name), describe_file(self.file.role, self.file.path, name)
        if kind != "empty" and (not is_number(kind) or kind == "date"):
            words = [word for word in self.words(name) if isinstance(word, str)]
            first = min(words, key=lambda word: word.strip("+-").replace(".", "", 1).isdigit())
            raise InputError(f"{where}: labels must be numbers, got {first[:40]!r}; correct it, or use another column")
        values, bad = self.numbers(name, "truth" if kind == "truth" else "number")
        if bad:
            fix = "correct the labels, or pass --na TEXT if a text means missing"
            raise cells.bad_cells_error(bad, self.file, fix)
        return values

    def groups(self, name: str) -> Any:
        """Return a column as groups of rows, of which there must be two."""
        check_column(name, "--groups", self.names, self.file.where)
        words, where = self.words(name), describe_file(self.file.role, self.file.path, name)
        if len(missing := np.flatnonzero(pd.isna(words)).tolist()):
            rows = describe_rows(missing, self.file.path)
            raise InputError(f"{where}: {len(missing)} groups are missing, in {rows}; name them, or drop the rows")
        if len(set(words)) < 2:
            raise InputError(f"{where}: --groups needs two groups, got {words[0]!r} only")
        return words


def read_batches(file: RowFile, names: Sequence[str]) -> Iterator[Table]:
    """Yield some columns of a file in batches, and show the progress."""
    first = 0
    with progress_bar(f"reading the {file.role}", total=file.n_rows, unit="rows") as advance:
        for batch in file.read(names):
            yield Table(file, pa.Table.from_batches([batch]), first)
            advance(first := first + len(batch))


def read_table(file: RowFile) -> Table:
    """Read all rows of a file into memory."""
    blocks = [table.cells for table in read_batches(file, file.names)]
    if not sum(map(len, blocks)):
        raise InputError(f"{file.where}: the file has a header and no rows")
    return Table(file, pa.concat_tables(blocks, promote_options="permissive").combine_chunks())


def check_column(name: str | None, option: str, names: Sequence[str], where: str) -> None:
    """Raise InputError if the column that an option names does not exist. None means that it was not passed."""
    if name is not None and name not in names:
        raise InputError(f"{where}: no {option} column {name!r}; {suggest_column(name, names)}")


def convert(table: Table, kinds: Mapping[str, str], *, impute: bool = False) -> tuple[pd.DataFrame, list[str]]:
    """Return columns as numbers and text, and notes about bad cells, which are errors without ``impute``."""
    columns: dict[str, Any] = {}
    bad: dict[str, list[BadCell]] = {}
    for name, kind in kinds.items():
        columns[name], wrong = table.numbers(name, kind) if is_number(kind) else (table.words(name), [])
        bad |= {name: wrong} if wrong else {}
    if bad and not impute:
        raise cells.bad_cells_error([cell for wrong in bad.values() for cell in wrong], table.file)
    notes = [
        f"{table.file.role}: {name}: {count_noun(len(wrong), 'bad cell is', 'bad cells are')} treated as missing "
        f"({list_some(dict.fromkeys(cell.text for cell in wrong), 3, max_length=40)})"
        for name, wrong in bad.items()
    ]
    frame = pd.DataFrame(columns, copy=False)
    # float32 only if all numbers have that precision, so that rounding errors are recognised as such.
    return frame.astype(np.float32) if set(kinds.values()) == {"float32"} else frame, notes


class TableColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Select the features of a data frame and convert them to numbers and text; the first step of a saved model."""

    def __init__(self, kinds: dict[str, str], options: tuple[Any, ...] = ()) -> None:
        self.kinds, self.options = kinds, options

    def fit(self, X: Any = None, y: Any = None) -> Self:
        self.n_features_in_ = len(self.kinds)
        self.feature_names_in_ = np.array(list(self.kinds), dtype=object)
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        if not hasattr(X, "columns"):
            raise InputError(f"X must be a data frame with the columns {list_some(self.kinds)}, got {type(X).__name__}")
        check_features(self.kinds, list(map(str, X.columns)), "X", "fit")
        file = RowFile(Path("X"), "rows", tuple(self.kinds), ReadOptions(*self.options), lambda names: iter(()))
        table = Table(file, pa.Table.from_pandas(pd.DataFrame(X)[list(self.kinds)], preserve_index=False))
        return convert(table, self.kinds)[0].set_axis(X.index)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        return self.feature_names_in_


def make_encoder(kinds: Mapping[str, str]) -> ColumnTransformer:
    """Return the preprocessing: numbers are imputed by the source mean and scaled, categories are one-hot encoded.

    A missing category is a category of its own.
    """
    numbers = [name for name, kind in kinds.items() if is_number(kind)]
    categories = [name for name, kind in kinds.items() if not is_number(kind)]
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False)
    scale = Pipeline([("fill", SimpleImputer(keep_empty_features=True)), ("scale", StandardScaler())])
    steps = [("numeric", scale, numbers), ("category", one_hot, categories)]
    return ColumnTransformer([step for step in steps if step[2]], sparse_threshold=0.0, verbose_feature_names_out=False)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Both files as a command computes with them: data frames X and Z, or Moments of encoded rows that were streamed.

    ``y`` are the labels of the source. ``labels`` are those of the target, NaN where unknown, or None. ``encoder`` is
    fitted for streamed files only.
    """

    request: Request
    label: str
    columns: TableColumns
    encoder: ColumnTransformer
    target: RowFile
    n_target: int
    X: Any
    y: Any
    Z: Any
    groups: Any = None
    labels: Any = None
    target_cells: Any = None
    notes: list[str] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    imputed: dict[str, str] = field(default_factory=dict)

    @property
    def is_streamed(self) -> bool:
        return isinstance(self.Z, Moments)


def load_inputs(request: Request) -> Inputs:
    """Read and check both files, choose the features, and convert them. Large files are reduced to Moments."""
    source = open_rows(request.source, request.options, "source")
    target = open_rows(request.target, request.options, "target")
    label = request.label
    if label is None:
        raise InputError(f"{source.where}: --label is required; the columns are {list_some(source.names, 12)}")
    if label not in source.names:
        swapped = "; the target has it: are SOURCE and TARGET swapped?" if label in target.names else ""
        raise InputError(f"{source.where}: no label column {label!r}; {suggest_column(label, source.names)}{swapped}")
    check_column(request.identity, "--id", target.names, target.where)
    check_column(request.groups, "--groups", source.names, source.where)
    if label in (request.identity, request.groups):
        raise InputError(f"--id and --groups must not name the label, got {label!r}; choose another column")
    for option, given in (("--drop", request.drop), ("--category", request.category)):
        for name in given:
            if name in (label, request.identity):
                raise InputError(f"{option} must name a feature, got {name!r}, which is the label or the id")
            check_column(name, option, [*source.names, *target.names], source.where)
    return (_load_streamed if request.stream else _load_tables)(request, source, target, label)


def choose_kinds(
    source: RowFile, label: str, request: Request, infer: Callable[[str], str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kinds of the features by name, and the ignored columns with reasons."""
    kinds, ignored = {}, {}
    for name in source.names:
        if name in (label, request.identity, request.groups):
            continue
        if name in request.drop:
            ignored[name] = "dropped with --drop"
        elif name.startswith("Unnamed: "):
            ignored[name] = "no name; assumed to be a row index"
        elif (kind := "category" if name in request.category else infer(name)) == "category" or is_number(kind):
            kinds[name] = kind
        else:
            ignored[name] = "no values in the source" if kind == "empty" else f"{kind} is not supported"
    return kinds, ignored


def check_features(kinds: Mapping[str, str], names: Sequence[str], where: str, of: str = "source") -> None:
    """Raise InputError if a target lacks features of the source, or of a model."""
    known = set(names)
    if missing := [name for name in kinds if name not in known]:
        options = " ".join(f"--drop {shlex.quote(name)}" for name in missing[:20])
        raise InputError(
            f"{where} lacks {len(missing)} of {len(kinds)} feature columns of the {of}: {list_some(missing)} "
            f"({suggest_column(missing[0], names)}); add them{f', or ignore them with {options}' * (of == 'source')}"
        )


def _check_kinds(
    kinds: Mapping[str, str], ignored: Mapping[str, str], source: RowFile, target: RowFile
) -> dict[str, str]:
    """Return the kinds of the features without the ignored columns, if there are any and the target has them."""
    kinds = {name: kind for name, kind in kinds.items() if name not in ignored}
    if not kinds:
        listed = "; ".join(f"{name!r}: {reason}" for name, reason in list(ignored.items())[:6])
        reasons = listed or "the label is its only column"
        raise InputError(f"{source.where}: no column can be used as a feature ({reasons}); add or correct columns")
    check_features(kinds, target.names, target.where)
    return kinds


def _load_tables(request: Request, source_file: RowFile, target_file: RowFile, label: str) -> Inputs:
    source, target = read_table(source_file), read_table(target_file)
    y = source.labels(label)
    notes, known = _check_labels(y, source_file, label, request), ~np.isnan(y)
    source, y = source._replace(cells=source.cells.filter(pa.array(known))) if notes else source, y[known]
    kinds, ignored = choose_kinds(source_file, label, request, source.kind)
    X, own_notes = convert(source, kinds, impute=request.impute)
    ignored |= _find_useless(X, kinds)
    kinds = _check_kinds(kinds, ignored, source_file, target_file)
    X = X[list(kinds)]
    Z, target_notes = convert(target, kinds, impute=request.impute)
    notes = [*_compare(X, Z, kinds), *_compare_constants(ignored, source, target), *notes, *own_notes, *target_notes]
    labels = _target_labels(target, label, request, notes)
    named = {*source.names, label, request.identity, request.groups, *request.drop}
    ignored |= {name: "only in the target" for name in target.names if name not in named}
    return Inputs(
        request, label, TableColumns(kinds, tuple(request.options)).fit(), make_encoder(kinds), target_file,
        len(Z), X, y, Z, None if request.groups is None else source.groups(request.groups), labels, target.cells,
        notes, ignored, _list_imputed(X.mean(numeric_only=True), X.isna().sum(), Z.isna().sum()),
    )  # fmt: skip


def _list_imputed(means: pd.Series, missing: pd.Series, also_missing: pd.Series) -> dict[str, str]:
    """Return how many values of each column are missing in source and target, and what replaces them."""
    return {
        name: f"{missing[name]:,} source, {also_missing[name]:,} target, "
        + (f"with the source mean {means[name]:.4g}" if name in means.index else "as a category of their own")
        for name in missing.index[(missing > 0) | (also_missing > 0)]
    }


def _check_labels(values: Any, source: RowFile, label: str, request: Request) -> list[str]:
    """Raise InputError if labels of the source cannot be fitted. Return a note if rows without one are ignored."""
    where = describe_file("source", source.path, label)
    missing, known = np.flatnonzero(np.isnan(values)).tolist(), values[~np.isnan(values)]
    if len(known) < 2:
        rows = count_noun(len(values), "row")
        raise InputError(f"{where}: a fit needs at least two rows with labels, got {len(known)} in {rows}")
    if missing and not request.drop_unlabelled:
        share, rows = f"{len(missing)} of {len(values)} labels", describe_rows(missing, source.path)
        raise InputError(f"{where}: {share} are missing, in {rows}; ignore such rows with --drop-unlabelled")
    if known.min() == known.max():
        raise InputError(f"{where}: all labels are {known[0]:g}; choose another column")
    rows = count_noun(len(missing), "row without a label is", "rows without a label are")
    return [f"source: {rows} ignored"] if missing else []


def has_text(target: Table, label: str, notes: list[str]) -> bool:
    """Return whether text or dates are in the place of the target's labels, and add a note about it."""
    if is_text := (kind := target.kind(label)) == "date" or not (is_number(kind) or kind == "empty"):
        notes.append(f"the predictions are not scored: the target's column {label!r} is not numeric")
    return is_text


def _target_labels(target: Table, label: str, request: Request, notes: list[str]) -> Any:
    """Return the labels of the target, NaN where missing; None without labels."""
    labels = None if label not in target.names or has_text(target, label, notes) else target.labels(label)
    labels = None if labels is None or np.isnan(labels).all() else labels
    if request.labels is None:
        return labels
    if labels is not None and not request.use_target_labels:
        known = count_noun(int((~np.isnan(labels)).sum()), "label")
        notes.append(f"target: {known} of its own column {label!r} are not used beside those of {request.labels.name}")
        labels = None
    return add_labels(labels, request.labels, request, label, target)


def _find_useless(X: pd.DataFrame, kinds: Mapping[str, str]) -> dict[str, str]:
    """Return columns of the source that are constant or free text, with reasons."""
    numbers = X[[name for name in kinds if is_number(kinds[name])]]
    low = numbers.min()
    found = {name: f"{CONSTANT} ({low[name]:g})" for name in numbers.columns[low == numbers.max()]}
    for name in (name for name in kinds if name not in low.index):
        levels, known = X[name].nunique(), int(X[name].notna().sum())
        if levels == 1 and known == len(X):
            found[name] = f"{CONSTANT} ({str(X[name].iloc[0])[:40]!r})"
        elif levels > 1 and (levels == known or (levels > 100 and 2 * levels > known)):
            found[name] = f"free text ({levels} different values in {known} rows)"
    return found


def _compare(X: pd.DataFrame, Z: pd.DataFrame, kinds: Mapping[str, str]) -> list[str]:
    """Return notes about features that are empty or later in the target, and about features that look like ids."""
    empty = Z.columns[Z.isna().all()]
    notes = [f"{name}: missing in every target row; all rows were imputed with the same value" for name in empty]
    for name in (name for name in kinds if kinds[name] == "date"):
        if Z[name].min() > X[name].max():
            notes.append(f"{name}: all rows of the target are later than those of the source, so it is extrapolated")
    numbers = X[[name for name in kinds if kinds[name] in ("number", "float32")]]
    is_whole = (numbers == np.floor(numbers)).all() if len(X) >= 10 else pd.Series(dtype=bool)
    for name in is_whole.index[is_whole]:
        is_named = re.fullmatch(r"(?i:id|.*_id|index|idx|row|no|nr|rownames)|.*ID", name) is not None
        is_dense = np.ptp(X[name]) < 2 * len(X)  # numbers of a list
        if abs(np.sign(np.diff(X[name])).sum()) == len(X) - 1 or ((is_named or is_dense) and X[name].is_unique):
            option = shlex.quote(name)
            notes.append(f"{name}: distinct whole numbers; if it is an id, pass --id {option} or --drop {option}")
    return notes


def _compare_constants(ignored: Mapping[str, str], source: Table, target: Table) -> list[str]:
    """Return notes about columns that are constant in the source and have other values in the target."""
    notes = []
    for name in (name for name, reason in ignored.items() if reason.startswith(CONSTANT) and name in target.names):
        known = pd.Series(target.words(name)).dropna()
        constant = next(word for word in source.words(name) if isinstance(word, str))
        values, number = pd.to_numeric(known, errors="coerce"), pd.to_numeric(pd.Series([constant]), errors="coerce")[0]
        n = int(((known != constant) & ~np.isclose(values, number, rtol=1e-6, atol=0.0)).sum())  # float32 is not exact
        if n:
            rows = f"{n:,} of {count_noun(len(target.cells), 'target row')} {'has' if n == 1 else 'have'} another value"
            notes.append(f"{name}: {CONSTANT}, but {rows}; the forecast does not cover this difference")
    return notes


def _load_streamed(request: Request, source: RowFile, target: RowFile, label: str) -> Inputs:
    """Fit the encoder to numbers of the source in batches, and reduce the encoded rows of both files to Moments."""
    needs_rows = {"--groups": request.groups, "--labels": request.labels, "--category": request.category}
    for option in (option for option, value in needs_rows.items() if value):
        raise InputError(f"{option} is not available when streaming; it needs all rows in memory")

    def read(file: RowFile, kinds: Mapping[str, str], label: str | None = None) -> Iterator[tuple[pd.DataFrame, Any]]:
        for table in read_batches(file, [*kinds, *([] if label is None else [label])]):
            X = convert(table, kinds, impute=request.impute)[0]
            y = np.zeros(len(X)) if label is None else table.labels(label)
            yield X[~np.isnan(y)], y

    first = Table(source, pa.Table.from_batches([next(source.read(source.names))]))
    kinds, ignored = choose_kinds(source, label, request, first.kind)
    reason = "not numeric; streams use numbers, dates and Boolean values only"
    ignored |= {name: reason for name, kind in kinds.items() if kind == "category"}
    kinds = _check_kinds(kinds, ignored, source, target)
    labels, parts = [], []
    for X, y in read(source, kinds, label):
        labels.append(y)
        X = X.astype(np.float64)
        parts.append([X.count(), X.mean(), X.var(ddof=0), X.min(), X.max()])
    y = np.concatenate(labels)
    notes, y = _check_labels(y, source, label, request), y[~np.isnan(y)]
    n, mean, variance, low, high = np.moveaxis(np.array(parts), 1, 0)  # of batches and columns; NaN without values
    found = pd.DataFrame({"low": np.fmin.reduce(low), "high": np.fmax.reduce(high)}, list(kinds))
    found["mean"] = means = np.nansum(n * mean, axis=0) / np.maximum(n.sum(axis=0), 1)
    # The spread of a column whose missing values are replaced by its mean.
    found["spread"] = np.sqrt(np.nansum(n * (variance + (mean - means) ** 2), axis=0) / len(y))
    ignored |= {name: f"{CONSTANT} ({low:g})" for name, low in found["low"][~(found["low"] < found["high"])].items()}
    kinds = _check_kinds(kinds, ignored, source, target)
    found = found.loc[list(kinds)]
    encoder = make_encoder(kinds).set_output(transform="pandas")
    encoder.fit(pd.DataFrame([found["mean"] - found["spread"], found["mean"] + found["spread"]]))
    missing: list[Any] = []

    def encode(X: pd.DataFrame) -> Any:
        missing.append(X.isna().sum())
        return encoder.transform(X)

    rows = ((encode(X), y[~np.isnan(y)]) for X, y in read(source, kinds, label) if len(X))
    x, n_source = moments_of_batches(rows, labelled=True), len(missing)
    z = moments_of_batches((encode(Z) for Z, _ in read(target, kinds) if len(Z)), labelled=False)
    imputed = _list_imputed(found["mean"], sum(missing[:n_source]), sum(missing[n_source:]))
    columns = TableColumns(kinds, tuple(request.options)).fit()
    return Inputs(
        request, label, columns, encoder, target, z.rows, x, y, z, notes=notes, ignored=ignored, imputed=imputed
    )


def open_for_model(model: Any, model_path: Path, path: Path, options: ReadOptions) -> tuple[RowFile, TableColumns]:
    """Open a file as the source of a saved model was read; return it, and the columns of the model."""
    columns = model.steps[0][1] if isinstance(model, Pipeline) else None
    if not isinstance(columns, TableColumns):
        advice = "write one with spar adapt --save-model, or use pyspar.load in Python"
        raise InputError(f"{str(model_path)!r} is not a model of spar adapt; {advice}")
    marks = (*ReadOptions(*columns.options).na, *options.na)
    options = ReadOptions._make(new or old for new, old in zip(options, columns.options))._replace(na=marks)
    file = open_rows(path, options)
    check_features(columns.kinds, file.names, file.where, "model")
    return file, columns


def check_output(path: Path | None, option: str, suffixes: Iterable[str], request: Request) -> None:
    """Raise InputError for a path that cannot be written, or that is an input file."""
    if path is None:
        return
    inputs, problem = (request.source, request.target, request.labels), ""
    if path.suffix.lower() not in suffixes:
        problem = f": unsupported suffix {path.suffix or 'none'!r}; use {', '.join(suffixes)}"
    elif find_target(path) in [each.resolve() for each in inputs if each is not None]:
        problem = " is an input file, which would be overwritten; choose another name"
    if problem:
        raise InputError(f"{option} {str(path)!r}{problem}")


@contextmanager
def table_writer(path: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that writes columns by name in the format of the file. The first columns determine the types."""
    writer: Any = None
    schema: Any = None
    with ExitStack() as stack:
        file: Any = None if path is None else stack.enter_context(path.open("wb"))

        def write(columns: dict[str, Any]) -> None:
            nonlocal writer, schema
            table = pa.table(columns)
            if writer is None and path is not None:
                schema = table.schema
                writer = stack.enter_context(WRITERS[path.suffix.lower()](file, schema))
            if writer is not None:
                writer.write_table(table.cast(schema))

        yield write


def write_label_rows(path: Path, table: Any, label: str, rows: Sequence[int], reasons: Sequence[str]) -> None:
    """Write rows of the target with an empty label column, their positions, and the reasons to label them."""
    chosen = table.take(pa.array(rows))
    empty = pa.nulls(len(rows), pa.float64() if path.suffix.lower() == ".parquet" else pa.string())
    others = {name: chosen[name] for name in chosen.column_names if name not in (ROW, REASON, label)}
    with table_writer(path) as write:
        write({ROW: np.asarray(rows, dtype=np.int64), label: empty, REASON: list(reasons), **others})


def add_labels(labels: Any, path: Path, request: Request, label: str, target: Table) -> Any:
    """Return the labels of the target with those of a file of ``spar label``.

    Rows are found by their ids if these are unique, otherwise by their position. Then all other columns of a labelled
    row must agree with the target, because labels of other rows would spoil the correction.
    """
    file = open_rows(path, target.file.options._replace(sep=None), "labels")  # which spar label wrote with commas
    file = file if label in file.names else open_rows(path, target.file.options, "labels")
    table, identity, own_names = read_table(file), str(request.identity), {*target.names}
    has_ids, advice = identity in table.names and identity in own_names, "pass --id, or write the file with spar label"
    keys = pd.Index(_ids(target, identity) if has_ids else [])
    by_id = has_ids and keys.is_unique
    if has_ids and not by_id:
        equal = list_some(target.words(identity)[keys == keys[keys.duplicated()][0]], 3)
        advice += f"; the target's ids {equal} are not unique (leading zeros are ignored), so they do not find rows"
    key, keys = (identity, keys) if by_id else (ROW, pd.Index(np.arange(len(target.cells)).astype(str)))
    for name in (key, label):
        if name not in table.names:
            raise InputError(f"{table.file.where}: no column {name!r}; {advice}")
    values = table.labels(label)
    known = np.flatnonzero(~np.isnan(values))
    own = pd.Index(_ids(table, key)[known])
    places, problem = keys.get_indexer(own), ""
    if not len(known):
        key, problem = label, f"all {len(values)} labels are empty; fill them in"
    elif (places < 0).any():
        advice = "pass the target that spar label was used with"
        problem = f"no row of the target has the {'id' if by_id else 'number'} {own[places < 0][0]!r}; {advice}"
    elif own.has_duplicates:
        equal = list_some(table.words(key)[known][own == own[own.duplicated()][0]], 3)
        problem = f"{equal} are the same row (leading zeros are ignored); keep one"
    if problem:
        raise InputError(f"{describe_file('labels', path, key)}: {problem}")
    for name in () if by_id else table.names:
        if name in own_names and name not in (ROW, REASON, label):
            _check_same_cells(table, target, name, known, places)
    merged = np.full(len(target.cells), np.nan) if labels is None else np.array(labels, dtype=np.float64)
    merged[places] = values[known]
    return merged


def _ids(table: Table, name: str) -> Any:
    """Return ids as text without leading zeros, which a spreadsheet may have removed."""
    return np.array([re.sub(r"^0+(?=\d+$)", "", str(word)) for word in table.words(name)], dtype=object)


def _check_same_cells(table: Table, target: Table, name: str, known: Any, places: Any) -> None:
    """Raise InputError if a cell of a labelled row differs from the row of the target that it names."""
    theirs, ours = table.words(name)[known], target.words(name)[places]
    texts = (pd.Series(words, dtype=object).str.replace(",", ".") for words in (theirs, ours))
    a, b = (pd.to_numeric(text, errors="coerce").to_numpy() for text in texts)
    same = (theirs == ours) | (pd.isna(theirs) & pd.isna(ours)) | np.isclose(a, b, rtol=1e-6, atol=0.0)
    if not same.all():
        j = int(np.flatnonzero(~same)[0])
        raise InputError(
            f"{describe_file('labels', table.file.path, name)}: {str(theirs[j])[:40]!r} in "
            f"{describe_rows([int(known[j])], table.file.path)} differs from {str(ours[j])[:40]!r} in row {places[j]} "
            "of the target; pass the target that spar label was used with, with its rows in the same order, or add --id"
        )
