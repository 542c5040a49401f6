"""Scores made elsewhere: no verdict unless it is said why they are independent of what they are judged by."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import saferank
from saferank.engine.errors import DataError, UsageError
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.split import HashSplit, UntilSplit
from saferank.logs.split_options import parse_split, parse_until, split_of, until_split
from saferank.logs.training_rows import write_training_rows
from saferank.verdict.certificate import Certificate
from saferank.verdict.checks import Refused
from saferank.verdict.settings import CertifySettings
from tests.shop_log import DAY, START
from tests.verdict.equal_shop import INTERACTIONS, by_clicks, equal_shop_log

QUICK = CertifySettings(details=False)
MIDDAY = datetime(2026, 1, 9, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elsewhere") / "log.parquet"
    pq.write_table(equal_shop_log(0), path)
    return path


def certified(scores: Any, log: Path, book: Path, **how: Any) -> Certificate:
    return saferank.certify(scores, log, QUICK, ledger=book, **how)


def test_a_ranking_by_all_clicks_of_the_log_is_refused(log: Path, tmp_path: Path) -> None:
    scores = by_clicks(pq.read_table(log))
    with pytest.raises(Refused) as error:
        certified(scores, log, tmp_path / "looks.json")
    assert error.value.code == "training-unknown"
    for way in ("`trained_until`", "saferank split", "`trained_without_held_out`"):
        assert way in str(error.value)
    assert list(tmp_path.iterdir()) == []
    lied = certified(scores, log, tmp_path / "looks.json", trained_without_held_out=True)
    assert lied.verdict.value == "DEPLOY"  # so nothing else would have kept it from going live
    assert lied.relative[0] > 0.3


def test_without_the_held_out_part_it_is_not_deployed(tmp_path: Path) -> None:
    deployed = 0
    for seed in range(4):
        pq.write_table(equal_shop_log(seed), tmp_path / "log.parquet")
        write_training_rows(open_log(tmp_path / "log.parquet"), HashSplit(), tmp_path / "train.parquet")
        scores = by_clicks(pq.read_table(tmp_path / "train.parquet"))
        book = tmp_path / f"{seed}.json"
        found = certified(scores, tmp_path / "log.parquet", book, trained_without_held_out=True)
        assert found.independence == "stated"
        deployed += found.verdict.value == "DEPLOY"
    assert deployed == 0  # at delta 0.05 / 2, one of four in 10% of runs if the bound were exactly at its level


def test_only_what_came_later_is_evaluated(log: Path, tmp_path: Path) -> None:
    table = pq.read_table(log)
    early = pc.less_equal(table["timestamp"], pa.scalar(MIDDAY.replace(tzinfo=None), pa.timestamp("s")))
    scores = by_clicks(table.filter(early))
    found = certified(scores, log, tmp_path / "one.json", trained_until=MIDDAY)
    assert (found.independence, found.trained_until) == ("trained-until", "2026-01-09T12:00:00+00:00")
    assert any("2026-01-09T12:00:00" in one for one in found.assumptions)
    assert found.verdict.value != "DEPLOY"
    later = len(table.filter(pc.invert(early))) // 3
    assert found.interactions == pytest.approx(0.8 * later, abs=5 * np.sqrt(0.16 * later))
    parts = found.inputs["log"]["parts"]
    assert parts["train"]["interactions"] == INTERACTIONS - later
    # whatever was clicked earlier, what is evaluated stays the same
    other = table.set_column(
        table.schema.get_field_index("click"), "click",
        pc.if_else(early, pc.cast(pc.less_equal(table["position"], 1), pa.int8()), table["click"]),
    )  # fmt: skip
    pq.write_table(other, tmp_path / "other.parquet")
    counted = [load_log(one, split=UntilSplit(MIDDAY)) for one in (log, tmp_path / "other.parquet")]
    for name in ("validation", "certify"):
        first, second = (one.patterns.filter(pc.equal(one.patterns["part"], name)) for one in counted)
        assert first.equals(second)


@pytest.mark.parametrize(
    ("moment", "kind"),
    [(MIDDAY, None), ("2026-01-09T13:00:00+01:00", None), (MIDDAY, "ms"), (START + 4.5 * DAY, "s"), (MIDDAY, "UTC")],
)
def test_moments_of_every_kind_cut_alike(log: Path, tmp_path: Path, moment: Any, kind: str | None) -> None:
    table = pq.read_table(log)
    seconds = table["timestamp"].cast(pa.timestamp("s")).cast(pa.int64())
    written = {
        None: table["timestamp"],
        "s": seconds,
        "ms": pc.multiply(seconds, 1000),
        "UTC": seconds.cast(pa.timestamp("s", "UTC")),
    }[kind]
    pq.write_table(table.set_column(1, "timestamp", written), tmp_path / "log.parquet")
    parts = load_log(tmp_path / "log.parquet", split=UntilSplit(parse_until(moment))).manifest["parts"]
    before = int(pc.sum(pc.less_equal(seconds, START + int(4.5 * DAY))).as_py()) // 3
    assert parts["train"]["interactions"] == before


def test_a_date_is_the_end_of_its_day() -> None:
    end = datetime(2026, 1, 9, 23, 59, 59, 999_999, tzinfo=UTC)
    assert parse_until("2026-01-09") == parse_until(date(2026, 1, 9)) == end
    assert parse_until("2026-01-09T00:00:00") == datetime(2026, 1, 9, tzinfo=UTC)
    assert parse_until("17.5") == 17.5


@pytest.mark.parametrize("moment", ["soon", "2026-13-01", "", "nan"])
def test_a_bad_moment_is_a_wrong_call(log: Path, tmp_path: Path, moment: str) -> None:
    with pytest.raises(UsageError):
        certified(by_clicks(pq.read_table(log)), log, tmp_path / "looks.json", trained_until=moment)


def test_logs_that_cannot_be_cut_there(log: Path, tmp_path: Path) -> None:
    table = pq.read_table(log)
    scores, book = by_clicks(table), tmp_path / "looks.json"
    pq.write_table(table.drop_columns(["timestamp"]), tmp_path / "undated.parquet")
    with pytest.raises(DataError) as error:
        certified(scores, tmp_path / "undated.parquet", book, trained_until=MIDDAY)
    assert (error.value.file, error.value.column) == (str(tmp_path / "undated.parquet"), "timestamp")
    with pytest.raises(DataError) as error:
        certified(scores, log, book, trained_until="2026-02-01")
    assert (error.value.file, error.value.column) == (str(log), "timestamp")
    with pytest.raises(UsageError):
        certified(scores, log, book, trained_until=START)  # the log has dates
    some = pc.if_else(pc.equal(table["impression_id"], 0), None, table["timestamp"])
    pq.write_table(table.set_column(1, "timestamp", some), tmp_path / "partly.parquet")
    with pytest.raises(DataError):
        certified(scores, tmp_path / "partly.parquet", book, trained_until=MIDDAY)
    assert not book.exists()


@pytest.mark.parametrize(
    "how",
    [
        {"trained_until": MIDDAY, "trained_without_held_out": True},
        {"trained_until": MIDDAY, "split": parse_split("60/20/20", by="time")},
        {"trained_until": MIDDAY, "split": parse_split("60/20/20", by="query")},
        {"trained_until": MIDDAY, "split": parse_split("100/0/0")},
    ],
)
def test_contradictions(log: Path, tmp_path: Path, how: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        certified(by_clicks(pq.read_table(log)), log, tmp_path / "looks.json", **how)


def test_the_split_of_what_is_later() -> None:
    assert until_split(MIDDAY, None).shares == (0.2, 0.8)
    chosen = until_split(MIDDAY, parse_split("60/10/30", by="unit"))
    assert chosen.shares == pytest.approx((0.25, 0.75))
    assert chosen.by == "unit"
    again = split_of(UntilSplit(MIDDAY, by="impression").describe())
    assert again == UntilSplit(MIDDAY, by="impression")


@pytest.mark.parametrize(
    ("split", "fine"),
    [
        (lambda: parse_split("60/20/20", by="time"), True),  # validation begins in the morning of the 9th
        (lambda: parse_split("50/30/20", by="time"), False),
        (lambda: parse_split("60/20/20"), False),
        (lambda: UntilSplit(datetime(2026, 1, 9, tzinfo=UTC)), True),
        (lambda: UntilSplit(datetime(2026, 1, 8, tzinfo=UTC)), False),
    ],
)
def test_an_aggregated_log_must_evaluate_later_interactions(
    log: Path, tmp_path: Path, split: Callable[[], Any], fine: bool
) -> None:
    load_log(log, split=split()).write(tmp_path / "stats")
    scores, until = by_clicks(pq.read_table(log)), datetime(2026, 1, 9, tzinfo=UTC)
    if fine:
        found = certified(scores, tmp_path / "stats", tmp_path / "looks.json", trained_until=until)
        assert found.independence == "trained-until"
    else:
        with pytest.raises(Refused) as error:
            certified(scores, tmp_path / "stats", tmp_path / "looks.json", trained_until=until)
        assert error.value.code == "trained-on-certify"
