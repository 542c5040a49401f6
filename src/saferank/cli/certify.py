"""`saferank certify`: may the new policy replace the one that made the log?"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from saferank.cli.log_options import Columns, Layout, LoggingScores, OnBadRows, Part, parse_columns
from saferank.errors import UsageError

if TYPE_CHECKING:
    from saferank.certification.certificate import Certificate

COLOURS = {"DEPLOY": "bold green", "KEEP": "bold red", "MORE DATA": "bold yellow"}


def certify(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that [cyan]saferank fit[/cyan] wrote.")],
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="A log, or a folder that [cyan]saferank aggregate[/cyan] wrote.")
    ],
    features: Annotated[str, typer.Option(metavar="F", help="Features of its queries and documents, as for fit.")],
    delta: Annotated[float, typer.Option(help="Chance that a DEPLOY may be wrong.")] = 0.05,
    tolerance: Annotated[float, typer.Option(help="Loss that is accepted, in clicks per interaction.")] = 0.0,
    bound: Annotated[
        str,
        typer.Option(
            metavar="BOUND",
            help="betting, empirical-bernstein, divergence; without promise: student-t, divergence-paper.",
        ),
    ] = "betting",
    serve_as: Annotated[
        Literal["deterministic", "sampled"],
        typer.Option(metavar="WAY", help="How MODEL will be served: deterministic (by score) or sampled."),
    ] = "deterministic",
    logging_scores: LoggingScores = None,
    clip: Annotated[float, typer.Option(min=0.0, help="Raise logging exposure to this at least.")] = 0.0,
    segment: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of LOG: who gains, and who loses?")
    ] = None,
    part: Part = "train",
    column: Columns = None,
    layout: Layout = "auto",
    on_bad_rows: OnBadRows = "error",
    out: Annotated[Path, typer.Option(help="The certificate to write.")] = Path("certificate.json"),
    watch: Annotated[bool, typer.Option("--watch", help="Look again as the log grows, until it is decided.")] = False,
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between looks, with --watch.")] = 60.0,
    looks: Annotated[
        int | None, typer.Option(min=1, help="Looks at most, with --watch.", show_default="until decided")
    ] = None,
) -> None:
    """Decide on held-out interactions whether MODEL may go live.

    [bold green]DEPLOY[/bold green]: it earns at least as many clicks as the ranker that made the log
    (minus --tolerance), and the chance that this is wrong is at most --delta.
    [bold red]KEEP[/bold red]: it earns fewer. [bold yellow]MORE DATA[/bold yellow]: the held-out part cannot tell yet.

    Only the part [bold]certify[/bold] of the log is counted, which training never saw.
    Exit codes: 0 DEPLOY, 3 KEEP, 4 MORE DATA; 1 data that cannot be used or no
    guarantee possible, 2 a wrong call.

    [cyan]saferank certify model log.parquet --features features.parquet[/cyan]
    """
    from saferank.certification.certify import CertifySettings
    from saferank.certification.certify import certify as decide
    from saferank.certification.watch import look
    from saferank.data.features_source import load_features, take_column
    from saferank.data.load_log import load_log
    from saferank.data.output_path import check_not_read, check_parents
    from saferank.data.split import split_of
    from saferank.policy.model_folder import MANIFEST, SCHEMA, WEIGHTS
    from saferank.policy.policy import Policy

    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; name a file, such as {out / 'certificate.json'}.")
    check_parents(out)
    check_not_read(out, [*(model / name for name in (MANIFEST, SCHEMA, WEIGHTS)), Path(log), Path(features)])
    if looks is not None and not watch:
        raise UsageError("--looks is for --watch; give both, or neither.")
    settings = CertifySettings(delta, tolerance, bound, serve_as, clip)
    console, status = Console(), Console(stderr=True)
    policy = Policy.load(model)
    columns = parse_columns(column)
    trained = policy.manifest.get("inputs", {}).get("log", {})
    split = split_of(trained["split"]) if "split" in trained else None
    with status.status("Reading the features"):
        wanted = policy.schema.names if logging_scores is None else (*policy.schema.names, logging_scores)
        holes: Literal["error", "nan"] = "error" if policy.schema.missing == "error" else "nan"
        data = load_features(features, part=part, columns=wanted, missing=holes)
        scores = None
        if logging_scores is not None:
            data, scores = take_column(data, logging_scores)

    def judge() -> Certificate:
        with status.status("Reading the log") as now:
            aggregated = load_log(
                log, columns=columns, layout=layout, cutoff=policy.cutoff, split=split, segment=segment,
                on_bad_rows=on_bad_rows,
            )  # fmt: skip
            now.update("Weighing the held-out clicks")
            if watch:
                state = out.with_name(f"{out.stem}.watch.npz")
                certificate = look(policy, aggregated, data, settings, state, logging_scores=scores)
            else:
                certificate = decide(policy, aggregated, data, settings, logging_scores=scores)
        certificate.write(out)
        return certificate

    certificate = _watch(judge, console, every, looks) if watch else judge()
    _show(certificate, console, out)
    raise typer.Exit(certificate.verdict.exit_code)


def _watch(judge: Callable[[], Certificate], console: Console, every: float, looks: int | None) -> Certificate:
    """Look until it is decided, or so many times; tell each look in a line."""
    number = 0
    while True:
        certificate = judge()
        number += 1
        verdict = certificate.verdict.value
        line = Text.assemble(
            f"{certificate.created}  {certificate.interactions:>13,} interactions  lower {certificate.lower:+.5f}  ",
            (verdict, COLOURS[verdict]),
        )
        console.print(line)
        if verdict != "MORE DATA" or number == looks:
            return certificate
        time.sleep(every)


def _show(certificate: Certificate, console: Console, out: Path) -> None:
    """One screen: the verdict, what it means, the numbers, the bounds side by side, what it rests on."""
    from saferank.certification.certificate import confidence, meaning

    verdict = certificate.verdict.value
    console.print(Text.assemble((f" {verdict} ", COLOURS[verdict] + " reverse"), f"  {meaning(certificate)}\n"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    share, low, high = (f"{value:+.1%}" for value in certificate.relative)
    ends = f"{certificate.lower:+.5f} to {certificate.upper:+.5f} ({low} to {high})"
    worth = f"{certificate.interactions:,} interactions, worth {certificate.effective_clicks:,.0f} clicks"
    served = "by score" if certificate.serve_as == "deterministic" else "drawn at random from the policy"
    table.add_row("improvement", f"{certificate.improvement:+.5f} clicks per interaction ({share})")
    table.add_row(f"bounds, {confidence(certificate.delta)} each", ends)
    table.add_row("logging policy", f"{certificate.click_rate:.5f} clicks per interaction")
    table.add_row("held out", worth)
    table.add_row("served", served)
    table.add_row("logging exposure", certificate.logging_exposure)
    console.print(table)
    console.print()
    console.print(_bounds_table(certificate))
    if certificate.segments:
        console.print(_segments_table(certificate))
    for warning in certificate.warnings:
        console.print(Text.assemble(("Warning: ", "yellow"), warning))
    console.print(f"Written to {out}: all of this, what it assumes, and what it was made from.", highlight=False)


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


def _segments_table(certificate: Certificate) -> Table:
    table = Table(title="By segment (intervals hold together)", title_justify="left")
    for name in ("segment", "interactions", "improvement", "lower", "upper"):
        table.add_column(name, justify="left" if name == "segment" else "right")
    for row in certificate.segments:
        colour = "red" if row.upper < 0 else "green" if row.lower > 0 else ""
        numbers = (f"{value:+.5f}" for value in (row.improvement, row.lower, row.upper))
        table.add_row(row.segment or "(none)", f"{row.interactions:,}", *numbers, style=colour)
    return table
