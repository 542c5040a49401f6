"""The gradient of sum_d cotangent(d) * exposure(d) estimated from sampled rankings, as others do it.

`exposure_vjp` computes it exactly, and faster; these are here because the paper and its field use them. Both are
unbiased, take the rankings that `sample_rankings` drew under the same scores, and cost O(cutoff) for each ranking.
With w = exp(scores), D_k the weight of the documents not placed before rank k, v the cotangent, e the examination.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError
from saferank.engine.jit import jit
from saferank.engine.plackett_luce.ranking_probability import (
    heaviest,
    is_placed,
    log_probability_vjp,
    relative_weights,
    remaining_weights,
    weight_of_others,
)
from saferank.engine.ragged import check_examination, check_offsets, check_scores, over_queries

Array = NDArray[Any]


def reinforce_gradient(
    scores: ArrayLike, offsets: ArrayLike, examination: ArrayLike, cotangent: ArrayLike, rankings: ArrayLike
) -> Array:
    """REINFORCE with the query's average reward as control variate (Williams 1992; Gupta et al. 2023, section 6).

        mean over rankings y of  (reward(y) - baseline) * d log P(y) / d s,      reward(y) = sum_k e_k v(y_k)
        d log P(y) / d s_d = 1[d in y] - w_d sum_{k <= rank(d)} 1 / D_k

    The baseline of a ranking is the average over the query's other rankings, which keeps the estimate unbiased.
    """
    return _estimate(_reinforce, scores, offsets, examination, cotangent, rankings)


def pl_rank_3_gradient(
    scores: ArrayLike, offsets: ArrayLike, examination: ArrayLike, cotangent: ArrayLike, rankings: ArrayLike
) -> Array:
    """PL-Rank-3 (Oosterhuis, SIGIR 2022).

    mean over y of  sum_{k > rank(d)} e_k v(y_k) + w_d sum_{k <= rank(d)} (e_k v(d) - sum_{x >= k} e_x v(y_x)) / D_k
    """
    return _estimate(_pl_rank_3, scores, offsets, examination, cotangent, rankings)


def _estimate(
    kernel: Callable[..., None],
    scores: ArrayLike,
    offsets: ArrayLike,
    examination: ArrayLike,
    cotangent: ArrayLike,
    rankings: ArrayLike,
) -> Array:
    scores, offsets = check_scores(scores), check_offsets(offsets)
    weights = check_examination(examination, np.float64)
    pull = np.ascontiguousarray(cotangent, dtype=np.float64)
    shown = np.ascontiguousarray(rankings, dtype=np.int64)
    if pull.shape != scores.shape:
        raise UsageError(f"cotangent must have the shape of scores, {scores.shape}, got {pull.shape}.")
    if shown.ndim != 3 or len(shown) != len(offsets) - 1 or shown.shape[2] != len(weights):
        raise UsageError(
            f"rankings must be (query, sample, rank) for {len(offsets) - 1} queries and {len(weights)} ranks, "
            f"got {shown.shape}."
        )
    out = np.zeros(len(scores))

    def run(rows: slice, local: Array) -> None:
        first = int(np.searchsorted(offsets, rows.start, side="right")) - 1
        queries = shown[first : first + len(local) - 1]
        kernel(scores[rows].astype(np.float64), local, weights, pull[rows], queries, out[rows])

    over_queries(run, scores, offsets, work=shown.shape[1])
    return out.astype(scores.dtype, copy=False)


@jit
def _reinforce(
    scores: Array, offsets: Array, examination: Array, cotangent: Array, rankings: Array, out: Array
) -> None:
    samples, cutoff = rankings.shape[1], rankings.shape[2]
    rewards, advantages = np.empty(samples), np.empty(samples)
    bounds, one_query = np.zeros(2, np.int64), np.zeros(1, np.int64)
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        v, gradient = cotangent[begin:end], out[begin:end]
        rewards[:] = 0.0
        for i in range(samples):
            for k in range(cutoff):
                if rankings[q, i, k] >= 0:
                    rewards[i] += examination[k] * v[rankings[q, i, k]]
        average = np.mean(rewards)
        for i in range(samples):  # over samples - 1: the same as leaving the ranking out of its own average
            advantages[i] = (rewards[i] - average) / (samples - 1.0) if samples > 1 else rewards[i]
        bounds[1] = samples
        log_probability_vjp(
            scores[begin:end], offsets[q : q + 2] - begin, bounds, rankings[q], one_query, advantages, gradient
        )


@jit
def _pl_rank_3(
    scores: Array, offsets: Array, examination: Array, cotangent: Array, rankings: Array, out: Array
) -> None:
    samples, cutoff = rankings.shape[1], rankings.shape[2]
    remaining, reward_from = np.empty(cutoff), np.zeros(cutoff + 1)
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        v, gradient = cotangent[begin:end], out[begin:end]
        w = relative_weights(scores[begin:end])
        top = heaviest(w, cutoff)
        others = weight_of_others(w, top)
        all_direct, all_risk = 0.0, 0.0  # sums over rankings for all but the heaviest; see `log_probability_vjp`
        for i in range(samples):
            ranking = rankings[q, i]
            filled = remaining_weights(w, top, others, ranking, remaining)
            reward_from[filled] = 0.0
            direct, risk = 0.0, 0.0
            for k in range(filled - 1, -1, -1):
                reward_from[k] = reward_from[k + 1] + examination[k] * v[ranking[k]]
                direct += examination[k] / remaining[k]
                risk += reward_from[k] / remaining[k]
            all_direct += direct
            all_risk += risk
            for d in top:
                if not is_placed(d, ranking, filled):
                    gradient[d] += w[d] * (v[d] * direct - risk)
            direct_here, risk_here = 0.0, 0.0
            for k in range(filled):
                d = ranking[k]
                direct_here += examination[k] / remaining[k]
                risk_here += reward_from[k] / remaining[k]
                gradient[d] += reward_from[k + 1]
                shared = 0.0 if is_placed(d, top, len(top)) else 1.0
                gradient[d] += w[d] * (v[d] * (direct_here - shared * direct) - (risk_here - shared * risk))
        for d in range(len(w)):
            if not is_placed(d, top, len(top)):
                gradient[d] += w[d] * (v[d] * all_direct - all_risk)
            gradient[d] /= samples
