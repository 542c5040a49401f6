"""`saferank report`: one page that tells a policy, its verdict and what it changes; or a reproduction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from saferank.cli.log_options import Columns, Layout, LoggingScores, OnBadRows, Part, parse_columns
from saferank.engine.errors import DataError, UsageError

if TYPE_CHECKING:
    from saferank.policy.policy import Policy
    from saferank.report.report_page import Report
    from saferank.verdict.certificate import Certificate

CERTIFICATE, RESULTS = "certificate.json", "results.parquet"


def report(
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
            help="What [cyan]saferank certify[/cyan] wrote.",
            show_default="certificate.json beside MODEL or here, if it is of MODEL",
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(metavar="LOG", help="A log, or a folder that [cyan]aggregate[/cyan] wrote: tells its health."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(metavar="F", help="Features, as for fit: with LOG, tells what MODEL changes."),
    ] = None,
    logging_scores: LoggingScores = None,
    part: Part = "train",
    column: Columns = None,
    layout: Layout = "auto",
    on_bad_rows: OnBadRows = "error",
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write one page that people read: the verdict, what it means, what changes.

    The verdict and how sure it is, exposure moved from where to where, what changes
    most, training, the health of the log, what it all assumes. One file that opens
    offline, on a phone, in the dark and on paper. Of a reproduction: its table,
    findings and figures.

    [cyan]saferank report model --log log.parquet --features features.parquet[/cyan]
    """
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; name a file, such as {out / 'report.html'}.")
    if features is not None and log is None:
        raise UsageError("--features tells what changes beside a log; give --log too.")
    if logging_scores is not None and features is None:
        raise UsageError("--logging-scores is a column of the features; give --features too.")

    from saferank.files.atomic_write import check_not_read, check_parents
    from saferank.policy.model_folder import MANIFEST, SCHEMA, WEIGHTS, is_model
    from saferank.report.page import write_page

    check_parents(out)
    read = [source / name for name in (MANIFEST, SCHEMA, WEIGHTS, RESULTS)]
    read += _certificates(source) if certificate is None else [certificate]
    check_not_read(out, [*read, *(Path(name) for name in (log, features) if name is not None)])
    status = Console(stderr=True)
    if is_model(source):
        from saferank.policy.policy import Policy
        from saferank.report.report_page import report_page

        policy = Policy.load(source)
        found = _certificate(policy, source, certificate, status)
        gathered = _gather(
            policy, source, found, log, features, status,
            logging_scores=logging_scores, column=column, layout=layout, on_bad_rows=on_bad_rows, part=part,
        )  # fmt: skip
        text = report_page(gathered)
        told = "not certified" if found is None else found.verdict.value
    elif (source / RESULTS).is_file():
        from saferank.report.reproduction_page import reproduction_page

        if certificate is not None or log is not None:
            raise UsageError(f"{source} is a reproduction; --certificate, --log and --features are for a model.")
        with status.status("Drawing"):
            text = reproduction_page(source)
        told = "reproduction"
    else:
        raise DataError(
            "is neither a model that `saferank fit` wrote nor a folder that `saferank reproduce` wrote.", file=source
        )
    write_page(text, out)
    Console().print(Text.assemble((told, "bold"), f"  {out}"), soft_wrap=True)


def _certificate(policy: Policy, model: Path, given: Path | None, status: Console) -> Certificate | None:
    """Return the certificate asked for, or one that lies beside the model or here and is of this model."""
    from saferank.verdict.certificate import Certificate

    if given is not None:
        certificate = Certificate.read(given)
        if not _is_of(certificate, policy):
            raise UsageError(f"{given} is of another model than {model}; certify this one.")
        return certificate
    for file in _certificates(model):
        if file.is_file():
            certificate = Certificate.read(file)
            if _is_of(certificate, policy):
                return certificate
            status.print(f"{file} is of another model, and left out.", highlight=False, soft_wrap=True)
    return None


def _certificates(model: Path) -> list[Path]:
    """Return where a certificate is looked for if none is named."""
    return list(dict.fromkeys((model.resolve().parent / CERTIFICATE, Path(CERTIFICATE).resolve())))


def _is_of(certificate: Certificate, policy: Policy) -> bool:
    files = certificate.inputs.get("model", {}).get("files")
    return files is not None and files == policy.manifest.get("files")


def _gather(
    policy: Policy,
    model: Path,
    certificate: Certificate | None,
    log: str | None,
    features: str | None,
    status: Console,
    *,
    logging_scores: str | None,
    column: list[str] | None,
    layout: str,
    on_bad_rows: str,
    part: str,
) -> Report:
    """Read what was named, and measure what can be."""
    from saferank.doctor.diagnosis import diagnose
    from saferank.report.report_page import Report
    from saferank.verdict.exposure_shift import exposure_changes
    from saferank.verdict.inputs import load_inputs, read_log

    name = model.resolve().name
    if log is None:
        return Report(name, policy.manifest, certificate)
    options: dict[str, Any] = {"columns": parse_columns(column), "layout": layout, "on_bad_rows": on_bad_rows}
    with status.status(f"Reading {log}") as now:
        data, changes = None, None
        if features is None:
            aggregated = read_log(log, policy, **options)
        else:
            served: Literal["deterministic", "sampled"] = "deterministic"
            if certificate is not None and certificate.serve_as == "sampled":
                served = "sampled"
            inputs = load_inputs(
                policy, log, features, serve_as=served, logging_scores=logging_scores, part=part, progress=now.update,
                **options,
            )  # fmt: skip
            aggregated, data = inputs.log, inputs.ranker.data
            now.update("Comparing rankings")
            changes = exposure_changes(policy, aggregated, data, serve_as=served, logging_scores=inputs.logging_scores)
        now.update("Looking at the log's health")
        health = diagnose(aggregated, data, policy.examination)
    return Report(name, policy.manifest, certificate, changes, health)
