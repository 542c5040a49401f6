"""Features by name: Parquet, CSV, a table in memory, a LETOR file or folder, or a synthetic data set."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saferank.datasets.dataset import load_dataset
from saferank.datasets.letor import COMPRESSED, read_letor
from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import place_in_query
from saferank.engine.types.ranking_data import RankingData
from saferank.features.categories import Categories
from saferank.features.reader import Missing, read_features
from saferank.features.schema import listed, value_error
from saferank.files.arrow_tables import Tabular, is_tabular, source_name
from saferank.files.large_table import taken
from saferank.files.table_files import file_kind

LOGGER = logging.getLogger(__name__)


def load_features(
    name: str | Path | Tabular,
    *,
    part: str = "train",
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] | Categories = (),
    ignore: Collection[str] = (),
    id_columns: Mapping[str, str] | None = None,
    missing: Missing = "error",
) -> RankingData:
    """Load the features of query-document pairs, with the ids by which a log names them.

    Args:
        name: A Parquet or CSV file, a folder or pattern of such files; a table in memory (a pandas or Polars
            DataFrame, a pyarrow or Ibis table); a LETOR file; or a data set of which one split, `part`, is taken: a
            folder in LETOR layout, or `synthetic:PRESET`. Where a data set has no ids, queries are called `q0`,
            `q1`, ... and the documents of each `d0`, `d1`, ..., as in a simulated log.
        part: The split of a data set.
        columns: The features, by default every column of numbers.
        categorical: Columns of text, each value of which becomes a feature `column=value`; at most 50 per column. A
            mapping of columns to values names the values too.
        ignore: Columns of numbers that are no features.
        id_columns: Names of `query_id` and `document_id`, if the table has no columns of these names; other entries
            are ignored, so that this may be the `columns` of a log.
        missing: Whether a missing value is an `error`, or NaN (`nan`) for `fit` to judge.
    """
    LOGGER.info("Reading the features %s", source_name(name))
    if _is_data_set(name):
        splits = load_dataset(str(name)).splits
        if part not in splits:
            raise UsageError(f"there is no part '{part}'; choose from {', '.join(splits)}.")
        data = splits[part]
    elif _is_letor(name):
        data = read_letor(name)
    else:
        return without_columns(
            read_features(name, columns=columns, categorical=categorical, id_columns=id_columns, missing=missing),
            ignore,
        )
    if categorical:
        raise UsageError(f"{name} has no text columns; leave --categorical out.")
    return with_ids(without_columns(data if columns is None else chosen_columns(data, columns), ignore))


def _is_data_set(name: str | Path | Tabular) -> bool:
    """Whether this is a synthetic data set, or a folder without Parquet and CSV files."""
    if is_tabular(name):
        return False
    kinds = (file_kind(file) for file in Path(name).rglob("*"))
    return str(name).startswith("synthetic:") or (Path(name).is_dir() and not {"parquet", "csv"} & {*kinds})


def _is_letor(name: str | Path | Tabular) -> bool:
    if is_tabular(name) or not (path := Path(name)).is_file():
        return False
    return ".txt" in path.suffixes and path.suffix in (".txt", *COMPRESSED)


def chosen_columns(data: RankingData, names: Sequence[str]) -> RankingData:
    """Return the data with only these features, in this order."""
    found = _known_columns(data, names)
    chosen = taken(data.features, columns=[found.index(name) for name in names])
    return replace(data, features=chosen, feature_names=tuple(names), check_finite=False)  # NaN may be let in


def without_columns(data: RankingData, names: Collection[str]) -> RankingData:
    """Return the data without these features."""
    found = _known_columns(data, names)
    return chosen_columns(data, [name for name in found if name not in names]) if names else data


def _known_columns(data: RankingData, names: Collection[str]) -> tuple[str, ...]:
    """Return the names of all features; raise if these are not among them."""
    found = data.feature_names or ()
    for name in names:
        if name not in found:
            message = f"there is no such numeric column; there are {listed(found)}."
            raise DataError(message, file=data.source, column=name)
    return found


def take_column(data: RankingData, name: str, *, keep: bool = False) -> tuple[RankingData, NDArray[np.float32]]:
    """Return the data without this column (or with it), and the column, in which no value may be missing."""
    column = chosen_columns(data, [name]).features[:, 0]
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        message = f"got {column[bad[0]]}, but every document needs a number; fill it in."
        raise value_error(data, int(bad[0]), name, message)
    return data if keep else without_columns(data, [name]), column


def with_ids(data: RankingData) -> RankingData:
    """Return the data with ids: its own where it has them, else numbers from 0 behind `q` and `d`."""
    query_ids, document_ids = data.query_ids, data.document_ids
    if query_ids is None:
        query_ids = np.char.add("q", np.arange(data.queries).astype(str))
    if document_ids is None:
        document_ids = np.char.add("d", place_in_query(data.offsets).astype(str))
    return replace(data, query_ids=query_ids, document_ids=document_ids, check_finite=False)
