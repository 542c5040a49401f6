"""Counts in bulk have the distribution of one-by-one simulation, whichever way they are drawn."""

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, chisquare

from saferank.engine.click_models.position_based import inverse_rank
from saferank.engine.errors import UsageError
from saferank.engine.plackett_luce import placement, sample_rankings
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate
from tests.oracles import enumeration

WAYS = {"one by one": math.inf, "in bulk": 0.0, "both": 3.0}
"""Values of split_from that force each way."""
both_ways = pytest.mark.parametrize("split_from", WAYS.values(), ids=WAYS.keys())

SCORES = {
    "mild": [0.3, -0.5, 0.0, 1.2, -0.1],
    "flat": [0.0] * 5,
    "one far above": [0.0, 30.0, 0.5, -0.5, 1.0],
    "two far above": [50.0, 0.0, 0.7, 50.5, -0.7],
    "steps": [0.0, 2.0, 4.0, 6.0, 8.0],
    "never shown": [0.4, -math.inf, 0.0, -math.inf, 1.0],
}
all_scores = pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())


def run(
    scores: list[float] | NDArray[np.float64], cutoff: int, interactions: int, seed: int, split_from: float
) -> LogStatistics:
    """One query, everything looked at and relevant with chance 1/2."""
    relevance = np.full(len(scores), 0.5)
    rng = np.random.default_rng(seed)
    return simulate(scores, [0, len(scores)], relevance, np.ones(cutoff), interactions, rng, split_from=split_from)


@both_ways
@all_scores
@pytest.mark.parametrize("cutoff", [1, 3, 6])
def test_each_rank_has_the_exact_placement(scores: list[float], cutoff: int, split_from: float) -> None:
    interactions = 100_000
    shown = run(scores, cutoff, interactions, 5, split_from).shown
    expected = interactions * enumeration.placement(scores, cutoff)
    assert np.all(shown[expected == 0] == 0)
    for k in range(cutoff):
        common = expected[:, k] >= 5
        if common.sum() > 1:
            assert shown[common, k].sum() > 0.999 * interactions
            scale = shown[common, k].sum() / expected[common, k].sum()
            assert chisquare(shown[common, k], expected[common, k] * scale).pvalue > 1e-6


@both_ways
@pytest.mark.parametrize("interactions", [1, 2, 3])
def test_the_joint_distribution_of_all_counts(interactions: int, split_from: float) -> None:
    """All that a few interactions can show: the whole table of counts is one outcome."""
    scores, cutoff, queries = [0.3, -0.5, 0.9], 2, 6_000  # each query is an experiment of its own
    log = simulate(
        np.tile(scores, queries),
        np.arange(queries + 1) * 3,
        np.zeros(3 * queries),
        np.ones(cutoff),
        interactions * queries,
        np.random.default_rng(1),
        split_from=split_from,
    )
    chosen = log.subset(log.interactions == interactions)
    found = Counter(table.tobytes() for table in chosen.shown.reshape(-1, 3, cutoff))
    tables: dict[tuple[int, ...], float] = {(0,) * 6: 1.0}
    for _ in range(interactions):
        following: dict[tuple[int, ...], float] = {}
        for table, chance in tables.items():
            for ranking, probability in enumeration.ranking_probabilities(scores, cutoff).items():
                counts = np.array(table).reshape(3, cutoff)
                counts[list(ranking), np.arange(cutoff)] += 1
                key = tuple(int(count) for count in counts.ravel())
                following[key] = following.get(key, 0.0) + chance * probability
        tables = following
    expected = {np.array(table, np.int64).tobytes(): chance * chosen.queries for table, chance in tables.items()}
    assert set(found) <= set(expected)
    observed = np.array([found[key] for key in expected])
    means = np.array(list(expected.values()))
    common = means >= 5
    groups = np.append(observed[common], observed[~common].sum()), np.append(means[common], means[~common].sum())
    used = groups[1] > 0
    assert chisquare(groups[0][used], groups[1][used]).pvalue > 1e-6


@pytest.mark.parametrize(
    ("name", "way"), [("mild", "both"), *(("two far above", way) for way in ("one by one", "in bulk", "both"))]
)
def test_counts_vary_together_as_one_by_one(name: str, way: str) -> None:
    """Mean and covariance of all (document, rank) counts of a query with 200 interactions."""
    scores, cutoff, interactions, repeats = SCORES[name], 4, 200, 4_000
    probabilities = enumeration.ranking_probabilities(scores, cutoff)
    shows = np.zeros((len(probabilities), len(scores) * cutoff))
    for row, ranking in enumerate(probabilities):
        shows[row, np.array(ranking) * cutoff + np.arange(cutoff)] = 1
    chance = np.array(list(probabilities.values()))
    mean = chance @ shows
    covariance = interactions * ((shows.T * chance) @ shows - np.outer(mean, mean))
    counts = np.array([run(scores, cutoff, interactions, seed, WAYS[way]).shown.ravel() for seed in range(repeats)])
    centred = counts - interactions * mean
    spread = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(centred.mean(axis=0)) <= 5 * spread / np.sqrt(repeats) + 1e-9)
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(repeats)
    assert np.all(np.abs(products.mean(axis=0) - covariance) <= 5.5 * error + 1e-6)


@both_ways
def test_long_lists_as_sampled_rankings(split_from: float) -> None:
    """60 documents, K = 5: each rank beside exact placement and beside Gumbel sampling."""
    rng = np.random.default_rng(2)
    scores = 2 * rng.normal(size=60)
    interactions = 40_000
    log = run(scores, 5, interactions, 3, split_from)
    expected = interactions * placement(scores, [0, 60], 5)
    common = expected >= 5
    for k in range(5):
        pick = common[:, k]
        sampled = sample_rankings(scores, [0, 60], 5, interactions, rng)[0, :, k]
        other = np.bincount(sampled, minlength=60)
        difference = ((log.shown[:, k] - other) ** 2 / np.maximum(log.shown[:, k] + other, 1))[pick].sum()
        assert chi2.sf(difference, pick.sum()) > 1e-6
        groups = np.append(log.shown[pick, k], log.shown[~pick, k].sum())
        means = np.append(expected[pick, k], expected[~pick, k].sum())
        assert chisquare(groups, means * groups.sum() / means.sum()).pvalue > 1e-6


def test_kept_rankings_have_the_joint_distribution() -> None:
    scores, interactions = SCORES["mild"], 30_000
    rng = np.random.default_rng(4)
    log = simulate(scores, [0, 5], np.full(5, 0.5), np.ones(3), interactions, rng, keep_rankings=interactions)
    assert log.rankings is not None
    assert log.rankings.interactions == interactions
    probabilities = enumeration.ranking_probabilities(scores, 3)
    found = Counter(tuple(map(int, ranking)) for ranking in log.rankings.ranking)
    assert set(found) <= set(probabilities)
    observed = np.array([found[ranking] for ranking in probabilities])
    assert chisquare(observed, interactions * np.array(list(probabilities.values()))).pvalue > 1e-6


def test_clicks_have_their_mean_and_variance() -> None:
    relevance, examination = np.array([0.2, 0.0, 1.0, 0.6]), np.array([1.0, 0.5, 0.0])
    rng = np.random.default_rng(0)
    logs = [
        simulate([0.0, 0.2, 0.4, -0.3], [0, 4], relevance, examination, 50, rng, keep_rankings=keep)
        for keep in (0, 20)
        for _ in range(1000)
    ]
    shown, clicked = np.array([log.shown for log in logs]), np.array([log.clicked for log in logs])
    chance = relevance[:, None] * examination
    error = clicked - shown * chance
    variance = (shown * chance * (1 - chance)).mean(axis=0)
    assert np.all(np.abs(error.mean(axis=0)) <= 5 * np.sqrt(variance / len(logs)))
    squares = error**2
    assert np.all(np.abs(squares.mean(axis=0) - variance) <= 5 * squares.std(axis=0) / np.sqrt(len(logs)) + 1e-12)
    assert np.all(clicked[:, :, 2] == 0)
    assert np.all(clicked[:, 1] == 0)
    np.testing.assert_array_equal(clicked[:, 2, 0], shown[:, 2, 0])


def test_clicks_of_one_kept_ranking_are_independent() -> None:
    log = simulate([0.0, 0.0], [0, 2], [0.5, 0.5], [0.8, 0.8], 20_000, np.random.default_rng(0), keep_rankings=20_000)
    assert log.rankings is not None
    both = log.rankings.clicks.astype(float)
    np.testing.assert_allclose(both.mean(axis=0), 0.4, atol=5 * 0.5 / np.sqrt(20_000))
    assert abs(np.corrcoef(both.T)[0, 1]) < 5 / np.sqrt(20_000)


def ragged_case() -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, 1, 2, *rng.integers(1, 80, size=200), 300])
    scores = rng.normal(size=offsets[-1]) * np.repeat(rng.choice([0.5, 2.0, 20.0], size=203), np.diff(offsets))
    return scores, offsets, rng.uniform(size=offsets[-1])


def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, offsets, relevance = ragged_case()
    logs = []
    for threads, seed in (("1", 7), ("2", 7), ("3", 7), ("2", 8)):
        monkeypatch.setenv("SAFERANK_THREADS", threads)
        rng = np.random.default_rng(seed)
        logs.append(simulate(scores, offsets, relevance, inverse_rank(), 300_000, rng, keep_rankings=30))
    for log in logs[1:3]:
        for name in ("interactions", "shown", "clicked"):
            np.testing.assert_array_equal(getattr(log, name), getattr(logs[0], name))
        assert log.rankings is not None
        assert logs[0].rankings is not None
        np.testing.assert_array_equal(log.rankings.ranking, logs[0].rankings.ranking)
        np.testing.assert_array_equal(log.rankings.clicks, logs[0].rankings.clicks)
    assert not np.array_equal(logs[3].shown, logs[0].shown)


def test_kept_rankings_are_part_of_the_counts() -> None:
    scores, offsets, relevance = ragged_case()
    few = simulate(scores, offsets, relevance, inverse_rank(), 2_000, np.random.default_rng(0), keep_rankings=1000)
    some = simulate(scores, offsets, relevance, inverse_rank(), 50_000, np.random.default_rng(0), keep_rankings=20)
    for log, all_kept in ((few, True), (some, False)):
        assert log.rankings is not None
        np.testing.assert_array_equal(log.kept, np.minimum(log.interactions, 1000 if all_kept else 20))
        rows = log.rankings.rows(log.offsets)
        filled = log.rankings.ranking >= 0
        np.testing.assert_array_equal(filled.sum(axis=1), np.minimum(np.diff(offsets), 5)[log.rankings.query])
        for counts, which in ((log.shown, filled), (log.clicked, log.rankings.clicks)):
            kept = np.zeros_like(counts)
            row, rank = np.nonzero(which)
            np.add.at(kept, (rows[row, rank], rank), 1)
            assert np.all(kept <= counts)
            assert np.array_equal(kept, counts) == all_kept


def test_queries_are_uniform_and_short_lists_end_early() -> None:
    scores = np.zeros(8)
    log = simulate(scores, [0, 1, 3, 8], np.ones(8), inverse_rank(), 90_000, np.random.default_rng(0))
    assert log.total_interactions == 90_000
    assert chisquare(log.interactions).pvalue > 1e-6
    per_rank = np.add.reduceat(log.shown, log.offsets[:-1], axis=0)
    for query, length in enumerate([1, 2, 5]):
        assert per_rank[query].tolist() == [log.interactions[query]] * length + [0] * (5 - length)


def test_a_query_that_was_never_issued_and_no_interaction_at_all() -> None:
    offsets = np.arange(101) * 3
    log = simulate(np.zeros(300), offsets, np.ones(300), inverse_rank(), 5, np.random.default_rng(0))
    assert log.total_interactions == 5
    assert np.all(log.times_shown.reshape(-1, 3).sum(axis=1) == 3 * log.interactions)
    none = simulate(np.zeros(300), offsets, np.ones(300), inverse_rank(), 0, np.random.default_rng(0), keep_rankings=3)
    assert none.total_interactions == none.times_shown.sum() == none.clicks.sum() == 0
    assert none.rankings is not None
    assert none.rankings.interactions == 0


@both_ways
def test_extreme_scores_decide_the_ranking(split_from: float) -> None:
    scores = [-50.0, 50.0, -math.inf, 0.0, -2000.0, 1500.0]
    log = run(scores, 6, 1000, 0, split_from)
    for rank, document in enumerate([5, 1, 3, 0, 4]):
        assert log.shown[document].tolist() == [1000 * (k == rank) for k in range(6)]
    assert log.shown[2].sum() == 0
    nothing = run([-math.inf, -math.inf], 2, 10, 0, split_from)
    assert nothing.total_interactions == 10
    assert nothing.shown.sum() == 0


@pytest.mark.parametrize("interactions", [10**10, 10**12])
def test_numbers_beyond_a_billion(interactions: int) -> None:
    scores = SCORES["mild"]
    log = run(scores, 3, interactions, 0, 8.0)
    expected = interactions * enumeration.placement(scores, 3)
    error = np.sqrt(expected * (1 - expected / interactions))
    assert np.all(np.abs(log.shown - expected) < 5 * error)
    assert np.all(np.abs(log.clicked - expected / 2) < 5 * np.sqrt(expected) / 2 + 2.5 * error)


def test_wrong_calls() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match=r"got -1 interactions"):
        simulate([0.0], [0, 1], [0.5], [1.0], -1, rng)
    with pytest.raises(UsageError, match=r"got 1.5 interactions"):
        simulate([0.0], [0, 1], [0.5], [1.0], 1.5, rng)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="got keep_rankings -1"):
        simulate([0.0], [0, 1], [0.5], [1.0], 1, rng, keep_rankings=-1)
    with pytest.raises(UsageError, match="2 scores and 1 relevances for 2 documents"):
        simulate([0.0, 0.0], [0, 2], [0.5], [1.0], 1, rng)
    with pytest.raises(UsageError, match="no query may be empty"):
        simulate([0.0], [0, 0, 1], [0.5], [1.0], 1, rng)
    with pytest.raises(UsageError, match=r"relevance\[0\] is 2"):
        simulate([0.0], [0, 1], [2.0], [1.0], 1, rng)
    with pytest.raises(UsageError, match="at least one rank"):
        simulate([0.0], [0, 1], [0.5], [], 1, rng)


def test_batches_do_not_repeat_each_other() -> None:
    """Neighbouring kept rankings, within a batch and across batches, are independent."""
    rng = np.random.default_rng(0)
    log = simulate([0.0, 0.0], [0, 2], [0.5, 0.5], [1.0], 20_000, rng, keep_rankings=20_000)
    assert log.rankings is not None
    first = log.rankings.ranking[:, 0]
    same = np.mean([a == b for a, b in pairwise(first)])
    assert abs(same - 0.5) < 5 * 0.5 / np.sqrt(20_000)


def test_every_interaction_fills_every_rank_when_batches_are_full() -> None:
    documents, interactions = 30, 5_000  # shared out at the first rank, and then drawn in many batches
    offsets, relevance = [0, documents], np.full(documents, 0.2)
    log = simulate(np.zeros(documents), offsets, relevance, [1.0, 0.5, 0.25], interactions, np.random.default_rng(0))
    assert log.shown.sum(axis=0).tolist() == [interactions] * 3


def test_trust_adds_clicks_and_traffic_shares_out_queries() -> None:
    """By hand: 10^6 interactions, P(click) = examination R + trust, and each query as often as it should be."""
    examination, trust = np.array([1.0, 0.5]), np.array([0.2, 0.05])
    relevance, shares = np.array([0.3, 0.1, 0.6, 0.0]), np.array([0.9, 0.1])
    for kept in (0, 10**6):
        log = simulate(
            np.zeros(4), [0, 2, 4], relevance, examination, 10**6, np.random.default_rng(3),
            keep_rankings=kept, trust=trust, traffic=shares,
        )  # fmt: skip
        expected = np.multiply.outer(relevance, examination) + trust
        error = np.sqrt(expected * (1.0 - expected) / log.shown)
        assert (np.abs(log.clicked / log.shown - expected) < 5.0 * error).all()
        assert np.abs(log.interactions - 10**6 * shares).max() < 5.0 * np.sqrt(10**6 * 0.09)
    calls: list[dict[str, Any]] = [
        {"trust": [0.5]}, {"trust": [0.9, 0.0]}, {"traffic": [0.5, 0.6]}, {"traffic": [1.0]}
    ]  # fmt: skip
    for wrong in calls:
        with pytest.raises(UsageError):
            simulate(np.zeros(4), [0, 2, 4], relevance, examination, 1, np.random.default_rng(3), **wrong)
