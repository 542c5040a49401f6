"""`saferank doctor`: is this log fit to learn from?"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

from saferank.cli import log_options as options
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import parse_columns
from saferank.cli.screen import number_table, tell
from saferank.files.atomic_write import check_output_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from saferank.doctor.health import Health

STYLES = {"good": "green", "caution": "yellow", "bad": "bold red"}
RANKS_ON_SCREEN = 10
"""The page shows all ranks."""


def doctor(
    log: options.Log,
    features: options.Features = None,
    examination: options.Examination = None,
    cutoff: options.Cutoff = None,
    column: options.Columns = None,
    layout: options.Layout = "auto",
    on_bad_rows: options.OnBadRows = "error",
    unit: options.Unit = None,
    part: options.Part = "train",
    rankings: Annotated[
        bool, typer.Option("--rankings/--no-rankings", help="Count complete rankings too, which takes longer.")
    ] = True,
    out: options.Page = Path("doctor.html"),
    as_json: AsJson = False,
) -> None:
    """Check whether a click log is fit to learn from, and what to log differently.

    Reports how much data there is, how random the rankings were, which
    candidates were never shown (with --features), how clicks depend on the rank,
    whether drift, personalisation or bots rule out a verdict, and the smallest
    gain that the log can prove. The exit code is 0 whatever it finds: doctor
    informs, [bold]certify[/bold] decides.

    [cyan]saferank doctor log.parquet --features features.parquet[/cyan]
    """
    check_output_file(out, [log, features])

    from saferank.doctor.diagnosis import diagnose
    from saferank.report.doctor_page import doctor_page
    from saferank.report.page import write_page

    with Console(stderr=True).status("") as status:
        health = diagnose(
            log, features, examination, columns=parse_columns(column), layout=layout, cutoff=cutoff, part=part,
            on_bad_rows=on_bad_rows, unit=unit, rankings=rankings, progress=status.update,
        )  # fmt: skip
        status.update(f"Writing {out}")
        write_page(doctor_page(health), out)
    if as_json:
        print_json({"out": out, **_result(health)})
        return
    Console().print(Group(*screen(health)))
    tell(f"All numbers, with charts: {out}")


def _result(health: Health) -> dict[str, Any]:
    """Return all numbers of the screen, and what they were made from, as values."""
    hours = health.hours
    return {
        "level": health.level,
        "summary": {
            "queries_seen_once": health.traffic.queries_seen_once,
            "demand_changes": health.demand.significant if health.periods else None,
            "ranker_changes": health.ranker.significant if health.periods else None,
            "demand_changes_by_hour": None if hours is None else hours.demand.significant,
            "ranker_changes_by_hour": None if hours is None else hours.ranker.significant,
            "effective_clicks": None if health.effective is None else health.effective.by_clicks,
            "never_shown": None if health.coverage is None else health.coverage.never_shown_share,
            "no_verdict": bool(health.blocking),
        },
        **{field.name: getattr(health, field.name) for field in fields(health)},
        "click_through": health.click_rate,
    }


def screen(health: Health) -> Iterator[RenderableType]:
    """Yield the parts of one screen: sizes, ranks, findings."""
    from saferank.doctor.health import NO_VERDICT

    yield Text(health.source, style="bold", overflow="ellipsis", no_wrap=True)
    if health.period is not None:
        yield Text(f"{health.period[0]} to {health.period[1]}", style="dim")
    yield _sizes(health)
    if health.traffic.clicks:
        yield _ranks(health)
    yield _findings(health)
    if health.blocking:
        yield Text(NO_VERDICT, style="bold red")


def _sizes(health: Health) -> Table:
    traffic, varied = health.traffic, health.randomness
    cells = [
        ("interactions", f"{traffic.interactions:,}"),
        ("clicks", f"{traffic.clicks:,}"),
        ("queries", f"{traffic.queries:,}"),
        ("seen once", f"{traffic.queries_seen_once:,}"),
        ("documents shown", f"{traffic.pairs:,}"),
        ("shown at several ranks", f"{varied.moved:.0%}"),
        ("entropy at rank 1", "unknown" if varied.top_entropy is None else f"{varied.top_entropy:.2f} bits"),
        ("rankings per query", "not counted" if varied.rankings is None else f"{varied.rankings:.1f}"),
    ]
    if health.periods:
        cells.append(("demand over time", "changes" if health.demand.significant else "steady"))
        cells.append(("ranker over time", "changes" if health.ranker.significant else "steady"))
    if health.hours is not None:
        cells.append(("demand by hour", "changes" if health.hours.demand.significant else "steady"))
        cells.append(("ranker by hour", "changes" if health.hours.ranker.significant else "steady"))
    if health.effective is not None:
        cells.append(("effective clicks", f"{health.effective.by_clicks:,.0f}"))
    if health.coverage is not None:
        cells.append(("never shown", f"{health.coverage.never_shown_share:.0%}"))
    table = Table.grid(padding=(0, 2))
    for start in range(0, len(cells), 2):
        table.add_row(*(text for name, value in cells[start : start + 2] for text in (Text(name, style="dim"), value)))
    return table


def _ranks(health: Health) -> Table:
    from saferank.report.page import formatted

    interval = f"{health.harvested.confidence:.0%} interval"
    names = ["rank", "shown", "click-through", "vs rank 1", "examined", interval, "EM"]
    names += [] if health.given is None else ["given"]
    table = number_table(None, names, box=None, padding=(0, 2, 0, 0), header_style="dim")
    harvested, rate = health.harvested, health.click_rate
    for rank in range(min(health.cutoff, RANKS_ON_SCREEN)):
        low, high = harvested.low[rank], harvested.high[rank]
        cells = [
            str(rank + 1),
            f"{health.shown[rank]:,}",
            f"{rate[rank]:.2%}" if health.shown[rank] else "-",
            f"{rate[rank] / rate[0]:.2f}" if health.shown[rank] and rate[0] > 0 else "-",
            formatted(harvested.curve[rank], ".2f"),
            f"{low:.2f} to {high:.2f}" if rank and low == low else "",
            "-" if health.em is None else formatted(health.em.curve[rank], ".2f"),
        ]
        table.add_row(*cells, *([] if health.given is None else [f"{health.given[rank]:.2f}"]))
    return table


def _findings(health: Health) -> Table:
    table = Table.grid(Column(no_wrap=True), "", padding=(0, 1))
    for finding in health.findings:
        label = "blocking" if finding.blocks else finding.level
        remedy = Text(f" {finding.remedy}", style="italic dim") if finding.remedy else Text()
        table.add_row(Text(label, style=STYLES[finding.level]), Text(finding.text) + remedy)
    return table
