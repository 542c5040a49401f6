"""From a log to counts: against the simulator that made it, and back from a folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.errors import UsageError
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.raw_log import write_raw_log
from saferank.logs.aggregate import aggregate
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.split import HashSplit, TimeSplit


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RankingData, LogStatistics]:
    """A log of lists of 1 to 12 documents, five of them shown."""
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 13, 40)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    data = RankingData(
        rng.normal(size=(offsets[-1], 2)).astype(np.float32),
        offsets,
        rng.integers(0, 5, offsets[-1]).astype(np.float32),
        query_ids=np.char.add("query ", np.arange(40).astype(str)),
        document_ids=np.char.add("document ", within.astype(str)),
    )
    counts = write_raw_log(path, data, rng.normal(size=data.documents), PositionBasedModel(), 20_000, rng)
    return path, data, counts


def test_counts_are_those_of_the_simulator(simulated: tuple[Path, RankingData, LogStatistics]) -> None:
    path, data, truth = simulated
    log = load_log(path, rankings=True)
    counts = log.statistics(PARTS, data)
    np.testing.assert_array_equal(counts.interactions, truth.interactions)
    np.testing.assert_array_equal(counts.shown, truth.shown)
    np.testing.assert_array_equal(counts.clicked, truth.clicked)
    assert log.manifest["rows"] == truth.times_shown.sum()
    assert sum(part["interactions"] for part in log.manifest["parts"].values()) == 20_000
    patterns = log.click_patterns(PARTS, data)
    assert patterns.total_interactions == 20_000
    clicked = np.bincount(
        patterns.documents, np.repeat(patterns.interactions, np.diff(patterns.offsets)), data.documents
    )
    np.testing.assert_array_equal(clicked, truth.clicks)
    assert log.rankings is not None
    assert sum(log.rankings["interactions"].to_pylist()) == 20_000


def test_parts_have_their_shares(simulated: tuple[Path, RankingData, LogStatistics]) -> None:
    path, _, _ = simulated
    for split in (HashSplit((0.5, 0.3, 0.2), seed=1), TimeSplit((0.5, 0.3, 0.2))):
        parts = load_log(path, split=split).manifest["parts"]
        for part, share in zip(PARTS, (0.5, 0.3, 0.2), strict=True):
            error = 5 * np.sqrt(20_000 * share * (1 - share))
            assert abs(parts[part]["interactions"] - 20_000 * share) < error


def test_a_folder_is_read_as_it_was_written(simulated: tuple[Path, RankingData, LogStatistics], tmp_path: Path) -> None:
    path, _, _ = simulated
    made = aggregate(open_log(path), cutoff=3)
    made.write(tmp_path / "stats")
    read = load_log(tmp_path / "stats", cutoff=3, layout="long", columns={"click": "click"}, split=HashSplit())
    assert read.shown_counts == made.shown_counts
    assert read.patterns == made.patterns
    assert read.sample == made.sample
    assert read.manifest == {"format": "saferank-statistics", "version": 2, **made.manifest}
    again = aggregate(open_log(path), cutoff=3)
    assert again.patterns == made.patterns  # in the same order, whatever the threads do
    assert again.shown_counts == made.shown_counts
    assert again.sample == made.sample


def test_units_and_rewards_of_a_folder(tmp_path: Path) -> None:
    rows = [{"impression_id": place, "query_id": "q", "document_id": "d", "position": 1, "click": 1, "price": 2.5,
             "user": f"u{place % 5}"} for place in range(20)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    asked: dict[str, Any] = {"unit": "user", "reward": "price", "reward_most": 3.0}
    made = load_log(tmp_path / "log.parquet", **asked)
    made.write(tmp_path / "stats")
    read = load_log(tmp_path / "stats", split=HashSplit(), **asked)
    assert read.patterns == made.patterns
    assert read.sample == made.sample
    for other in (
        {"unit": "session"},
        {"reward": "margin"},
        {"reward_most": 9.0},
        {"split": HashSplit(by="impression")},
    ):
        with pytest.raises(UsageError):
            load_log(tmp_path / "stats", **asked | other)


def test_options_that_contradict_the_folder(simulated: tuple[Path, RankingData, LogStatistics], tmp_path: Path) -> None:
    load_log(simulated[0]).write(tmp_path / "stats")
    assert isinstance(load_log(tmp_path / "stats"), AggregatedLog)
    wrong: list[dict[str, Any]] = [
        {"cutoff": 4},
        {"segment": "device"},
        {"unit": "user"},
        {"reward": "price"},
        {"reward_most": 5.0},
        {"layout": "nested"},
        {"columns": {"click": "hit"}},
        {"split": HashSplit(by="query")},
        {"split": HashSplit(by="unit")},
        {"split": HashSplit(seed=1)},
        {"split": HashSplit((0.8, 0.1, 0.1))},
        {"split": TimeSplit()},
        {"rankings": True},
    ]
    for options in wrong:
        with pytest.raises(UsageError, match="aggregate the log again"):
            load_log(tmp_path / "stats", **options)
