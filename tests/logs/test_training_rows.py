"""What may be trained on: the rows of the log itself, without the impressions that `aggregate` holds out."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.split import TimeSplit
from saferank.logs.split_options import parse_split
from saferank.logs.training_rows import TrainingRows, write_training_rows
from tests.logs.written_layouts import write_sessions, write_ubi
from tests.shops import PositionBased, draw, make_shop, noisy


def rows(interactions: int = 500) -> pa.Table:
    """A log with columns that saferank does not use."""
    rng = np.random.default_rng(0)
    shop = make_shop(rng, queries=12, documents=5, cutoff=3, days=4)
    table = draw(shop, noisy(shop, rng), PositionBased(), interactions, rng).table()
    return table.append_column("price", pa.array(rng.random(len(table))))


def written(log: str | Path, out: Path, by: str = "hash", shares: str = "60/20/20", **options: Any) -> TrainingRows:
    return write_training_rows(open_log(log, **options), parse_split(shares, by=by), out)


@pytest.mark.parametrize(("by", "unit"), [("hash", None), ("hash", "user_id"), ("unit", "user_id"), ("query", None)])
def test_all_rows_but_those_that_aggregate_holds_out(tmp_path: Path, by: str, unit: str | None) -> None:
    table = rows()
    pq.write_table(table, tmp_path / "log.parquet")
    made = written(tmp_path / "log.parquet", tmp_path / "train.parquet", by, unit=unit)
    train = pq.read_table(tmp_path / "train.parquet")
    assert train.schema.names == table.schema.names
    counted = load_log(tmp_path / "log.parquet", split=parse_split("60/20/20", by=by), unit=unit)
    sizes = {name: part["interactions"] for name, part in counted.manifest["parts"].items()}
    assert (made.kept, made.held_out) == (sizes["train"] + sizes["validation"], sizes["certify"])
    assert 0 < made.held_out < made.kept
    again = load_log(tmp_path / "train.parquet", split=parse_split("60/20/20", by=by), unit=unit)
    assert again.manifest["parts"]["certify"]["interactions"] == 0  # an impression keeps its part
    for part in ("train", "validation"):
        assert again.manifest["parts"][part] == counted.manifest["parts"][part]
    kept = set(train["impression_id"].to_pylist())
    order = [("impression_id", "ascending"), ("position", "ascending")]
    expected = table.filter(pa.array([one in kept for one in table["impression_id"].to_pylist()]))
    assert train.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()


def test_by_time_the_latest_are_held_out(tmp_path: Path) -> None:
    table = rows()
    pq.write_table(table, tmp_path / "log.parquet")
    made = written(tmp_path / "log.parquet", tmp_path / "train.parquet", "time", "50/30/20")
    assert isinstance(made.split, TimeSplit)
    assert made.split.boundaries is not None
    times = pq.read_table(tmp_path / "train.parquet")["timestamp"].to_pylist()
    assert max(times) < made.split.boundaries[1]
    assert made.held_out == pytest.approx(100, abs=3)


def test_nested_rows_stay_nested_and_csv_is_read(tmp_path: Path) -> None:
    nested = pa.table({
        "query_id": ["a", "b"] * 50, "document_ids": [["x", "y"], ["z"]] * 50, "clicks": [[0, 1], [0]] * 50,
        "note": [str(number) for number in range(100)],
    })  # fmt: skip
    pq.write_table(nested, tmp_path / "log.parquet")
    made = written(tmp_path / "log.parquet", tmp_path / "train.parquet")
    train = pq.read_table(tmp_path / "train.parquet")
    assert train.schema.names == nested.schema.names
    assert len(train) == made.kept < 100
    notes = train["note"].to_pylist()
    assert (
        train.sort_by("note").to_pylist()
        == nested.filter(pc.is_in(nested["note"], pa.array(notes))).sort_by("note").to_pylist()
    )
    pyarrow.csv.write_csv(rows(100), tmp_path / "log.csv")
    made = written(tmp_path / "log.csv", tmp_path / "csv.parquet", columns={"click": "click"})
    assert len(pq.read_table(tmp_path / "csv.parquet")) == 3 * made.kept


def test_every_kind_of_source(tmp_path: Path) -> None:
    table = rows(100)
    pq.write_table(table, tmp_path / "log.parquet")
    plain = written(tmp_path / "log.parquet", tmp_path / "plain.parquet")
    expected = set(pq.read_table(tmp_path / "plain.parquet")["impression_id"].to_pylist())
    (tmp_path / "days").mkdir()
    for place in range(2):
        pq.write_table(table.slice(150 * place, 150), tmp_path / "days" / f"{place}.parquet")
    with duckdb.connect(str(tmp_path / "log.db")) as database:
        database.execute("CREATE TABLE clicks AS SELECT * FROM read_parquet(?)", [str(tmp_path / "log.parquet")])
    for source in (tmp_path / "days", f"duckdb://{tmp_path}/log.db/clicks"):
        made = written(source, tmp_path / "train.parquet")
        train = pq.read_table(tmp_path / "train.parquet")
        assert (made.kept, made.held_out) == (plain.kept, plain.held_out)
        assert train.schema.names == table.schema.names
        assert set(train["impression_id"].to_pylist()) == expected
    made = written(write_ubi(tmp_path / "ubi"), tmp_path / "train.parquet", shares="50/0/50")
    assert (made.kept, made.held_out) == (1, 1)  # the third search found nothing
    assert len(set(pq.read_table(tmp_path / "train.parquet")["impression_id"].to_pylist())) == 1
    made = written(write_sessions(tmp_path / "sessions"), tmp_path / "train.parquet", shares="80/0/20")
    assert made.kept + made.held_out == 3
    assert len(set(pq.read_table(tmp_path / "train.parquet")["impression_id"].to_pylist())) == made.kept


def test_rows_of_no_impression_are_left_out(tmp_path: Path) -> None:
    table = rows(100)
    lost = table.slice(0, 3).set_column(0, "impression_id", pa.nulls(3, pa.int64()))
    pq.write_table(pa.concat_tables([table, lost]), tmp_path / "log.parquet")
    made = written(tmp_path / "log.parquet", tmp_path / "train.parquet")
    assert made.kept + made.held_out == 100
    assert pq.read_table(tmp_path / "train.parquet")["impression_id"].null_count == 0


def test_nothing_is_written_if_nothing_may_be_trained_on(tmp_path: Path) -> None:
    pq.write_table(rows(20), tmp_path / "log.parquet")
    with pytest.raises(DataError) as error:
        written(tmp_path / "log.parquet", tmp_path / "train.parquet", shares="0/0/100")
    assert error.value.file == str(tmp_path / "log.parquet")
    with pytest.raises(UsageError):
        written(tmp_path / "log.parquet", tmp_path / "train.parquet", "unit")
    assert [file.name for file in tmp_path.iterdir()] == ["log.parquet"]
