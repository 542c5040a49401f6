"""Rewards of clicks: what is refused."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log


def write(path: Path, *values: tuple[int, float | None]) -> Path:
    """One impression, with a click and a reward for each document."""
    rows = [{"impression_id": "i", "query_id": "q", "document_id": f"d{place}", "position": place + 1, "click": click,
             "price": price} for place, (click, price) in enumerate(values)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("bad", [None, -0.01, 5.01, float("nan"), float("inf")])
def test_a_wrong_reward(tmp_path: Path, bad: float | None) -> None:
    path = write(tmp_path / "log.parquet", (1, 2.0), (1, bad))
    with pytest.raises(DataError) as error:
        load_log(path, reward="price", reward_most=5)
    assert (str(error.value.file), error.value.column) == (str(path), "price")
    assert "document_id d1" in str(error.value)


def test_rewards_up_to_the_most(tmp_path: Path) -> None:
    """What was not clicked may have any; a click that is worth nothing is a click."""
    path = write(tmp_path / "log.parquet", (0, None), (1, 5.0), (0, -7.0), (1, 0.0))
    (row,) = load_log(path, reward="price", reward_most=5).patterns.to_pylist()
    assert (row["clicked"], row["rewards"]) == (["d1", "d3"], [5.0, 0.0])


@pytest.mark.parametrize(
    "options",
    [
        {"reward": "price"},
        {"reward": "price", "reward_most": 0.0},
        {"reward_most": 1.0},
        {"reward": "price", "reward_most": 1.0, "layout": "nested"},
    ],
)
def test_wrong_calls(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        open_log(write(tmp_path / "log.parquet", (1, 1.0)), **options)


@pytest.mark.parametrize("option", ["reward", "unit"])
def test_a_missing_column(tmp_path: Path, option: str) -> None:
    path = write(tmp_path / "log.parquet", (1, 1.0))
    with pytest.raises(DataError) as error:
        open_log(path, **{option: "nothing"}, **({"reward_most": 1.0} if option == "reward" else {}))  # type: ignore[arg-type]
    assert error.value.column == "nothing"
