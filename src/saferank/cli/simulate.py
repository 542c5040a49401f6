"""`saferank simulate`: a click log from a labelled data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import DataArgument, Seed
from saferank.cli.screen import progress_bar, tell
from saferank.engine.errors import UsageError
from saferank.files.atomic_write import check_output_file

if TYPE_CHECKING:
    from saferank.datasets.dataset import Dataset
    from saferank.engine.click_models.position_based import PositionBasedModel


def simulate(
    name: DataArgument,
    interactions: Annotated[str, typer.Option(help="How many times a user issues a query, such as 1e6.")],
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
    part: Annotated[
        str,
        typer.Option(
            help="Split of DATA whose queries are issued: train, validation or test. Test queries without a relevant "
            "document are left out."
        ),
    ] = "train",
    seed: Seed = 0,
    cutoff: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="Number of documents shown at once.",
            show_default="5, or as many as --examination lists",
        ),
    ] = None,
    examination: Annotated[
        str,
        typer.Option(
            help="Probability that users examine each rank: [cyan]1,0.5,0.3[/cyan], or [cyan]inverse-rank:2[/cyan] "
            "for 1/rank^2."
        ),
    ] = "inverse-rank:2",
    relevance_slope: Annotated[
        float, typer.Option(help="An examined document is clicked with probability slope * label + noise.")
    ] = 0.025,
    relevance_noise: Annotated[float, typer.Option(help="Click probability of an examined document of label 0.")] = 0.2,
    logging_fraction: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of the training queries that the current ranker learns from.")
    ] = 0.03,
    live: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="Model that makes the log with sampled rankings, instead of one trained on labels."
        ),
    ] = None,
    month: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Month of the log; logs of different months can be read as one."),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Make a click log: a ranker shows documents, and simulated users click on some.

    The ranker that makes the log is trained on the labels of a few of the
    training queries. It is a Plackett-Luce policy: documents with higher scores
    are more likely to be ranked higher. A user examines each rank with the
    probability in --examination, and clicks on documents that seem relevant.

    The log has one row per shown document: impression_id, timestamp, query_id,
    document_id, position (from 1), click (0 or 1).

    [cyan]saferank simulate synthetic:small --interactions 1e6 --out log.parquet[/cyan]
    """
    total = _whole_number(interactions)

    import numpy as np

    from saferank.datasets.dataset import load_dataset
    from saferank.engine.click_models.position_based import PositionBasedModel
    from saferank.lab.raw_log import write_raw_log
    from saferank.lab.world import make_world, prepare
    from saferank.logs.examination_text import parse_examination
    from saferank.policy.policy import Policy

    model = PositionBasedModel(parse_examination(examination, cutoff), relevance_slope, relevance_noise)
    check_output_file(out)
    errors = Console(stderr=True)
    with errors.status(f"Reading {name}"):
        dataset = load_dataset(name)
    if part not in dataset.splits:
        raise UsageError(f"there is no part '{part}'; choose from {', '.join(dataset.splits)}.")
    _check_relevance(model, dataset)
    if live is None:
        with errors.status("Training the current ranker"):
            world = make_world(prepare(dataset), seed=seed, fraction=logging_fraction, click_model=model)
        queries, scores = getattr(world, part), world.logging_scores[part]
    else:
        queries = dataset.test.with_relevant_document() if part == "test" else dataset.splits[part]
        scores = Policy.load(live).scores(queries)
    with progress_bar(errors, percent=True) as progress:
        task = progress.add_task("interactions", total=total)
        rng = np.random.default_rng([seed, 3] if month == 0 else [seed, 3, month])
        log = write_raw_log(
            out, queries, scores, model, total, rng, lambda done: progress.advance(task, done), month=month
        )
    shown, clicks, issued = log.times_shown.sum(), log.clicks.sum(), (log.interactions > 0).sum()
    if as_json:
        queries_seen = {"queries": log.queries, "queries_issued": issued}
        counts = {"interactions": log.total_interactions, **queries_seen, "shown": shown, "clicks": clicks}
        print_json({"out": out, **counts})
        return
    tell(
        f"{out}: {log.total_interactions:,} interactions with {issued:,} of {log.queries:,} "
        f"queries, {shown:,} documents shown, {clicks:,} clicks ({clicks / max(shown, 1):.1%})."
    )


def _whole_number(text: str) -> int:
    try:
        number = float(text)
        if number >= 1 and number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"--interactions {text}: must be a whole number of at least 1, such as 1e6.")


def _check_relevance(model: PositionBasedModel, dataset: Dataset) -> None:
    """Raise if a label of the data gives no probability, which the lowest and the highest label decide."""
    labels = [data.require_labels() for data in dataset.splits.values()]
    for label in (min(float(of.min()) for of in labels), max(float(of.max()) for of in labels)):
        chance = model.relevance_slope * label + model.relevance_noise
        if not 0.0 <= chance <= 1.0:
            raise UsageError(
                f"--relevance-slope {model.relevance_slope:g} and --relevance-noise {model.relevance_noise:g} give "
                f"label {label:g} a click probability of {chance:g}; choose them so that it lies between 0 and 1."
            )
