"""`saferank fit`: a policy from a click log."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape

from saferank.cli import log_options as options
from saferank.cli.log_options import parse_columns, parse_names, read_log, requested_split
from saferank.cli.screen import number_table
from saferank.engine.errors import UsageError
from saferank.learning.methods import FROM_COUNTS, METHODS
from saferank.learning.settings import FitSettings, LoggingPolicy

if TYPE_CHECKING:
    from rich.table import Table

    from saferank.learning.compare_policies import ComparedPolicy
    from saferank.learning.fit_policy import Step
    from saferank.ranker import SafeRanker

DEFAULTS = FitSettings()
ESTIMATES = ("exposure-ips", "exposure-crm", "doubly-robust", "direct", "self-normalised-ips")
"""Methods whose value is an estimate of clicks per interaction, or a bound of it."""
UNLIKELY = 0.3
"""Chance of a proof below which a look at the held-out part is not worth its share of delta."""
CLEARLY = 0.02
"""Share of the current ranker's clicks by which another method must be ahead to be worth a word."""
METHODS_HELP = "; ".join(f"[cyan]{name}[/cyan]: {METHODS[name].description}" for name in FROM_COUNTS) + "."


def fit(
    log: options.Log,
    features: Annotated[str, options.FEATURES],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Folder to write.")],
    method: Annotated[str, typer.Option(metavar="METHOD", help="What is maximised. " + METHODS_HELP)] = DEFAULTS.method,
    constant: Annotated[
        Literal["proven", "paper"],
        typer.Option("--constant", "--bound", metavar="C", help="Constant of the risk term: proven or paper."),
    ] = DEFAULTS.constant,
    delta: Annotated[
        float, typer.Option(help="Probability that the lower bound fails, for a policy fixed beforehand.")
    ] = DEFAULTS.delta,
    scorer: Annotated[
        Literal["gbdt", "mlp", "linear"],
        typer.Option(
            metavar="KIND",
            help="Kind of scorer: gbdt (trees), mlp (a neural network) or linear; for these two, auto is gain-bound.",
        ),
    ] = DEFAULTS.scorer,  # type: ignore[assignment]
    examination: options.Examination = None,
    cutoff: options.Cutoff = None,
    logging_scores: options.LoggingScores = None,
    logging_policy: Annotated[
        LoggingPolicy,
        typer.Option(
            metavar="WAY",
            help="How training knows what the current ranker shows: counted, modelled (counts, shrunk towards a model "
            "of it), known (--logging-scores or --live), or auto: known, or what explains the log better.",
        ),
    ] = DEFAULTS.logging_policy,
    live: options.Live = None,
    earlier: options.Earlier = None,
    feature_columns: Annotated[
        str | None, typer.Option(help="Columns of F to use: a,b,c.", show_default="all numeric columns")
    ] = None,
    ignore: Annotated[str, typer.Option(help="Numeric columns of F that are not features: label,price.")] = "",
    part: options.Part = "train",
    scaling: Annotated[
        Literal["per-query", "none"],
        typer.Option(metavar="WAY", help="per-query: to [0, 1] among the documents of a query; or none."),
    ] = DEFAULTS.scaling,
    no_log1p: Annotated[
        bool, typer.Option("--no-log1p", help="Do not replace x by sign(x) log(1 + |x|) before scaling.")
    ] = False,
    missing: Annotated[
        str, typer.Option(help="Missing values (null, NaN) of a feature: error, or the number to use instead.")
    ] = str(DEFAULTS.missing),
    column: options.Columns = None,
    layout: options.Layout = "auto",
    on_bad_rows: options.OnBadRows = "error",
    unit: options.Unit = None,
    split: Annotated[
        str | None,
        typer.Option(help="Percentages of LOG for train/validation/certify.", show_default="60/20/20"),
    ] = None,
    split_by: Annotated[
        Literal["hash", "time", "query", "unit"],
        typer.Option(metavar="WAY", help="What LOG is split by: impression (hash), time, query or unit."),
    ] = "hash",
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Also learn by every other method, for comparison.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=options.LARGEST_SEED, metavar="N", help="Seed of the weights and the order of queries."
        ),
    ] = DEFAULTS.training.seed,
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most epochs; mlp and linear only.")
    ] = DEFAULTS.training.epochs,
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate of Adam; mlp and linear only.")
    ] = DEFAULTS.training.learning_rate,
) -> None:
    """Learn a ranking policy from a click log.

    Begins with the current ranker (its scores, or a model of what it showed), and
    departs from it as far as the clicks support, choosing by what
    [cyan]saferank certify[/cyan] is foreseen to prove. Learns from the parts [bold]train[/bold] and
    [bold]validation[/bold], and does not touch the part [bold]certify[/bold].

    MODEL is a folder: weights, feature schema, manifest. It appears when it is
    complete.

    [cyan]saferank fit log.parquet --features features.parquet --out model[/cyan]
    """
    from saferank.features.load_features import load_features
    from saferank.learning.logging_policy import check_logging_policy
    from saferank.policy.model_folder import check_model_folder
    from saferank.ranker import SafeRanker

    check_model_folder(out)
    check_logging_policy(logging_policy, known=logging_scores is not None or live is not None)
    parse_columns(column)  # a mistake shows here, and not after the features were read
    ranker = SafeRanker(
        method=method,
        delta=delta,
        constant=constant,
        scorer=scorer,
        examination=examination,
        cutoff=cutoff,
        logging_scores=logging_scores,
        logging_policy=logging_policy,
        log1p=not no_log1p,
        scaling=scaling,
        missing=_missing(missing),
        without_features=on_bad_rows,
        baselines=compare,
        epochs=epochs,
        learning_rate=learning_rate,
        seed=seed,
    )
    console, errors = Console(), Console(stderr=True)
    names = None if feature_columns is None else parse_names(feature_columns)
    if names is not None and logging_scores is not None:
        names.append(logging_scores)
    with errors.status(f"Reading {features}") as status:
        data = load_features(
            features, part=part, columns=names, ignore=parse_names(ignore),
            missing="error" if missing == "error" else "nan",
        )  # fmt: skip
        parts = requested_split(split, None if split_by == "hash" else split_by)
        aggregated, _ = read_log(
            log, status, column=column, layout=layout, cutoff=ranker.wanted_cutoff, split=parts, unit=unit,
            on_bad_rows=on_bad_rows,
        )  # fmt: skip
        past = [
            read_log(one, status, column=column, layout=layout, cutoff=aggregated.cutoff, on_bad_rows=on_bad_rows)[0]
            for one in earlier or ()
        ]
    steps: dict[str, Step] = {}
    with Live(_steps(steps), console=errors, transient=True) as screen:

        def show(step: Step) -> None:
            steps[step.method] = step
            screen.update(_steps(steps))

        ranker.fit(aggregated, data, earlier=past, live=live, progress=show)
    ranker.save(out)
    for warning in ranker.warnings:
        errors.print(f"[yellow]Warning:[/yellow] {escape(warning)}", soft_wrap=True, highlight=False)
    console.print(_table(ranker.comparison, ranker.settings.method, delta))
    console.print(_words(ranker, out, ranker.settings.method), soft_wrap=True, highlight=False)


def _missing(text: str) -> float | Literal["error"]:
    if text == "error":
        return "error"
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"--missing {text}: must be error, or the number to use for a missing value.") from error


def _steps(steps: dict[str, Step]) -> Table:
    """Return the progress of training, one row per method; not every objective is an estimate of clicks."""
    columns = ("method", "epochs or trees", "estimate", "risk", "bound", "current ranker")
    table = number_table("Training", columns, left=["method"])
    table.columns[-1].no_wrap = True
    for method, step in steps.items():
        epoch, bound = step.epoch, step.epoch.estimate - step.epoch.risk
        values = [f"{value:.4f}" for value in (epoch.estimate, epoch.risk, bound)]
        compared = f"{step.click_rate:.4f} ({bound - step.click_rate:+.4f})"
        estimates = method in ESTIMATES and math.isfinite(bound)
        table.add_row(method, str(epoch.epoch), *([*values, compared] if estimates else ["", "", "", ""]))
    return table


def _table(comparison: tuple[ComparedPolicy, ...], method: str, delta: float) -> Table:
    columns = ("policy", "estimate", f"lower bound ({100 * (1 - delta):g}%)", "divergence", "on never shown")
    table = number_table("Clicks per interaction, on the part validation", columns, left=["policy"])
    table.columns[0].no_wrap = True
    for row in comparison:
        cells = f"{row.estimate:.4f}", f"{row.lower_bound:.4f}", f"{row.divergence:.2f}", f"{row.never_shown:.2%}"
        table.add_row(row.name, *cells, style="bold" if row.name == method else "")
    return table


def _words(ranker: SafeRanker, out: Path, method: str) -> str:
    from saferank.features.schema import listed

    schema, manifest = ranker.policy.schema, ranker.policy.manifest
    logging, *learned = ranker.comparison
    mine = next(row for row in learned if row.name == method)
    best = max(learned, key=lambda row: row.estimate)
    lines = []
    if ranker.left_out:
        lines.append(f"{ranker.left_out:,} shown pairs without features were left out.")
    if ranker.examination is None:
        curve = ", ".join(f"{value:.3g}" for value in ranker.policy.examination)
        lines.append(f"Examination, estimated from the log: {curve}.")
    needs = "" if schema.base is None else f", and {schema.base}, the scores that it corrects"
    lines.append(f"Features: {listed(schema.names, 3)}{needs}.")
    lines.append(f"{out}: {_chosen(manifest, method, logging.estimate)}")
    change = mine.estimate / logging.estimate - 1
    foreseen = manifest["training"].get("chosen") or {"gain": math.inf}
    if not math.isclose(mine.estimate - logging.estimate, foreseen["gain"], rel_tol=1e-6):
        lines.append(f"Estimated clicks on what the log shows: {change:+.1%} relative to the current ranker.")
    if change < -CLEARLY and manifest["training"].get("chosen") is None and schema.base is None:
        lines.append("The features do not explain what the current ranker shows: give its scores\n(--logging-scores).")
    if best.estimate - mine.estimate > CLEARLY * logging.estimate:
        lines.append(
            f"Method {best.name} is estimated {best.estimate / mine.estimate - 1:.1%} higher: try it (--method)."
        )
    lines.append("The same clicks chose the policy, so this is not a certificate.")
    lines.append("The held-out part was not touched: `saferank certify` decides on it.")
    return "\n".join(lines)


def _chosen(manifest: dict[str, Any], method: str, click_rate: float) -> str:
    """Return what was learned, and what a verdict on it is foreseen to find."""
    training = manifest["training"]
    foreseen = training.get("chosen")
    if foreseen is None:
        if method in ("auto", "correction"):
            return "the clicks do not support any departure from the current ranker yet: this is a model of it."
        return f"{method}."
    gain, chance = foreseen["gain"] / click_rate, foreseen["chance"]
    advice = "\nThat is little: log more before you ask for a verdict." if chance < UNLIKELY else ""
    return f"{foreseen['name']}.\nForeseen: {gain:+.1%} clicks; chance that certify can prove it: {chance:.0%}.{advice}"
