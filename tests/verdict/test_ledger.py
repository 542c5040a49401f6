"""Looks at the same data share delta; fresh data begins anew."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from saferank.engine.bounds.verdict_choices import FIRST_LOOK
from saferank.engine.errors import DataError
from saferank.logs.periods import seconds_of
from saferank.verdict.ledger import Ledger, Look, fingerprints, ledger_path

MANIFEST: dict[str, Any] = {
    "source": "log.parquet",
    "files": [{"name": "log.parquet", "sha256": "1"}],
    "period": ["2026-01-01T00:00:00", "2026-01-07T23:00:00"],
    "rows": 1_000,
}
GROWN = MANIFEST | {"rows": 2_000, "period": ["2026-01-01T00:00:00", "2026-01-09T23:00:00"]}
LATER = MANIFEST | {"period": ["2026-01-08T00:00:00", "2026-01-15T23:00:00"]}


def look(model: str, manifest: dict[str, Any] = MANIFEST) -> Look:
    return Look.now(
        model, manifest, delta=0.05, spent=0.025, interactions=9, improvement=0.1, lower=0.0, upper=0.2,
        verdict="DEPLOY",
    )  # fmt: skip


def test_models_one_after_the_other_get_shares_that_add_up_to_one() -> None:
    book, shares = Ledger(()), []
    for number in range(1, 4):
        share, place = book.share(f"model {number}", MANIFEST)
        assert place == number
        shares.append(share)
        book = book.with_look(look(f"model {number}"))
    assert shares == pytest.approx([1 / 2, 1 / 6, 1 / 12])
    assert sum(1 / (j * (j + 1)) for j in range(1, 100_000)) < 1.0


def test_the_same_model_on_the_same_data_is_the_same_look() -> None:
    book = Ledger(()).with_look(look("a")).with_look(look("b"))
    assert book.with_look(look("a")) == book
    assert book.share("a", MANIFEST) == (FIRST_LOOK, 1)
    assert book.share("b", MANIFEST) == (1 / 6, 2)


@pytest.mark.parametrize("period", [MANIFEST["period"], None])
def test_the_same_counts_from_another_file_are_the_same_look(period: list[str] | None) -> None:
    """A re-exported file has other bytes, and often another name."""
    counted = MANIFEST | {"content": "7", "period": period}
    book = Ledger(()).with_look(look("a", counted)).with_look(look("b", counted))
    again = counted | {"source": "again.csv", "files": [{"sha256": "2"}], "rows": 100}
    assert book.share("b", again) == (1 / 6, 2)
    assert book.share("c", again) == (1 / 12, 3)
    assert book.share("b", counted | {"content": "8"}) == (1 / 12, 3)
    assert book.share("b", counted | {"cutoff": 5}) == (1 / 12, 3)


def test_a_look_of_an_older_version_is_not_recorded_again() -> None:
    book, counted = Ledger(()).with_look(look("a")), MANIFEST | {"content": "7"}
    assert book.with_look(look("a", counted), fingerprints(counted)) == book
    assert len(book.with_look(look("b", counted), fingerprints(counted)).looks) == 2


def test_looks_of_older_versions_are_recognised_by_their_files() -> None:
    book = Ledger(()).with_look(look("a")).with_look(look("b"))
    assert book.share("b", MANIFEST | {"content": "7"}) == (1 / 6, 2)


def test_a_grown_log_is_a_new_look_unless_the_bound_holds_at_any_time() -> None:
    book = Ledger(()).with_look(look("a"))
    assert book.share("a", GROWN) == (1 / 6, 2)
    assert book.share("a", GROWN, any_time=True) == (1 / 2, 1)
    assert book.share("b", GROWN, any_time=True) == (1 / 6, 2)


def test_data_of_another_time_is_fresh() -> None:
    book = Ledger(()).with_look(look("a"))
    assert book.share("a", LATER) == (1 / 2, 1)
    assert book.on(LATER) == ()
    both = book.with_look(look("b", LATER))
    assert both.share("c", GROWN) == (1 / 12, 3)  # it has days of either


def test_logs_that_share_a_single_moment_may_share_interactions() -> None:
    """Both ends of a period were seen: a log may begin at the last moment of a look, or end at its first."""
    book = Ledger(()).with_look(look("a"))
    begin, end = MANIFEST["period"]
    for period in ([end, "2026-01-15T23:00:00"], ["2025-12-25T00:00:00", begin]):
        assert book.share("b", MANIFEST | {"period": period}) == (1 / 6, 2)


@pytest.mark.parametrize(
    "moment",
    [
        1612110512.345,
        1612110512345,
        "1612110512345",
        1612110512345000,
        1612110512345000000,
        "2021-01-31T16:28:32.345",
        "2021-01-31T17:28:32.345+01:00",
        datetime(2021, 1, 31, 16, 28, 32, 345000, UTC),
    ],
)
def test_a_moment_is_the_same_as_text_and_as_a_number_of_any_unit(moment: object) -> None:
    """1612110512345 is also ISO text, of the fifth of November 1612."""
    assert seconds_of(moment) == pytest.approx(1612110512.345, abs=1e-3)


@pytest.mark.parametrize("moment", [None, "yesterday", "", float("nan"), "nan"])
def test_what_is_no_moment(moment: object) -> None:
    assert seconds_of(moment) is None


def test_logs_in_milliseconds_that_share_a_moment_may_share_interactions() -> None:
    """Read as ISO text, the last moment of the look would be of the year 1612, and all other data after it."""
    book = Ledger(()).with_look(look("a", MANIFEST | {"period": ["1612100000000", "1612110512345"]}))
    assert book.share("b", MANIFEST | {"period": ["1612105000000", "1612120000000"]}) == (1 / 6, 2)
    assert book.share("b", MANIFEST | {"period": ["1612115000000", "1612120000000"]}) == (1 / 2, 1)


def test_without_times_files_tell_and_without_files_all_may_be_the_same() -> None:
    untimed = MANIFEST | {"period": None}
    book = Ledger(()).with_look(look("a", untimed))
    other = untimed | {"source": "other.parquet", "files": [{"sha256": "2"}]}
    assert book.share("b", other) == (1 / 2, 1)
    assert book.share("b", other | {"files": [{"sha256": "1"}]}) == (1 / 6, 2)  # a copy
    assert book.share("b", untimed | {"files": [{"sha256": "2"}]}) == (1 / 6, 2)  # the same name
    assert book.share("b", {"source": "somewhere"}) == (1 / 6, 2)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "log.ledger.json"
    assert Ledger.read(path) == Ledger(())
    book = Ledger(()).with_look(look("a")).with_look(replace(look("b"), period=None))
    book.write(path)
    assert Ledger.read(path) == book


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": "saferank-ledger", "version": 9, "looks": []}',
        '{"format": "saferank-ledger", "version": 1}',
        '{"format": "saferank-ledger", "version": 1, "looks": [{"model": "a"}]}',
    ],
)
def test_broken_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.ledger.json"
    path.write_text(text)
    with pytest.raises(DataError) as raised:
        Ledger.read(path)
    assert str(raised.value.file) == str(path)


def test_it_is_kept_beside_the_log(tmp_path: Path) -> None:
    assert ledger_path(str(tmp_path / "log.parquet")) == tmp_path / "log.parquet.ledger.json"
    assert ledger_path(f"{tmp_path / 'stats'}/") == tmp_path / "stats.ledger.json"
    assert ledger_path("no/such/folder/log*.parquet") == Path("log_.parquet.ledger.json")
