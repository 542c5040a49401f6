"""Serving against enumeration of all rankings, and against counting those that are drawn."""

import math
from itertools import permutations

import numpy as np
import pytest

from saferank.engine.errors import UsageError
from saferank.engine.ragged import ranks_by_score
from saferank.policy.serve import serve, served_placement, shown_examination
from tests.oracles import enumeration

EXAMINATION = np.array([1.0, 0.5, 0.25])
SCORES = np.array([0.3, -1.0, 0.9, 0.1, 0.0, 2.0, 2.0], np.float32)
OFFSETS = np.array([0, 4, 5, 7])


def test_deterministic_ranks_by_score_and_ties_by_order() -> None:
    served = serve(SCORES, OFFSETS, EXAMINATION)
    assert served.rank.tolist() == [2, 4, 1, 3, 1, 1, 2]
    assert served.exposure.tolist() == [0.5, 0.0, 1.0, 0.25, 1.0, 1.0, 0.5]
    assert served.scores.tolist() == SCORES.tolist()
    assert served.log_probability is None
    placed = served_placement(SCORES, OFFSETS, 3, "deterministic")
    assert [row.index(1.0) + 1 if 1.0 in row else 4 for row in placed[:5].tolist()] == served.rank[:5].tolist()


def test_ties_are_placed_as_if_their_order_were_random() -> None:
    scores, offsets = np.array([1.0, 2.0, 1.0, 1.0, 0.0, -np.inf, -np.inf]), np.array([0, 5, 7])
    expected = np.zeros((7, 3))
    orders = list(permutations(range(7)))
    for order in orders:  # a stable sort keeps the order of ties
        for query in (range(5), range(5, 7)):
            ranked = sorted((d for d in order if d in query), key=lambda d: -scores[d])
            for rank, document in enumerate(ranked[:3]):
                expected[document, rank] += 1.0 / len(orders)
    np.testing.assert_allclose(served_placement(scores, offsets, 3, "deterministic"), expected)


def test_ranks_against_sorting_in_python() -> None:
    rng = np.random.default_rng(4)
    lengths = rng.integers(1, 9, 50)
    offsets = np.cumsum([0, *lengths])
    scores = rng.integers(0, 4, lengths.sum()).astype(np.float32)  # many ties
    ranks = ranks_by_score(scores, offsets)
    for query in range(50):
        rows = range(offsets[query], offsets[query + 1])
        order = sorted(rows, key=lambda row: (-scores[row], row))
        assert [ranks[row] for row in order] == list(range(1, len(order) + 1))


def test_sampled_tells_the_exact_exposure_and_the_probability_of_what_is_shown() -> None:
    served = serve(SCORES, OFFSETS, EXAMINATION, serve_as="sampled", rng=np.random.default_rng(1))
    assert served.log_probability is not None
    for query in range(3):
        rows = slice(OFFSETS[query], OFFSETS[query + 1])
        scores = [float(score) for score in SCORES[rows]]
        expected = enumeration.exposure(scores, EXAMINATION.tolist())
        np.testing.assert_allclose(served.exposure[rows], expected, rtol=1e-3)
        ranking = tuple(int(document) for document in np.argsort(served.rank[rows]))
        assert sorted(served.rank[rows]) == list(range(1, len(scores) + 1))
        chance = enumeration.ranking_probabilities(scores, 3)[ranking[:3]]
        assert served.log_probability[query] == pytest.approx(math.log(chance), abs=1e-5)


def test_drawn_ranks_have_the_distribution_of_the_policy() -> None:
    """The placement of the whole ranking, beyond the ranks that are shown too."""
    draws, scores = 20_000, SCORES[:4]
    offsets = np.arange(0, 4 * draws + 1, 4)
    served = serve(np.tile(scores, draws), offsets, EXAMINATION, serve_as="sampled", rng=np.random.default_rng(7))
    ranks = served.rank.reshape(draws, 4)
    expected = enumeration.placement([float(score) for score in scores], 4)
    counted = np.stack([(ranks == rank).mean(axis=0) for rank in range(1, 5)], axis=1)
    assert np.all(np.abs(counted - expected) <= 5 * np.sqrt(expected * (1 - expected) / draws))


def test_what_is_drawn_depends_on_the_seed_and_not_on_the_blocks() -> None:
    def drawn(blocks: list[tuple[int, int]], seed: int) -> list[int]:
        rng, ranks = np.random.default_rng(seed), []
        for first, last in blocks:
            offsets = OFFSETS[first : last + 1]
            scores = SCORES[offsets[0] : offsets[-1]]
            ranks += serve(scores, offsets - offsets[0], EXAMINATION, serve_as="sampled", rng=rng).rank.tolist()
        return ranks

    assert drawn([(0, 3)], 5) == drawn([(0, 1), (1, 2), (2, 3)], 5)
    assert len({tuple(drawn([(0, 3)], seed)) for seed in range(10)}) > 3


def test_a_cutoff_shows_the_first_ranks_only() -> None:
    assert shown_examination(EXAMINATION, None).tolist() == [1.0, 0.5, 0.25]
    assert shown_examination(EXAMINATION, 2).tolist() == [1.0, 0.5]
    for cutoff in (0, 4):
        with pytest.raises(UsageError):
            shown_examination(EXAMINATION, cutoff)


def test_wrong_calls() -> None:
    with pytest.raises(UsageError):
        serve(SCORES, OFFSETS, EXAMINATION, serve_as="by-hand")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        serve(SCORES, OFFSETS, EXAMINATION, serve_as="sampled")
