"""Rows of query-document pairs from Parquet and CSV files, batch by batch, for features and candidates alike."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from saferank.engine.errors import DataError
from saferank.features.columns import check_columns, ids, is_numeric, numbers

CSV = (".csv", ".csv.gz")


class PairTables:
    """Tables of ids as text and of numbers as float32 (NaN for null) from files that have the same columns.

    `columns` are the numbers to read, by default every column of numbers of the first file but those to `ignore`.
    Those in `numeric` must hold numbers if they are there: in a CSV file they are read as such whatever stands in the
    first rows. `same_columns`: a further column of numbers in a later file is an error. For `missing` and `infinite`
    see `numbers`.
    """

    def __init__(
        self,
        files: Sequence[Path],
        *,
        query: str,
        document: str,
        columns: Sequence[str] | None = None,
        numeric: Collection[str] = (),
        ignore: Collection[str] = (),
        same_columns: bool = False,
        missing: bool = True,
        infinite: bool = True,
        rows: int = 1 << 16,
    ) -> None:
        self.files, self.query, self.document, self.rows = files, query, document, rows
        self.names = None if columns is None else tuple(columns)
        self.numeric, self.ignore, self.same_columns = {*numeric, *(columns or ())}, {*ignore}, same_columns
        self.allowed = {"missing": missing, "infinite": infinite}
        self.starts: list[int] = []
        self.read = 0

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

    def _parquet(self, file: Path) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(file, pre_buffer=False) as reader:  # what it buffers ahead, Arrow keeps to the end
            yield from reader.iter_batches(batch_size=self.rows, columns=self._chosen(reader.schema_arrow, file))

    def _csv(self, file: Path) -> Iterator[pa.RecordBatch]:
        types = dict.fromkeys(self.numeric, pa.float64())
        types |= dict.fromkeys((self.query, self.document, *self.ignore), pa.string())
        options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        with pyarrow.csv.open_csv(file, convert_options=options) as reader:
            chosen = self._chosen(reader.schema, file)
            yield from (batch.select(chosen) for batch in reader)

    def _chosen(self, schema: pa.Schema, file: Path) -> list[str]:
        """Return the columns to read of a file with this schema."""
        others = {self.query, self.document, *self.ignore}
        found = tuple(field.name for field in schema if field.name not in others and is_numeric(field.type))
        present = {*self.numeric} & {*schema.names}
        check_columns(schema, (self.query, self.document, *(self.names or ())), (*(self.names or ()), *present), file)
        if self.names is None:
            self.names = found
        elif self.same_columns and (more := [name for name in found if name not in self.names]):
            message = f"{self.files[0]} does not have this column of numbers; give both the same columns."
            raise DataError(message, file=file, column=more[0])
        return list(dict.fromkeys((self.query, self.document, *self.names)))

    def _converted(self, table: pa.Table, file: Path) -> pa.Table:
        first_row = self.read - self.starts[-1]
        columns = [ids(table[name], name, file=file, first_row=first_row) for name in (self.query, self.document)]
        for name in self.names or ():
            values = numbers(table[name], name, file=file, first_row=first_row, **self.allowed)
            columns.append(pa.chunked_array([values]))
        return pa.table(columns, names=[self.query, self.document, *(self.names or ())])


def _refuse_text(file: Path, names: set[str]) -> None:
    """Raise for the first row of a CSV file with a text in a column of numbers: Arrow does not say which it is."""
    options = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
    first_row = 0
    with pyarrow.csv.open_csv(file, convert_options=options) as reader:
        for batch in reader:
            for name in names & set(batch.schema.names):
                for row, text in enumerate(batch[name].to_pylist(), first_row):
                    if text is not None and not _reads_as_number(text):
                        message = f"got '{text}', but must hold numbers; correct it, or leave the row out."
                        raise DataError(message, file=file, row=row, column=name)
            first_row += batch.num_rows


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
