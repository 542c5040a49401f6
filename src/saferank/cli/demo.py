"""`saferank demo`: learn to rank, before your eyes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import torch

    from saferank.data.ranking_data import RankingData

CUTOFF = 5
BATCH = 32
"""Queries per step."""


def demo(
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="For the data, the weights and the order of queries.")
    ] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training queries.")] = 20,
) -> None:
    """Learn to rank a synthetic data set from its labels, and show how much better it gets.

    A small neural network scores documents; its scores make a Plackett-Luce
    policy, which shows documents with higher scores higher, with higher
    probability. Training climbs the expected NDCG@5 of that policy. The
    expectation and its gradient are exact: no rankings are sampled.

    [cyan]saferank demo --seed 7 --epochs 5[/cyan]
    """
    import numpy as np
    import torch

    from saferank.data.dataset import load_dataset

    with Console(stderr=True).status("Making up queries and documents"):
        dataset = load_dataset(f"synthetic:small@{seed}")
        train, test = (
            part.with_relevant_document().log1p().scaled_per_query() for part in (dataset.train, dataset.test)
        )
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # on matrices this small, threads mostly wait for each other
    features = train.features.shape[1]
    model = torch.nn.Sequential(
        torch.nn.Linear(features, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, 32), torch.nn.ReLU(),
        torch.nn.Linear(32, 1),
    )  # fmt: skip

    console = Console()
    console.print(
        f"{train.queries} queries to learn from, {test.queries} to test on, "
        f"{train.documents + test.documents:,} documents with {features} features.\n"
    )
    with Console(stderr=True).status("Compiling (only the first time)"):
        before = _test(model, test)
    progress = Progress(
        TextColumn("epoch"), MofNCompleteColumn(), BarColumn(),
        TextColumn("train NDCG@5 {task.fields[utility]}"), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip
    with progress:
        task = progress.add_task("", total=epochs, utility="...")
        for utility in _train(model, train, epochs, np.random.default_rng(seed)):
            progress.update(task, advance=1, utility=f"{utility:.3f}")
    console.print(_table(before, _test(model, test)))


def _train(
    model: torch.nn.Module, data: RankingData, epochs: int, rng: np.random.Generator
) -> Iterator[float]:
    """Maximise the policy's expected NDCG; yield its mean over the queries after every epoch.

    utility = mean over queries of  sum_d rho(d) gain(d) / (ideal DCG),   rho the exposure under DCG discounts
    """
    import numpy as np
    import torch

    from saferank.data.ranking_data import flat_rows
    from saferank.metrics import discounts, gains, ideal_dcg
    from saferank.plackett_luce import expected_exposure

    labels = data.require_labels()
    ideal = ideal_dcg(labels, data.offsets, CUTOFF)
    value = torch.from_numpy((gains(labels) / ideal[data.query_of_document]).astype(np.float32))
    features = torch.from_numpy(data.features)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        total = 0.0
        for queries in np.array_split(rng.permutation(data.queries), -(-data.queries // BATCH)):
            rows = flat_rows(data.offsets, queries)
            offsets = np.concatenate([[0], np.cumsum(data.lengths[queries])])
            scores = model(features[rows]).squeeze(-1)
            utility = (expected_exposure(scores, offsets, discounts(CUTOFF)) * value[rows]).sum()
            optimizer.zero_grad()
            torch.autograd.backward(-utility / len(queries))
            optimizer.step()
            total += utility.item()
        yield total / data.queries


def _test(model: torch.nn.Module, data: RankingData) -> tuple[float, float]:
    """NDCG@5, mean over the queries: expected under the policy, and of the ranking by score."""
    import torch

    from saferank.metrics import expected_ndcg, ndcg_by_score

    with torch.no_grad():
        scores = model(torch.from_numpy(data.features)).squeeze(-1).numpy()
    labels = data.require_labels()
    expected, by_score = (
        metric(scores, labels, data.offsets, CUTOFF) for metric in (expected_ndcg, ndcg_by_score)
    )
    return float(expected.mean()), float(by_score.mean())


def _table(before: tuple[float, float], after: tuple[float, float]) -> Table:
    table = Table(title="NDCG@5 on the test queries", title_justify="left")
    table.add_column()
    table.add_column("expected under the policy", justify="right")
    table.add_column("ranked by score", justify="right")
    table.add_row("before (random weights)", *(f"{value:.3f}" for value in before))
    table.add_row("after training", *(f"[bold green]{value:.3f}[/bold green]" for value in after))
    return table
