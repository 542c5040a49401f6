"""What changes is held against a count over every pair of a logged and a new ranking."""

import numpy as np
import pyarrow as pa
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.policy.policy import Policy
from saferank.verdict.exposure_shift import Changes, compare_placements, exposure_changes, placement_changes
from saferank.verdict.new_ranker import ranker_of_table
from tests.doctor.logs import Interaction, aggregated
from tests.oracles.enumeration import placement, ranking_probabilities
from tests.policy.made import EXAMINATION, make_data, make_policy

CUTOFF = len(EXAMINATION)


def interactions(data: RankingData, seed: int = 1) -> list[Interaction]:
    """Query 0 sixty times, 1 five times, 2 twenty times, 3 never; lists as long as they can be."""
    rng = np.random.default_rng(seed)
    made: list[Interaction] = []
    for query, times in ((0, 60), (1, 5), (2, 20)):
        for _ in range(times):
            order = rng.permutation(data.lengths[query])[:CUTOFF]
            made.append((f"q{query}", [f"d{place}" for place in order], []))
    return made


@pytest.fixture(scope="module")
def data() -> RankingData:
    return make_data()


@pytest.fixture(scope="module")
def policy() -> Policy:
    return make_policy("linear")  # no two documents have the same score


@pytest.fixture(scope="module")
def log(data: RankingData) -> AggregatedLog:
    made = interactions(data)
    return aggregated(made[::2], made[1::2], cutoff=CUTOFF)


@pytest.fixture(scope="module")
def changes(policy: Policy, log: AggregatedLog, data: RankingData) -> Changes:
    return exposure_changes(policy, log, data, most=3)


def by_score(policy: Policy, data: RankingData, query: int) -> list[str]:
    scores = policy.scores(data)[data.offsets[query] : data.offsets[query + 1]]
    return [f"d{place}" for place in sorted(range(len(scores)), key=lambda place: -scores[place])]


def test_moves_are_those_of_every_interaction(policy: Policy, data: RankingData, changes: Changes) -> None:
    made = interactions(data)
    wanted = np.zeros((CUTOFF + 1, CUTOFF + 1))
    for query, ranking, _ in made:
        new = by_score(policy, data, int(query[1:]))[:CUTOFF]
        for document in {*ranking, *new}:
            old = ranking.index(document) if document in ranking else CUTOFF
            wanted[old, new.index(document) if document in new else CUTOFF] += 1 / len(made)
    np.testing.assert_allclose(changes.moves, wanted, atol=1e-12)
    assert changes.top_stays == pytest.approx(wanted[0, 0])
    assert 0 < changes.moves[-1].sum() == pytest.approx(changes.moves[:, -1].sum())


def test_exposure_moved_by_query(policy: Policy, data: RankingData, changes: Changes) -> None:
    made = interactions(data)
    moved, total, spread = 0.0, 0.0, np.zeros(10)
    for query in ("q0", "q1", "q2"):
        rankings = [ranking for name, ranking, _ in made if name == query]
        new = by_score(policy, data, int(query[1:]))
        old = {d: sum(EXAMINATION[r.index(d)] for r in rankings if d in r) / len(rankings) for d in new}
        gone = sum(max(old[d] - (EXAMINATION[k] if k < CUTOFF else 0.0), 0.0) for k, d in enumerate(new))
        moved, total = moved + gone * len(rankings), total + sum(old.values()) * len(rankings)
        spread[int(10 * gone / sum(old.values()) + 1e-9)] += len(rankings) / len(made)
        found = [row for row in changes.queries if row.query == query]
        if query == "q1":  # one document: nothing can move
            assert found == []
            continue
        assert found[0].moved == pytest.approx(gone / sum(old.values()))
        assert found[0].interactions == len(rankings)
        assert found[0].top_before == max(old, key=lambda d: old[d])
        assert found[0].top_after == new[0]
    assert changes.moved == pytest.approx(moved / total)
    np.testing.assert_allclose(changes.interactions_by_moved, spread)
    assert changes.interactions_by_moved.sum() == pytest.approx(1.0)


def test_most_changed_come_first(changes: Changes) -> None:
    weights = [row.moved * row.interactions for row in changes.queries]
    assert weights == sorted(weights, reverse=True)
    for rows, sign in ((changes.gained, 1), (changes.lost, -1)):
        gains = [sign * (row.new - row.logging) * row.interactions for row in rows]
        assert len(gains) == 3
        assert gains == sorted(gains, reverse=True)
        assert min(gains) > 0


def test_bands_hold_all_exposure(data: RankingData, changes: Changes) -> None:
    assert sum(band.logging for band in changes.bands) == pytest.approx(1.0)
    assert sum(band.new for band in changes.bands) == pytest.approx(1.0)
    assert sum(band.pairs for band in changes.bands) == data.offsets[3]  # query 3 was never issued


def test_bands_by_how_often_a_document_was_shown() -> None:
    rankings = [["a", "b"]] * 60 + [["a", "c"]] * 35 + [["a", "d"]] * 4 + [["a", "e"]]
    log = aggregated([("q", ranking, []) for ranking in rankings], cutoff=2)
    ids = np.array(list("abcdef"))
    data = RankingData(np.zeros((6, 1), np.float32), np.array([0, 6]), query_ids=np.array(["q"]), document_ids=ids)
    new = np.zeros((6, 2))
    new[5, 0] = new[0, 1] = 1.0  # f, never shown, on top; then a
    found = compare_placements(log.statistics(PARTS, data), new, np.array([1.0, 0.5]), data)
    assert {band.name: band.pairs for band in found.bands} == {
        "in half or more": 2,  # a, b
        "in 10% to 50%": 1,  # c
        "in 1% to 10%": 2,  # d, e
        "in less than 1%": 0,
        "never": 1,
    }
    assert found.bands[0].logging == pytest.approx((1.0 + 0.5 * 0.6) / 1.5)
    assert found.bands[-1].new == pytest.approx(1.0 / 1.5)
    assert found.moved == pytest.approx(1.0 / 1.5)
    assert found.top_stays == 0.0
    assert found.top_stays_in_log == 1.0
    assert (found.gained[0].document, found.gained[0].logging, found.gained[0].new) == ("f", 0.0, 1.0)


def test_sampled_rankings_by_enumeration(policy: Policy, log: AggregatedLog, data: RankingData) -> None:
    found = exposure_changes(policy, log, data, serve_as="sampled")
    scores, counts = [float(score) for score in policy.scores(data)], log.statistics(PARTS, data)
    wanted = np.zeros((CUTOFF, CUTOFF))
    stays = 0.0
    for query in range(3):
        rows = slice(data.offsets[query], data.offsets[query + 1])
        wanted += counts.shown[rows].T @ placement(scores[rows], CUTOFF) / counts.total_interactions
        for ranking, chance in ranking_probabilities(scores[rows], CUTOFF).items():
            stays += chance * counts.shown[rows][ranking[0], 0] / counts.total_interactions
    np.testing.assert_allclose(found.moves[:-1, :-1], wanted, atol=2e-4)
    assert found.top_stays == pytest.approx(stays, abs=2e-4)


def test_known_logging_scores_by_enumeration(policy: Policy, log: AggregatedLog, data: RankingData) -> None:
    """Every ranking of the log's policy beside the new one, queries weighing as in the log."""
    scores = np.random.default_rng(5).normal(size=data.documents).astype(np.float32)
    found = exposure_changes(policy, log, data, logging_scores=scores)
    counts = log.statistics(PARTS, data)
    wanted, top = np.zeros((CUTOFF, CUTOFF)), 0.0
    before: dict[tuple[str, str], float] = {}
    for query in range(3):
        rows = slice(data.offsets[query], data.offsets[query + 1])
        new, old = by_score(policy, data, query)[:CUTOFF], placement([float(score) for score in scores[rows]], CUTOFF)
        weight = counts.interactions[query] / counts.total_interactions
        for rank, document in enumerate(new):
            wanted[:, rank] += weight * old[int(document[1:])]
        top += weight * float(np.square(old[:, 0]).sum())
        before |= {(f"q{query}", f"d{place}"): float(chances @ EXAMINATION) for place, chances in enumerate(old)}
    np.testing.assert_allclose(found.moves[:-1, :-1], wanted, atol=2e-4)
    assert found.top_stays_in_log == pytest.approx(top, abs=2e-4)
    assert [row.logging for row in found.gained] == pytest.approx(
        [before[row.query, row.document] for row in found.gained], abs=2e-4
    )
    assert found.logging == "known"


def test_bands_of_known_scores_are_by_what_the_log_showed(policy: Policy, data: RankingData) -> None:
    log = aggregated([("q0", ["d0", "d1", "d2"], [])], cutoff=CUTOFF)
    found = exposure_changes(policy, log, data, logging_scores=np.zeros(data.documents, np.float32))
    never = found.bands[-1]
    assert (never.name, never.pairs) == ("never", 1)
    assert never.logging == pytest.approx(0.25, abs=2e-4)  # one of four that are drawn alike


def test_a_policy_that_changes_nothing_moves_nothing(data: RankingData) -> None:
    made: list[Interaction] = [
        (f"q{query}", [f"d{place}" for place in range(length)][:CUTOFF], [])
        for query, length in enumerate(data.lengths)
    ]
    log = aggregated(made, cutoff=CUTOFF)
    counts = log.statistics(PARTS, data)
    found = compare_placements(counts, counts.shown.astype(float), EXAMINATION, data)
    assert found.moved == 0.0
    assert found.top_stays == found.top_stays_in_log == 1.0
    assert (found.queries, found.gained, found.lost) == ((), (), ())
    assert found.moves[np.triu_indices(CUTOFF + 1, 1)].sum() == 0.0


def test_wrong_logs(policy: Policy, data: RankingData) -> None:
    with pytest.raises(UsageError):
        exposure_changes(policy, aggregated([("q0", ["d0"], [])], cutoff=2), data)
    with pytest.raises(DataError):
        exposure_changes(policy, aggregated([("other", ["d0"], [])], cutoff=3), data)


def test_a_ranker_made_elsewhere_drops_what_it_does_not_list_and_keeps_queries_that_it_lacks() -> None:
    """a: x and y by turns, and now only x; b is not ranked."""
    logged: list[Interaction] = [("a", ["x", "y"], []), ("a", ["y", "x"], []), ("b", ["u", "v"], [])]
    table = pa.table({"query_id": ["a"], "document_id": ["x"], "score": [1.0]})
    found = placement_changes(ranker_of_table(table), aggregated(logged, cutoff=2), np.array([1.0, 0.5]))
    (query,) = found.queries
    assert (query.query, query.top_after) == ("a", "x")
    assert [(one.document, one.logging, one.new) for one in found.gained] == [("x", 0.75, 1.0)]
    assert [(one.document, one.logging, one.new) for one in found.lost] == [("y", 0.75, 0.0)]
    assert found.top_stays == pytest.approx(2 / 3 * 0.5 + 1 / 3)
