"""`saferank aggregate`: a click log of any size to counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.text import Text

from saferank.cli import log_options as options
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import read_log, requested_split
from saferank.cli.screen import number_table
from saferank.engine.errors import UsageError
from saferank.files.atomic_write import check_parents

if TYPE_CHECKING:
    from rich.console import RenderableType


def aggregate(
    log: options.RawLog,
    out: Annotated[Path, typer.Option(help="Folder to write; replaces the folder of an earlier run.")],
    column: options.Columns = None,
    layout: options.Layout = "auto",
    cutoff: options.Cutoff = None,
    split: options.Shares = None,
    split_by: options.SplitBy = None,
    split_seed: Annotated[int, typer.Option(min=0, help="Seed of a random split.")] = 0,
    unit: options.Unit = None,
    reward: options.Reward = None,
    reward_most: options.RewardMost = None,
    segment: options.Segment = None,
    rankings: Annotated[
        bool, typer.Option("--rankings", help="Count complete rankings too, for action-based methods.")
    ] = False,
    on_bad_rows: options.OnBadRows = "error",
    as_json: AsJson = False,
) -> None:
    """Count a click log once, which makes every later step quick.

    Learning and certifying only need to know how often each document of a query
    was shown and clicked at each rank, and which documents were clicked
    together. The size of these counts depends on what was shown, not on the
    number of rows. [bold]doctor[/bold], [bold]fit[/bold] and [bold]certify[/bold] accept this folder instead of a log.

    The log has one row per shown document: impression_id, query_id, document_id,
    position (from 1), click (0 or 1), and optionally timestamp. Or one row per
    impression: query_id, document_ids (a list), clicks (a list). OpenSearch UBI
    (a folder with ubi_queries and ubi_events) and session logs work too.

    Every impression belongs to one part: [bold]train[/bold] to learn from, [bold]validation[/bold]
    for choices during training, [bold]certify[/bold] for the verdict. With [bold]--unit[/bold], all
    impressions of a user or session belong to the same part.

    [cyan]saferank aggregate 'logs/*.parquet' --out stats --column click=clicked[/cyan]
    """
    from saferank.logs.aggregated_log import is_aggregated

    parts = requested_split(split, split_by, split_seed)
    if out.exists() and not is_aggregated(out):
        raise UsageError(f"--out {out} exists and is not an aggregated log; name another folder.")
    check_parents(out, "folder")
    if is_aggregated(log):
        raise UsageError(f"{log} is already an aggregated log; give the log that it was made from.")
    with Console(stderr=True).status("") as status:
        aggregated = read_log(
            log, status, column=column, layout=layout, cutoff=cutoff, split=parts, segment=segment, unit=unit,
            reward=reward, reward_most=reward_most, on_bad_rows=on_bad_rows, rankings=rankings,
        )  # fmt: skip
        status.update(f"Writing {out}")
        aggregated.write(out)
    if as_json:
        print_json({"out": out, **aggregated.manifest})
    else:
        Console().print(_summary(aggregated.manifest, out))


def _summary(manifest: dict[str, Any], out: Path) -> RenderableType:
    from saferank.logs.row_checks import describe_dropped, how_many

    size = f"{how_many(manifest['rows'], 'row')}, {how_many(manifest['cutoff'], 'rank')}"
    columns = ("part", "interactions", "queries", "shown", "clicks", "click-through")
    table = number_table(f"{out}: {size}", columns, left=["part"])
    for part, held in manifest["parts"].items():
        share = f"{held['clicks'] / held['shown']:.2%}" if held["shown"] else "-"
        table.add_row(part, *(f"{held[name]:,}" for name in columns[1:-1]), share)
    dropped = [f"Dropped {describe_dropped(kind, count)}." for kind, count in manifest["bad_rows"].items()]
    return Group(table, *(Text(line) for line in (*dropped, *manifest["notes"])))
