"""Reader of features from Parquet: one row a query-document pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData

Missing = Literal["error", "nan"]
FILL = "fill it in, or name the number that stands for it (fit: --missing 0)"


def read_features(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    query: str = "query_id",
    document: str = "document_id",
    label: str | None = None,
    missing: Missing = "error",
) -> RankingData:
    """Read a Parquet file, all those below a folder, or those that a pattern such as `day-*.parquet` matches.

    `columns` are the features, by default every column of numbers (or of true and false, as 1 and 0) but the
    query, document and label ones. Rows of one query need not stand together: they are brought together, in
    the order in which queries and rows first appear. Rows in error messages count from 0 in their file.

    `missing`: null and NaN in a feature are an `error`, or `nan`, for whoever reads the data to fill in. In an id or a
    label they are an error always.
    """
    if missing not in get_args(Missing):
        raise UsageError(f"missing='{missing}' is unknown; choose {' or '.join(get_args(Missing))}.")
    files = _files(path)
    names = tuple(columns) if columns is not None else _numeric_columns(files[0], {query, document, label})
    if not names:
        there = ", ".join(_schema(files[0]).names)
        raise DataError(f"has no column of numbers to take as a feature; there are {there}.", file=files[0])
    tables = [_read(file, names, query, document, label, missing) for file in files]
    rows = sum(len(table.features) for table in tables)
    if rows == 0:
        raise DataError("has no row; there is nothing to read.", file=path)

    query_code, query_ids = _codes(table.queries for table in tables)
    document_code, document_ids = _codes(table.documents for table in tables)
    _check_pairs(files, tables, query_code, document_code, query_ids, document_ids)
    order = np.argsort(query_code, kind="stable")
    return RankingData(
        features=np.concatenate([table.features for table in tables])[order],
        offsets=np.concatenate([[0], np.cumsum(np.bincount(query_code))]),
        labels=None if label is None else np.concatenate([table.labels for table in tables])[order],
        query_ids=query_ids,
        document_ids=document_ids[document_code[order]],
        feature_names=names,
        source=str(path),
        check_finite=False,  # done file by file, where the row is known
    )


@dataclass(frozen=True)
class _Table:
    """The rows of one file."""

    queries: pa.ChunkedArray
    documents: pa.ChunkedArray
    features: NDArray[np.float32]
    labels: NDArray[np.float32]


def _files(path: str | Path) -> list[Path]:
    if Path(path).is_dir():
        files = sorted(Path(path).rglob("*.parquet"))
        if not files:
            raise DataError("has no file *.parquet in it.", file=path)
        return files
    if Path(path).is_file():
        return [Path(path)]
    if has_magic(str(path)):
        files = [Path(file) for file in sorted(glob(str(path), recursive=True)) if Path(file).is_file()]
        if not files:
            raise DataError("no file matches this pattern; check the path.", file=path)
        return files
    raise DataError("there is no such file or folder; check the path.", file=path)


def _is_numeric(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def _schema(file: Path) -> pa.Schema:
    try:
        return pq.read_schema(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"is not a Parquet file ({error}); features are read from Parquet.", file=file) from error


def _numeric_columns(file: Path, others: set[str | None]) -> tuple[str, ...]:
    return tuple(field.name for field in _schema(file) if field.name not in others and _is_numeric(field.type))


def _read(file: Path, names: tuple[str, ...], query: str, document: str, label: str | None, missing: Missing) -> _Table:
    schema = _schema(file)
    numbers = names if label is None else (*names, label)
    for name in (query, document, *numbers):
        if name not in schema.names:
            raise DataError(f"there is no such column; the file has {', '.join(schema.names)}.", file=file, column=name)
    for name in numbers:
        if not _is_numeric(kind := schema.field(name).type):
            raise DataError(f"holds {kind}, but must hold numbers; convert or leave it out.", file=file, column=name)
    wanted = list(dict.fromkeys((query, document, *numbers)))
    table = pq.read_table(file, columns=wanted, partitioning=None)
    for name in wanted:
        feature = name in names
        if table[name].null_count and (missing == "error" or not feature):
            row = int(pc.index(pc.is_null(table[name]), True).as_py())
            remedy = FILL if feature else "fill it in or leave out the row"
            raise DataError(f"got null; {remedy}.", file=file, row=row, column=name)
    features = np.empty((len(table), len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        features[:, place] = _numbers(table[name], file, name, missing)
    labels = np.empty(0, dtype=np.float32) if label is None else _numbers(table[label], file, label, "error")
    return _Table(table[query].cast(pa.string()), table[document].cast(pa.string()), features, labels)


def _numbers(column: pa.ChunkedArray, file: Path, name: str, missing: Missing) -> NDArray[np.float32]:
    kind = pa.uint8() if pa.types.is_boolean(column.type) else pa.float64()
    exact = column.cast(kind, safe=False).cast(pa.float64()).to_numpy()  # null becomes NaN
    with np.errstate(over="ignore"):
        values: NDArray[np.float32] = exact.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(values) if missing == "error" else np.isinf(values))
    if len(bad):
        row = int(bad[0])
        if np.isnan(exact[row]):
            why = f"no number; {FILL}"
        else:
            why = "too large for float32; scale it down first" if np.isfinite(exact[row]) else "not finite; replace it"
        raise DataError(f"got {exact[row]}, which is {why}.", file=file, row=row, column=name)
    return values


def _codes(columns: Iterable[pa.ChunkedArray]) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Number the distinct values in order of first appearance; return each row's number, and the values."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    encoded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    codes: NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, np.array(encoded.dictionary.to_pylist(), dtype=np.str_)


def _check_pairs(
    files: list[Path],
    tables: list[_Table],
    query_code: NDArray[np.int64],
    document_code: NDArray[np.int64],
    query_ids: NDArray[np.str_],
    document_ids: NDArray[np.str_],
) -> None:
    pairs = query_code * len(document_ids) + document_code
    order = np.argsort(pairs, kind="stable")
    again = order[1:][pairs[order[1:]] == pairs[order[:-1]]]
    if len(again):
        first = int(again.min())
        starts = np.cumsum([0, *(len(table.features) for table in tables)])
        file = int(np.searchsorted(starts, first, side="right")) - 1
        pair = f"query {query_ids[query_code[first]]}, document {document_ids[document_code[first]]}"
        raise DataError(
            f"{pair} comes twice; keep one row of each pair.", file=files[file], row=int(first - starts[file])
        )
