"""`saferank certify`: may the new ranker replace the one that made the log?"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from saferank.cli import log_options as options
from saferank.cli.certify_screen import COLOURS, show_certificate
from saferank.cli.config import on_command_line, unless_common
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import parse_columns, requested_split
from saferank.cli.track import Track, model_tags, tracked
from saferank.engine.errors import UsageError
from saferank.files.atomic_write import check_output_file
from saferank.files.growing_files import wait_until_still
from saferank.files.table_url import without_secrets

if TYPE_CHECKING:
    from saferank.verdict.certificate import Certificate
    from saferank.verdict.inputs import VerdictInputs

TRACKED = ("improvement", "lower", "upper", "click_rate", "interactions", "effective_clicks", "spent", "look")
"""Fields of a certificate that --track records as metrics."""
LOGGER = logging.getLogger(__name__)
GROWTH = 1.25
"""With --watch, the held-out part must grow by this factor before the next look, because each look costs delta."""


def certify(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A folder that [cyan]saferank fit[/cyan] wrote. Leave it out with --candidate.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Argument(
            metavar="LOG",
            help="A click log, or a folder that [cyan]saferank aggregate[/cyan] wrote. Required.",
            show_default=False,
        ),
    ] = None,
    features: options.Features = None,
    candidate: options.Candidate = None,
    trained_until: options.TrainedUntil = None,
    trained_without_held_out: options.TrainedWithoutHeldOut = False,
    delta: options.Delta = 0.05,
    tolerance: Annotated[float, typer.Option(help="Accepted loss, in clicks per interaction.")] = 0.0,
    bound: Annotated[
        str,
        typer.Option(
            metavar="BOUND",
            help="one-look, betting (holds at every look), empirical-bernstein, divergence; without a guarantee: "
            "student-t, divergence-paper.",
        ),
    ] = "one-look",
    serve_as: options.ServeAs = "deterministic",
    explore: Annotated[
        Path | None,
        typer.Option(
            metavar="FLATTER",
            help="With --serve-as sampled, on DEPLOY: write the flattest version of MODEL that is proven as well. Its "
            "rankings vary more, so its log teaches more.",
        ),
    ] = None,
    examination: Annotated[
        str | None, typer.Option(help=options.EXAMINATION, show_default="given to fit, or estimated from LOG")
    ] = None,
    trust_examination: Annotated[
        bool,
        typer.Option("--trust-examination", help="Trust a given examination curve even if LOG cannot confirm it."),
    ] = False,
    trust_stability: Annotated[
        bool,
        typer.Option(
            "--trust-stability", help="Trust that ranker and demand did not change, though LOG has no timestamps."
        ),
    ] = False,
    trust_candidates: Annotated[
        bool,
        typer.Option(
            "--trust-candidates",
            help="Trust that any candidate could be shown in every impression, though lists look otherwise.",
        ),
    ] = False,
    logging_scores: options.LoggingScores = None,
    live: options.Live = None,
    earlier: options.Earlier = None,
    unit: options.Unit = None,
    random_per_unit: Annotated[
        bool,
        typer.Option("--random-per-unit", help="Rankings that differ between users are random, not personalised."),
    ] = False,
    most_per_unit: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Interactions that each unit counts with at most, if a few have very many.",
            show_default="all of them",
        ),
    ] = None,
    reward: options.Reward = None,
    reward_most: options.RewardMost = None,
    clip: Annotated[
        float, typer.Option(min=0.0, metavar="X", help="Smallest logging exposure; lower values are raised.")
    ] = 0.0,
    most_weight: Annotated[
        float | None,
        typer.Option(min=1.0, metavar="X", help="Largest weight of a click.", show_default="chosen on validation"),
    ] = None,
    segment: options.Segment = None,
    split: options.Shares = None,
    split_by: options.SplitBy = None,
    cutoff: options.Cutoff = None,
    part: options.Part = "train",
    column: options.Columns = None,
    layout: options.Layout = "auto",
    on_bad_rows: options.OnBadRows = "error",
    out: Annotated[Path, typer.Option(help="Certificate to write.")] = Path("certificate.json"),
    ledger: options.Ledger = None,
    track: Track = None,
    as_json: AsJson = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Certify again as LOG grows, until there is a decision. LOG is read when its files stop growing.",
        ),
    ] = False,
    every: Annotated[float, typer.Option(min=0.0, metavar="X", help="Seconds between looks, with --watch.")] = 60.0,
    looks: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Largest number of looks, with --watch.", show_default="until decided"),
    ] = None,
) -> None:
    """Decide on held-out interactions whether a new ranker may go live.

    [bold green]DEPLOY[/bold green]: it earns at least as many clicks as the ranker that made the log
    (minus --tolerance), and this is wrong with probability at most --delta.
    [bold red]KEEP[/bold red]: it earns fewer. [bold yellow]MORE DATA[/bold yellow]: too little held-out data to decide.

    Only the part [bold]certify[/bold] of the log counts, which training never saw. A model
    keeps the split and the cutoff of its fit; with --candidate, give them here.
    Each further look at the same part, with any model, costs a share of delta.
    Exit codes: 0 DEPLOY, 3 KEEP, 4 MORE DATA; 1 unusable data or no guarantee
    possible, 2 wrong usage.

    [cyan]saferank certify model log.parquet --features features.parquet[/cyan]
    [cyan]saferank certify --candidate scores.parquet log.parquet --trained-until 2026-01-31[/cyan]
    """
    from saferank.policy.model_folder import MANIFEST, SCHEMA, WEIGHTS, check_model_folder
    from saferank.policy.policy import Policy
    from saferank.verdict.certify import CertifySettings, take_look
    from saferank.verdict.inputs import load_inputs
    from saferank.verdict.ledger import ledger_path

    if candidate is None:
        split, split_by, cutoff = unless_common(context, split=split, split_by=split_by, cutoff=cutoff)
        if split is not None or cutoff is not None or split_by is not None:
            raise UsageError("--split, --split-by and --cutoff are for --candidate; a model keeps those of its fit.")
        if trained_until is not None or trained_without_held_out:
            raise UsageError("--trained-until and --trained-without-held-out are for --candidate.")
    else:
        of_model = {"features": features, "logging_scores": logging_scores, "live": live}
        features, logging_scores, live = given = unless_common(context, **of_model)
        if on_command_line(context, "log") or any(value is not None for value in given):
            raise UsageError(
                "--candidate needs LOG and nothing else: leave MODEL, --features, --logging-scores and --live out."
            )
        model, log = None, model if on_command_line(context, "model") else log
    if log is None or (candidate is None and (model is None or features is None)):
        raise UsageError("give MODEL, LOG and --features; or LOG and --candidate for a ranker made elsewhere.")
    if explore is not None and (candidate is not None or serve_as != "sampled"):
        raise UsageError("--explore needs a MODEL and --serve-as sampled.")
    read = [candidate, features, log]
    read += [] if model is None else [f"{model}/{name}" for name in (MANIFEST, SCHEMA, WEIGHTS)]
    if looks is not None and not watch:
        raise UsageError("--looks is for --watch; give both, or neither.")
    book = ledger or ledger_path(log)
    check_output_file(out, read)
    check_output_file(book, read, option="--ledger")
    if explore is not None:
        check_model_folder(explore)
        if explore.resolve() in [Path(folder).resolve() for folder in (model, live) if folder is not None]:
            raise UsageError(f"--explore {explore} is also read by this command; name another folder.")
    if book.resolve() == out.resolve():
        raise UsageError(f"--out and --ledger are both {out}; name two files.")
    settings = CertifySettings(
        delta, tolerance, bound, clip, most_weight, trust_examination, trust_stability, trust_candidates,
        random_per_unit, most_per_unit, explore=explore is not None,
    )  # fmt: skip
    record = context.with_resource(tracked(track, context))
    console, status = Console(), Console(stderr=True)
    ranker = str(candidate) if model is None else Policy.load(model)

    def load() -> VerdictInputs:
        if watch:
            with status.status(f"Waiting until {without_secrets(log)} is complete"):
                wait_until_still(log)
        with status.status("Reading") as now:
            return load_inputs(
                ranker, log, features, serve_as=serve_as, logging_scores=logging_scores, live=live,
                earlier=earlier or (), examination=examination, trained_until=trained_until,
                trained_without_held_out=trained_without_held_out, part=part, progress=now.update,
                columns=parse_columns(column), layout=layout, on_bad_rows=on_bad_rows,
                segment=segment, unit=unit, reward=reward, reward_most=reward_most,
                split=requested_split(split, split_by), cutoff=cutoff,
            )  # fmt: skip

    def judge(inputs: VerdictInputs) -> Certificate:
        LOGGER.info("Certifying on the held-out clicks")
        with status.status("Weighting the held-out clicks"):
            certificate = take_look(inputs, settings, book)
        LOGGER.info("Verdict: %s", certificate.verdict.value)
        certificate.write(out)
        if explore is not None and inputs.policy is not None and certificate.verdict.value == "DEPLOY":
            inputs.policy.at_temperature(certificate.temperature).save(explore)
        return certificate

    certificate = _watch(load, judge, status if as_json else console, every, looks) if watch else judge(load())
    verdict = certificate.verdict
    record(
        {name: getattr(certificate, name) for name in TRACKED} | {"deploy": verdict.exit_code == 0},
        {"verdict": verdict.value, **({} if model is None else model_tags(Path(model)))},
        {out: None} | ({} if model is None else {Path(model, MANIFEST): "model"}),
    )
    if as_json:
        print_json(json.loads(out.read_text()))
    else:
        show_certificate(certificate, console, out, book, explore)
    raise typer.Exit(verdict.exit_code)


def _watch(
    load: Callable[[], VerdictInputs],
    judge: Callable[[VerdictInputs], Certificate],
    console: Console,
    every: float,
    looks: int | None,
) -> Certificate:
    """Return the certificate that decides, or that of the last look allowed; each look prints one line."""
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
