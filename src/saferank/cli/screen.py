"""Tables and progress bars, alike in all commands."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table


def number_table(title: str | None, columns: Iterable[str], *, left: Collection[str] = (), **options: Any) -> Table:
    """Return an empty table whose columns are aligned right, as numbers are, except those named in `left`.

    `options` are those of `Table`.
    """
    table = Table(title=title, title_justify="left", **options)
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right")
    return table


def progress_bar(console: Console, *, percent: bool = False, **options: Any) -> Progress:
    """Return a progress bar with the steps done (or their percentage), the time elapsed and the time remaining."""
    done = TaskProgressColumn() if percent else MofNCompleteColumn()
    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    return Progress(TextColumn("{task.description}"), BarColumn(), done, *times, console=console, **options)
