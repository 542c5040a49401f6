"""A table of query-document pairs where it lies: a Parquet or CSV file, or in memory."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from saferank.files.arrow_tables import Tabular, as_arrow, is_tabular
from saferank.files.table_files import of_one_kind, table_files

CSV = (".csv", ".csv.gz")
IN_MEMORY = "the table"


@dataclass(frozen=True, eq=False)
class TableSource:
    """One file, or one table in memory, in which rows count from 0."""

    name: Path | str
    """For messages."""
    table: pa.Table | None = None
    """None for a file."""

    @property
    def is_csv(self) -> bool:
        """Whether it is a CSV file, whose types are those that its first rows have."""
        return self.table is None and str(self.name).endswith(CSV)

    def schema(self) -> pa.Schema:
        """Return its columns."""
        if self.table is not None:
            return self.table.schema
        if not self.is_csv:
            return pq.read_schema(self.name)
        with pyarrow.csv.open_csv(self.name) as reader:
            return reader.schema

    def batches(
        self, rows: int, chosen: Callable[[pa.Schema], list[str]], types: Mapping[str, pa.DataType]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the columns that `chosen` names: at most so many `rows` at a time, or a megabyte or so of CSV.

        `types` are those of columns of CSV, whatever stands in the first rows.
        """
        if self.table is not None:
            yield from self.table.select(chosen(self.table.schema)).to_batches(max_chunksize=rows)
        elif self.is_csv:
            options = pyarrow.csv.ConvertOptions(column_types=dict(types), strings_can_be_null=False)
            with pyarrow.csv.open_csv(self.name, convert_options=options) as reader:
                names = chosen(reader.schema)
                yield from (batch.select(names) for batch in reader)
        else:
            with pq.ParquetFile(self.name, pre_buffer=False) as reader:  # what it buffers ahead, Arrow keeps to the end
                yield from reader.iter_batches(batch_size=rows, columns=chosen(reader.schema_arrow))


def table_sources(features: str | Path | Tabular, *, mixed: bool = False) -> list[TableSource]:
    """Return the tables that a file, a folder or a pattern stands for, or the one in memory.

    Files of several kinds are an error, unless `mixed` says that they may be.
    """
    if is_tabular(features):
        return [TableSource(IN_MEMORY, as_arrow(features, IN_MEMORY))]
    files = table_files(features, (".parquet", *CSV))
    return [TableSource(file) for file in (files if mixed else of_one_kind(files, features))]


def source_name(features: str | Path | Tabular) -> str | Path:
    """Return how messages and manifests call these features."""
    return IN_MEMORY if is_tabular(features) else features
