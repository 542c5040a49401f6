"""`saferank doctor`: is this log fit to learn from?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from saferank.cli.log_options import Columns, Layout, OnBadRows, Part, parse_columns
from saferank.engine.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from saferank.doctor.health import Health

STYLES = {"good": "green", "caution": "yellow", "bad": "bold red"}
RANKS_ON_SCREEN = 10
"""The page has them all."""


def doctor(
    log: Annotated[
        str,
        typer.Argument(metavar="LOG", help="A log in any layout, or a folder that [cyan]aggregate[/cyan] wrote."),
    ],
    features: Annotated[
        str | None,
        typer.Option(
            metavar="F", help="Features of the candidates, as for [cyan]fit[/cyan]: tells what was never shown."
        ),
    ] = None,
    examination: Annotated[
        str | None,
        typer.Option(
            help="Chance that a rank is looked at, if known: [cyan]inverse-rank:1[/cyan], or [cyan]1,0.5,0.3[/cyan].",
            show_default="estimated from the log",
        ),
    ] = None,
    cutoff: Annotated[
        int | None, typer.Option(min=1, help="Ranks to count.", show_default="as many as are shown, at most 10")
    ] = None,
    column: Columns = None,
    layout: Layout = "auto",
    on_bad_rows: OnBadRows = "error",
    part: Part = "train",
    rankings: Annotated[
        bool, typer.Option("--rankings/--no-rankings", help="Count whole rankings too, which takes longer.")
    ] = True,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("doctor.html"),
) -> None:
    """Tell whether a click log is fit to learn from, and what to log differently.

    How much there is, how random the rankings were, what was never shown, how
    position bends the clicks, whether demand, ranker, users or bots break what a
    verdict rests on, and how small a gain the log could prove. Ends with exit
    code 0 whatever it finds: it informs, [bold]certify[/bold] decides.

    [cyan]saferank doctor log.parquet --features features.parquet[/cyan]
    """
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; name a file, such as {out / 'doctor.html'}.")
    columns = parse_columns(column)

    from saferank.doctor.diagnosis import diagnose
    from saferank.engine.click_models.examination import parse_examination
    from saferank.features.load_features import load_features
    from saferank.files.atomic_write import check_not_read, check_parents
    from saferank.logs.aggregated_log import is_aggregated
    from saferank.logs.load_log import load_log
    from saferank.report.doctor_page import doctor_page
    from saferank.report.page import write_page

    check_parents(out)
    check_not_read(out, [Path(log), *([] if features is None else [Path(features)])])
    if examination is not None and not examination.startswith("inverse-rank"):
        cutoff = len(parse_examination(examination, cutoff))
    with Console(stderr=True).status(f"Reading {log}") as status:
        aggregated = load_log(
            log,
            columns=columns,
            layout=layout,
            cutoff=cutoff,
            on_bad_rows=on_bad_rows,
            rankings=rankings and not is_aggregated(log),
            progress=lambda step: status.update(f"{step} of {log}"),
        )
        given = None if examination is None else parse_examination(examination, aggregated.cutoff)
        if features is not None:
            status.update(f"Reading {features}")
        data = None if features is None else load_features(features, part=part, missing="nan")  # reads ids alone
        status.update("Estimating examination")
        health = diagnose(aggregated, data, given)
        status.update(f"Writing {out}")
        write_page(doctor_page(health), out)
    Console().print(screen(health))
    Console().print(f"All numbers, with pictures: {out}", soft_wrap=True, highlight=False)


def screen(health: Health) -> RenderableType:
    """One screen: sizes, ranks, findings."""
    parts: list[RenderableType] = [Text(health.source, style="bold", overflow="ellipsis", no_wrap=True)]
    if health.period is not None:
        parts.append(Text(f"{health.period[0]} to {health.period[1]}", style="dim"))
    parts.append(_sizes(health))
    if health.traffic.clicks:
        parts.append(_ranks(health))
    parts.append(_findings(health))
    if health.blocking:
        codes = ", ".join(one.code for one in health.blocking)
        parts.append(Text(f"No verdict is possible from this log: {codes}.", style="bold red"))
    return Group(*parts)


def _sizes(health: Health) -> Table:
    traffic, varied = health.traffic, health.randomness
    cells = [
        ("interactions", f"{traffic.interactions:,}"),
        ("clicks", f"{traffic.clicks:,}"),
        ("queries", f"{traffic.queries:,}"),
        ("seen once", f"{traffic.queries_seen_once:,}"),
        ("documents shown", f"{traffic.pairs:,}"),
        ("stood at several ranks", f"{varied.moved:.0%}"),
        ("entropy at rank 1", "unknown" if varied.top_entropy is None else f"{varied.top_entropy:.2f} bits"),
        ("rankings a query", "not counted" if varied.rankings is None else f"{varied.rankings:.1f}"),
    ]
    if health.periods:
        cells.append(("demand over time", "changes" if health.demand.significant else "steady"))
        cells.append(("ranker over time", "changes" if health.ranker.significant else "steady"))
    if health.effective is not None:
        cells.append(("effective clicks", f"{health.effective.by_clicks:,.0f}"))
    if health.coverage is not None:
        cells.append(("never shown", f"{health.coverage.never_shown_share:.0%}"))
    table = Table.grid(padding=(0, 2))
    for start in range(0, len(cells), 2):
        table.add_row(*(text for name, value in cells[start : start + 2] for text in (Text(name, style="dim"), value)))
    return table


def _ranks(health: Health) -> Table:
    import math

    table = Table(box=None, padding=(0, 2, 0, 0))
    names = [
        "rank",
        "shown",
        "click rate",
        "to rank 1",
        "looked at",
        f"{health.harvested.confidence:.0%} interval",
        "EM",
    ]
    if health.given is not None:
        names.append("given")
    for name in names:
        table.add_column(name, justify="right", header_style="dim")
    harvested, rate = health.harvested, health.click_rate
    for rank in range(min(health.cutoff, RANKS_ON_SCREEN)):
        low, high = harvested.low[rank], harvested.high[rank]
        cells = [
            str(rank + 1),
            f"{health.shown[rank]:,}",
            f"{rate[rank]:.2%}" if health.shown[rank] else "-",
            f"{rate[rank] / rate[0]:.2f}" if health.shown[rank] and rate[0] > 0 else "-",
            _decimal(harvested.curve[rank]),
            "" if rank == 0 or math.isnan(low) else f"{low:.2f} to {high:.2f}",
            "-" if health.em is None else _decimal(health.em.curve[rank]),
        ]
        table.add_row(*cells, *([] if health.given is None else [f"{health.given[rank]:.2f}"]))
    return table


def _findings(health: Health) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in health.findings:
        remedy = Text(f" {finding.remedy}", style="italic dim") if finding.remedy else Text()
        table.add_row(Text(finding.level, style=STYLES[finding.level]), Text(finding.text) + remedy)
    return table


def _decimal(value: float) -> str:
    return f"{value:.2f}" if value == value else "unknown"
