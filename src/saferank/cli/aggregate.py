"""`saferank aggregate`: a click log of any size to counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from saferank.cli.log_options import Columns, Layout, OnBadRows, Reward, RewardMost, Unit, parse_columns
from saferank.engine.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType


def aggregate(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A Parquet or CSV file, a folder or a quoted pattern of such, a session text, "
            "or [cyan]duckdb://file.db/table[/cyan].",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; one that an earlier run wrote is replaced.")],
    column: Columns = None,
    layout: Layout = "auto",
    cutoff: Annotated[
        int | None,
        typer.Option(min=1, help="How many ranks to count.", show_default="as many as the log shows, at most 10"),
    ] = None,
    split: Annotated[str, typer.Option(help="Shares of train, validation and certify, in percent.")] = "60/20/20",
    split_by: Annotated[
        str,
        typer.Option(
            metavar="hash|time|query|unit",
            help="hash: at random by impression, or by unit if there is one. time: the last ones certify. "
            "query, unit: at random, all of a query or unit in one part.",
        ),
    ] = "hash",
    split_seed: Annotated[int, typer.Option(min=0, help="Another seed gives another split at random.")] = 0,
    unit: Unit = None,
    reward: Reward = None,
    reward_most: RewardMost = None,
    segment: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Count sets of clicks by this column, such as the device, too.")
    ] = None,
    rankings: Annotated[
        bool, typer.Option("--rankings", help="Count whole rankings too, for action-based methods.")
    ] = False,
    on_bad_rows: OnBadRows = "error",
) -> None:
    """Count a click log once, so that every later step is quick.

    Learning and certifying need of a log only how often each document of a query
    was shown and clicked at each rank, and which ones were clicked together. A
    billion rows become a table the size of what was shown. [bold]fit[/bold], [bold]doctor[/bold] and
    [bold]certify[/bold] take the folder in place of the log.

    The log has one row per shown document: impression_id, query_id, document_id,
    position (from 1), click (0 or 1), and timestamp if there is one. Or one row
    per impression: query_id, document_ids (a list), clicks (a list). OpenSearch
    UBI (a folder with ubi_queries and ubi_events) and session texts will do too.

    Every impression belongs to one part: [bold]train[/bold] to learn from, [bold]validation[/bold]
    to choose by, [bold]certify[/bold] to decide by whether what was learned may be shown.
    With [bold]--unit[/bold], all impressions of a user or session belong to the same part.

    [cyan]saferank aggregate 'logs/*.parquet' --out stats --column click=clicked[/cyan]
    """
    columns = parse_columns(column)

    from saferank.files.atomic_write import check_parents
    from saferank.logs.aggregated_log import is_aggregated
    from saferank.logs.load_log import load_log
    from saferank.logs.split import parse_split

    how = parse_split(split, by=split_by, seed=split_seed)
    if out.exists() and not is_aggregated(out):
        raise UsageError(f"--out {out} is there already, and is no folder of statistics; name another.")
    check_parents(out, "folder")
    if is_aggregated(log):
        raise UsageError(f"{log} is a folder of statistics, aggregated already; give the log that it was made from.")
    with Console(stderr=True).status(f"Opening {log}") as status:
        counted = load_log(
            log,
            columns=columns,
            layout=layout,
            cutoff=cutoff,
            split=how,
            segment=segment,
            unit=unit,
            reward=reward,
            reward_most=reward_most,
            on_bad_rows=on_bad_rows,
            rankings=rankings,
            progress=lambda step: status.update(f"{step} of {log}"),
        )
        status.update(f"Writing {out}")
        counted.write(out)
    Console().print(_summary(counted.manifest, out))


def _summary(manifest: dict[str, Any], out: Path) -> RenderableType:
    size = f"{_count(manifest['rows'], 'row')}, {_count(manifest['cutoff'], 'rank')}"
    table = Table("part", title=f"{out}: {size}", title_justify="left")
    for heading in ("interactions", "queries", "shown", "clicks", "click rate"):
        table.add_column(heading, justify="right")
    for part, held in manifest["parts"].items():
        rate = f"{held['clicks'] / held['shown']:.2%}" if held["shown"] else "-"
        counts = (f"{held[name]:,}" for name in ("interactions", "queries", "shown", "clicks"))
        table.add_row(part, *counts, rate)
    lines = [f"Dropped {_dropped(kind, count)}." for kind, count in manifest["bad_rows"].items()]
    return Group(table, *(Text(line) for line in (*lines, *manifest["notes"])))


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def _dropped(kind: str, count: int) -> str:
    from saferank.logs.row_checks import KINDS

    return KINDS[kind].describe_dropped(count)
