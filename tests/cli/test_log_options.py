import re

import pytest

from saferank.cli.log_options import parse_columns
from saferank.engine.errors import UsageError


@pytest.mark.parametrize(
    ("pairs", "columns"),
    [
        (None, {}),
        ([], {}),
        (["click=clicked", "query_id=q"], {"click": "clicked", "query_id": "q"}),
        (["click=a=b"], {"click": "a=b"}),
        ([" click = was clicked "], {"click": "was clicked"}),
        (["click=clicked", "click=clicked"], {"click": "clicked"}),
    ],
)
def test_our_name_to_theirs(pairs: list[str] | None, columns: dict[str, str]) -> None:
    assert parse_columns(pairs) == columns


@pytest.mark.parametrize("pair", ["click", "click=", "=clicked", "=", "", " = "])
def test_no_pair(pair: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--column {pair}: write OURS=THEIRS, such as click=clicked.")):
        parse_columns(["query_id=q", pair])


def test_a_column_named_twice() -> None:
    with pytest.raises(UsageError, match=r"--column click=b: click is a already; name each column once\."):
        parse_columns(["click=a", "click=b"])
