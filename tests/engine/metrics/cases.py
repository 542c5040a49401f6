"""Random ragged data for the metrics, small enough to enumerate and full of ties."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.oracles.enumeration import ranking_probabilities


class Case(NamedTuple):
    scores: NDArray[np.float64]
    labels: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @property
    def queries(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Scores and labels of each query."""
        for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.scores[begin:end], self.labels[begin:end]


def random_case(seed: int, *, queries: int = 40, longest: int = 12, ties: bool = True) -> Case:
    """Lists of 1 to `longest` documents, labels 0 to 4; with ties, only about four distinct scores."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, queries)
    documents = int(lengths.sum())
    scores = 2.0 * rng.standard_normal(documents)
    return Case(
        np.round(scores / 2.0) if ties else scores,
        rng.choice([0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0], documents),
        np.concatenate([[0], np.cumsum(lengths)]),
    )


def enumerated(case: Case, cutoff: int, metric: Callable[[list[float]], float]) -> NDArray[np.float64]:
    """Expectation of metric(labels in order of rank) over all rankings, query by query."""
    return np.array(
        [
            sum(
                probability * metric([labels[document] for document in ranking])
                for ranking, probability in ranking_probabilities(scores.tolist(), cutoff).items()
            )
            for scores, labels in case.queries
        ]
    )


def ir_measures_values(measure: Any, case: Case) -> NDArray[np.float64]:
    """Value per query as ir-measures has it; scores must not be tied, as it breaks ties by document id."""
    import ir_measures

    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query, (scores, labels) in enumerate(case.queries):
        ids = [f"d{position}" for position in range(len(scores))]
        qrels[f"{query}"] = dict(zip(ids, labels.astype(int).tolist(), strict=True))
        run[f"{query}"] = dict(zip(ids, scores.tolist(), strict=True))
    by_query = {value.query_id: value.value for value in ir_measures.iter_calc([measure], qrels, run)}
    return np.array([by_query[query] for query in run])
