"""Tables in memory, of whatever library, as Arrow: pandas, Polars, pyarrow and Ibis, none of which is asked for."""

import hashlib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.files.table_url import without_secrets

Tabular: TypeAlias = Any
"""What has named columns: anything with the Arrow PyCapsule interface (`__arrow_c_stream__`: a pandas or Polars
DataFrame, a pyarrow Table) or a method `to_pyarrow` (an Ibis table), a pyarrow RecordBatch, or a mapping of columns."""


def is_tabular(value: object) -> bool:
    """Whether this is a table in memory, or in an engine, rather than a path or an array."""
    if isinstance(value, (pa.ChunkedArray, pa.Array, str)):
        return False
    return isinstance(value, (pa.RecordBatch, Mapping)) or any(
        hasattr(value, name) for name in ("__arrow_c_stream__", "to_pyarrow")
    )


def source_name(value: object) -> str:
    """Return what to call a source in messages: its path, or the kind of table it is.

    >>> source_name("log.parquet"), source_name({"click": [0, 1]})
    ('log.parquet', 'a dict')
    """
    return without_secrets(str(value)) if isinstance(value, str | PurePath) else f"a {type(value).__name__}"


def as_arrow(value: Tabular, name: str) -> pa.Table:
    """Return a table as Arrow, by its columns; the index of a pandas DataFrame is left out. `name` is for messages."""
    try:
        if isinstance(value, pa.Table):
            table = value
        elif isinstance(value, pa.RecordBatch):
            table = pa.Table.from_batches([value])
        elif isinstance(value, Mapping):
            table = pa.table(dict(value))
        elif hasattr(value, "to_pyarrow"):
            table = value.to_pyarrow()
        else:
            table = pa.table(value)
    except (pa.ArrowException, TypeError, ValueError) as error:  # ValueError: names that appear twice
        reason = str(error).rstrip(".")
        message = f"cannot be read as Arrow ({reason}); give each column values of one type."
        raise DataError(message, file=name) from error
    again = [column for place, column in enumerate(table.column_names) if column in table.column_names[:place]]
    if again:
        raise DataError("two columns have this name; leave one of them out.", file=name, column=again[0])
    names = [column for column in table.column_names if not column.startswith("__index_level_")]
    return pa.table([plain_text(table[name]) for name in names], names=names)


def plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of Polars categories, which Arrow can hardly compute with, as one of plain text; others as is."""
    kind = column.type
    if not (pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type)):
        return column
    chunks = (pa.DictionaryArray.from_arrays(one.indices, one.dictionary.cast(pa.string())) for one in column.chunks)
    return pa.chunked_array([one.cast(pa.string()) for one in chunks], pa.string())


def numbered(texts: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Number the distinct texts in order of first appearance; return each row's number, and the texts.

    The texts are Python strings, each of its own length: in an array of NumPy's `str_` all are as wide as the longest.
    """
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    encoded = whole.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, np.array(encoded.dictionary.to_pylist(), np.object_)


def text_array(texts: pa.ChunkedArray | pa.Array) -> NDArray[np.object_]:
    """Return texts as an array that holds each distinct one once."""
    codes, values = numbered(texts)
    return values[codes]


def table_digest(table: pa.Table) -> str:
    """Return the SHA-256 of a table's columns and values: the same whenever the same table is given again."""
    digest = hashlib.sha256(str(table.schema.remove_metadata()).encode())

    class Sink:
        """A file that keeps the digest of what is written to it, and nothing else."""

        closed = False

        def write(self, data: Any) -> int:
            digest.update(data)
            return len(data)

        def flush(self) -> None:
            """Do nothing."""

    whole = table.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(pa.PythonFile(Sink(), mode="w"), whole.schema) as writer:
        writer.write_table(whole, max_chunksize=1 << 16)
    return digest.hexdigest()
