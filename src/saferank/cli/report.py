"""`saferank report`: one page about a policy, its verdict and what it changes; or about a reproduction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from saferank.cli import log_options as options
from saferank.cli.config import on_command_line, unless_common
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import parse_columns
from saferank.cli.screen import tell
from saferank.engine.errors import DataError, UsageError
from saferank.files.atomic_write import check_output_file
from saferank.files.table_url import without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.status import Status

    from saferank.policy.policy import Policy
    from saferank.policy.serve import ServeAs
    from saferank.verdict.certificate import Certificate
    from saferank.verdict.new_ranker import NewRanker

CERTIFICATE, RESULTS = "certificate.json", "results.parquet"
LARGEST = 1 << 24
"""Bytes up to which a JSON file may be a certificate."""


def report(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL_OR_RUN",
            help="A folder that [cyan]saferank fit[/cyan] wrote, or [cyan]saferank reproduce[/cyan]. Leave it out with "
            "--candidate.",
            show_default=False,
        ),
    ] = None,
    candidate: options.Candidate = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Certificate that [cyan]saferank certify[/cyan] wrote.",
            show_default="certificate.json, or the latest one, of the ranker, beside it or here",
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

    With --candidate, the same for a ranker made elsewhere, which
    [bold]certify --candidate[/bold] has certified.

    [cyan]saferank report model --log log.parquet --features features.parquet[/cyan]
    [cyan]saferank report --candidate scores.parquet --log log.parquet[/cyan]
    """
    if source is not None and candidate is not None:  # one of them may be from saferank.toml
        said = [on_command_line(context, name) for name in ("source", "candidate")]
        source, candidate = None if said == [False, True] else source, None if said == [True, False] else candidate
    if (source is None) == (candidate is None):
        raise UsageError("give either MODEL_OR_RUN, or --candidate for a ranker made elsewhere.")
    reproduced = source is not None and (source / RESULTS).is_file()
    if reproduced:
        (log,) = unless_common(context, log=log)
    if log is None or candidate is not None:
        (features,) = unless_common(context, features=features)
    if features is None:
        (logging_scores,) = unless_common(context, logging_scores=logging_scores)
    if features is not None and (log is None or candidate is not None):
        raise UsageError("--features compares a model with a log; give --log too, and not --candidate.")
    if logging_scores is not None and features is None:
        raise UsageError("--logging-scores is a column of the features; give --features too.")

    from saferank.policy.model_folder import MANIFEST, SCHEMA, WEIGHTS, is_model
    from saferank.report.page import write_page

    ranker = Path(candidate or str(source))
    read = [ranker] if candidate is not None else [ranker / name for name in (MANIFEST, SCHEMA, WEIGHTS, RESULTS)]
    read += _certificates(ranker) if certificate is None else [certificate]
    check_output_file(out, [*read, log, features])
    status = Console(stderr=True)
    reading: dict[str, Any] = {"columns": parse_columns(column), "layout": layout, "on_bad_rows": on_bad_rows}
    if candidate is not None or is_model(ranker):
        from saferank.policy.policy import Policy
        from saferank.report.report_page import Report, report_page
        from saferank.verdict.new_ranker import read_ranker

        made = Policy.load(ranker) if candidate is None else read_ranker(candidate, "deterministic", reading["columns"])
        described = made.manifest if isinstance(made, Policy) else made.description
        found = _certificate(described, ranker, certificate, status)
        contents = Report(ranker.resolve().name, described, found)
        serve_as: ServeAs = "sampled" if found is not None and found.serve_as == "sampled" else "deterministic"
        if log is not None:
            with status.status(f"Reading {without_secrets(log)}") as now:
                if isinstance(made, Policy):
                    ways = {"logging_scores": logging_scores, "part": part, "serve_as": serve_as}
                    contents = replace(contents, **_of_log(made, log, features, now, ways, reading))
                else:
                    scores = replace(made, serve_as=serve_as)
                    contents = replace(contents, **_of_scores(scores, log, found, now, reading))
        text = report_page(contents)
        kind = "not certified" if contents.certificate is None else contents.certificate.verdict.value
    elif reproduced:
        from saferank.report.reproduction_page import reproduction_page

        if certificate is not None or log is not None:
            raise UsageError(f"{source} is a reproduction; --certificate, --log and --features are for a model.")
        with status.status("Drawing"):
            text = reproduction_page(ranker)
        kind = "reproduction"
    else:
        raise DataError("was written neither by `saferank fit` nor by `saferank reproduce`.", file=source)
    write_page(text, out)
    if as_json:
        print_json({"out": out, "kind": kind})
    else:
        tell(f" {out}", headline=kind)


def _places(ranker: Path) -> list[Path]:
    """Return the folders in which to look for a certificate if none is named."""
    return list(dict.fromkeys((ranker.resolve().parent, Path().resolve())))


def _certificates(ranker: Path) -> list[Path]:
    """Return the certificates of the usual name that may be there."""
    return [folder / CERTIFICATE for folder in _places(ranker)]


def _identity(described: Mapping[str, Any]) -> Any:
    """Return the hashes of a model's files, or of a candidate's scores; None if there are neither."""
    scores = described.get("candidate") or {}
    return described.get("files") or [scores[name] for name in ("sha256", "scores_sha256") if name in scores] or None


def _certificate(described: Mapping[str, Any], ranker: Path, given: Path | None, status: Console) -> Certificate | None:
    """Return the given certificate, or one beside the ranker or in this folder that belongs to it.

    One of the usual name comes first, then the latest of any other (`certify --out FILE`).
    """
    from saferank.verdict.certificate import FORMAT, Certificate

    def is_of_ranker(certificate: Certificate) -> bool:
        certified = _identity(certificate.inputs.get("model", {}))
        return certified is not None and certified == _identity(described)

    for file in [file for file in _certificates(ranker) if file.is_file()] if given is None else [given]:
        certificate = Certificate.read(file)
        if is_of_ranker(certificate):
            return certificate
        if given is not None:
            raise UsageError(f"{given} belongs to another ranker, not {ranker}; certify this one.")
        tell(f"{file} belongs to another ranker and is left out.", status)
    files = (file for folder in _places(ranker) for file in folder.glob("*.json") if file.name != CERTIFICATE)
    small = (file for file in files if file.is_file() and file.stat().st_size <= LARGEST)
    others = [Certificate.read(file) for file in small if FORMAT.is_of(file)]
    return max(filter(is_of_ranker, others), key=lambda one: one.created, default=None)


def _of_scores(
    scores: NewRanker, log: str, found: Certificate | None, now: Status, reading: dict[str, Any]
) -> dict[str, Any]:
    """Return the certificate of a ranker made elsewhere if it is of this log, its health, and what the ranker changes.

    With a certificate, the log is read as it was for it.
    """
    import numpy as np

    from saferank.doctor.diagnosis import diagnose
    from saferank.verdict.exposure_shift import placement_changes
    from saferank.verdict.inputs import read_log
    from saferank.verdict.ledger import fingerprints

    aggregated = read_log(log, as_in=None if found is None else found.inputs.get("log"), **reading)
    if found is not None and set(fingerprints(aggregated.manifest)).isdisjoint(fingerprints(found.inputs["log"])):
        tell(f"The certificate of these scores is for another log than {log}, and is left out.", now.console)
        found = None
    now.update("Checking the log")
    health = diagnose(aggregated)
    health = replace(health, findings=tuple(one for one in health.findings if one.code != "never-shown"))  # no features
    curve = None if found is None else np.array(found.examination["curve"])
    if found is None and health.harvested.complete:
        curve = health.harvested.probabilities()
    now.update("Comparing rankings")
    changes = None if curve is None else placement_changes(scores, aggregated, curve)
    return {"certificate": found, "changes": changes, "health": health}


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
