"""One message, with options for the command line and keywords for Python."""

import pytest

from saferank.doctor.health import caution
from saferank.engine.errors import DataError, SaferankError, UsageError, in_python
from saferank.verdict.certificate import Doubt


def test_options_become_keywords() -> None:
    assert in_python("state --trust-examination.") == "state `trust_examination`."
    named = in_python("(--column a=THEIRS --column b=THEIRS), or --split-by hash")
    assert named == "(`columns={'a': 'THEIRS', 'b': 'THEIRS'}`), or `split_by` hash"
    for unchanged in ("a--b, 1 -- 2, ---", "/data/--old/x", "run `fit --missing 0` or not"):
        assert in_python(unchanged) == unchanged


@pytest.mark.parametrize("kind", [SaferankError, DataError, UsageError])
def test_an_error_has_both(kind: type[SaferankError]) -> None:
    error = kind("fit again with --unit.")
    assert (str(error), error.args[0]) == ("fit again with `unit`.", "fit again with --unit.")


def test_findings_and_doubts_are_printed_with_keywords() -> None:
    finding, doubt = caution("code", "Text.", "Give --features."), Doubt("code", "Text.", "Give --features.")
    assert (str(finding), str(doubt)) == ("caution: Text. Give `features`.", "Text. Give `features`.")
    assert finding.remedy == doubt.remedy == "Give --features."
