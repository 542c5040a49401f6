"""Features by name: Parquet, a LETOR file or folder, or a synthetic data set."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saferank.datasets.dataset import load_dataset
from saferank.datasets.letor import COMPRESSED, read_letor
from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import place_in_query
from saferank.engine.types.ranking_data import RankingData
from saferank.features.reader import Missing, read_features
from saferank.features.schema import listed, value_error
from saferank.files.large_table import taken


def load_features(
    name: str | Path,
    *,
    part: str = "train",
    columns: Sequence[str] | None = None,
    ignore: Collection[str] = (),
    missing: Missing = "error",
) -> RankingData:
    """Load the features of query-document pairs, with the ids by which a log names them.

    `name` is a Parquet file, folder or pattern (see `read_features`), a LETOR file, or a data set of which one split,
    `part`, is taken: a folder in LETOR layout, or `synthetic:PRESET`. `columns` are the features (by default every
    column of numbers), except those to `ignore`; for `missing` see `read_features`. Where a data set has no ids,
    queries are called `q0`, `q1`, ... and the documents of each `d0`, `d1`, ..., as in a simulated log.
    """
    path = Path(name)
    if str(name).startswith("synthetic:") or (path.is_dir() and next(path.rglob("*.parquet"), None) is None):
        splits = load_dataset(str(name)).splits
        if part not in splits:
            raise UsageError(f"no part is called '{part}'; there are {', '.join(splits)}.")
        data = splits[part]
    elif path.is_file() and ".txt" in path.suffixes and path.suffix in (".txt", *COMPRESSED):
        data = read_letor(path)
    else:
        return without_columns(read_features(name, columns=columns, missing=missing), ignore)
    return with_ids(without_columns(data if columns is None else chosen_columns(data, columns), ignore))


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
            message = f"there is no such column of numbers; there are {listed(found)}."
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
