"""Tables of an aggregated log: to arrays in the order of the features, and to a folder and back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import SCHEMAS, AggregatedLog, Places, is_aggregated


def table(name: str, *rows: tuple[Any, ...]) -> pa.Table:
    columns = zip(zip(*rows, strict=True), SCHEMAS[name].types, strict=True)
    return pa.table([pa.array(values, kind) for values, kind in columns], schema=SCHEMAS[name])


LOG = AggregatedLog(
    table(
        "shown_counts",
        ("train", 0, "q", "a", 1, 5, 2),
        ("train", 0, "q", "a", 2, 3, 0),
        ("train", 0, "q", "z", 2, 5, 1),  # no features
        ("train", 0, "p", "a", 1, 1, 1),
        ("certify", 0, "q", "b", 1, 4, 4),
        ("validation", 0, "r", "a", 1, 9, 9),  # no such query
    ),
    table(
        "patterns",
        ("train", 0, "phone", None, "q", ["a", "z"], None, 1),
        ("train", 0, None, None, "q", ["a"], None, 1),
        ("train", 0, None, None, "q", [], None, 6),
        ("train", 0, None, None, "p", ["a"], None, 1),
        ("certify", 0, None, None, "q", ["b"], None, 4),
        ("validation", 0, None, None, "r", ["a"], None, 9),
    ),
    {"cutoff": 2, "source": "log.parquet"},
)
# p: a, b; q: b, a
DATA = RankingData(
    np.zeros((4, 1), np.float32),
    np.array([0, 2, 4]),
    query_ids=np.array(["p", "q"]),
    document_ids=np.array(["a", "b", "b", "a"]),
)


def test_counts_in_the_order_of_the_features() -> None:
    counts = LOG.statistics("train", DATA)
    np.testing.assert_array_equal(counts.interactions, [1, 1 + 1 + 6])
    np.testing.assert_array_equal(counts.shown, [[1, 0], [0, 0], [0, 0], [5, 3]])
    np.testing.assert_array_equal(counts.clicked, [[1, 0], [0, 0], [0, 0], [2, 0]])
    both = LOG.statistics(("train", "certify"), DATA)
    np.testing.assert_array_equal(both.shown[2], [4, 0])
    np.testing.assert_array_equal(both.interactions, [1, 8 + 4])


def test_patterns_in_the_order_of_the_features() -> None:
    patterns = LOG.click_patterns("train", DATA)
    np.testing.assert_array_equal(patterns.query, [1, 1, 1, 0])
    np.testing.assert_array_equal(patterns.offsets, [0, 1, 2, 2, 3])
    np.testing.assert_array_equal(patterns.documents, [3, 3, 0])
    np.testing.assert_array_equal(patterns.interactions, [1, 1, 6, 1])
    assert patterns.segment is not None
    assert patterns.segment.tolist() == ["phone", "", "", ""]
    assert LOG.click_patterns("certify", DATA).segment is None


def test_units_and_rewards_of_patterns() -> None:
    """The reward of a document without features goes with its click; the empty set has none."""
    rows = table(
        "patterns",
        ("train", 0, None, "u2", "q", ["a", "z"], [2.0, 9.0], 1),
        ("train", 1, None, "u1", "q", ["a", "b"], [3.0, 4.0], 1),
        ("train", 1, None, "u2", "p", [], [], 6),
        ("train", 1, None, "u1", "r", ["a"], [5.0], 1),
    )
    patterns = AggregatedLog(LOG.shown_counts, rows, LOG.manifest).click_patterns("train", DATA)
    assert patterns.unit is not None
    assert patterns.unit[0] == patterns.unit[2] != patterns.unit[1]
    assert patterns.period is not None
    assert patterns.period.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(patterns.documents, [3, 3, 2])
    np.testing.assert_array_equal(patterns.sums(np.array([0.0, 0.0, 100.0, 10.0])), [20.0, 30.0 + 400.0, 0.0])
    last = patterns.subset(np.array([False, True, True]))
    np.testing.assert_array_equal(last.sums(np.array([0.0, 0.0, 100.0, 10.0])), [30.0 + 400.0, 0.0])


def test_pairs_without_features() -> None:
    missing = {(row["query_id"], row["document_id"]): row["shown_sum"] for row in LOG.missing_pairs(DATA).to_pylist()}
    assert missing == {("q", "z"): 5, ("r", "a"): 9}


def test_to_a_folder_and_back(tmp_path: Path) -> None:
    LOG.write(tmp_path / "stats")
    LOG.write(tmp_path / "stats")  # replaces
    assert is_aggregated(tmp_path / "stats")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stats"]
    read = AggregatedLog.read(tmp_path / "stats")
    assert read.shown_counts == LOG.shown_counts
    assert read.patterns == LOG.patterns
    assert read.rankings is None
    assert (read.cutoff, read.source) == (2, "log.parquet")


def test_a_folder_of_version_1_is_read(tmp_path: Path) -> None:
    """It had no periods, units, rewards and sample."""
    LOG.write(tmp_path / "stats")
    for name, added in (("impressions", ["period"]), ("patterns", ["period", "unit", "rewards"])):
        file = tmp_path / "stats" / f"{name}.parquet"
        pq.write_table(pq.read_table(file).drop_columns(added), file)
    manifest = tmp_path / "stats" / "manifest.json"
    old = json.loads(manifest.read_text()) | {"version": 1}
    manifest.write_text(json.dumps({name: value for name, value in old.items() if name != "periods"}))
    read = AggregatedLog.read(tmp_path / "stats")
    assert read.shown_counts == LOG.shown_counts
    assert read.patterns == LOG.patterns
    assert read.periods == []
    read.write(tmp_path / "stats")
    assert json.loads(manifest.read_text())["version"] == 2


def test_what_cannot_be_written_or_read(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError):
        LOG.write(tmp_path / "other")
    assert not is_aggregated(tmp_path / "other")
    folder = tmp_path / "stats"
    LOG.write(folder)
    manifest = json.loads((folder / "manifest.json").read_text())

    def fails(name: str, column: str | None = None) -> None:
        with pytest.raises(DataError) as error:
            AggregatedLog.read(folder)
        assert (error.value.file, error.value.column) == (folder / name, column)

    for changed, column in (
        ({"version": 9}, None),
        ({"format": "other"}, None),
        ({"cutoff": None}, "cutoff"),
        ({"source": 5}, "source"),
    ):
        (folder / "manifest.json").write_text(json.dumps(manifest | changed))
        fails("manifest.json", column)
    (folder / "manifest.json").write_text(json.dumps(manifest | {"cutoff": 1}))
    fails("impressions.parquet", "position")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    later = pa.array([0, 0, 0, 0, 0, 1], pa.int32())
    pq.write_table(LOG.patterns.set_column(1, "period", later), folder / "patterns.parquet")
    fails("patterns.parquet", "period")
    pq.write_table(LOG.patterns.drop_columns("segment"), folder / "patterns.parquet")
    fails("patterns.parquet")
    (folder / "patterns.parquet").write_text("hello")
    fails("patterns.parquet")


def test_wrong_calls() -> None:
    with pytest.raises(UsageError):
        LOG.statistics("test", DATA)
    with pytest.raises(DataError):
        LOG.statistics("train", RankingData(np.zeros((1, 1), np.float32), np.array([0, 1])))


def test_ids_of_more_than_64_megabytes() -> None:
    """Arrow makes several arrays of these."""
    ids = np.array([f"{place:02d}" + "x" * 900_000 for place in range(20)])
    data = RankingData(np.zeros((20, 0), np.float32), np.array([0, 20]), query_ids=np.array(["q"]), document_ids=ids)
    found = Places(data).of_pairs(pa.array(["q", "q"]), pa.array([str(ids[7]), "none"]))
    assert found.tolist() == [7, -1]
