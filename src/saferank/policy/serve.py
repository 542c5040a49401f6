"""What a policy shows: ranks, and the exposure of each document, depending on how it is served."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.click_models.examination import examination_of_ranks
from saferank.engine.errors import UsageError
from saferank.engine.ragged import check_scores, query_of_document, query_sums, ranks_by_score, tie_groups

ServeAs = Literal["deterministic", "sampled"]


@dataclass(frozen=True, eq=False)
class Served:
    """One value per document, except for `log_probability`, which has one per query."""

    offsets: NDArray[np.int64]
    examination: NDArray[np.float64]
    """Of the ranks that are shown."""
    scores: NDArray[np.float32]
    rank: NDArray[np.int32]
    """1 for the document to show first. Documents beyond the ranks that are shown have one too."""
    log_probability: NDArray[np.float64] | None = None
    """Of the ranks that are shown; None if rankings are not drawn at random."""

    @cached_property
    def exposure(self) -> NDArray[np.float64]:
        """Expected examination of the document when served in this way.

        For drawn rankings, it is the exact expectation over all of them, and needs Numba.
        """
        if self.log_probability is None:
            return examination_of_ranks(self.rank, self.examination)
        from saferank.engine.plackett_luce import exposure

        return exposure(self.scores, self.offsets, self.examination).astype(np.float64)


def serve(
    scores: ArrayLike,
    offsets: ArrayLike,
    examination: ArrayLike,
    *,
    serve_as: ServeAs = "deterministic",
    rng: np.random.Generator | None = None,
) -> Served:
    """Return the rank of each document within its query, and the exposure that this way of serving gives it.

    `deterministic`: by score, with ties in the given order of the documents. A document's exposure is the examination
    of its rank, and 0 below the last rank shown: such a log says nothing about documents it never shows. `sampled`: one
    ranking per query, drawn from the Plackett-Luce policy with `rng`: the order of s_d + Gumbel noise. Noise is drawn
    document by document, so the same generator gives the same rankings for all queries at once and query by query.
    """
    scores, offsets = np.asarray(scores, np.float32), np.asarray(offsets, np.int64)
    weights = np.asarray(examination, np.float64)
    check_serve_as(serve_as)
    if serve_as == "deterministic":
        return Served(offsets, weights, scores, ranks_by_score(scores, offsets))
    if rng is None:
        raise UsageError("drawing rankings needs a random generator; pass one as rng.")
    rank = ranks_by_score(check_scores(scores) + rng.gumbel(size=len(scores)), offsets)
    chance = _log_probability(scores.astype(np.float64), offsets, _shown(rank, offsets, len(weights)))
    return Served(offsets, weights, scores, rank, chance)


def served_placement(
    scores: NDArray[Any], offsets: NDArray[np.int64], cutoff: int, serve_as: ServeAs
) -> NDArray[np.float64]:
    """(document, rank): the chance that the document is shown there, served like this; ties are in random order."""
    if serve_as == "sampled":
        from saferank.engine.plackett_luce import placement

        return placement(scores, offsets, cutoff).astype(np.float64)
    first, size = tie_groups(scores, offsets)
    places = np.arange(1, cutoff + 1) - first[:, None]
    return np.where((places >= 0) & (places < size[:, None]), 1.0 / size[:, None], 0.0)


def check_serve_as(serve_as: str) -> None:
    """Raise for an unknown way to serve."""
    if serve_as not in get_args(ServeAs):
        raise UsageError(f"serve_as='{serve_as}' is unknown; choose {' or '.join(get_args(ServeAs))}.")


def shown_examination(examination: NDArray[np.float64], cutoff: int | None) -> NDArray[np.float64]:
    """Return the examination of the ranks that are shown: all that it has, or the first `cutoff`."""
    if cutoff is None:
        return examination
    if not 1 <= cutoff <= len(examination):
        raise UsageError(
            f"cutoff {cutoff}: the policy knows the examination of {len(examination)} ranks; "
            f"choose from 1 to {len(examination)}."
        )
    return examination[:cutoff]


def _shown(rank: NDArray[np.int32], offsets: NDArray[np.int64], cutoff: int) -> NDArray[np.int64]:
    """(query, rank) -> document, by its place in the flat arrays; -1 where the list has ended."""
    out = np.full((len(offsets) - 1, cutoff), -1, np.int64)
    rows = np.flatnonzero(rank <= cutoff)
    out[query_of_document(offsets)[rows], rank[rows] - 1] = rows
    return out


def _log_probability(
    scores: NDArray[np.float64], offsets: NDArray[np.int64], shown: NDArray[np.int64]
) -> NDArray[np.float64]:
    """log P of what is shown to each query: sum_k [ s_{y_k} - log sum_{d not shown before k} exp(s_d) ].

    As `plackett_luce.log_probability`, which is compiled for many rankings per query. Weights are summed from the last
    rank up, and never subtracted. Finite scores over 600 below the largest count as 600 below.
    """
    largest = np.maximum.reduceat(scores, offsets[:-1])[query_of_document(offsets)]
    weight = np.append(np.where(scores == -np.inf, 0.0, np.exp(np.maximum(scores - largest, -600.0))), 0.0)
    placed = weight[shown]  # 0 where nothing is shown
    weight[shown] = 0.0
    others = query_sums(weight[:-1], offsets)
    remaining = np.cumsum(np.column_stack([others, placed[:, ::-1]]), axis=1)[:, :0:-1]
    share = np.divide(placed, remaining, out=np.zeros_like(placed), where=remaining > 0)
    with np.errstate(divide="ignore"):
        chance: NDArray[np.float64] = np.log(share, out=np.zeros_like(share), where=shown >= 0).sum(axis=1)
    return chance
