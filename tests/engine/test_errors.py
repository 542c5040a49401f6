"""One message, with options for the command line and keywords for Python."""

import pytest

from saferank.doctor.health import caution
from saferank.engine.errors import DataError, SaferankError, UsageError, in_python
from saferank.verdict.certificate import Doubt


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("give --examination, or --trust-examination.", "give examination=, or trust_examination=True."),
        ("--trained-until TIME if so; --missing 0", "trained_until=TIME if so; missing=0"),
        (
            "With --unit=user_id, it holds (--layout ubi:ACTION).",
            "With unit='user_id', it holds (layout='ubi:ACTION').",
        ),
        ("--reward price: no rewards.", "reward='price': no rewards."),
        ("--out a/train.parquet is a folder.", "out='a/train.parquet' is a folder."),
        ("(--column timestamp=THEIRS), or --split-by hash.", "(columns={'timestamp': 'THEIRS'}), or split_by='hash'."),
        ("use --column a=THEIRS --column b=THEIRS.", "use columns={'a': 'THEIRS', 'b': 'THEIRS'}."),
        ("give --features too. No a--b, 1 -- 2, --- either.", "give features= too. No a--b, 1 -- 2, --- either."),
    ],
)
def test_options_become_keywords(message: str, expected: str) -> None:
    assert in_python(message) == expected


@pytest.mark.parametrize("kind", [SaferankError, DataError, UsageError])
def test_an_error_has_both(kind: type[SaferankError]) -> None:
    error = kind("fit again with --unit.")
    assert (str(error), error.args[0]) == ("fit again with unit=.", "fit again with --unit.")


def test_findings_and_doubts_are_printed_with_keywords() -> None:
    finding, doubt = caution("code", "Text.", "Give --features."), Doubt("code", "Text.", "Give --features.")
    assert (str(finding), str(doubt)) == ("caution: Text. Give features=.", "Text. Give features=.")
    assert finding.remedy == doubt.remedy == "Give --features."
