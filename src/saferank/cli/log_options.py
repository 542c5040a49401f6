"""What several commands share: the options of a log and its features, reading the log, checks of what is written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from saferank.cli.config import with_columns
from saferank.engine.errors import UsageError
from saferank.files.atomic_write import check_parents, check_writable
from saferank.files.table_url import without_secrets

if TYPE_CHECKING:
    from rich.status import Status

    from saferank.logs.aggregated_log import AggregatedLog
    from saferank.logs.split import Split

LARGEST_SEED = 2**31
FEATURES = typer.Option(
    metavar="F",
    help="Features of the candidates, one row per query and document: query_id, document_id, numbers. Parquet or CSV "
    "(file, folder, pattern), LETOR (file, folder), or [cyan]synthetic:PRESET[/cyan].",
)
EXAMINATION = (
    "Probability that users examine each rank, if you know it: [cyan]1,0.6,0.45[/cyan], or "
    "[cyan]inverse-rank:1[/cyan] for 1/rank."
)

DataArgument = Annotated[
    str, typer.Argument(metavar="DATA", help="A folder in LETOR layout, or [cyan]synthetic:PRESET[/cyan].")
]
RawLog = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="A Parquet or CSV file, a folder or quoted pattern of such files, a session log, or the URL of a table: "
        "[cyan]duckdb://file.db/table[/cyan], [cyan]postgres://user@host/database/table[/cyan], "
        "[cyan]spark://host:7077/table[/cyan].",
    ),
]
Log = Annotated[
    str, typer.Argument(metavar="LOG", help="A click log, or a folder that [cyan]saferank aggregate[/cyan] wrote.")
]
Features = Annotated[str | None, FEATURES]
Examination = Annotated[str | None, typer.Option(help=EXAMINATION, show_default="estimated from LOG")]
Cutoff = Annotated[
    int | None,
    typer.Option(min=1, metavar="K", help="Number of ranks of LOG to count.", show_default="all, at most 10"),
]
Shares = Annotated[
    str | None,
    typer.Option("--split", help="Percentages of LOG for train/validation/certify.", show_default="60/20/20"),
]
SplitBy = Annotated[
    Literal["hash", "time", "query", "unit"] | None,
    typer.Option(
        metavar="WAY",
        help="hash: impressions at random (units, with --unit); time: the latest certify; query, unit: at random, "
        "each query or unit in one part.",
        show_default="hash",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        callback=with_columns,
        metavar="OURS=THEIRS",
        help="A column of LOG with another name: [cyan]click=clicked[/cyan]. Also used for the ids in F. Repeatable.",
    ),
]
Layout = Annotated[
    str,
    typer.Option(
        help="Layout of LOG: auto, long, nested, ubi or session; [cyan]ubi:ACTION[/cyan] if a click is another action."
    ),
]
OnBadRows = Annotated[
    Literal["error", "drop"],
    typer.Option(metavar="WAY", help="Rows that cannot be used or lack features: error, or drop."),
]
Segment = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of LOG, such as the device, whose values are also counted separately."),
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
    typer.Option(metavar="COLUMN", help="Column of F with the scores from which the rankings of LOG were sampled."),
]
Live = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL", help="Model that drew the rankings of LOG, by [cyan]saferank rank --serve-as sampled[/cyan]."
    ),
]
Earlier = Annotated[
    list[str] | None,
    typer.Option(metavar="LOG", help="Log of an earlier live ranker, to learn about users. Repeatable."),
]
Candidate = Annotated[
    str | None,
    typer.Option(
        metavar="SCORES",
        help="Instead of MODEL, the output of any other ranker: Parquet or CSV with query_id, document_id, and score "
        "or rank.",
    ),
]
TrainedUntil = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="With --candidate: the ranker saw nothing of LOG after this moment (UTC; a date is the end of its day). "
        "Only later interactions are evaluated, a fifth of them as validation.",
    ),
]
TrainedWithoutHeldOut = Annotated[
    bool,
    typer.Option(
        "--trained-without-held-out",
        help="With --candidate: it never saw the held-out part of LOG: made from other data or by rules, or trained on "
        "what [cyan]saferank split[/cyan] wrote.",
    ),
]
Ledger = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Record of all looks at LOG.", show_default="LOG.ledger.json")
]
Part = Annotated[
    str,
    typer.Option(
        metavar="SPLIT",
        help="If F is a data set: its split that the queries of LOG are from (train, validation or test). Not a part "
        "of LOG.",
    ),
]
ServeAs = Annotated[
    Literal["deterministic", "sampled"],
    typer.Option(metavar="WAY", help="deterministic: ranked by score; sampled: drawn at random from the policy."),
]
Delta = Annotated[float, typer.Option(help="Probability that a DEPLOY is wrong, over all looks at this log.")]
Constant = Annotated[
    Literal["proven", "paper"],
    typer.Option("--constant", "--bound", metavar="C", help="Constant of the risk term: proven or paper."),
]
Page = Annotated[Path, typer.Option(help="HTML page to write.")]


def check_seed(seed: int | None) -> int | None:
    """Raise for a seed that is too large; a range would be shown in full, and narrow every help to its width."""
    if seed is not None and seed > LARGEST_SEED:
        raise typer.BadParameter(f"must be at most {LARGEST_SEED}.")
    return seed


Seed = Annotated[int, typer.Option(min=0, callback=check_seed, metavar="N", help="Random seed.")]


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
            raise UsageError(f"--column {pair}: {ours} is already {columns[ours]}; name each column once.")
        columns[ours] = theirs
    return columns


def parse_names(text: str) -> list[str]:
    """Return the names in a list separated by commas.

    >>> parse_names("a, b,")
    ['a', 'b']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def requested_split(shares: str | None, by: str | None, seed: int = 0) -> Split | None:
    """Return the split that --split, --split-by and the seed ask for, None for the default one."""
    from saferank.logs.split_options import parse_split

    given = shares is not None or by is not None or seed != 0
    return parse_split(shares or "60/20/20", by=by or "hash", seed=seed) if given else None


def read_log(log: str, status: Status, *, column: list[str] | None, **options: Any) -> AggregatedLog:
    """Return the aggregated log; `options` are those of `load_log`, and the status shows each step."""
    from saferank.logs.load_log import load_log

    name = without_secrets(log)
    status.update(f"Reading {name}")
    return load_log(
        log, columns=parse_columns(column), progress=lambda step: status.update(f"{step} of {name}"), **options
    )


def check_output_folder(path: Path) -> None:
    """Raise if nothing can be written into `path`: it is a file, lies below one, or takes no new files."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"--out {path} is a file; name a folder.")
    if path.exists():
        check_writable(path, path, "folder")
    else:
        check_parents(path, "folder")
