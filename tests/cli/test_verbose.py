"""What the library logs as it works, and --verbose, which shows it."""

import logging
import re
from pathlib import Path

import pytest

from saferank.features.load_features import load_features
from saferank.logs.load_log import load_log
from tests.cli.running import Call

LOG = "impression_id,query_id,document_id,position,click\n1,a,x,1,0\n1,a,y,2,1\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.csv"
    file.write_text(LOG)
    return file


def test_reading_is_logged(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="saferank")
    load_log(log)
    load_features({"query_id": ["a"], "document_id": ["x"], "price": [1.0]})
    assert [record.getMessage() for record in caplog.records] == [
        f"Reading the log {log}",
        f"Counted 2 rows of {log}",
        "Reading the features a dict",
    ]
    assert {record.levelno for record in caplog.records} == {logging.INFO}


@pytest.mark.parametrize(("option", "place"), [("-v", 0), ("--verbose", 2)])
def test_verbose_shows_steps_with_their_times(
    option: str, place: int, log: Path, saferank: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    arguments = ["aggregate", "log.csv", "--out", "stats"]
    arguments.insert(place, option)
    ran = saferank(*arguments)
    assert ran.exit_code == 0, ran.err
    shown = re.findall(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}  (.*)$", ran.err, re.MULTILINE)
    assert shown == ["Reading the log log.csv", "Counted 2 rows of log.csv"]
    logger = logging.getLogger("saferank")
    assert (logger.handlers, logger.level) == ([], logging.NOTSET)


def test_nothing_is_shown_unless_asked_for(log: Path, saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log.parent)
    ran = saferank("aggregate", "log.csv", "--out", "stats")
    assert (ran.exit_code, ran.err) == (0, "")


def test_config_after_the_command(log: Path, saferank: Call) -> None:
    config = log.parent / "other.toml"
    config.write_text('[aggregate]\nlog = "log.csv"\nout = "stats"\n')
    for given in (["--config", str(config)], [f"--config={config}"]):
        assert saferank("aggregate", *given).exit_code == 0
    assert (log.parent / "stats").is_dir()
