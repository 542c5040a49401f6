"""`saferank data`: what is in a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console

from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import DataArgument
from saferank.cli.screen import number_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from saferank.engine.types.ranking_data import RankingData

MOST_LABELS = 10
"""Data with more distinct labels than this has no grades, and they are not listed one by one."""


def data(name: DataArgument, as_json: AsJson = False) -> None:
    """Show what is in a data set: sizes, labels, queries with nothing relevant.

    [cyan]saferank data synthetic:small[/cyan]    or mslr10k, mslr30k; small@7 has seed 7
    [cyan]saferank data MSLR-WEB30K/Fold1[/cyan]  a folder of train.txt, vali.txt, test.txt
    """
    from saferank.datasets.dataset import load_dataset

    with Console(stderr=True).status(f"Reading {name}"):
        dataset = load_dataset(name)
        labels = sorted({label for part in dataset.splits.values() for label in set(part.require_labels().tolist())})
        facts = {split: _facts(part, labels) for split, part in dataset.splits.items()}
    if as_json:
        print_json({"name": dataset.name, "splits": facts})
        return
    table = number_table(dataset.name, ("", *facts), left=[""])
    columns = [dict(_texts(of)) for of in facts.values()]
    for row in columns[0]:
        table.add_row(row, *(texts[row] for texts in columns), end_section=row in ("features", "  max"))
    Console().print(table)


def _facts(part: RankingData, distinct_labels: list[float]) -> dict[str, Any]:
    """Return the numbers of one part."""
    import numpy as np

    labels, lengths = part.require_labels(), part.lengths
    relevant = np.maximum.reduceat(labels, part.offsets[:-1]) > 0
    grades = len(distinct_labels) <= MOST_LABELS
    return {
        "queries": part.queries,
        "documents": part.documents,
        "features": part.features.shape[1],
        "documents_per_query": {
            "min": lengths.min(),
            "median": np.median(lengths),
            "mean": lengths.mean(),
            "max": lengths.max(),
        },
        "labels": {f"{label:g}": (labels == label).mean() for label in distinct_labels} if grades else None,
        "labels_above_0": (labels > 0).mean(),
        "label_range": [labels.min(), labels.max()],
        "queries_without_relevant_document": (~relevant).sum(),
    }


def _texts(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows of one part: a name, and the value as text."""
    for name in ("queries", "documents", "features"):
        yield name, f"{facts[name]:,}"
    yield "documents per query", ""
    for name, form in (("min", ","), ("median", ",.1f"), ("mean", ",.1f"), ("max", ",")):
        yield f"  {name}", format(facts["documents_per_query"][name], form)
    if facts["labels"] is not None:
        for label, share in facts["labels"].items():
            yield f"label {label}", f"{share:.1%}"
    else:
        low, high = facts["label_range"]
        yield "labels above 0", f"{facts['labels_above_0']:.1%}"
        yield "label min to max", f"{low:g} to {high:g}"
    without = facts["queries_without_relevant_document"]
    yield "queries without a relevant document", f"{without:,} ({without / facts['queries']:.1%})"
