"""Query-document pairs from tables of the same columns, batch by batch: ids as text, features as float32."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.ragged import offsets_of
from saferank.engine.types.ranking_data import RankingData
from saferank.features.categories import Categories, one_hot, one_hot_names
from saferank.features.columns import ROW_NUMBERS, ids, is_numeric, numbers
from saferank.features.table_source import TableSource
from saferank.files.arrow_tables import numbered
from saferank.files.large_table import taken

IDS = ("query_id", "document_id")


@dataclass
class PairTables:
    """Tables of ids as text and of numbers as float32 (NaN for null) from files that have the same columns."""

    sources: Sequence[TableSource]
    query: str
    document: str
    names: tuple[str, ...] | None = None
    """Columns of numbers to read, by default all those of the first source but `categories` and those to `ignore`."""
    numeric: Collection[str] = ()
    """Columns that must hold numbers if they are there: read as such from CSV whatever stands in the first rows."""
    ignore: Collection[str] = ()
    categories: Categories = field(default_factory=dict)
    """Columns of text whose values become features, behind the numbers."""
    missing: bool = True
    """Whether a number may be missing."""
    candidates: bool = False
    """Whether numbers may be infinite, for a policy to judge, and a further column in a later file is an error."""
    rows: int = 1 << 16
    read: int = 0
    starts: list[int] = field(default_factory=list)
    id_types: tuple[str, str] | None = None
    """Types of the ids in the first source."""

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables of at most `rows` rows from Parquet, and of a megabyte or so from CSV."""
        for source in self.sources:
            self.starts.append(self.read)
            with readable(source, lambda: (*self.numeric, *(self.names or ()))):
                for batch in source.batches(self.rows, self._chooser(source), self._csv_types(source)):
                    if batch.num_rows:
                        yield self._converted(pa.Table.from_batches([batch]), source.name)
                        self.read += batch.num_rows

    def error(self, message: str, row: int) -> DataError:
        """Return the error for a row, counted over all files, that names its file and its row there."""
        place = bisect_right(self.starts, row) - 1
        return DataError(message, file=self.sources[place].name, row=row - self.starts[place])

    def grouped(self, table: pa.Table, features: NDArray[np.float32], source: str, first_row: int = 0) -> RankingData:
        """Return these rows with those of a query together, in the order in which queries and rows first appear."""
        (query, query_ids), (document, document_ids) = numbered(table.column(0)), numbered(table.column(1))
        pairs = query * len(document_ids) + document
        by_pair, order = np.argsort(pairs, kind="stable"), np.argsort(query, kind="stable")
        again = by_pair[1:][pairs[by_pair[1:]] == pairs[by_pair[:-1]]]
        if len(again):
            row = int(again.min())
            pair = f"document {document_ids[document[row]]} of query {query_ids[query[row]]}"
            raise self.error(f"{pair} already has a row; keep one row per document.", first_row + row)
        grouped_already = bool((query[1:] >= query[:-1]).all())
        return RankingData(
            features=features if grouped_already else taken(features, rows=order),
            offsets=offsets_of(np.bincount(query)),
            query_ids=query_ids,
            document_ids=document_ids[document[order]],
            feature_names=self.feature_names,
            categories=self.categories,
            id_types=self.id_types,
            source=source,
            check_finite=False,  # as far as they must be, they were checked with the file and the row at hand
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of all features, once the first source was read."""
        return (*(self.names or ()), *one_hot_names(self.categories))

    def _csv_types(self, source: TableSource) -> dict[str, pa.DataType]:
        if not source.is_csv:
            return {}
        truths = {one.name for one in source.schema() if pa.types.is_boolean(one.type)}
        types = dict.fromkeys({*self.numeric} - truths, pa.float64())
        return types | dict.fromkeys((self.query, self.document, *self.categories, *self.ignore), pa.string())

    def _chooser(self, source: TableSource) -> Callable[[pa.Schema], list[str]]:
        return lambda schema: self._chosen(schema, source.name)

    def _chosen(self, schema: pa.Schema, file: object) -> list[str]:
        """Return the columns to read of a file with this schema."""
        others = {self.query, self.document, *self.categories, *self.ignore}
        found = tuple(one.name for one in schema if one.name not in others and _is_feature(one))
        for name in (self.query, self.document, *(self.names or ()), *self.categories):
            if name not in schema.names:
                there = ", ".join(schema.names)
                remedy = f" If it has another name there, use --column {name}=THEIRS." if name in IDS else ""
                raise DataError(f"there is no such column; there are {there}.{remedy}", file=file, column=name)
        for name in (*(self.names or ()), *({*self.numeric} & {*schema.names})):
            if not is_numeric(kind := schema.field(name).type):
                message = f"contains {kind}, but must contain numbers; convert it, or leave it out."
                raise DataError(message, file=file, column=name)
        if self.id_types is None:
            self.id_types = str(schema.field(self.query).type), str(schema.field(self.document).type)
        if self.names is None:
            self.names = found
        elif self.candidates and (more := [name for name in found if name not in self.names]):
            message = f"{self.sources[0].name} does not have this numeric column; give both files the same columns."
            raise DataError(message, file=file, column=more[0])
        return list(dict.fromkeys((self.query, self.document, *self.names, *self.categories)))

    def _converted(self, table: pa.Table, file: object) -> pa.Table:
        first_row = self.read - self.starts[-1]
        columns = [ids(table[name], name, file=file, first_row=first_row) for name in (self.query, self.document)]
        for name in self.names or ():
            allowed = {"missing": self.missing, "infinite": self.candidates}
            values = numbers(table[name], name, file=file, first_row=first_row, **allowed)
            columns.append(pa.chunked_array([values]))
        for name, known in self.categories.items():
            columns += map(pa.array, np.ascontiguousarray(one_hot(table[name], known).T))
        return pa.table(columns, names=[self.query, self.document, *self.feature_names])


def matrix(table: pa.Table) -> NDArray[np.float32]:
    """Return the numbers of a table that begins with two columns of ids, one row per pair."""
    out = np.empty((len(table), table.num_columns - 2), np.float32)
    for place in range(out.shape[1]):
        out[:, place] = table.column(place + 2).to_numpy()
    return out


@contextmanager
def readable(source: TableSource, numbers: Callable[[], Collection[str]] = tuple) -> Iterator[None]:
    """Turn what Arrow raises while it reads a source into an error that says where; `numbers` must not be text."""
    try:
        yield
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        if "conversion error" in str(error):
            _refuse_text(source.name, {*numbers()})
        reason = str(error).rstrip(".")
        message = f"cannot be read ({reason}); give Parquet, or CSV if its name ends in .csv."
        raise DataError(message, file=source.name) from error


def _refuse_text(file: Path | str, names: set[str]) -> None:
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
                        message = f"got '{text}', but must be a number; correct it, or leave the row out."
                        raise DataError(message, file=file, row=row, column=name) from None
            first_row += batch.num_rows


def _is_feature(column: pa.Field) -> bool:
    return is_numeric(column.type) and ROW_NUMBERS.fullmatch(column.name) is None
