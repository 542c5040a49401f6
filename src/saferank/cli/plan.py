"""`saferank plan`: how much randomness costs how many clicks, and how soon such a log decides."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from saferank.cli.log_options import Columns, Layout, OnBadRows, Part, parse_columns
from saferank.engine.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import RenderableType

    from saferank.engine.types.ranking_data import RankingData
    from saferank.logs.aggregated_log import AggregatedLog
    from saferank.plan.plan import Plan, Way


def plan(
    log: Annotated[
        str,
        typer.Argument(metavar="LOG", help="A log in any layout, or a folder that [cyan]aggregate[/cyan] wrote."),
    ],
    features: Annotated[
        str | None,
        typer.Option(metavar="F", help="The candidates, as for [cyan]fit[/cyan].", show_default="what LOG shows"),
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of F with the production ranker's scores; needs no certain scale.",
            show_default="minus the mean rank in LOG",
        ),
    ] = None,
    examination: Annotated[
        str | None,
        typer.Option(
            help="Chance that each rank is looked at, if it was measured: [cyan]1,0.62,0.41[/cyan].",
            show_default="estimated from the log",
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Chance that a DEPLOY may be wrong, as for [cyan]certify[/cyan].")
    ] = 0.05,
    most_cost: Annotated[
        str, typer.Option(metavar="SHARE", help="Clicks that may be lost at most while logging: 1% or 0.01.")
    ] = "1%",
    cutoff: Annotated[
        int | None, typer.Option(min=1, help="Ranks to count.", show_default="as many as are shown, at most 10")
    ] = None,
    column: Columns = None,
    layout: Layout = "auto",
    on_bad_rows: OnBadRows = "error",
    part: Part = "train",
    seed: Annotated[int, typer.Option(min=0, max=2**31, metavar="N", help="For what is drawn at random.")] = 0,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("plan.html"),
    json_out: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all numbers as JSON too.")
    ] = None,
) -> None:
    """Plan the next log: which randomness, at what cost, for how many days.

    A ranker that always shows the same leaves nothing to compare. Drawing its
    rankings with some temperature T costs clicks, but the log can then certify a
    better ranker. For each temperature, and for swaps of neighbouring ranks:

    [bold]lost[/bold]      clicks lost against the log as it is, our best estimate
    [bold]at most[/bold]   the same with 95% confidence, as if nothing unseen were clicked
    [bold]2% 5% 10%[/bold] days until [cyan]certify[/cyan] proves a policy that is so much better

    To draw with temperature T: add -T * log(-log(u)) to every score, u uniform
    between 0 and 1, and sort.

    [cyan]saferank plan log.parquet --features features.parquet --scores score[/cyan]
    """
    share = _share(most_cost)
    columns = parse_columns(column)
    if scores is not None and features is None:
        raise UsageError(f"--scores {scores}: is a column of the features; give --features too.")
    for option, file in (("--out", out), ("--json", json_out)):
        if file is not None and file.is_dir():
            raise UsageError(f"{option} {file} is a folder; name a file.")

    from saferank.engine.click_models.examination import parse_examination
    from saferank.files.atomic_write import check_not_read, check_parents
    from saferank.logs.load_log import load_log
    from saferank.plan.make_plan import make_plan
    from saferank.report.page import write_page
    from saferank.report.plan_page import plan_page

    for written in (out, *([] if json_out is None else [json_out])):
        check_parents(written)
        check_not_read(written, [Path(log), *([] if features is None else [Path(features)])])
    if examination is not None and not examination.startswith("inverse-rank"):
        cutoff = len(parse_examination(examination, cutoff))
    with Console(stderr=True).status(f"Reading {log}") as status:
        aggregated = load_log(
            log,
            columns=columns,
            layout=layout,
            cutoff=cutoff,
            on_bad_rows=on_bad_rows,
            progress=lambda step: status.update(f"{step} of {log}"),
        )
        given = None if examination is None else parse_examination(examination, aggregated.cutoff)
        status.update("Reading the candidates")
        data, ranker = _candidates(aggregated, features, part, scores, on_bad_rows)
        made = make_plan(
            aggregated, data, ranker, given, delta=delta, most_cost=share, seed=seed, progress=status.update
        )
        status.update(f"Writing {out}")
        write_page(plan_page(made), out)
        if json_out is not None:
            _write_json(made, json_out)
    Console().print(screen(made))
    Console().print(f"All numbers, with a picture: {out}", soft_wrap=True, highlight=False)


def _candidates(
    log: AggregatedLog, features: str | None, part: str, scores: str | None, on_bad_rows: str
) -> tuple[RankingData, NDArray[np.float32] | None]:
    from saferank.doctor.log_arrays import shown_pairs
    from saferank.features.load_features import load_features, take_column
    from saferank.logs.row_checks import missing_features_error

    if features is None:
        return shown_pairs(log), None
    if scores is None:
        data, ranker = load_features(features, part=part, missing="nan"), None  # reads ids alone
    else:
        data, ranker = take_column(load_features(features, part=part, columns=[scores], missing="nan"), scores)
    error = missing_features_error(log, data)
    if error is not None and on_bad_rows == "error":
        raise error
    return data, ranker


def _share(text: str) -> float:
    try:
        number = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        if 0.0 <= number < 1.0:
            return number
    except ValueError:
        pass
    raise UsageError(f"--most-cost {text}: write a share of the clicks below 100%, such as 1% or 0.01.")


def _write_json(made: Plan, path: Path) -> None:
    from saferank.files.atomic_write import whole_file
    from saferank.files.json_format import finite
    from saferank.plan.plan import recommendation

    chosen = made.recommended
    told = {
        **asdict(made),
        "recommended": None if chosen is None else {"kind": chosen.kind, "amount": chosen.amount},
        "recommendation": recommendation(made),
    }
    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(finite(told), indent=2) + "\n", encoding="utf-8")


def screen(made: Plan) -> RenderableType:
    """One screen: the table, what to do, and what it rests on."""
    from saferank.plan.plan import assumptions, recommendation

    lines: list[RenderableType] = [Text(made.source, style="bold", overflow="ellipsis", no_wrap=True)]
    traffic = f"{made.interactions:,} interactions, {made.click_rate:.3f} clicks per interaction"
    lines.append(Text(traffic + ("" if made.per_day is None else f", {made.per_day:,.0f} per day"), style="dim"))
    lines += [_table(made), Text(recommendation(made), style="bold")]
    lines += [Text(text, style="dim") for text in assumptions(made)]
    lines += [Text.assemble(("caution ", "yellow"), note) for note in made.notes]
    return Group(*lines)


def _table(made: Plan) -> Table:
    unit = "interactions" if made.per_day is None else "days"
    held_out = "" if made.per_day is None else f", {made.held_out_share:.0%} held out"
    table = Table(title=f"Clicks lost, and {unit} to certify a gain{held_out}", title_justify="left")
    table.add_column("rankings", no_wrap=True)
    gains = [f"{need.gain:.0%}" for need in made.ways[0].needs]
    for name in ("moved", "lost", "at most", *gains):
        table.add_column(name, justify="right", no_wrap=True)
    chosen = made.recommended
    for way in made.ways:
        table.add_row(*cells(way), style="bold green" if way is chosen else "" if way.random else "dim")
    return table


def cells(way: Way) -> list[str]:
    """Return the way as a row of the table."""
    from saferank.plan.plan import percent, takes

    costs = (percent(cost, 2) for cost in (way.relative_cost, way.relative_cost_at_most))
    return [way.name, percent(way.moved, 1), *costs, *map(takes, way.needs)]
