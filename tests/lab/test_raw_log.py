from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.click_models.position_based import PositionBasedModel, inverse_rank
from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.lab import raw_log
from saferank.lab.raw_log import write_raw_log

LENGTHS = [1, 3, 8, 20]
OFFSETS = np.cumsum([0, *LENGTHS])
MODEL = PositionBasedModel(inverse_rank(), relevance_slope=0.2, relevance_noise=0.1)


def data(with_ids: bool = True) -> RankingData:
    documents = sum(LENGTHS)
    return RankingData(
        np.zeros((documents, 1), np.float32),
        OFFSETS,
        np.arange(documents, dtype=np.float32) % 5,
        query_ids=np.array(["a", "b", "c", "d"]) if with_ids else None,
        document_ids=np.array([f"doc-{i}" for i in range(documents)]) if with_ids else None,
    )


def scores() -> np.ndarray:
    return np.random.default_rng(0).normal(size=sum(LENGTHS))


def test_the_rows_add_up_to_the_counts(tmp_path: Path) -> None:
    told: list[int] = []
    rng = np.random.default_rng(1)
    log = write_raw_log(tmp_path / "log.parquet", data(), scores(), MODEL, 2_500, rng, told.append, group=1000)
    assert told == [1000, 1000, 500]
    assert log.total_interactions == 2_500
    table = pq.read_table(tmp_path / "log.parquet")
    assert table.schema.names == ["impression_id", "timestamp", "query_id", "document_id", "position", "click"]
    assert table.num_rows == log.times_shown.sum()
    document = np.array([int(name.removeprefix("doc-")) for name in table["document_id"].to_pylist()])
    position, click = table["position"].to_numpy(), table["click"].to_numpy()
    assert set(position) == {1, 2, 3, 4, 5}
    assert set(click) == {0, 1}
    for counts, weights in ((log.shown, np.ones(len(click))), (log.clicked, click)):
        found = np.zeros(counts.shape)
        np.add.at(found, (document, position - 1), weights)
        np.testing.assert_array_equal(found, counts)
    names = np.array(["a", "b", "c", "d"])
    query = np.searchsorted(OFFSETS, document, side="right") - 1
    np.testing.assert_array_equal(table["query_id"].to_numpy(zero_copy_only=False), names[query])
    impression = table["impression_id"].to_numpy()
    assert np.array_equal(np.unique(impression), np.arange(2_500))
    first = np.flatnonzero(position == 1)
    assert len(first) == 2_500
    np.testing.assert_array_equal(np.bincount(query[first], minlength=4), log.interactions)


def test_each_impression_is_a_ranking_in_its_turn(tmp_path: Path) -> None:
    write_raw_log(tmp_path / "log.parquet", data(), scores(), MODEL, 1_000, np.random.default_rng(1), group=300)
    table = pq.read_table(tmp_path / "log.parquet")
    impression, position = table["impression_id"].to_numpy(), table["position"].to_numpy()
    assert np.all(np.diff(impression) >= 0)
    new = np.diff(impression, prepend=-1) > 0
    np.testing.assert_array_equal(position[new], 1)
    np.testing.assert_array_equal(np.diff(position)[~new[1:]], 1)
    time = table["timestamp"].to_numpy()
    assert np.all(np.diff(time[new]) > np.timedelta64(0))
    assert np.all(np.diff(time)[~new[1:]] == np.timedelta64(0))
    assert time[0] == np.datetime64("2024-01-01")
    assert time[-1] < np.datetime64("2024-01-31")
    pairs = set(zip(impression.tolist(), table["document_id"].to_pylist(), strict=True))
    assert len(pairs) == table.num_rows
    # Queries come in random order, not one after the other: the next is of another query three times out of four.
    query = table["query_id"].to_numpy(zero_copy_only=False)[new]
    assert abs(np.mean(query[1:] != query[:-1]) - 3 / 4) < 5 * np.sqrt(3 / 16 / 1_000)


def test_a_row_group_is_all_that_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    table = raw_log._table

    def watched(*arguments: object) -> pa.Table:
        made = table(*arguments)  # type: ignore[arg-type]
        sizes.append(made.num_rows)
        return made

    monkeypatch.setattr(raw_log, "_table", watched)
    write_raw_log(tmp_path / "log.parquet", data(), scores(), MODEL, 5_000, np.random.default_rng(1), group=64)
    file = pq.ParquetFile(tmp_path / "log.parquet")
    assert file.num_row_groups == len(sizes) == -(-5_000 // 64)
    assert max(sizes) <= 64 * 5
    assert sum(sizes) == file.metadata.num_rows


def test_without_ids_queries_and_documents_are_numbered(tmp_path: Path) -> None:
    write_raw_log(tmp_path / "log.parquet", data(with_ids=False), scores(), MODEL, 3_000, np.random.default_rng(1))
    table = pq.read_table(tmp_path / "log.parquet")
    seen = set(zip(table["query_id"].to_pylist(), table["document_id"].to_pylist(), strict=True))
    assert seen == {(f"q{q}", f"d{d}") for q, length in enumerate(LENGTHS) for d in range(length)}


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    files = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for file in files:
        write_raw_log(file, data(), scores(), MODEL, 500, np.random.default_rng(1))
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_file_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    def stop(_: int) -> None:
        assert not (tmp_path / "log.parquet").exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_raw_log(tmp_path / "log.parquet", data(), scores(), MODEL, 10, np.random.default_rng(1), stop)
    assert list(tmp_path.iterdir()) == []
    write_raw_log(tmp_path / "new" / "log.parquet", data(), scores(), MODEL, 10, np.random.default_rng(1))
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["log.parquet"]
    with pytest.raises(UsageError, match="got 0 interactions"):
        write_raw_log(tmp_path / "log.parquet", data(), scores(), MODEL, 0, np.random.default_rng(1))


def test_the_first_error_is_told_even_where_nothing_can_be_cleaned_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file/log.parquet: cannot be written"):
        write_raw_log(tmp_path / "file" / "log.parquet", data(), scores(), MODEL, 10, np.random.default_rng(1))

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    def locked(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", locked)
    with pytest.raises(KeyboardInterrupt):
        write_raw_log(tmp_path / "log.parquet", data(), scores(), MODEL, 10, np.random.default_rng(1), stop)
