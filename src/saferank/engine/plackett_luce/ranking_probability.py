"""The probability of given rankings under a Plackett-Luce policy, and its gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError
from saferank.engine.jit import jit
from saferank.engine.plackett_luce.sampling import NOTHING
from saferank.engine.ragged import check_offsets, check_scores

Array = NDArray[Any]


def log_probability(scores: ArrayLike, offsets: ArrayLike, rankings: ArrayLike) -> NDArray[np.float64]:
    """log P(ranking) of each ranking, (query, sample): sum_k [ s_{y_k} - log sum_{d not placed before k} exp(s_d) ].

    Rankings as `sample_rankings` gives them: (query, sample, rank), documents counted from the query's first, and -1
    from the rank on at which the ranking ends.
    """
    scores, offsets = check_scores(scores), check_offsets(offsets)
    shown = np.ascontiguousarray(rankings, dtype=np.int64)
    if shown.ndim != 3 or len(shown) != len(offsets) - 1:
        raise UsageError(f"rankings must be (query, sample, rank) for {len(offsets) - 1} queries, got {shown.shape}.")
    lengths = np.diff(offsets)[:, None, None]
    if np.any(shown < NOTHING) or np.any(shown >= lengths):
        raise UsageError("rankings name a document that its query does not have.")
    ordered = np.sort(shown, axis=2)
    if np.any((ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != NOTHING)):
        raise UsageError("a ranking names the same document twice.")
    if np.any((shown[..., 1:] != NOTHING) & (shown[..., :-1] == NOTHING)):
        raise UsageError("a ranking goes on after a rank with no document (-1).")
    queries, samples, cutoff = shown.shape
    bounds = np.arange(queries + 1) * samples
    flat = shown.reshape(-1, cutoff)
    result: Array = log_probabilities(scores.astype(np.float64), offsets, bounds, flat, np.arange(queries))
    return result.reshape((queries, samples))


@jit
def relative_weights(scores: Array) -> Array:
    """Return exp(scores) relative to the largest; finite scores over 600 below it count as 600 below."""
    w: Array = np.exp(np.maximum(scores - np.max(scores), -600.0))
    for d in range(len(w)):
        if scores[d] == -np.inf:
            w[d] = 0.0
    return w


@jit
def heaviest(w: Array, count: int) -> Array:
    """Return the `count` heaviest documents, or all if they are fewer."""
    found = np.empty(min(count, len(w)), np.int64)
    for d in range(len(w)):
        place = min(d, len(found) - 1)
        if d >= len(found) and w[found[place]] >= w[d]:
            continue
        while place > 0 and w[found[place - 1]] < w[d]:
            found[place] = found[place - 1]
            place -= 1
        found[place] = d
    return found


@jit
def weight_of_others(w: Array, top: Array) -> float:
    """Return the weight of all documents but the heaviest, `top`. Summed, because a difference would cancel."""
    counts = np.ones(len(w))
    counts[top] = 0.0
    total = 0.0
    for d in range(len(w)):
        total += counts[d] * w[d]
    return total


@jit
def is_placed(document: int, ranking: Array, ranks: int) -> bool:
    """Return whether the document is at one of the first ranks."""
    placed = False
    for k in range(ranks):
        placed |= ranking[k] == document
    return placed


@jit
def remaining_weights(w: Array, top: Array, others: float, ranking: Array, remaining: Array) -> int:
    """Fill remaining[k], the weight not placed before rank k, and return how many ranks the ranking fills.

    `top` are the K heaviest documents, K being the longest ranking, and `others` is the weight of the rest. It loses
    what is placed of the rest, each time no more than one of the top documents that are left over weighs: so nothing
    cancels, however far apart the scores.
    """
    filled = 0
    while filled < len(ranking) and ranking[filled] >= 0:
        filled += 1
    left, heavy = others, 0.0
    for k in range(filled):
        if not is_placed(ranking[k], top, len(top)):
            left -= w[ranking[k]]
    for d in top:
        if not is_placed(d, ranking, filled):
            heavy += w[d]
    rest = heavy + left
    for k in range(filled - 1, -1, -1):
        rest += w[ranking[k]]
        remaining[k] = rest
    return filled


@jit
def log_probabilities(scores: Array, offsets: Array, bounds: Array, rankings: Array, queries: Array) -> Array:
    """Return log P of the rankings bounds[q]:bounds[q + 1] of each given query; `scores` are theirs only, flat."""
    size, begin = 0, 0
    for q in queries:
        size += bounds[q + 1] - bounds[q]
    out = np.zeros(size)
    remaining = np.empty(rankings.shape[1])
    at = 0
    for q in queries:
        length = offsets[q + 1] - offsets[q]
        w = relative_weights(scores[begin : begin + length])
        top = heaviest(w, rankings.shape[1])
        others = weight_of_others(w, top)
        for i in range(bounds[q], bounds[q + 1]):
            for k in range(remaining_weights(w, top, others, rankings[i], remaining)):
                if w[rankings[i, k]] == 0.0:
                    out[at] = -np.inf
                    break
                out[at] += math.log(w[rankings[i, k]] / remaining[k])
            at += 1
        begin += length
    return out


@jit
def log_probability_vjp(
    scores: Array, offsets: Array, bounds: Array, rankings: Array, queries: Array, pull: Array, out: Array
) -> None:
    """Add the gradient of sum_i pull_i log pi(y_i):  1[d in y] - w_d sum_{k <= rank(d)} 1 / remaining_k.

    All but the heaviest documents get what they have in common once for all rankings, and those in a ranking have it
    given back: at most K each, because a heavier document was left over at every rank.
    """
    remaining = np.empty(rankings.shape[1])
    at, begin = 0, 0
    for q in queries:
        length = offsets[q + 1] - offsets[q]
        w, gradient = relative_weights(scores[begin : begin + length]), out[begin : begin + length]
        top = heaviest(w, rankings.shape[1])
        others = weight_of_others(w, top)
        shared = 0.0
        for i in range(bounds[q], bounds[q + 1]):
            filled = remaining_weights(w, top, others, rankings[i], remaining)
            inverse = 0.0
            for k in range(filled):
                inverse += 1.0 / remaining[k]
            shared += pull[at] * inverse
            for d in top:
                if not is_placed(d, rankings[i], filled):
                    gradient[d] -= pull[at] * w[d] * inverse
            so_far = 0.0
            for k in range(filled):
                d = rankings[i, k]
                so_far += 1.0 / remaining[k]
                given_back = 0.0 if is_placed(d, top, len(top)) else inverse
                gradient[d] += pull[at] * (1.0 + w[d] * (given_back - so_far))
            at += 1
        for d in range(length):
            if not is_placed(d, top, len(top)):
                gradient[d] -= w[d] * shared
        begin += length
