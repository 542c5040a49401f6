"""A click log after the group-by: a few tables and a manifest, in memory or as a folder."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import offsets_of
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import Ids, RankingData
from saferank.files.arrow_tables import text_array
from saferank.files.atomic_write import whole_folder
from saferank.files.json_format import FileFormat
from saferank.files.large_table import new_table

# From version 1 to 2 the manifest stays as it is; ADDED_LATER has the columns.
FORMAT = FileFormat("saferank-statistics", 2, "aggregate", "aggregate the log again", (dict,))
PARTS = ("train", "validation", "certify")
_TEXT, _NUMBER, _COUNT, _TEXTS = pa.string(), pa.int32(), pa.int64(), pa.list_(pa.string())
_WHERE = {"part": _TEXT, "period": _NUMBER}
_PLACE = {"query_id": _TEXT, "document_id": _TEXT, "position": _NUMBER}
SCHEMAS = {
    "shown_counts": pa.schema({**_WHERE, **_PLACE, "shown": _COUNT, "clicked": _COUNT}),
    "patterns": pa.schema(
        {**_WHERE, "segment": _TEXT, "unit": _TEXT, "query_id": _TEXT, "clicked": _TEXTS}
        | {"rewards": pa.list_(pa.float64()), "interactions": _COUNT}
    ),
    "rankings": pa.schema(
        {"part": _TEXT, "query_id": _TEXT, "ranking": _TEXTS, "clicked": _TEXTS, "interactions": _COUNT}
    ),
    "sample": pa.schema(
        {**_WHERE, "hour": _NUMBER, "moment": _NUMBER, "unit": _TEXT, "impression": _COUNT, **_PLACE}
        | {"click": pa.int8(), "groups": pa.list_(pa.int8())}
    ),
}
"""Columns of each table. `clicked` of a pattern is sorted, and empty for the interactions without a click; `rewards`
are those of the clicked documents, null unless the log was aggregated with a reward. `period` counts from 0 and is 0
everywhere in a log without timestamps; `hour` is that of the day (UTC), null unless periods are days or longer;
`moment` numbers the times in their order, null without a timestamp; `unit` is null unless the log was aggregated
with one, and then a number in place of the user's or session's id; `groups` are numbers of the values of the columns
that the manifest lists under this name, null if it lists none."""
ADDED_LATER: dict[str, dict[str, int | None]] = {
    "shown_counts": {"period": 0},
    "patterns": {"period": 0, "unit": None, "rewards": None},
    "sample": {"hour": None, "moment": None, "groups": None},
}
"""Columns that older folders lack, and what they hold then: all but those of the sample came with version 2."""
FILES = {name: f"{name}.parquet" for name in SCHEMAS} | {"shown_counts": "impressions.parquet"}


@dataclass(frozen=True)
class _ManifestFields:
    """What every manifest has, whichever version wrote it."""

    cutoff: int
    source: str


@dataclass(frozen=True, eq=False)
class AggregatedLog:
    """All that later steps need of a log. Its size depends on the pairs that were shown, not on the log's rows.

    `shown_counts`: how often each (query, document, position) was shown and clicked. `patterns`: how often each set
    of documents was clicked together. `rankings` (None unless asked for): how often each whole ranking was shown.
    `sample`: all rows of a bounded number of impressions, drawn by the hash of their ids. Each row belongs to one part
    (`train`, `validation` or `certify`) and one period (see `periods`).
    """

    shown_counts: pa.Table
    patterns: pa.Table
    manifest: dict[str, Any]
    """Where the log came from, and how it was cut and split."""
    rankings: pa.Table | None = None
    sample: pa.Table | None = None

    @property
    def periods(self) -> list[tuple[str, str]]:
        """First and last moment of each period (a day, or shorter if the log is short); empty without timestamps."""
        return [(str(first), str(last)) for first, last in self.manifest.get("periods") or []]

    @property
    def cutoff(self) -> int:
        """Number of ranks that were counted."""
        return int(self.manifest["cutoff"])

    @property
    def source(self) -> str:
        """The log that was aggregated."""
        return str(self.manifest["source"])

    def statistics(self, parts: str | Iterable[str], data: RankingData) -> LogStatistics:
        """Return the counts of the given parts, in the order of the queries and documents of `data`.

        Pairs that `data` does not have are left out; `missing_pairs` lists them.
        """
        rows, patterns, places = _of_parts(self.shown_counts, parts), _of_parts(self.patterns, parts), places_of(data)
        place = places.of_pairs(rows["query_id"], rows["document_id"])
        known = place >= 0
        rank = rows["position"].to_numpy()[known].astype(np.int64) - 1
        shown, clicked = (new_table(data.documents, self.cutoff, np.int64) for _ in range(2))
        for counts, name in ((shown, "shown"), (clicked, "clicked")):
            np.add.at(counts, (place[known], rank), rows[name].to_numpy()[known])
        query = places.of_queries(patterns["query_id"])
        interactions = np.zeros(data.queries, np.int64)
        np.add.at(interactions, query[query >= 0], patterns["interactions"].to_numpy()[query >= 0])
        return LogStatistics(data.offsets, interactions, shown, clicked)

    def of(self, parts: str | Iterable[str], data: RankingData) -> Self:
        """Return the log of the given parts, with the pairs that `data` has, and without whole rankings."""
        places, tables = places_of(data), {"patterns": _of_parts(self.patterns, parts)}
        for name in ("shown_counts", "sample"):
            if (table := getattr(self, name)) is not None:
                rows = _of_parts(table, parts)
                known = places.of_pairs(rows["query_id"], rows["document_id"]) >= 0
                tables[name] = rows.filter(pa.array(known))
        return replace(self, rankings=None, **tables)

    def click_patterns(self, parts: str | Iterable[str], data: RankingData) -> ClickPatterns:
        """Return the patterns of the given parts; queries and clicked documents that `data` lacks are left out."""
        rows, places = _of_parts(self.patterns, parts), places_of(data)
        query = places.of_queries(rows["query_id"])
        rows, query = rows.filter(pa.array(query >= 0)), query[query >= 0]
        clicked = rows["clicked"].combine_chunks()
        owner = np.repeat(np.arange(len(rows)), np.asarray(pc.list_value_length(clicked)))
        place = places.of_pairs(rows["query_id"].take(pa.array(owner)), clicked.flatten())
        known = place >= 0
        segment, unit, rewards = (
            None if rows[name].null_count == len(rows) else rows[name].combine_chunks()
            for name in ("segment", "unit", "rewards")
        )
        return ClickPatterns(
            query=query,
            offsets=offsets_of(np.bincount(owner[known], minlength=len(rows))),
            documents=place[known],
            interactions=rows["interactions"].to_numpy(),
            segment=None if segment is None else text_array(segment.fill_null("")),
            period=rows["period"].to_numpy().astype(np.int64),
            unit=None if unit is None else np.asarray(unit.dictionary_encode().indices).astype(np.int64),
            rewards=None if rewards is None else np.asarray(rewards.flatten())[known],
        )

    def missing_pairs(self, data: RankingData) -> pa.Table:
        """Return the shown (query, document) pairs that `data` lacks, each with how often it was shown and clicked."""
        place = places_of(data).of_pairs(self.shown_counts["query_id"], self.shown_counts["document_id"])
        missing = self.shown_counts.filter(pa.array(place < 0))
        return missing.group_by(["query_id", "document_id"]).aggregate([("shown", "sum"), ("clicked", "sum")])

    def write(self, folder: str | Path) -> None:
        """Write the folder atomically, replacing one that an earlier call wrote."""
        folder = Path(folder)
        if folder.exists() and not is_aggregated(folder):
            raise UsageError(f"{folder} already exists and is not an aggregated log; name another folder.")
        with whole_folder(folder) as unfinished:
            for name, file in FILES.items():
                if (table := getattr(self, name)) is not None:
                    pq.write_table(table, unfinished / file, compression="zstd")
            (unfinished / "manifest.json").write_text(json.dumps(FORMAT.marked(self.manifest), indent=2) + "\n")

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read what `write` wrote."""
        folder = Path(folder)
        manifest = FORMAT.read(folder / "manifest.json")
        FORMAT.read_as(folder / "manifest.json", _ManifestFields)
        tables: dict[str, pa.Table] = {}
        for name, schema in SCHEMAS.items():
            file = folder / FILES[name]
            if name in ("rankings", "sample") and not file.exists():
                continue
            try:
                table = pq.read_table(file, partitioning=None)
            except (pa.ArrowInvalid, OSError) as error:
                raise DataError(f"cannot be read ({error}); {FORMAT.again}.", file=file) from error
            for added, value in ADDED_LATER.get(name, {}).items():
                if added not in table.schema.names:
                    filled = pa.repeat(pa.scalar(value, schema.field(added).type), len(table))
                    table = table.add_column(schema.get_field_index(added), schema.field(added), filled)
            if table.schema.names != schema.names:
                raise DataError(f"must have the columns {', '.join(schema.names)}; {FORMAT.again}.", file=file)
            tables[name] = table.cast(schema)
        log = cls(**tables, manifest=manifest)
        most = {"period": max(len(log.periods), 1) - 1, "position": log.cutoff}
        for name, column in (("shown_counts", "period"), ("patterns", "period"), ("shown_counts", "position")):
            if (highest := pc.max(tables[name][column]).as_py() or 0) > most[column]:
                message = f"got {highest}, but the manifest allows at most {most[column]}; {FORMAT.again}."
                raise DataError(message, file=folder / FILES[name], column=column)
        return log


def is_aggregated(source: object) -> bool:
    """Whether this is a folder that `AggregatedLog.write` wrote."""
    return isinstance(source, (str, Path)) and FORMAT.is_of(Path(source) / "manifest.json")


class Places:
    """Where the queries and documents of ranking data stand in its arrays, by their ids."""

    def __init__(self, data: RankingData) -> None:
        query_ids, document_ids = data.require_ids()
        self.query_ids, documents = _texts(query_ids), _texts(document_ids).dictionary_encode()
        self.document_ids = documents.dictionary
        pairs = data.query_of_document * len(self.document_ids) + np.asarray(documents.indices)
        self.order = np.argsort(pairs, kind="stable")
        self.pairs = pairs[self.order]

    def of_queries(self, query_ids: pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the index of each query, -1 where the data does not have it."""
        return _index(query_ids, self.query_ids)

    def of_pairs(self, query_ids: pa.ChunkedArray, document_ids: pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the row of each (query, document), -1 where the data does not have it."""
        query, document = self.of_queries(query_ids), _index(document_ids, self.document_ids)
        wanted = np.where((query >= 0) & (document >= 0), query * len(self.document_ids) + document, -1)
        place = np.minimum(np.searchsorted(self.pairs, wanted), len(self.pairs) - 1)
        return np.where(self.pairs[place] == wanted, self.order[place], -1)


_PLACES: WeakKeyDictionary[RankingData, Places] = WeakKeyDictionary()


def places_of(data: RankingData) -> Places:
    """Return the places of the data, found once as long as the data lives: millions of pairs take seconds."""
    if data not in _PLACES:
        _PLACES[data] = Places(data)
    return _PLACES[data]


def pair_ids(data: RankingData) -> tuple[pa.Array, pa.Array]:
    """Return the ids of each row's query and document."""
    query_ids, document_ids = data.require_ids()
    return _texts(query_ids).take(pa.array(data.query_of_document)), _texts(document_ids)


def _texts(ids: Ids) -> pa.Array:
    """Return ids as one Arrow array: of more than 64 MB, Arrow makes several."""
    found = pa.array(ids, pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _index(values: pa.ChunkedArray | pa.Array, among: pa.Array) -> NDArray[np.int64]:
    """Return where each value stands in `among`, -1 where it does not."""
    return np.asarray(pc.index_in(values, value_set=among).fill_null(-1)).astype(np.int64)


def _of_parts(table: pa.Table, parts: str | Iterable[str]) -> pa.Table:
    wanted = [parts] if isinstance(parts, str) else list(parts)
    if unknown := sorted({*wanted} - {*PARTS}):
        raise UsageError(f"there is no part '{unknown[0]}'; choose from {', '.join(PARTS)}.")
    return table.filter(pc.is_in(table["part"], value_set=pa.array(wanted, pa.string())))
