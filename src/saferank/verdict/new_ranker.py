"""The ranker that is to go live: a score for every query and document that it can show, whoever made it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import tie_groups
from saferank.engine.types.ranking_data import RankingData, content_hash
from saferank.features.pair_tables import IDS
from saferank.features.reader import candidate_files
from saferank.files.arrow_tables import Tabular, as_arrow, numbered
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs, check_serve_as, served_placement

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NewRanker:
    """Scores of the pairs in `data`, and how they are served: by score, or as rankings drawn with Plackett-Luce.

    It cannot show what is not in `data`. A query that is not there keeps the ranking that it has.
    """

    data: RankingData
    """The pairs, with ids; the features are not used."""
    scores: NDArray[Any]
    serve_as: ServeAs = "deterministic"
    examination: Floats | None = None
    """The curve that a model was learned with; None for a ranker made elsewhere."""
    complete: bool = False
    """Whether it ranks whatever it has features of, so that a shown document that it lacks is a gap in the features."""
    description: dict[str, Any] = field(default_factory=dict)
    """What the certificate says of it: hashes, settings."""

    def __post_init__(self) -> None:
        check_serve_as(self.serve_as)
        self.data.require_ids()
        if len(self.scores) != self.data.documents:
            raise DataError(f"{len(self.scores)} scores for {self.data.documents} documents.", file=self.data.source)

    @property
    def made_elsewhere(self) -> bool:
        """Whether it was handed in as scores, so that nobody here knows what it was learned from."""
        return "candidate" in self.description

    @property
    def identity(self) -> str:
        """A hash of what it shows for which query: two rankers with the same one are the same."""
        digest = hashlib.sha256(np.ascontiguousarray(self.data.offsets).tobytes())
        for ids in self.data.require_ids():
            digest.update("\0".join(ids).encode() + b"\1")
        digest.update(np.ascontiguousarray(self.scores, np.float64).tobytes() + self.serve_as.encode())
        return digest.hexdigest()

    def placement(self, cutoff: int) -> Floats:
        """(document, rank): the chance that the document is shown there."""
        return served_placement(self.scores, self.data.offsets, cutoff, self.serve_as)

    def tied(self, examination: Floats) -> float:
        """Return the share of the exposure on documents that share their score with another; 0 if drawn at random."""
        if self.serve_as == "sampled":
            return 0.0
        exposure = self.placement(len(examination)) @ examination
        tied = tie_groups(self.scores, self.data.offsets)[1] > 1
        return float(exposure[tied].sum() / max(exposure.sum(), 1e-300))


def ranker_of_policy(policy: Policy, data: RankingData, serve_as: ServeAs) -> NewRanker:
    """Return a model as it will be served on these features."""
    scores = policy.scores(data)
    described = {name: policy.manifest.get(name) for name in ("saferank", "files", "settings", "used_parts")}
    described["features"] = _described(data, scores)
    return NewRanker(data, scores, serve_as, policy.examination, complete=True, description=described)


def read_ranker(
    path: str | Path, serve_as: ServeAs = "deterministic", columns: Mapping[str, str] | None = None
) -> NewRanker:
    """Read a ranker that was made elsewhere: Parquet or CSV files with the columns of `ranker_of_table`."""
    tables = []
    names = [*IDS, *((columns or {}).get(name, name) for name in IDS)]
    text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    for file in candidate_files(path):
        try:
            if file.name.endswith((".csv", ".csv.gz")):
                tables.append(pyarrow.csv.read_csv(file, convert_options=text))
            else:
                tables.append(pq.read_table(file, partitioning=None))
        except (pa.ArrowInvalid, OSError) as error:
            message = f"cannot be read ({error}); give Parquet, or CSV if its name ends in .csv."
            raise DataError(message, file=file) from error
    joined = pa.concat_tables(tables, promote_options="default")
    return ranker_of_table(joined, serve_as, columns, source=str(path))


def ranker_of_table(
    table: Tabular,
    serve_as: ServeAs = "deterministic",
    columns: Mapping[str, str] | None = None,
    *,
    source: str = "a table",
) -> NewRanker:
    """Return a ranker from the columns `query_id`, `document_id` and `score` (or `rank`), rows in any order.

    The highest score, or the lowest rank, comes first. Documents that are not listed are not shown. `columns`: what the
    log calls the ids, for a table that has no columns of our names.
    """
    rows = as_arrow(table, source)
    ours = {(columns or {}).get(name, name): name for name in IDS if name not in rows.column_names}
    rows = rows.rename_columns([ours.get(name, name) for name in rows.column_names])
    column = "rank" if "rank" in rows.column_names and "score" not in rows.column_names else "score"
    for name in (*IDS, column):
        if name not in rows.column_names:
            wanted = f"{', '.join(IDS)} and score (or rank)"
            there = ", ".join(rows.column_names)
            raise DataError(f"a ranker needs the columns {wanted}; there are {there}.", file=source, column=name)
    if len(rows) == 0:
        raise DataError("has no rows; list the documents that the ranker shows.", file=source)
    if column == "rank" and serve_as == "sampled":
        raise UsageError("rankings are drawn from scores; give a column 'score' to certify it as sampled.")
    values = _cast(rows[column], pa.float64(), source, column).fill_null(float("nan")).to_numpy()
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        message = f"got {values[bad[0]]}, but every document needs a number; fill it in."
        raise DataError(message, file=source, row=int(bad[0]), column=column)
    query, document = (_cast(rows[name], pa.string(), source, name) for name in IDS)
    for name, ids in zip(IDS, (query, document), strict=True):
        if ids.null_count:
            row = int(np.flatnonzero(ids.is_null().to_numpy())[0])
            raise DataError("got null, but every row needs an id; fill it in.", file=source, row=row, column=name)
    (code, query_ids), (documents, document_ids) = numbered(query), numbered(document)
    order = np.lexsort((documents, code))
    again = np.flatnonzero((np.diff(code[order]) == 0) & (np.diff(documents[order]) == 0))
    if len(again):
        message = "this document is listed twice for its query; keep one of the rows."
        raise DataError(message, file=source, row=int(order[again[0] + 1]), column="document_id")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    data = RankingData(
        features=np.zeros((len(order), 0), np.float32),
        offsets=np.append(starts, len(order)),
        query_ids=query_ids[code[order][starts]],
        document_ids=document_ids[documents[order]],
        source=source,
    )
    scores = (values if column == "score" else -values)[order]
    return NewRanker(data, scores, serve_as, description={"candidate": _described(data, scores)})


def _cast(values: pa.ChunkedArray, kind: pa.DataType, source: str, column: str) -> pa.ChunkedArray:
    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        row = next((row for row, value in enumerate(values) if not _casts(value, kind)), None)
        got = f"holds {values.type}" if row is None else f"got {values[row].as_py()!r}"
        needed = "an id is text or a number" if pa.types.is_string(kind) else "it must be a number"
        raise DataError(f"{got}, but {needed}; correct it.", file=source, row=row, column=column) from error


def _casts(value: pa.Scalar, kind: pa.DataType) -> bool:
    try:
        value.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _described(data: RankingData, scores: NDArray[Any]) -> dict[str, Any]:
    return {
        "source": data.source,
        "sha256": content_hash(data),
        "scores_sha256": hashlib.sha256(np.ascontiguousarray(scores).tobytes()).hexdigest(),
        "queries": data.queries,
        "documents": data.documents,
    }
