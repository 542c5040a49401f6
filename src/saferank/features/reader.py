"""Query-document pairs from Parquet and CSV files, batch by batch: features as one table, candidates as a stream."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import offsets_of
from saferank.engine.types.ranking_data import RankingData
from saferank.features.columns import ids, is_numeric, numbers
from saferank.files.large_table import TableWriter, taken
from saferank.files.table_files import table_files

Missing = Literal["error", "nan"]
CSV = (".csv", ".csv.gz")
ROWS = 1 << 16
"""Rows of a block of candidates, except for a query that continues beyond it."""


def read_features(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    query: str = "query_id",
    document: str = "document_id",
    missing: Missing = "error",
) -> RankingData:
    """Read a Parquet or CSV file, all Parquet files below a folder, or the files that match a pattern.

    `columns` are the features, by default every column of numbers (or of true and false, as 1 and 0) of the first
    file. Rows of one query need not be adjacent: they are grouped, in the order in which queries and rows first
    appear. Rows in error messages count from 0 in their file. Null and NaN in a feature are an `error`, or, with
    `missing="nan"`, NaN for whoever uses the data to fill in.
    """
    if missing not in get_args(Missing):
        raise UsageError(f"missing='{missing}' is unknown; choose {' or '.join(get_args(Missing))}.")
    names, files = None if columns is None else tuple(columns), table_files(path, (".parquet",))
    reader = _PairTables(files, query, document, names, numeric=names or (), missing=missing == "nan")
    pairs, features = [], None
    for table in reader:
        pairs.append(table.select([0, 1]))
        features = features or TableWriter(table.num_columns - 2)
        features.append(_matrix(table))
    if not reader.names:
        raise DataError("has no column of numbers to use as a feature.", file=reader.files[0])
    if features is None:
        raise DataError("has no row; there is nothing to read.", file=path)
    return reader.grouped(pa.concat_tables(pairs), features.finish(), str(path))


def candidate_files(path: str | Path) -> list[Path]:
    """Return the files that `read_candidates` reads."""
    return table_files(path, (".parquet", *CSV))


def read_candidates(
    path: str | Path,
    *,
    numbers: Collection[str] = (),
    ignore: Collection[str] = (),
    query: str = "query_id",
    document: str = "document_id",
    rows: int = ROWS,
) -> Iterator[RankingData]:
    """Read a Parquet or CSV file, all those below a folder, or those that match a pattern, in blocks of queries.

    Every column of numbers (or of true and false, as 1 and 0) except those to `ignore` is a feature, and those in
    `numbers` must be. A missing value is NaN. A query whose rows are not adjacent is an error, and so is a document
    that appears twice in its query. Besides a block, only the ids of the queries that have passed are kept.
    """
    files = candidate_files(path)
    reader = _PairTables(files, query, document, numeric=numbers, ignore=ignore, candidates=True, rows=rows)
    passed, seen = 0, set[str]()

    def block(table: pa.Table, starts: NDArray[np.int64]) -> RankingData:
        """Return these rows, which are whole queries that begin at `starts`."""
        nonlocal passed
        for start, query_id in zip(starts.tolist(), table[query].take(pa.array(starts)).to_pylist(), strict=True):
            if query_id in seen:
                message = f"query {query_id} appears again after other queries; keep the rows of a query together."
                raise reader.error(message, passed + start)
            seen.add(query_id)
        data = reader.grouped(table, _matrix(table), str(path), passed)
        passed += len(table)
        return data

    pending: pa.Table | None = None
    for table in reader:
        pending = table if pending is None else pa.concat_tables([pending, table])
        ids = pending[query].combine_chunks()
        changes = pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)).to_numpy(zero_copy_only=False)
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
        if len(starts) > 1:  # the last query may continue in the next table
            yield block(pending.slice(0, starts[-1]), starts[:-1])
            pending = pending.slice(starts[-1])
    if pending is None:
        raise DataError("has no row; there is nothing to rank.", file=path)
    yield block(pending, np.zeros(1, np.int64))


@dataclass
class _PairTables:
    """Tables of ids as text and of numbers as float32 (NaN for null) from files that have the same columns."""

    files: Sequence[Path]
    query: str
    document: str
    names: tuple[str, ...] | None = None
    """Columns of numbers to read, by default all those of the first file but those to `ignore`."""
    numeric: Collection[str] = ()
    """Columns that must hold numbers if they are there: read as such from CSV whatever stands in the first rows."""
    ignore: Collection[str] = ()
    missing: bool = True
    """Whether a number may be missing."""
    candidates: bool = False
    """Whether numbers may be infinite, for a policy to judge, and a further column in a later file is an error."""
    rows: int = 1 << 16
    read: int = 0
    starts: list[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables of at most `rows` rows from Parquet, and of a megabyte or so from CSV."""
        for file in self.files:
            self.starts.append(self.read)
            try:
                for batch in self._csv(file) if file.name.endswith(CSV) else self._parquet(file):
                    if batch.num_rows:
                        yield self._converted(pa.Table.from_batches([batch]), file)
                        self.read += batch.num_rows
            except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
                if "conversion error" in str(error):
                    _refuse_text(file, {*self.numeric, *(self.names or ())})
                reason = str(error).rstrip(".")
                message = f"cannot be read ({reason}); give Parquet, or CSV if its name ends in .csv."
                raise DataError(message, file=file) from error

    def error(self, message: str, row: int) -> DataError:
        """Return the error for a row, counted over all files, that names its file and its row there."""
        place = bisect_right(self.starts, row) - 1
        return DataError(message, file=self.files[place], row=row - self.starts[place])

    def grouped(self, table: pa.Table, features: NDArray[np.float32], source: str, first_row: int = 0) -> RankingData:
        """Return these rows with those of a query together, in the order in which queries and rows first appear."""
        (query, query_ids), (document, document_ids) = _numbered(table.column(0)), _numbered(table.column(1))
        pairs = query * len(document_ids) + document
        by_pair, order = np.argsort(pairs, kind="stable"), np.argsort(query, kind="stable")
        again = by_pair[1:][pairs[by_pair[1:]] == pairs[by_pair[:-1]]]
        if len(again):
            row = int(again.min())
            pair = f"document {document_ids[document[row]]} of query {query_ids[query[row]]}"
            raise self.error(f"{pair} is in an earlier row already; keep one row per document.", first_row + row)
        grouped_already = bool((query[1:] >= query[:-1]).all())
        return RankingData(
            features=features if grouped_already else taken(features, rows=order),
            offsets=offsets_of(np.bincount(query)),
            query_ids=query_ids,
            document_ids=document_ids[document[order]],
            feature_names=self.names,
            source=source,
            check_finite=False,  # as far as they must be, they were checked with the file and the row at hand
        )

    def _parquet(self, file: Path) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(file, pre_buffer=False) as reader:  # what it buffers ahead, Arrow keeps to the end
            yield from reader.iter_batches(batch_size=self.rows, columns=self._chosen(reader.schema_arrow, file))

    def _csv(self, file: Path) -> Iterator[pa.RecordBatch]:
        truths = {one.name for one in _csv_schema(file) if pa.types.is_boolean(one.type)}
        types = dict.fromkeys({*self.numeric} - truths, pa.float64())
        types |= dict.fromkeys((self.query, self.document, *self.ignore), pa.string())
        options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        with pyarrow.csv.open_csv(file, convert_options=options) as reader:
            chosen = self._chosen(reader.schema, file)
            yield from (batch.select(chosen) for batch in reader)

    def _chosen(self, schema: pa.Schema, file: Path) -> list[str]:
        """Return the columns to read of a file with this schema."""
        others = {self.query, self.document, *self.ignore}
        found = tuple(one.name for one in schema if one.name not in others and is_numeric(one.type))
        for name in (self.query, self.document, *(self.names or ())):
            if name not in schema.names:
                there = ", ".join(schema.names)
                raise DataError(f"there is no such column; there are {there}.", file=file, column=name)
        for name in (*(self.names or ()), *({*self.numeric} & {*schema.names})):
            if not is_numeric(kind := schema.field(name).type):
                message = f"holds {kind}, but must hold numbers; convert or leave it out."
                raise DataError(message, file=file, column=name)
        if self.names is None:
            self.names = found
        elif self.candidates and (more := [name for name in found if name not in self.names]):
            message = f"{self.files[0]} does not have this column of numbers; give both the same columns."
            raise DataError(message, file=file, column=more[0])
        return list(dict.fromkeys((self.query, self.document, *self.names)))

    def _converted(self, table: pa.Table, file: Path) -> pa.Table:
        first_row = self.read - self.starts[-1]
        columns = [ids(table[name], name, file=file, first_row=first_row) for name in (self.query, self.document)]
        for name in self.names or ():
            allowed = {"missing": self.missing, "infinite": self.candidates}
            values = numbers(table[name], name, file=file, first_row=first_row, **allowed)
            columns.append(pa.chunked_array([values]))
        return pa.table(columns, names=[self.query, self.document, *(self.names or ())])


def text_columns(path: str | Path) -> list[str]:
    """Return the columns, besides the ids, that are no features because they hold no numbers; [] of other formats."""
    try:
        file = table_files(path, (".parquet",))[0]
        schema = _csv_schema(file) if file.name.endswith(CSV) else pq.read_schema(file)
    except (DataError, pa.ArrowInvalid):
        return []
    return [one.name for one in schema if one.name not in ("query_id", "document_id") and not is_numeric(one.type)]


def _csv_schema(file: Path) -> pa.Schema:
    """Return the columns of a CSV file with the types that its first rows have."""
    with pyarrow.csv.open_csv(file) as reader:
        return reader.schema


def _matrix(table: pa.Table) -> NDArray[np.float32]:
    """Return the numbers of a table that begins with two columns of ids, one row per pair."""
    out = np.empty((len(table), table.num_columns - 2), np.float32)
    for place in range(out.shape[1]):
        out[:, place] = table.column(place + 2).to_numpy()
    return out


def _numbered(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Number the distinct values in order of first appearance; return each row's number, and the values."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, np.array(encoded.dictionary.to_pylist(), np.str_)


def _refuse_text(file: Path, names: set[str]) -> None:
    """Raise for the first row of a CSV file with a text in a column of numbers: Arrow does not say which it is."""
    options = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
    first_row = 0
    with pyarrow.csv.open_csv(file, convert_options=options) as reader:
        for batch in reader:
            for name in names & set(batch.schema.names):
                for row, text in enumerate(batch[name].to_pylist(), first_row):
                    try:
                        float(text or 0)
                    except ValueError:
                        message = f"got '{text}', but must hold numbers; correct it, or leave the row out."
                        raise DataError(message, file=file, row=row, column=name) from None
            first_row += batch.num_rows
