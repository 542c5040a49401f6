"""The option `--column OURS=THEIRS`, which `aggregate`, `doctor` and `fit` share."""

from __future__ import annotations

from collections.abc import Iterable

from saferank.errors import UsageError


def parse_columns(pairs: Iterable[str] | None) -> dict[str, str]:
    """Return our name -> theirs, for every pair that was given.

    >>> parse_columns(["click=clicked", "query_id=q"])
    {'click': 'clicked', 'query_id': 'q'}
    """
    columns: dict[str, str] = {}
    for pair in pairs or ():
        ours, _, theirs = (text.strip() for text in pair.partition("="))
        if not (ours and theirs):
            raise UsageError(f"--column {pair}: write OURS=THEIRS, such as click=clicked.")
        if columns.get(ours, theirs) != theirs:
            raise UsageError(f"--column {pair}: {ours} is {columns[ours]} already; name each column once.")
        columns[ours] = theirs
    return columns
