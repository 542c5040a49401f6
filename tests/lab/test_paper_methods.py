"""The paper's methods, run on a small world: each gives a policy, the same for a seed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from saferank.engine.objectives.risk import Risk
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.click_worlds import CLICK_WORLDS
from saferank.lab.paper_methods import Exposure, evaluate, learn_in_world, logged_parts, simulate_logs
from saferank.lab.results import PAPER_METHODS
from saferank.learning.methods import method_named
from saferank.learning.training_loop import FitResult, one_thread
from saferank.policy.scorers import make_scorer, score
from saferank.policy.scorers.trees import Trees
from tests.lab.small_world import QUICK, small_world
from tests.oracles.enumeration import ranking_probabilities


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


@pytest.mark.parametrize("method", PAPER_METHODS)
def test_every_method_gives_a_policy_and_the_same_for_a_seed(method: str) -> None:
    world, short = small_world(), replace(QUICK, epochs=1, least_steps=10)

    def run(seed: int) -> bytes:
        logs = simulate_logs(world, 200, seed)
        scorer = learn_in_world(method, world, logs, seed=seed, training=short)
        values = evaluate(scorer, world.test)
        assert np.isfinite(values).all()
        assert all(0.1 < value < 1.0 for value in values)
        return score(scorer, world.test.features).tobytes()

    first = run(0)
    assert first == run(0)
    assert (first != run(1)) == (method != "logging")


def test_the_skyline_beats_the_logging_policy_and_that_is_what_it_says() -> None:
    world = small_world()
    found = {
        method: evaluate(learn_in_world(method, world, None, seed=0, training=QUICK), world.test)
        for method in ("logging", "skyline")
    }
    assert found["logging"] == evaluate(world.logging_scorer, world.test)
    assert found["skyline"][0] > found["logging"][0] + 0.02
    assert found["skyline"][1] > found["logging"][1] + 0.02


def test_the_skyline_of_trees_has_a_higher_ndcg_than_the_logging_policy() -> None:
    world = small_world()
    learned = learn_in_world("skyline", world, None, seed=0, scorer="gbdt", training=QUICK)
    assert isinstance(learned, Trees)
    assert learned.forest.trees > 0
    assert evaluate(learned, world.test)[1] > evaluate(world.logging_scorer, world.test)[1] + 0.02


def test_with_the_logging_policy_known_training_starts_from_it() -> None:
    """So strict a delta that no step away from it can pay: it is kept."""
    world = small_world()
    logs, short = simulate_logs(world, 200, 0), replace(QUICK, epochs=1)
    risk = Risk(1e-9, "paper")
    scorer = learn_in_world("exposure-crm", world, logs, seed=0, risk=risk, known=True, training=short)
    before, after = (score(one, world.test.features) for one in (world.logging_scorer, scorer))
    assert np.corrcoef(before, after)[0, 1] > 0.9
    logging, learned = (evaluate(one, world.test)[1] for one in (world.logging_scorer, scorer))
    assert learned > logging - 0.02


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("start", [False, True])
def test_exposure_and_start_are_told_apart(*, known: bool, start: bool) -> None:
    """A step so small that what is learned is the start; and another exposure leads elsewhere."""
    world, still = small_world(), replace(QUICK, epochs=1, least_steps=1, learning_rate=1e-9)
    logs = simulate_logs(world, 200, 0)
    scorer = learn_in_world("exposure-ips", world, logs, seed=0, known=known, start=start, training=still)
    scores = score(scorer, world.test.features)
    assert np.allclose(scores, world.logging_scores["test"], atol=1e-3) == start
    exposure = logged_parts(world, logs, exposure="known" if known else "counted")[0].logging_exposure
    assert (exposure.min() > 0) == known


def test_the_last_rank_can_be_given_by_the_logging_policy() -> None:
    world, still = small_world(), replace(QUICK, epochs=1, least_steps=5)
    logs = simulate_logs(world, 200, 0)
    parts = {way: logged_parts(world, logs, exposure=way)[0] for way in ("counted", "last-rank", "known")}
    issued = np.repeat(logs.train.interactions > 0, np.diff(logs.train.offsets))
    never = {way: float((part.logging_exposure[issued] == 0).mean()) for way, part in parts.items()}
    assert never["counted"] > 0.5 > never["last-rank"] == never["known"] == 0
    counted, last_rank = (
        score(learn_in_world("exposure-crm", world, logs, seed=0, last_rank=told, training=still), world.test.features)
        for told in (False, True)
    )
    assert np.abs(counted - last_rank).max() > 1e-3


def test_with_trust_known_rewards_are_relevance_and_without_they_are_not() -> None:
    world = small_world()
    logs = simulate_logs(world, 100_000_000, 0, CLICK_WORLDS["trust-bias"])
    true = CLICK_WORLDS["trust-bias"].curve(world)
    lowest, highest = float(np.max(-true.beta / true.alpha)), float((1.0 - true.beta[0]) / true.alpha[0])
    relevance = (world.relevance("train") - lowest) / (highest - lowest)
    often = logs.train.shown @ true.alpha > 10_000
    off = {}
    for trust in (None, true.normalised()):
        for exposure in get_args(Exposure):
            part = logged_parts(world, logs, exposure=exposure, trust=trust)[0]
            assert (part.trust is None) == (trust is None)
            objective = method_named("exposure-ips").objective
            assert objective is not None
            per_query = (part.log.interactions / part.log.total_interactions)[part.log.query_of_document]
            reward = objective(part).reward / per_query
            off[trust is not None, exposure] = float(np.abs(reward - relevance)[often].max())
    assert often.sum() > 500
    assert max(value for (told, _), value in off.items() if told) < 0.06
    assert min(value for (told, _), value in off.items() if not told) > 0.2


def test_how_training_went_is_reported() -> None:
    world = small_world()
    seen: list[FitResult] = []
    short = replace(QUICK, epochs=2, least_steps=2)
    for method in ("logging", "skyline", "naive"):
        learn_in_world(method, world, simulate_logs(world, 200, 0), seed=0, training=short, report=seen.append)
    assert [len(result.history) for result in seen] == [2, 2]


def test_logs_have_the_interactions_asked_for_and_as_many_a_query_for_validation() -> None:
    world = small_world()
    logs = simulate_logs(world, 3000, 0)
    assert logs.train.total_interactions == 3000
    assert logs.validation.total_interactions == 1000  # 200 validation queries, 600 for training
    assert simulate_logs(world, 1, 0).validation.total_interactions == 1
    np.testing.assert_array_equal(simulate_logs(world, 3000, 0).train.clicked, logs.train.clicked)
    assert np.any(simulate_logs(world, 3000, 1).train.clicked != logs.train.clicked)


def test_evaluation_is_ndcg_at_5_by_score_and_in_expectation() -> None:
    features = np.array([[1.0], [0.0], [2.0], [0.5], [0.3], [-1.0]], np.float32)
    labels = np.array([0.0, 3.0, 1.0, 2.0, 0.0, 4.0], np.float32)
    scorer = make_scorer("linear", 1, seed=0)
    scores = score(scorer, features)

    def dcg(order: list[int]) -> float:
        return sum(float((2.0 ** labels[d] - 1) / np.log2(rank + 2)) for rank, d in enumerate(order[:5]))

    ideal = dcg(np.argsort(-labels).tolist())
    rankings = ranking_probabilities(scores.tolist(), 5).items()
    expected = sum(probability * dcg(list(ranking)) for ranking, probability in rankings) / ideal
    found = evaluate(scorer, RankingData(features, np.array([0, 6]), labels))
    assert found == pytest.approx((expected, dcg(np.argsort(-scores).tolist()) / ideal), rel=1e-3)


def test_evaluation_with_the_linear_gain() -> None:
    features, labels = np.array([[2.0], [1.0], [0.0]], np.float32), np.array([1.0, 3.0, 0.0], np.float32)
    scorer = make_scorer("linear", 1, seed=0)
    order = np.argsort(-score(scorer, features))
    by_hand = sum(float(labels[d] / np.log2(rank + 2)) for rank, d in enumerate(order)) / (3 + 1 / np.log2(3))
    data = RankingData(features, np.array([0, 3]), labels)
    assert evaluate(scorer, data, "linear")[1] == pytest.approx(by_hand)
    assert evaluate(scorer, data)[1] != pytest.approx(by_hand, rel=1e-3)
