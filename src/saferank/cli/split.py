"""`saferank split`: the rows of a log that a ranker may be trained on."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from saferank.cli import log_options as options
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import parse_columns
from saferank.cli.screen import tell
from saferank.files.table_url import without_secrets


def split(
    log: options.RawLog,
    out: Annotated[Path, typer.Option(metavar="TRAIN", help="Parquet file to write.")],
    shares: options.Shares = None,
    split_by: options.SplitBy = None,
    unit: options.Unit = None,
    column: options.Columns = None,
    layout: options.Layout = "auto",
    as_json: AsJson = False,
) -> None:
    """Write the part of a log that another ranker may be trained on.

    TRAIN is everything but the held-out part, on which [cyan]certify --candidate[/cyan]
    decides. A ranker trained on TRAIN, with any tool, has not seen what it will
    be judged on. [cyan]saferank fit[/cyan] does not need this; it never reads the held-out
    part.

    TRAIN has the rows and columns of LOG unchanged. Give [cyan]certify[/cyan] the same
    options for the split, the unit and the columns: the screen shows the
    command.

    [cyan]saferank split log.parquet --out train.parquet[/cyan]
    """
    from saferank.logs.split import TimeSplit
    from saferank.logs.training_rows import split_log

    with Console(stderr=True).status(f"Splitting {without_secrets(log)}"):
        made = split_log(
            log, out, split=shares or "60/20/20", split_by=split_by or "hash", unit=unit, columns=parse_columns(column),
            layout=layout,
        )  # fmt: skip
    call = ["saferank", "certify", "--candidate", "scores.parquet", without_secrets(log)]
    again = {"--unit": unit, "--layout": None if layout == "auto" else layout}
    if isinstance(made.split, TimeSplit):  # by its boundary: bad rows that certify drops would move a quantile
        call += ["--trained-until", str(made.split.describe()["boundaries"][1])]
    else:
        call += ["--trained-without-held-out"]
        again = {"--split": shares, "--split-by": split_by} | again
    call += [word for option, value in again.items() if value is not None for word in (option, value)]
    call += [word for pair in column or () for word in ("--column", pair)]
    if as_json:
        counts = {"impressions": made.kept, "held_out": made.held_out}
        print_json({"out": out, **counts, "split": made.split.describe(), "certify": call})
        return
    total = made.kept + made.held_out
    held_out = f"{made.held_out:,} are held out ({made.held_out / total:.0%})"
    tell(
        f"{out}: {made.kept:,} impressions of {total:,}; {held_out}.\n"
        f"Of this log, train only on {out}. Write query_id, document_id and score of every candidate to "
        "scores.parquet. Then"
    )
    Console().print(f"  {shlex.join(call)}", soft_wrap=True, highlight=False, markup=False)  # to be copied
