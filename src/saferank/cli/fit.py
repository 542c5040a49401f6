"""`saferank fit`: a policy from a click log."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.live import Live

from saferank.cli import log_options as options
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import parse_columns, parse_names, read_log, requested_split
from saferank.cli.screen import number_table, tell
from saferank.cli.track import Track, model_tags, tracked
from saferank.engine.errors import UsageError
from saferank.learning.methods import FROM_COUNTS, METHODS
from saferank.learning.settings import FitSettings, LoggingPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from saferank.learning.compare_policies import ComparedPolicy
    from saferank.learning.fit_policy import Step
    from saferank.ranker import SafeRanker

DEFAULTS = FitSettings()
ESTIMATES = ("exposure-ips", "exposure-crm", "doubly-robust", "safe-doubly-robust", "direct", "self-normalised-ips")
"""Methods whose value is an estimate of clicks per interaction, or a bound of it."""
UNLIKELY = 0.3
"""Chance of a proof below which a look at the held-out part is not worth its share of delta."""
CLEARLY = 0.02
"""Share of the current ranker's clicks by which another method must be ahead to be mentioned."""
METHODS_HELP = "; ".join(f"[cyan]{name}[/cyan]: {METHODS[name].description}" for name in FROM_COUNTS) + "."


def fit(
    context: typer.Context,
    log: options.Log,
    features: Annotated[str, options.FEATURES],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Folder to write; replaces a model that is there.")],
    method: Annotated[str, typer.Option(metavar="METHOD", help="What is maximised. " + METHODS_HELP)] = DEFAULTS.method,
    constant: options.Constant = DEFAULTS.constant,
    delta: Annotated[
        float, typer.Option(help="Probability that the lower bound fails, for a policy fixed beforehand.")
    ] = DEFAULTS.delta,
    scorer: Annotated[
        Literal["gbdt", "mlp", "linear"],
        typer.Option(
            metavar="KIND",
            help="Scorer: gbdt (trees), mlp (a neural network) or linear. With mlp and linear, auto is gain-bound.",
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
            "of it), known (--logging-scores or --live), or auto: known, else counted.",
        ),
    ] = DEFAULTS.logging_policy,
    live: options.Live = None,
    earlier: options.Earlier = None,
    feature_columns: Annotated[
        str | None, typer.Option(help="Columns of F to use: a,b,c.", show_default="all numeric columns")
    ] = None,
    categorical: Annotated[
        str,
        typer.Option(metavar="COLUMNS", help="Columns of F with text, each value of which is a feature: brand,type."),
    ] = "",
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
        str,
        typer.Option(
            metavar="WAY",
            help="Missing values (null, NaN) of a feature: error; the number to use instead; or indicator: 0 after "
            "scaling, and a further feature that says where a value is missing.",
        ),
    ] = str(DEFAULTS.missing),
    column: options.Columns = None,
    layout: options.Layout = "auto",
    on_bad_rows: options.OnBadRows = "error",
    unit: options.Unit = None,
    split: options.Shares = None,
    split_by: options.SplitBy = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also learn by every other method, for comparison.")
    ] = False,
    no_compare: Annotated[bool, typer.Option("--no-compare", hidden=True)] = False,  # the default, once it was not
    seed: options.Seed = DEFAULTS.training.seed,
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most epochs; mlp and linear only.")
    ] = DEFAULTS.training.epochs,
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate of Adam; mlp and linear only.")
    ] = DEFAULTS.training.learning_rate,
    processes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Processes that train together; mlp and linear only.")
    ] = DEFAULTS.training.processes,
    track: Track = None,
    as_json: AsJson = False,
) -> None:
    """Learn a ranking policy from a click log.

    Starts from the current ranker (its scores, or a model of what it showed)
    and changes it as far as the clicks support, choosing what [cyan]saferank certify[/cyan]
    can probably prove. Learns from the parts [bold]train[/bold] and [bold]validation[/bold], and never
    reads the part [bold]certify[/bold].

    MODEL is a folder: weights, feature schema, manifest. It is written only when
    complete, and replaces an earlier one.

    [cyan]saferank fit log.parquet --features features.parquet --out model[/cyan]
    """
    from saferank.features.load_features import load_features
    from saferank.features.reader import text_columns
    from saferank.features.schema import listed
    from saferank.learning.logging_policy import check_logging_policy
    from saferank.policy.model_folder import check_model_folder
    from saferank.policy.policy import Policy
    from saferank.ranker import SafeRanker

    check_model_folder(out)
    check_logging_policy(logging_policy, known=logging_scores is not None or live is not None)
    named, texts = parse_columns(column), parse_names(categorical)
    categories = texts if live is None else Policy.load(live).schema.categories
    if other := [name for name in texts if name not in categories]:
        raise UsageError(f"--categorical {', '.join(other)}: the live model says which columns are read, and lacks it.")
    ranker = SafeRanker(
        method=method, delta=delta, constant=constant, scorer=scorer, examination=examination, cutoff=cutoff,
        logging_scores=logging_scores, logging_policy=logging_policy, log1p=not no_log1p, scaling=scaling,
        missing=_missing(missing), categorical=texts, without_features=on_bad_rows,
        baselines=compare and not no_compare, epochs=epochs,
        learning_rate=learning_rate, seed=seed, training=replace(DEFAULTS.training, processes=processes),
    )  # fmt: skip
    record = context.with_resource(tracked(track, context))
    errors, replaced = Console(stderr=True), out.exists()
    names = None if feature_columns is None else parse_names(feature_columns)
    if names is not None and logging_scores is not None:
        names.append(logging_scores)
    with errors.status(f"Reading {features}") as status:
        data = load_features(
            features, part=part, columns=names, ignore=parse_names(ignore), id_columns=named,
            categorical=categories,
            missing="error" if missing == "error" else "nan",
        )  # fmt: skip
        parts = requested_split(split, split_by)
        aggregated = read_log(
            log, status, column=column, layout=layout, cutoff=ranker.wanted_cutoff, split=parts, unit=unit,
            on_bad_rows=on_bad_rows,
        )  # fmt: skip
        past = [
            read_log(one, status, column=column, layout=layout, cutoff=aggregated.cutoff, on_bad_rows=on_bad_rows)
            for one in earlier or ()
        ]
    steps: dict[str, Step] = {}
    with Live(_steps(steps), console=errors, transient=True) as screen:

        def show(step: Step) -> None:
            steps[step.method] = step
            screen.update(_steps(steps))

        ranker.fit(aggregated, data, earlier=past, live=live, progress=show)
    ranker.save(out)
    method = ranker.policy.manifest["settings"]["method"]  # auto may stand for another
    record(_metrics(ranker, method), {"method": method, **model_tags(out)}, {out: "model"})
    for warning in ranker.policy.inputs["warnings"]:
        tell(warning, errors, headline="Warning:", style="yellow")
    used = {*ranker.policy.schema.categories, *named.values()}
    unused = [name for name in text_columns(features) if name not in used]
    if as_json:
        print_json({"out": out, "replaced": replaced, "method": method, **_result(ranker), "columns_left_out": unused})
        return
    Console().print(_table(ranker.comparison, method, delta))
    if unused:
        tell(f"Columns without numbers are not features: {listed(unused, 3)}. To use their values: --categorical.")
    tell("\n".join(_lines(ranker, out, method)))
    if replaced:
        tell(f"The earlier model in {out} was replaced.")


def _missing(text: str) -> float | Literal["error", "indicator"]:
    if text == "error":
        return "error"
    if text == "indicator":
        return "indicator"
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(
            f"--missing {text}: must be error, indicator, or the number to use for a missing value."
        ) from error


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
    table = number_table("Clicks per interaction, on the validation part", columns, left=["policy"])
    table.columns[0].no_wrap = True
    for row in comparison:
        cells = f"{row.estimate:.4f}", f"{row.lower_bound:.4f}", f"{row.divergence:.2f}", f"{row.never_shown:.2%}"
        table.add_row(row.name, *cells, style="bold" if row.name == method else "")
    return table


def _result(ranker: SafeRanker) -> dict[str, Any]:
    """Return what the screen shows of a fit, as values."""
    policy = ranker.policy
    return {
        "comparison": ranker.comparison,
        "foreseen": policy.manifest["training"]["chosen"],
        "examination": policy.examination,
        "examination_estimated": ranker.examination is None,
        "features": policy.schema.names,
        "base": policy.schema.base,
        "earlier": policy.inputs["earlier"],
        "pairs_left_out": ranker.left_out,
        "warnings": policy.inputs["warnings"],
    }


def _metrics(ranker: SafeRanker, method: str) -> dict[str, float | None]:
    """Return the numbers of a fit that a tracker compares; `foreseen_improvement` is in clicks per interaction."""
    logging, *learned = ranker.comparison
    mine = next(row for row in learned if row.name == method)
    foreseen = ranker.policy.manifest["training"]["chosen"] or {}
    return {
        "current_ranker": logging.estimate,
        "estimate": mine.estimate,
        "lower_bound": mine.lower_bound,
        "divergence": mine.divergence,
        "foreseen_improvement": foreseen.get("improvement"),
        "foreseen_chance": foreseen.get("chance"),
    }


def _lines(ranker: SafeRanker, out: Path, method: str) -> Iterator[str]:
    """Yield what to know about the model, and what to do next."""
    from saferank.features.schema import listed
    from saferank.logs.earlier_logs import in_words

    schema, foreseen = ranker.policy.schema, ranker.policy.manifest["training"]["chosen"]
    logging, *learned = ranker.comparison
    mine = next(row for row in learned if row.name == method)
    best = max(learned, key=lambda row: row.estimate)
    if ranker.left_out:
        yield f"{ranker.left_out:,} shown pairs without features were left out."
    if earlier := ranker.policy.inputs["earlier"]:
        yield f"Also learned from {in_words(earlier)}."
    if ranker.examination is None:
        curve = ", ".join(f"{value:.3g}" for value in ranker.policy.examination)
        yield f"Examination curve, estimated from the log: {curve}."
    needs = "" if schema.base is None else f", and {schema.base}, the scores that the model corrects"
    yield f"Features: {listed(schema.names, 3)}{needs}."
    unit = ranker.policy.inputs["log"].get("unit")
    yield f"{out}: {_chosen(foreseen, method, logging.estimate, unit, refused=bool(ranker.refused_for))}"
    change = mine.estimate / logging.estimate - 1
    expected = change if foreseen is None else foreseen["improvement"] / logging.estimate
    if foreseen is None or not math.isclose(change, expected, rel_tol=1e-6, abs_tol=1e-9):
        yield f"Estimated clicks on what the log shows: {change:+.1%} relative to the current ranker."
    if expected < -CLEARLY and schema.base is None:
        yield "The features do not explain what the current ranker shows: give its scores (--logging-scores)."
    if best.estimate - mine.estimate > CLEARLY * logging.estimate:
        yield f"Method {best.name} has a {best.estimate / mine.estimate - 1:.1%} higher estimate: try it (--method)."
    yield "The policy was learned from these clicks, so this is not a certificate."
    yield "`saferank certify` decides on the held-out part, which `fit` did not use."


def _chosen(foreseen: dict[str, Any] | None, method: str, click_rate: float, unit: str | None, *, refused: bool) -> str:
    """Return what was learned, and the predicted verdict on it."""
    if foreseen is None:
        if method in ("auto", "correction"):
            return "the clicks do not support any change yet, so this is a model of the current ranker."
        return f"{method}."
    improvement, chance = foreseen["improvement"] / click_rate, foreseen["chance"]
    if improvement <= 0:
        words = f"Predicted: {improvement:+.1%} clicks. Keep the current ranker, and log more."
        return f"{foreseen['name']}.\n{words}"
    words = f"{foreseen['name']}.\nPredicted from the clicks it learned from: {improvement:+.1%} clicks.\n"
    if refused:
        return f"{words}certify will refuse this log as it is: see the warning above."
    if unit is not None:
        return f"{words}The chance of a proof is not predicted with --unit {unit}: it takes more data than without."
    advice = "\nThat is low: log more before you ask for a verdict." if chance < UNLIKELY else ""
    if advice and foreseen["allowance"] > 0:
        advice += (
            f" certify will subtract {foreseen['allowance'] / click_rate:.1%} of the clicks, because rankings changed "
            "over time and demand may have changed with them. Rankings drawn at random from the same scores all day "
            "(`saferank plan`) need no such allowance."
        )
    return f"{words}Predicted chance that certify proves an improvement: {chance:.0%}.{advice}"
