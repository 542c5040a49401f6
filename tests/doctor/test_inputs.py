from pathlib import Path

import pytest

from saferank.doctor.inputs import load_inputs
from saferank.engine.errors import UsageError
from tests.cli.shown_log import write_shown_log


@pytest.mark.parametrize(
    ("examination", "cutoff", "given"),
    [
        (None, None, None),
        (None, 1, None),
        ("1", None, [1.0]),
        ("inverse-rank:1", None, [1.0, 0.5]),
        ([0.5], None, [0.5]),
    ],
)
def test_a_listed_examination_says_how_many_ranks_to_count(
    tmp_path: Path, examination: str | list[float] | None, cutoff: int | None, given: list[float] | None
) -> None:
    log = write_shown_log(tmp_path / "log.parquet", queries=5)
    counted, features, curve = load_inputs(log, None, examination, cutoff=cutoff)
    assert features is None
    assert counted.cutoff == (len(given) if given else cutoff or 2)
    assert (None if curve is None else curve.tolist()) == given


def test_a_counted_log_takes_no_options_of_reading(tmp_path: Path) -> None:
    log = write_shown_log(tmp_path / "log.parquet", queries=5)
    counted, _, _ = load_inputs(log, None, None)
    assert load_inputs(counted, None, None)[0] is counted
    with pytest.raises(UsageError):
        load_inputs(counted, None, None, unit="user_id")
    with pytest.raises(UsageError):
        load_inputs(log, None, [1.0], cutoff=2)
