"""Text, tables and progress bars, alike in all commands."""

import textwrap
from collections.abc import Collection, Iterable
from typing import Any

from rich import progress as bars
from rich.console import Console
from rich.table import Table
from rich.text import Text


def tell(text: str, console: Console | None = None, *, headline: str = "", style: str = "bold") -> None:
    """Print a headline and text, broken between words at the width of the screen: a path or a number stays whole."""
    console = console or Console()
    lines = f"{headline} {text}".strip(" ").split("\n")
    wrapped = [textwrap.fill(line, console.width, break_long_words=False, break_on_hyphens=False) for line in lines]
    whole = Text("\n".join(wrapped))
    whole.stylize(style, 0, len(headline))
    console.print(whole, soft_wrap=True)


def number_table(title: str | None, columns: Iterable[str], *, left: Collection[str] = (), **options: Any) -> Table:
    """Return an empty table whose columns are aligned right, as numbers are, except those named in `left`.

    `options` are those of `Table`.
    """
    table = Table(title=title, title_justify="left", **options)
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right")
    return table


def progress_bar(console: Console, *, percent: bool = False, **options: Any) -> bars.Progress:
    """Return a progress bar with the steps done (or their percentage), the time elapsed and the time remaining."""
    done = bars.TaskProgressColumn() if percent else bars.MofNCompleteColumn()
    columns = "{task.description}", bars.BarColumn(), done, bars.TimeElapsedColumn(), "left", bars.TimeRemainingColumn()
    return bars.Progress(*columns, console=console, **options)
