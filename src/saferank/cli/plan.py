"""`saferank plan`: what randomness costs in clicks, and how soon such a log decides."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.text import Text
from typer.core import TyperCommand

from saferank.cli import log_options as options
from saferank.cli.json_output import JSON, json_text, print_json
from saferank.cli.log_options import parse_columns
from saferank.cli.screen import number_table, tell
from saferank.engine.errors import UsageError
from saferank.files.atomic_write import check_output_file
from saferank.files.table_files import file_kind

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from saferank.plan.plan import Plan

PRINTED = Path("-")
"""--json without a file."""


class PlanCommand(TyperCommand):
    """The file of --json may be left out where another option follows, or nothing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what is left of the arguments."""
        words = [
            word
            for here, after in pairwise([*args, "--"])
            for word in ([here, str(PRINTED)] if here == "--json" and after.startswith("--") else [here])
        ]
        left = super().parse_args(ctx, words)
        ctx.meta[JSON] = ctx.params["json_out"] == PRINTED
        return left


def plan(
    log: options.Log,
    features: options.Features = None,
    scores: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of F with the current ranker's scores, on any scale.",
            show_default="minus the mean rank in LOG",
        ),
    ] = None,
    examination: options.Examination = None,
    delta: options.Delta = 0.05,
    most_cost: Annotated[
        str, typer.Option(metavar="SHARE", help="Largest share of clicks that may be lost while logging: 1% or 0.01.")
    ] = "1%",
    cutoff: options.Cutoff = None,
    column: options.Columns = None,
    layout: options.Layout = "auto",
    on_bad_rows: options.OnBadRows = "error",
    part: options.Part = "train",
    seed: options.Seed = 0,
    out: options.Page = Path("plan.html"),
    json_out: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Also write all numbers as JSON; without FILE, print only these."),
    ] = None,
) -> None:
    """Plan the next log: how much randomness, at what cost, for how many days.

    A ranker that always shows the same ranking leaves nothing to compare.
    Sampling its rankings with a temperature T costs clicks, but the log can then
    certify a better ranker. For each temperature, and for random swaps:

    [bold]lost[/bold]      clicks lost compared with the log as it is, best estimate
    [bold]at most[/bold]   the same with 95% confidence, as if nothing unseen were clicked
    [bold]2% 5% 10%[/bold] days until [cyan]certify[/cyan] proves a policy that is better by this much

    To sample with temperature T: add -T * log(-log(u)) to every score, u uniform
    between 0 and 1, and sort.

    [cyan]saferank plan log.parquet --features features.parquet --scores score[/cyan]
    """
    share = _share(most_cost)
    check_output_file(out, [log, features])
    printed = json_out == PRINTED
    if json_out is not None and not printed:
        check_output_file(json_out, [log, features], option="--json")
        if file_kind(json_out) not in (None, "json"):
            raise UsageError(f"--json {json_out} looks like a table; name a .json file, or write --json last.")

    from saferank.plan.make_plan import make_plan
    from saferank.plan.plan import recommendation
    from saferank.report.page import write_page
    from saferank.report.plan_page import plan_page

    with Console(stderr=True).status("") as status:
        made = make_plan(
            log, features, scores, examination, columns=parse_columns(column), layout=layout, cutoff=cutoff, part=part,
            on_bad_rows=on_bad_rows, delta=delta, most_cost=share, seed=seed, progress=status.update,
        )  # fmt: skip
        status.update(f"Writing {out}")
        write_page(plan_page(made), out)
        chosen = made.recommended and {"kind": made.recommended.kind, "amount": made.recommended.amount}
        values = {**asdict(made), "recommended": chosen, "recommendation": recommendation(made)}
        if json_out is not None and not printed:
            write_page(json_text(values) + "\n", json_out)
    if printed:
        print_json({"out": out, **values})
        return
    Console().print(screen(made))
    tell(f"All numbers, with a chart: {out}")


def _share(text: str) -> float:
    try:
        number = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        if 0.0 <= number < 1.0:
            return number
    except ValueError:
        pass
    raise UsageError(f"--most-cost {text}: write a share of the clicks below 100%, such as 1% or 0.01.")


def screen(made: Plan) -> RenderableType:
    """Return one screen: the table, the recommendation, and its assumptions."""
    from saferank.plan.plan import assumptions, recommendation

    traffic = f"{made.interactions:,} interactions, {made.click_rate:.3f} clicks per interaction"
    return Group(
        Text(made.source, style="bold", overflow="ellipsis", no_wrap=True),
        Text(traffic + ("" if made.per_day is None else f", {made.per_day:,.0f} per day"), style="dim"),
        _table(made),
        Text(recommendation(made), style="bold"),
        *(Text(text, style="dim") for text in assumptions(made)),
        *(Text.assemble(("caution ", "yellow"), note) for note in made.notes),
    )


def _table(made: Plan) -> Table:
    held_out = "" if made.per_day is None else f", {made.held_out_share:.0%} held out"
    gains = [f"{need.gain:.0%}" for need in made.ways[0].needs]
    columns = ("rankings", "moved", "lost", "at most", *gains)
    table = number_table(f"Clicks lost, and {made.unit} to certify a gain{held_out}", columns, left=["rankings"])
    for one in table.columns:
        one.no_wrap = True
    chosen = made.recommended
    for way in made.ways:
        cells = way.cells[: len(columns)]
        table.add_row(*cells, style="bold green" if way is chosen else "" if way.random else "dim")
    return table
