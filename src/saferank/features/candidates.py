"""Reader of documents to rank, as a stream: rows of one query stand together, and no more than a block is in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from glob import glob, has_magic
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData

ROWS = 1 << 16
"""Rows of a block, but for a query that goes on beyond it."""
KINDS = (".parquet", ".csv", ".csv.gz")


def read_candidates(
    path: str | Path,
    *,
    numbers: Collection[str] = (),
    ignore: Collection[str] = (),
    query: str = "query_id",
    document: str = "document_id",
    rows: int = ROWS,
) -> Iterator[RankingData]:
    """Read a Parquet or CSV file, all those below a folder, or those that a pattern matches, in blocks of queries.

    Every column of numbers (or of true and false, as 1 and 0) but those to `ignore` is a feature, and those in
    `numbers` must be: in a CSV file they are read as such whatever stands in the first rows. A missing value is NaN.
    Rows of one query stand together: a query that comes back later is an error, and so is a document that comes twice
    in its query. Beside a block, only the ids of the queries that have passed are kept.
    """
    stream = _Stream(set(numbers), set(ignore), query, document, rows)
    pending: pa.Table | None = None
    for file in candidate_files(path):
        for table in stream.tables(file):
            pending = table if pending is None else pa.concat_tables([pending, table])
            starts = _run_starts(pending[query])
            if len(starts) > 1:
                yield stream.block(pending, starts[:-1], int(starts[-1]), path)
                pending = pending.slice(int(starts[-1]))
    if pending is None:
        raise DataError("has no row; there is nothing to rank.", file=path)
    yield stream.block(pending, np.zeros(1, np.int64), len(pending), path)


class _Stream:
    """What is known of the rows that have passed."""

    def __init__(self, numbers: set[str], ignore: set[str], query: str, document: str, rows: int) -> None:
        self.numbers, self.ignore, self.query, self.document, self.rows = numbers, ignore, query, document, rows
        self.names: tuple[str, ...] | None = None
        self.files: list[Path] = []
        self.file_starts: list[int] = []
        self.read = self.passed = 0  # rows that were read from files, and handed on in blocks
        self.seen: set[str] = set()

    def tables(self, file: Path) -> Iterator[pa.Table]:
        """Yield the file's rows: ids as text, then the features as float64, NaN where there is none."""
        self.files.append(file)
        self.file_starts.append(self.read)
        try:
            source = self._csv(file) if file.name.endswith((".csv", ".csv.gz")) else self._parquet(file)
            for batch in source:
                if batch.num_rows:
                    table = self._cast(pa.Table.from_batches([batch]), file)
                    self.read += len(table)
                    yield table
        except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
            if "conversion error" in str(error):
                _refuse_text(file, {*self.numbers, *(self.names or ())})
            told = f"cannot be read ({str(error).rstrip('.')}); correct it: Parquet, or CSV if its name ends in .csv."
            raise DataError(told, file=file) from error

    def _parquet(self, file: Path) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(file, pre_buffer=False) as reader:  # what it buffers ahead, Arrow keeps to the end
            wanted = [self.query, self.document, *self._features(reader.schema_arrow, file)]
            yield from reader.iter_batches(batch_size=self.rows, columns=wanted)

    def _csv(self, file: Path) -> Iterator[pa.RecordBatch]:
        types = dict.fromkeys(self.numbers, pa.float64())
        types |= dict.fromkeys((self.query, self.document, *self.ignore), pa.string())
        options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        with pyarrow.csv.open_csv(file, convert_options=options) as reader:
            names = [self.query, self.document, *self._features(reader.schema, file)]
            yield from (batch.select(names) for batch in reader)

    def _features(self, schema: pa.Schema, file: Path) -> tuple[str, ...]:
        for name in (self.query, self.document):
            if name not in schema.names:
                message = f"there is no such column; the file has {', '.join(schema.names)}."
                raise DataError(message, file=file, column=name)
        others = self.ignore | {self.query, self.document}
        for name in self.numbers & set(schema.names):
            if not _is_number(kind := schema.field(name).type):
                raise DataError(f"holds {kind}, but must hold numbers; convert it.", file=file, column=name)
        found = tuple(field.name for field in schema if field.name not in others and _is_number(field.type))
        if self.names is None:
            self.names = found
        if set(found) != set(self.names):
            name = sorted(set(found) ^ set(self.names))[0]
            message = f"only one of this file and {self.files[0]} has this column of numbers; give both the same."
            raise DataError(message, file=file, column=name)
        return self.names

    def _cast(self, table: pa.Table, file: Path) -> pa.Table:
        columns = {}
        for name in (self.query, self.document):
            if table[name].null_count:
                row = self.read - self.file_starts[-1] + int(pc.index(pc.is_null(table[name]), True).as_py())
                raise DataError("got null, but every row has an id; fill it in.", file=file, row=row, column=name)
            columns[name] = table[name].cast(pa.string())
        for name in self.names or ():
            flat = table[name].cast(pa.uint8()) if pa.types.is_boolean(table[name].type) else table[name]
            columns[name] = pc.fill_null(flat.cast(pa.float64(), safe=False), float("nan"))
        return pa.table(columns)

    def block(self, table: pa.Table, starts: NDArray[np.int64], end: int, source: str | Path) -> RankingData:
        """Return the rows up to `end`, which are whole queries."""
        table = table.slice(0, end)
        query_ids = table[self.query].take(pa.array(starts)).to_pylist()
        for place, query_id in zip(starts, query_ids, strict=True):
            if query_id in self.seen:
                message = f"query {query_id} comes back after other queries; let the rows of a query stand together."
                raise self._error(message, int(place))
            self.seen.add(query_id)
        self._check_documents(table, np.repeat(np.arange(len(starts)), np.diff([*starts, end])))
        names = self.names or ()
        features = np.empty((end, len(names)), np.float32)
        with np.errstate(over="ignore"):  # becomes infinite, which is told where the features are prepared
            for place, name in enumerate(names):
                features[:, place] = table[name].to_numpy()
        self.passed += end
        return RankingData(
            features=features,
            offsets=np.concatenate([starts, [end]]),
            query_ids=np.array(query_ids, np.str_),
            document_ids=np.array(table[self.document].to_pylist(), np.str_),
            feature_names=names,
            source=str(source),
            check_finite=False,
        )

    def _check_documents(self, table: pa.Table, query: NDArray[np.int64]) -> None:
        encoded = table[self.document].combine_chunks().dictionary_encode()
        pairs = query * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(pairs, kind="stable")
        again = order[1:][pairs[order[1:]] == pairs[order[:-1]]]
        if len(again):
            row = int(again.min())
            pair = f"query {table[self.query][row]}, document {table[self.document][row]}"
            raise self._error(f"{pair} comes twice; keep one row of each pair.", row)

    def _error(self, message: str, row: int) -> DataError:
        """Return the error of a row of the block, told by its file and its row there."""
        place = bisect_right(self.file_starts, self.passed + row) - 1
        return DataError(message, file=self.files[place], row=self.passed + row - self.file_starts[place])


def candidate_files(path: str | Path) -> list[Path]:
    """Return the files that `read_candidates` reads."""
    place = Path(path)
    if place.is_file():
        return [place]
    if place.is_dir():
        files = sorted(file for file in place.rglob("*") if file.is_file() and file.name.endswith(KINDS))
        if not files:
            raise DataError(f"has no file in it that ends in {', '.join(KINDS)}.", file=path)
        return files
    files = [Path(file) for file in sorted(glob(str(path), recursive=True)) if Path(file).is_file()]
    if not files:
        what = "no file matches this pattern" if has_magic(str(path)) else "there is no such file or folder"
        raise DataError(f"{what}; check the path.", file=path)
    return files


def _refuse_text(file: Path, names: set[str]) -> None:
    """Raise for the first row of a CSV file with a text in a column of numbers: Arrow does not tell which."""
    options = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
    passed = 0
    with pyarrow.csv.open_csv(file, convert_options=options) as reader:
        for batch in reader:
            for name in names & set(batch.schema.names):
                for row, text in enumerate(batch[name].to_pylist(), passed):
                    if text is not None and not _reads_as_number(text):
                        message = f"got '{text}', but must hold numbers; correct it, or leave the row out."
                        raise DataError(message, file=file, row=row, column=name)
            passed += batch.num_rows


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _run_starts(values: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return where a run of equal values begins."""
    flat = values.combine_chunks()
    changes = pc.not_equal(flat.slice(1), flat.slice(0, len(flat) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))
