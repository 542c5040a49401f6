"""The options by which `aggregate`, `doctor`, `fit`, `certify` and `report` read a log and its features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import typer

from saferank.engine.errors import UsageError

Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OURS=THEIRS", help="A column of LOG with another name: [cyan]click=clicked[/cyan]. Repeatable."
    ),
]
Layout = Annotated[
    str,
    typer.Option(help="Of LOG: long, nested, ubi or session; [cyan]ubi:ACTION[/cyan] for another action than clicks."),
]
OnBadRows = Annotated[
    Literal["error", "drop"], typer.Option(help="Stop at rows that cannot be used or lack features, or leave them out.")
]
Unit = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of LOG with the user or session, whose clicks depend on each other."),
]
Reward = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of LOG with what each click is worth, such as its revenue."),
]
RewardMost = Annotated[
    float | None, typer.Option(metavar="X", help="The most that a click can be worth; needed with --reward.")
]
LoggingScores = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of F with the scores by which rankings of the log were drawn."),
]
Part = Annotated[str, typer.Option(help="Part of F that the queries are of, if F is a data set.")]


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
