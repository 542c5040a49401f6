"""Session logs as text: clicks find their page; and the NAVER log, if it is there."""

from pathlib import Path

import pytest

from saferank.engine.errors import DataError
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.run_query import fetch
from saferank.logs.session_log import is_session_log, read_session_log
from tests.logs.written_layouts import LINES, write_sessions

NAVER = Path(__file__).parents[3] / "shared" / "data" / "naver-clara2" / "CLARA2SearchLog_beta"


def test_a_click_belongs_to_the_latest_page_that_shows_it(tmp_path: Path) -> None:
    path = write_sessions(tmp_path / "log")
    log = open_log(path)
    assert log.layout == "session"
    rows = [tuple(row.values()) for row in fetch(log.table).to_pylist()]
    assert sorted(rows, key=str) == sorted(
        [
            ("s1-1", "tv", "a", 1, 0, 0),
            ("s1-1", "tv", "b", 2, 1, 0),
            ("s1-1", "tv", "c", 3, 0, 0),
            ("s1-2", "radio", "d", 1, 0, 6),
            ("s1-2", "radio", "a", 2, 1, 6),
            ("s2-1", "tv", "c", 1, 1, 7),
            ("s2-1", "tv", "a", 2, 0, 7),
            ("s1-2", "radio", "z", None, 1, 10),  # on no page
            ("s3-0", None, "a", None, 1, 13),  # of a session without one
        ],
        key=str,
    )
    counted = load_log(path, on_bad_rows="drop")
    assert counted.manifest["bad_rows"] == {"click on what was not shown": 2}
    assert counted.manifest["layout"] == "session"
    assert sum(part["clicks"] for part in counted.manifest["parts"].values()) == 3
    by_session = load_log(path, on_bad_rows="drop", unit="session").patterns
    assert sorted(zip(by_session["unit"].to_pylist(), by_session["query_id"].to_pylist(), strict=True)) == [
        ("0", "radio"),
        ("0", "tv"),
        ("1", "tv"),
    ]


@pytest.mark.parametrize("line", ["s1 soon Q tv 0 a", "s1 5 X b", "s1 5 C", "s1 5 Q tv", "s1"])
def test_a_line_that_is_neither(tmp_path: Path, line: str) -> None:
    path = write_sessions(tmp_path / "log", LINES + line)
    with pytest.raises(DataError) as error:
        read_session_log([path])
    assert (error.value.file, error.value.line) == (path, 11)


def test_which_texts_are_sessions(tmp_path: Path) -> None:
    assert is_session_log(write_sessions(tmp_path / "log"))
    assert not is_session_log(write_sessions(tmp_path / "log", "impression_id query_id document_id position"))
    assert not is_session_log(write_sessions(tmp_path / "log", ""))


def test_pages_without_documents_and_empty_lines(tmp_path: Path) -> None:
    table = read_session_log([write_sessions(tmp_path / "log", "s 0 Q tv 0\n\ns 1 Q tv 0 a\ns 2 C a")])
    assert [tuple(row.values()) for row in table.to_pylist()] == [("s-2", "tv", "a", 1, 1, 1, "s")]


@pytest.mark.skipif(not NAVER.exists(), reason="the NAVER log is not there (../shared/data/naver-clara2)")
def test_the_naver_log() -> None:
    """Against its own lines: pages, clicks on what a page shows, each once, and the rest."""
    pages: dict[str, list[list[str]]] = {}
    clicks, strangers = set(), 0
    for line in NAVER.read_text().splitlines():
        session, _, kind, *rest = line.rstrip("\t").split("\t")
        seen = pages.setdefault(session, [])
        if kind == "Q":
            seen.append(rest[2:])
            continue
        places = [place for place, shown in enumerate(seen) if rest[0] in shown]
        strangers += not places
        clicks |= {(session, places[-1], rest[0])} if places else set()
    twice = {(s, place) for s, of in pages.items() for place, shown in enumerate(of) if len(set(shown)) < len(shown)}
    log = load_log(NAVER, on_bad_rows="drop")
    assert log.manifest["bad_rows"] == {"repeated document": len(twice), "click on what was not shown": strangers}
    sizes = log.manifest["parts"].values()
    assert sum(part["interactions"] for part in sizes) == sum(map(len, pages.values())) - len(twice)
    assert sum(part["clicks"] for part in sizes) == sum((s, place) not in twice for s, place, _ in clicks)
