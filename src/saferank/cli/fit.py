"""`saferank fit`: a policy from a click log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from saferank.cli.log_options import Columns, Layout, LoggingScores, OnBadRows, Part, Unit, parse_columns
from saferank.engine.errors import UsageError
from saferank.learning.methods import FROM_COUNTS, METHODS
from saferank.learning.settings import FitSettings

if TYPE_CHECKING:
    from saferank.learning.compare_policies import ComparedPolicy
    from saferank.learning.fit_policy import Step
    from saferank.ranker import SafeRanker

DEFAULTS = FitSettings()
METHODS_HELP = "; ".join(f"[cyan]{name}[/cyan]: {METHODS[name].description}" for name in FROM_COUNTS) + "."
LOG_HELP = "Parquet, CSV, or a folder that [cyan]saferank aggregate[/cyan] wrote."
FEATURES_HELP = (
    "Features: Parquet (file, folder, pattern), a LETOR file or folder, or [cyan]synthetic:PRESET[/cyan]. "
    "One row per pair: query_id, document_id, numbers."
)


def fit(
    log: Annotated[str, typer.Argument(metavar="LOG", help=LOG_HELP)],
    features: Annotated[str, typer.Option(metavar="F", help=FEATURES_HELP)],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The folder to write.")],
    method: Annotated[
        Literal["exposure-crm", "exposure-ips", "naive"],
        typer.Option(metavar="METHOD", help="What is maximised. " + METHODS_HELP),
    ] = DEFAULTS.method,  # type: ignore[assignment]
    constant: Annotated[
        Literal["proven", "paper"],
        typer.Option("--constant", "--bound", metavar="C", help="Of the risk term: proven, or the paper's (paper)."),
    ] = DEFAULTS.constant,
    delta: Annotated[
        float, typer.Option(help="Chance that the bound may fail, for a policy fixed beforehand.")
    ] = DEFAULTS.delta,
    scorer: Annotated[
        Literal["mlp", "linear"], typer.Option(metavar="KIND", help="What scores: mlp, linear.")
    ] = DEFAULTS.scorer,  # type: ignore[assignment]
    examination: Annotated[
        str | None,
        typer.Option(
            help="Chance that each rank is looked at, only if you know it: [cyan]1,0.6,0.45[/cyan].",
            show_default="estimated from the log",
        ),
    ] = None,
    cutoff: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Ranks of the log to learn from.", show_default="all, at most 10"),
    ] = None,
    logging_scores: LoggingScores = None,
    feature_columns: Annotated[
        str | None, typer.Option(help="The features: a,b,c.", show_default="every column of numbers")
    ] = None,
    ignore: Annotated[str, typer.Option(help="Columns of numbers that are no features: label,price.")] = "",
    part: Part = "train",
    scaling: Annotated[
        Literal["per-query", "none"],
        typer.Option(metavar="WAY", help="per-query: to between 0 and 1 among the documents of a query; or none."),
    ] = DEFAULTS.scaling,
    no_log1p: Annotated[
        bool, typer.Option("--no-log1p", help="Do not replace x by sign(x) log(1 + |x|) first.")
    ] = False,
    missing: Annotated[
        str,
        typer.Option(help="What a missing value (null, NaN) of a feature is: error, or the number that stands for it."),
    ] = "error",
    column: Columns = None,
    layout: Layout = "auto",
    on_bad_rows: OnBadRows = "error",
    unit: Unit = None,
    split: Annotated[
        str | None, typer.Option(help="Shares of train/validation/certify of LOG.", show_default="60/20/20")
    ] = None,
    split_by: Annotated[
        Literal["hash", "time", "query", "unit"],
        typer.Option(metavar="WAY", help="Split LOG by impression (hash), time, query or unit: what is held out."),
    ] = "hash",
    no_compare: Annotated[bool, typer.Option("--no-compare", help="Do not learn by the other methods too.")] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31, metavar="N", help="For the weights and the order of queries.")
    ] = DEFAULTS.training.seed,
    epochs: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = DEFAULTS.training.epochs,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = DEFAULTS.training.learning_rate,
) -> None:
    """Learn a ranking policy from a click log.

    Maximises a lower bound on the clicks per interaction, so that the policy
    leaves the one that made the log only where the log supports it. Learns from
    the part [bold]train[/bold], stops by the part [bold]validation[/bold], and does not look at the
    part [bold]certify[/bold].

    MODEL is a folder: weights, feature schema, manifest. It appears when it is
    complete.

    [cyan]saferank fit log.parquet --features features.parquet --out model[/cyan]
    """
    from saferank.features.load_features import load_features
    from saferank.logs.load_log import load_log
    from saferank.logs.split import parse_split
    from saferank.policy.model_folder import check_model_folder
    from saferank.ranker import SafeRanker

    check_model_folder(out)
    columns = parse_columns(column)
    ranker = SafeRanker(
        method=method,
        delta=delta,
        constant=constant,
        scorer=scorer,
        examination=examination,
        cutoff=cutoff,
        logging_scores=logging_scores,
        log1p=not no_log1p,
        scaling=scaling,
        missing=_missing(missing),
        without_features=on_bad_rows,
        baselines=not no_compare,
        epochs=epochs,
        learning_rate=learning_rate,
        seed=seed,
    )
    console, errors = Console(), Console(stderr=True)
    names = None if feature_columns is None else _names(feature_columns)
    if names is not None and logging_scores is not None:
        names.append(logging_scores)
    with errors.status(f"Reading {features}"):
        data = load_features(
            features, part=part, columns=names, ignore=_names(ignore), missing="error" if missing == "error" else "nan"
        )
    with errors.status(f"Reading {log}") as status:
        aggregated = load_log(
            log,
            columns=columns,
            layout=layout,
            cutoff=ranker.wanted_cutoff,
            split=None if split is None and split_by == "hash" else parse_split(split or "60/20/20", by=split_by),
            unit=unit,
            on_bad_rows=on_bad_rows,
            progress=status.update,
        )
    steps: dict[str, Step] = {}
    with Live(_steps(steps), console=errors, transient=True) as live:

        def show(step: Step) -> None:
            steps[step.method] = step
            live.update(_steps(steps))

        ranker.fit(aggregated, data, progress=show)
    ranker.save(out)
    for warning in ranker.warnings:
        errors.print(f"[yellow]Warning:[/yellow] {escape(warning)}", soft_wrap=True, highlight=False)
    console.print(_table(ranker.comparison, method, delta))
    console.print(_words(ranker, out, method), soft_wrap=True, highlight=False)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _missing(text: str) -> float | Literal["error"]:
    if text == "error":
        return "error"
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"--missing {text}: must be error, or a number that stands for a missing value.") from error


def _steps(steps: dict[str, Step]) -> Table:
    """Where training stands: one line a method. The naive value is no estimate of clicks, and is not compared."""
    table = Table(title="Training", title_justify="left")
    for name in ("method", "epoch", "estimate", "risk", "bound", "logging policy"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for method, step in steps.items():
        epoch, bound = step.epoch, step.epoch.estimate - step.epoch.risk
        values = [f"{value:.4f}" for value in (epoch.estimate, epoch.risk, bound)]
        compared = f"{step.click_rate:.4f} ({bound - step.click_rate:+.4f})"
        cells = ["", "", "", ""] if method == "naive" else [*values, compared]
        table.add_row(method, str(epoch.epoch), *cells)
    return table


def _table(comparison: tuple[ComparedPolicy, ...], method: str, delta: float) -> Table:
    table = Table(title="Clicks per interaction, on the part validation", title_justify="left")
    table.add_column("policy")
    for name in ("estimate", f"lower bound ({100 * (1 - delta):g}%)", "divergence", "on never shown"):
        table.add_column(name, justify="right")
    for row in comparison:
        cells = f"{row.estimate:.4f}", f"{row.lower_bound:.4f}", f"{row.divergence:.2f}", f"{row.never_shown:.2%}"
        table.add_row(row.name, *cells, style="bold" if row.name == method else "")
    return table


def _words(ranker: SafeRanker, out: Path, method: str) -> str:
    from saferank.features.schema import listed

    logging = ranker.comparison[0]
    learned = next(row for row in ranker.comparison if row.name == method)
    lines = []
    if ranker.left_out:
        lines.append(f"{ranker.left_out:,} shown pairs without features were left out.")
    if ranker.examination is None:
        curve = ", ".join(f"{value:.3g}" for value in ranker.policy.examination)
        lines.append(f"Examination, estimated from the log: {curve}.")
    change = learned.estimate / logging.estimate - 1
    lines.append(f"Features: {listed(ranker.policy.schema.names, 3)}.")
    lines += [
        f"{out}: {method}, estimated at {change:+.1%} clicks against the logging policy.",
        *(["That is fewer: do not use it. Train longer (--epochs), or log more."] if change < 0 else []),
        "These clicks chose among policies: the table is not a certificate.",
        "The held-out part 'certify' was not touched.",
    ]
    return "\n".join(lines)
