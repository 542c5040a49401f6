"""`saferank simulate`: a click log from a labelled data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from saferank.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from saferank.data.dataset import Dataset
    from saferank.data.log_statistics import LogStatistics
    from saferank.data.ranking_data import RankingData
    from saferank.simulation.click_model import PositionBasedModel


def simulate(
    name: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A folder in LETOR layout, or [cyan]synthetic:PRESET[/cyan]."),
    ],
    interactions: Annotated[str, typer.Option(help="How many times a user issues a query, such as 1e6.")],
    out: Annotated[Path, typer.Option(help="The Parquet file to write.")],
    part: Annotated[str, typer.Option(help="Whose queries: train, validation or test.")] = "train",
    seed: Annotated[int, typer.Option(min=0, help="For the logging policy and the log.")] = 0,
    cutoff: Annotated[int, typer.Option(min=1, help="How many documents are shown at once.")] = 5,
    examination: Annotated[
        str, typer.Option(help="Chance that a rank is looked at; [cyan]inverse-rank:2[/cyan] is 1/rank^2.")
    ] = "inverse-rank:2",
    logging_fraction: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of the training queries that the logging policy learns from.")
    ] = 0.03,
) -> None:
    """Make a click log: a ranker shows documents, simulated users click on some of them.

    The ranker that makes the log is trained on the labels of a few of the
    training queries. It is a Plackett-Luce policy: documents with higher scores
    stand higher, with higher probability. A user looks at a rank with the chance
    that --examination gives, and clicks on what is found relevant there.

    One row a shown document: impression_id, timestamp, query_id, document_id,
    position (from 1), click (0 or 1).

    [cyan]saferank simulate synthetic:small --interactions 1e6 --out log.parquet[/cyan]
    """
    total = _whole_number(interactions)
    model = _click_model(examination, cutoff)

    import numpy as np

    from saferank.data.dataset import load_dataset
    from saferank.simulation.raw_log import write_raw_log

    with Console(stderr=True).status(f"Reading {name}"):
        dataset = load_dataset(name)
    if part not in dataset.parts:
        raise UsageError(f"no part is called '{part}'; there are {', '.join(dataset.parts)}.")
    with Console(stderr=True).status("Training the logging policy"):
        data, scores = _logging_policy(dataset, part, logging_fraction, seed, model)
    progress = Progress(
        TextColumn("interactions"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        console=Console(stderr=True),
    )  # fmt: skip
    with progress:
        task = progress.add_task("", total=total)
        log = write_raw_log(
            out, data, scores, model, total, np.random.default_rng([seed, 3]), lambda done: progress.advance(task, done)
        )
    Console().print(_summary(log, out), soft_wrap=True)


def _logging_policy(
    dataset: Dataset, part: str, fraction: float, seed: int, click_model: PositionBasedModel
) -> tuple[RankingData, NDArray[np.float32]]:
    """Return the queries of the part, and the scores of a ranker trained on that fraction of the training labels."""
    from saferank.experiments.world import make_world, prepare

    world = make_world(prepare(dataset), seed=seed, fraction=fraction, click_model=click_model)
    data: RankingData = getattr(world, part)
    return data, world.logging_scores[part]


def _whole_number(text: str) -> int:
    try:
        number = float(text)
        if number >= 1 and number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"--interactions {text}: must be a whole number from 1 up, such as 1e6.")


def _click_model(examination: str, cutoff: int) -> PositionBasedModel:
    from saferank.simulation.click_model import PositionBasedModel, inverse_rank

    kind, _, power = examination.partition(":")
    try:
        if kind == "inverse-rank":
            return PositionBasedModel(inverse_rank(cutoff, float(power or 2)))
    except ValueError:
        pass
    raise UsageError(f"--examination {examination}: write inverse-rank:POWER, with a power from 0 up.")


def _summary(log: LogStatistics, out: Path) -> str:
    shown, clicks = log.impressions.sum(), log.clicks.sum()
    issued = (log.interactions > 0).sum()
    return (
        f"{out}: {log.total_interactions:,} interactions with {issued:,} of {log.queries:,} queries, "
        f"{shown:,} documents shown, {clicks:,} clicks ({clicks / max(shown, 1):.1%})."
    )
