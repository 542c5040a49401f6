"""`saferank report`: one page about a policy, its verdict and what it changes; or about a reproduction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from saferank.cli import log_options as options
from saferank.cli.config import unless_common
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import parse_columns
from saferank.cli.screen import tell
from saferank.engine.errors import DataError, UsageError
from saferank.files.atomic_write import check_output_file
from saferank.files.table_url import without_secrets

if TYPE_CHECKING:
    from rich.status import Status

    from saferank.policy.policy import Policy
    from saferank.policy.serve import ServeAs
    from saferank.verdict.certificate import Certificate

CERTIFICATE, RESULTS = "certificate.json", "results.parquet"
LARGEST = 1 << 24
"""Bytes up to which a JSON file may be a certificate."""


def report(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL_OR_RUN",
            help="A folder that [cyan]saferank fit[/cyan] wrote, or [cyan]saferank reproduce[/cyan].",
        ),
    ],
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Certificate that [cyan]saferank certify[/cyan] wrote.",
            show_default="certificate.json, or the latest one, of MODEL, beside it or here",
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(metavar="LOG", help="A click log, or a folder that [cyan]saferank aggregate[/cyan] wrote."),
    ] = None,
    features: options.Features = None,
    logging_scores: options.LoggingScores = None,
    part: options.Part = "train",
    column: options.Columns = None,
    layout: options.Layout = "auto",
    on_bad_rows: options.OnBadRows = "error",
    out: options.Page = Path("report.html"),
    as_json: AsJson = False,
) -> None:
    """Write one page to share: the verdict, what it means, what changes.

    The verdict and its confidence, training and assumptions; with --log, the
    health of the log; with --features as well, which documents gain and lose
    exposure and which queries change most. For a reproduction: its table,
    findings and figures. A single file for offline reading, also on a phone, in
    dark mode and on paper.

    [cyan]saferank report model --log log.parquet --features features.parquet[/cyan]
    """
    reproduced = (source / RESULTS).is_file()
    if reproduced:
        (log,) = unless_common(context, log=log)
    if log is None:
        (features,) = unless_common(context, features=features)
    if features is None:
        (logging_scores,) = unless_common(context, logging_scores=logging_scores)
    if features is not None and log is None:
        raise UsageError("--features compares the model with a log; give --log too.")
    if logging_scores is not None and features is None:
        raise UsageError("--logging-scores is a column of the features; give --features too.")

    from saferank.policy.model_folder import MANIFEST, SCHEMA, WEIGHTS, is_model
    from saferank.report.page import write_page

    read = [source / name for name in (MANIFEST, SCHEMA, WEIGHTS, RESULTS)]
    read += _certificates(source) if certificate is None else [certificate]
    check_output_file(out, [*read, log, features])
    status = Console(stderr=True)
    if is_model(source):
        from saferank.policy.policy import Policy
        from saferank.report.report_page import Report, report_page

        policy = Policy.load(source)
        found = _certificate(policy, source, certificate, status)
        contents = Report(source.resolve().name, policy.manifest, found)
        if log is not None:
            served: ServeAs = "sampled" if found is not None and found.serve_as == "sampled" else "deterministic"
            ways = {"logging_scores": logging_scores, "part": part, "serve_as": served}
            reading = {"columns": parse_columns(column), "layout": layout, "on_bad_rows": on_bad_rows}
            with status.status(f"Reading {without_secrets(log)}") as now:
                contents = replace(contents, **_of_log(policy, log, features, now, ways, reading))
        text = report_page(contents)
        kind = "not certified" if found is None else found.verdict.value
    elif reproduced:
        from saferank.report.reproduction_page import reproduction_page

        if certificate is not None or log is not None:
            raise UsageError(f"{source} is a reproduction; --certificate, --log and --features are for a model.")
        with status.status("Drawing"):
            text = reproduction_page(source)
        kind = "reproduction"
    else:
        raise DataError("was written neither by `saferank fit` nor by `saferank reproduce`.", file=source)
    write_page(text, out)
    if as_json:
        print_json({"out": out, "kind": kind})
    else:
        tell(f" {out}", headline=kind)


def _places(model: Path) -> list[Path]:
    """Return the folders in which to look for a certificate if none is named."""
    return list(dict.fromkeys((model.resolve().parent, Path().resolve())))


def _certificates(model: Path) -> list[Path]:
    """Return the certificates of the usual name that may be there."""
    return [folder / CERTIFICATE for folder in _places(model)]


def _certificate(policy: Policy, model: Path, given: Path | None, status: Console) -> Certificate | None:
    """Return the given certificate, or one beside the model or in this folder that belongs to the model.

    One of the usual name comes first, then the latest of any other (`certify --out FILE`).
    """
    from saferank.verdict.certificate import FORMAT, Certificate

    def is_of_model(certificate: Certificate) -> bool:
        files = certificate.inputs.get("model", {}).get("files")
        return files is not None and files == policy.manifest.get("files")

    for file in [file for file in _certificates(model) if file.is_file()] if given is None else [given]:
        certificate = Certificate.read(file)
        if is_of_model(certificate):
            return certificate
        if given is not None:
            raise UsageError(f"{given} belongs to another model, not {model}; certify this one.")
        tell(f"{file} belongs to another model and is left out.", status)
    files = (file for folder in _places(model) for file in folder.glob("*.json") if file.name != CERTIFICATE)
    small = (file for file in files if file.is_file() and file.stat().st_size <= LARGEST)
    others = [Certificate.read(file) for file in small if FORMAT.is_of(file)]
    return max(filter(is_of_model, others), key=lambda one: one.created, default=None)


def _of_log(
    policy: Policy, log: str, features: str | None, now: Status, ways: dict[str, Any], reading: dict[str, Any]
) -> dict[str, Any]:
    """Return what a report shows of a log: its health, and with features also what the policy changes."""
    from saferank.doctor.diagnosis import diagnose
    from saferank.verdict.exposure_shift import exposure_changes
    from saferank.verdict.inputs import load_inputs, read_log

    data, changes = None, None
    if features is None:
        aggregated = read_log(log, policy, **reading)
    else:
        inputs = load_inputs(policy, log, features, progress=now.update, **ways, **reading)
        aggregated, data, scores = inputs.log, inputs.ranker.data, inputs.logging_scores
        now.update("Comparing rankings")
        changes = exposure_changes(policy, aggregated, data, serve_as=ways["serve_as"], logging_scores=scores)
    now.update("Checking the log")
    return {"changes": changes, "health": diagnose(aggregated, data, policy.examination)}
