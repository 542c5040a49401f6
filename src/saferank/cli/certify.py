"""`saferank certify`: may the new ranker replace the one that made the log?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from saferank.cli.log_options import (
    Columns,
    Layout,
    LoggingScores,
    OnBadRows,
    Part,
    Reward,
    RewardMost,
    Unit,
    parse_columns,
)
from saferank.engine.errors import UsageError

if TYPE_CHECKING:
    from saferank.verdict.certificate import Certificate, SegmentRow
    from saferank.verdict.inputs import VerdictInputs

COLOURS = {"DEPLOY": "bold green", "KEEP": "bold red", "MORE DATA": "bold yellow"}
GROWTH = 1.25
"""With --watch, the held-out part has to grow by this factor before it is looked at again: each look costs delta."""


def certify(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A folder that [cyan]saferank fit[/cyan] wrote; with --candidate, leave it out.",
        ),
    ],
    log: Annotated[
        str | None,
        typer.Argument(metavar="LOG", help="A log, or a folder that [cyan]saferank aggregate[/cyan] wrote."),
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="F", help="Features of its queries and documents, as for fit.")
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option(
            metavar="SCORES",
            help="Instead of MODEL: what any other ranker says. Parquet or CSV with query_id, document_id, and score "
            "or rank.",
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="Chance that a DEPLOY may be wrong, over all looks at this log.")] = 0.05,
    tolerance: Annotated[float, typer.Option(help="Loss that is accepted, in clicks per interaction.")] = 0.0,
    bound: Annotated[
        str,
        typer.Option(
            metavar="BOUND",
            help="one-look, betting (holds at every look), empirical-bernstein, divergence; without promise: "
            "student-t, divergence-paper.",
        ),
    ] = "one-look",
    serve_as: Annotated[
        Literal["deterministic", "sampled"],
        typer.Option(metavar="WAY", help="How it will be served: deterministic (by score) or sampled."),
    ] = "deterministic",
    examination: Annotated[
        str | None,
        typer.Option(
            help="Chance that each rank is looked at, if you know it: [cyan]1,0.6,0.45[/cyan].",
            show_default="as for fit: given there, or estimated from LOG",
        ),
    ] = None,
    trust_examination: Annotated[
        bool,
        typer.Option("--trust-examination", help="Believe a given curve even where LOG cannot check it."),
    ] = False,
    logging_scores: LoggingScores = None,
    unit: Unit = None,
    random_per_unit: Annotated[
        bool,
        typer.Option("--random-per-unit", help="Rankings that depend on the user were drawn at random, not by taste."),
    ] = False,
    reward: Reward = None,
    reward_most: RewardMost = None,
    clip: Annotated[float, typer.Option(min=0.0, help="Raise logging exposure to this at least.")] = 0.0,
    most_weight: Annotated[
        float | None, typer.Option(min=1.0, help="Largest weight of a click.", show_default="chosen on validation")
    ] = None,
    segment: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of LOG: who gains, and who loses?")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="With --candidate: shares of train/validation/certify of LOG.", show_default="60/20/20"),
    ] = None,
    split_by: Annotated[
        Literal["hash", "time", "query", "unit"] | None,
        typer.Option(metavar="WAY", help="With --candidate: hold out by impression (hash), time, query or unit."),
    ] = None,
    cutoff: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="With --candidate: ranks of LOG.", show_default="all, at most 10"),
    ] = None,
    part: Part = "train",
    column: Columns = None,
    layout: Layout = "auto",
    on_bad_rows: OnBadRows = "error",
    out: Annotated[Path, typer.Option(help="The certificate to write.")] = Path("certificate.json"),
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where looks are kept.", show_default="LOG.ledger.json")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON instead of a screen.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Look again as the log grows, until it is decided.")] = False,
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between looks, with --watch.")] = 60.0,
    looks: Annotated[
        int | None, typer.Option(min=1, help="Looks at most, with --watch.", show_default="until decided")
    ] = None,
) -> None:
    """Decide on held-out interactions whether a new ranker may go live.

    [bold green]DEPLOY[/bold green]: it earns at least as many clicks as the ranker that made the log
    (minus --tolerance), and the chance that this is wrong is at most --delta.
    [bold red]KEEP[/bold red]: it earns fewer. [bold yellow]MORE DATA[/bold yellow]: the held-out part cannot tell yet.

    Only the part [bold]certify[/bold] of the log is counted, which training never saw. Each further
    look at the same part, by whatever model, costs a share of delta.
    Exit codes: 0 DEPLOY, 3 KEEP, 4 MORE DATA; 1 data that cannot be used or no
    guarantee possible, 2 a wrong call.

    [cyan]saferank certify model log.parquet --features features.parquet[/cyan]
    [cyan]saferank certify --candidate scores.parquet log.parquet[/cyan]
    """
    from saferank.files.atomic_write import check_not_read, check_parents
    from saferank.logs.split import parse_split
    from saferank.policy.model_folder import MANIFEST, SCHEMA, WEIGHTS
    from saferank.policy.policy import Policy
    from saferank.verdict.certify import CertifySettings, take_look
    from saferank.verdict.inputs import load_inputs
    from saferank.verdict.ledger import ledger_path

    if candidate is not None:
        if log is not None or features is not None or logging_scores is not None:
            raise UsageError(
                "--candidate needs LOG and nothing else: leave MODEL, --features and --logging-scores out."
            )
        log = model
        read = [Path(candidate)]
    else:
        if log is None or features is None:
            raise UsageError("give MODEL, LOG and --features; or LOG and --candidate for a ranker made elsewhere.")
        if split is not None or cutoff is not None or split_by is not None:
            raise UsageError("--split, --split-by and --cutoff are for --candidate; a model has those of its fit.")
        read = [*(Path(model) / name for name in (MANIFEST, SCHEMA, WEIGHTS)), Path(features)]
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; name a file, such as {out / 'certificate.json'}.")
    check_parents(out)
    check_not_read(out, [*read, Path(log)])
    if looks is not None and not watch:
        raise UsageError("--looks is for --watch; give both, or neither.")
    settings = CertifySettings(delta, tolerance, bound, clip, most_weight, trust_examination, random_per_unit)
    book = ledger or ledger_path(log)
    check_parents(book)
    if book.resolve() == out.resolve():
        raise UsageError(f"--out and --ledger are both {out}; name two files.")
    check_not_read(book, [*read, Path(log)])
    console, status = Console(), Console(stderr=True)
    parts = None if split is None and split_by is None else parse_split(split or "60/20/20", by=split_by or "hash")
    ranker = Policy.load(Path(model)) if candidate is None else candidate

    def load() -> VerdictInputs:
        with status.status("Reading") as now:
            return load_inputs(
                ranker, log, features, serve_as=serve_as, logging_scores=logging_scores, examination=examination,
                part=part, progress=now.update, columns=parse_columns(column), layout=layout, on_bad_rows=on_bad_rows,
                segment=segment, unit=unit, reward=reward, reward_most=reward_most, split=parts, cutoff=cutoff,
            )  # fmt: skip

    def judge(inputs: VerdictInputs) -> Certificate:
        with status.status("Weighting the held-out clicks"):
            certificate = take_look(inputs, settings, book)
        certificate.write(out)
        return certificate

    certificate = _watch(load, judge, console, every, looks) if watch else judge(load())
    if as_json:
        print(json.dumps(json.loads(out.read_text()), indent=2))
    else:
        _show(certificate, console, out, book)
    raise typer.Exit(certificate.verdict.exit_code)


def _watch(
    load: Callable[[], VerdictInputs],
    judge: Callable[[VerdictInputs], Certificate],
    console: Console,
    every: float,
    looks: int | None,
) -> Certificate:
    """Look until it is decided, or so many times; one line for each look."""
    number, before = 0, 0.0
    while True:
        inputs = load()
        held_out = inputs.log.manifest["parts"]["certify"]["interactions"]
        if held_out >= GROWTH * before:
            certificate, before = judge(inputs), held_out
            number += 1
            verdict = certificate.verdict.value
            line = Text.assemble(
                f"{certificate.created}  {certificate.interactions:>13,} interactions  ",
                f"lower {certificate.lower:+.5f}  ",
                (verdict, COLOURS[verdict]),
            )
            console.print(line)
            if verdict != "MORE DATA" or number == looks:
                return certificate
        time.sleep(every)


def _show(certificate: Certificate, console: Console, out: Path, ledger: Path) -> None:
    """One screen: the verdict, what it means, the numbers, the bounds side by side, what it rests on."""
    from saferank.verdict.certificate import confidence, meaning

    verdict = certificate.verdict.value
    if certificate.unchecked:
        console.print(
            Text(
                "This rests on an examination curve that was given and that the log cannot check.", style="bold yellow"
            )
        )
    console.print(Text.assemble((f" {verdict} ", COLOURS[verdict] + " reverse"), f"  {meaning(certificate)}\n"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    unit = "clicks" if certificate.reward is None else certificate.reward
    share, low, high = (f"{value:+.1%}" for value in certificate.relative)
    ends = f"{certificate.lower:+.5f} to {certificate.upper:+.5f} ({low} to {high})"
    worth = f"{certificate.interactions:,} interactions, worth {certificate.effective_clicks:,.0f} clicks"
    served = "by score" if certificate.serve_as == "deterministic" else "drawn at random from the policy"
    left = certificate.delta * (1.0 - sum(1.0 / (j * (j + 1)) for j in range(1, certificate.look + 1)))
    spent = (
        f"number {certificate.look} at this data: it has {certificate.spent:.4g} of delta {certificate.delta:g}, "
        f"further looks share {left:.4g}"
    )
    table.add_row("improvement", f"{certificate.improvement:+.5f} {unit} per interaction ({share})")
    table.add_row(f"bounds, {confidence(certificate.spent)} each", ends)
    table.add_row("current ranker", f"{certificate.click_rate:.5f} {unit} per interaction")
    table.add_row("held out", worth)
    table.add_row("covers", certificate.covers)
    table.add_row("served", served)
    table.add_row("logging exposure", f"{certificate.logging_exposure}, by {certificate.strata}")
    table.add_row("examination", _curve(certificate))
    table.add_row("look", spent)
    console.print(table)
    console.print()
    console.print(_bounds_table(certificate))
    console.print(_curves_table(certificate))
    if certificate.segments:
        console.print(_segments_table(certificate.segments, "By segment, if all are shown the same rankings"))
    if certificate.traffic:
        console.print(_segments_table(certificate.traffic, "Queries seen in training, and new ones"))
    for warning in certificate.warnings:
        console.print(Text.assemble(("Warning: ", "yellow"), f"{warning[0].upper()}{warning[1:]}"))
    for doubt in certificate.doubts:
        console.print(Text.assemble(("Doubt: ", "yellow"), f"{doubt.text} ", (doubt.remedy, "italic dim")))
    console.print(
        f"Written to {out}: all of this, and what it was made from. Looks are kept in {ledger}.", highlight=False
    )


def _curve(certificate: Certificate) -> str:
    curve = certificate.examination["curve"]
    return f"{certificate.examination['kind']}: {', '.join(f'{value:.2g}' for value in curve)}"


def _bounds_table(certificate: Certificate) -> Table:
    table = Table(title="The same data under other bounds", title_justify="left")
    table.add_column("bound")
    table.add_column("lower", justify="right")
    table.add_column("upper", justify="right")
    table.add_column("holds")
    for row in certificate.bounds:
        holds = "at every look" if row.any_time else "at one look" if row.guarantee else "no promise"
        chosen = "bold" if row.name == certificate.bound else ""
        table.add_row(row.name, f"{row.lower:+.5f}", f"{row.upper:+.5f}", holds, style=chosen)
    return table


def _curves_table(certificate: Certificate) -> Table:
    table = Table(title="If the examination curve were different", title_justify="left")
    for name in ("curve", "last rank", "improvement", "lower", ""):
        table.add_column(name, justify="left" if name in ("curve", "") else "right")
    for row in certificate.other_curves:
        cells = (f"{row.last:.2f}", f"{row.improvement:+.5f}", f"{row.lower:+.5f}", row.verdict)
        table.add_row(row.curve, *cells, style="bold" if row.curve == "as used" else "")
    return table


def _segments_table(rows: tuple[SegmentRow, ...], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("segment", "interactions", "improvement", "lower", "upper"):
        table.add_column(name, justify="left" if name == "segment" else "right")
    for row in rows:
        colour = "red" if row.upper < 0 else "green" if row.lower > 0 else ""
        numbers = (f"{value:+.5f}" for value in (row.improvement, row.lower, row.upper))
        table.add_row(row.segment or "(none)", f"{row.interactions:,}", *numbers, style=colour)
    return table
