"""`saferank simulate`: a click log from a labelled data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from saferank.engine.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from saferank.datasets.dataset import Dataset
    from saferank.engine.click_models.position_based import PositionBasedModel
    from saferank.engine.types.log_statistics import LogStatistics
    from saferank.engine.types.ranking_data import RankingData


def simulate(
    name: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A folder in LETOR layout, or [cyan]synthetic:PRESET[/cyan]."),
    ],
    interactions: Annotated[str, typer.Option(help="How many times a user issues a query, such as 1e6.")],
    out: Annotated[Path, typer.Option(help="The Parquet file to write.")],
    part: Annotated[
        str,
        typer.Option(
            help="Whose queries: train, validation or test. Test queries without a relevant document are left out."
        ),
    ] = "train",
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="For the logging policy and the log.")] = 0,
    cutoff: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many documents are shown at once.", show_default="5, or as many as --examination lists"
        ),
    ] = None,
    examination: Annotated[
        str,
        typer.Option(
            help="Chance that a rank is looked at: [cyan]inverse-rank:2[/cyan] is 1/rank^2; "
            "or one a rank, such as [cyan]1,0.5,0.3[/cyan]."
        ),
    ] = "inverse-rank:2",
    relevance_slope: Annotated[
        float, typer.Option(help="What is looked at is clicked with chance slope * label + noise.")
    ] = 0.025,
    relevance_noise: Annotated[float, typer.Option(help="Chance of a click on label 0, if looked at.")] = 0.2,
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

    import numpy as np

    from saferank.datasets.dataset import load_dataset
    from saferank.engine.click_models.position_based import PositionBasedModel, parse_examination
    from saferank.lab.raw_log import write_raw_log

    model = PositionBasedModel(parse_examination(examination, cutoff), relevance_slope, relevance_noise)
    _check_out(out)

    with Console(stderr=True).status(f"Reading {name}"):
        dataset = load_dataset(name)
    if part not in dataset.splits:
        raise UsageError(f"no part is called '{part}'; there are {', '.join(dataset.splits)}.")
    _check_relevance(model, dataset)
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
    from saferank.lab.world import make_world, prepare

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


def _check_out(out: Path) -> None:
    """Raise if no file can be written there; make its folder if that is missing."""
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; name a file, such as {out / 'log.parquet'}.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "is a file" if out.parent.is_file() else f"cannot be made ({error.strerror})"
        raise UsageError(f"--out {out}: {out.parent} {reason}; name a file in a folder.") from error


def _check_relevance(model: PositionBasedModel, dataset: Dataset) -> None:
    """Raise if a label of the data gives no probability; the lowest and the highest tell for all."""
    labels = [data.require_labels() for data in dataset.splits.values()]
    for label in (min(float(of.min()) for of in labels), max(float(of.max()) for of in labels)):
        chance = model.relevance_slope * label + model.relevance_noise
        if not 0.0 <= chance <= 1.0:
            raise UsageError(
                f"--relevance-slope {model.relevance_slope:g} and --relevance-noise {model.relevance_noise:g} give "
                f"label {label:g} a chance of {chance:g}; choose them so that it lies between 0 and 1."
            )


def _summary(log: LogStatistics, out: Path) -> str:
    shown, clicks = log.times_shown.sum(), log.clicks.sum()
    issued = (log.interactions > 0).sum()
    return (
        f"{out}: {log.total_interactions:,} interactions with {issued:,} of {log.queries:,} queries, "
        f"{shown:,} documents shown, {clicks:,} clicks ({clicks / max(shown, 1):.1%})."
    )
