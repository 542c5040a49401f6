"""`saferank data`: what is in a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from saferank.cli.log_options import DataArgument
from saferank.cli.screen import number_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from saferank.datasets.dataset import Dataset
    from saferank.engine.types.ranking_data import RankingData

MOST_LABELS = 10
"""Data with more distinct labels than this has no grades, and they are not listed one by one."""


def data(name: DataArgument) -> None:
    """Show what is in a data set: sizes, labels, queries with nothing relevant.

    [cyan]saferank data synthetic:small[/cyan]    or mslr10k, mslr30k; small@7 has seed 7
    [cyan]saferank data MSLR-WEB30K/Fold1[/cyan]  a folder of train.txt, vali.txt, test.txt
    """
    from saferank.datasets.dataset import load_dataset

    with Console(stderr=True).status(f"Reading {name}"):
        table = _summary(load_dataset(name))
    Console().print(table)


def _summary(dataset: Dataset) -> Table:
    table = number_table(dataset.name, ("", *dataset.splits), left=[""])
    labels = sorted({label for part in dataset.splits.values() for label in set(part.require_labels().tolist())})
    columns = [dict(_facts(part, labels)) for part in dataset.splits.values()]
    for name in columns[0]:
        table.add_row(name, *(facts[name] for facts in columns), end_section=name in ("features", "  max"))
    return table


def _facts(part: RankingData, distinct_labels: list[float]) -> Iterator[tuple[str, str]]:
    """Yield the rows of one part: a name, and the value as text."""
    import numpy as np

    labels = part.require_labels()
    yield "queries", f"{part.queries:,}"
    yield "documents", f"{part.documents:,}"
    yield "features", f"{part.features.shape[1]:,}"
    yield "documents per query", ""
    yield "  min", f"{part.lengths.min():,}"
    yield "  median", f"{np.median(part.lengths):,.1f}"
    yield "  mean", f"{part.lengths.mean():,.1f}"
    yield "  max", f"{part.lengths.max():,}"
    if len(distinct_labels) <= MOST_LABELS:
        for label in distinct_labels:
            yield f"label {label:g}", f"{(labels == label).mean():.1%}"
    else:
        yield "labels above 0", f"{(labels > 0).mean():.1%}"
        yield "label min to max", f"{labels.min():g} to {labels.max():g}"
    relevant = np.maximum.reduceat(labels, part.offsets[:-1]) > 0
    yield "queries without relevant document", f"{(~relevant).sum():,} ({(~relevant).mean():.1%})"
