"""The gain bound: coverage for a fixed policy, the kink at the reference, and its smoothed variance."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from saferank.engine.errors import UsageError
from saferank.engine.objectives.direct_method import direct_method
from saferank.engine.objectives.doubly_robust import doubly_robust
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.gain_bound import GainBound, cantelli, gain_bound
from saferank.engine.objectives.self_normalised_ips import self_normalised_ips
from saferank.engine.ragged import query_sums
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate
from tests.engine.bounds.worlds import DELTA, NAMES, WORLDS, World, allowed, make_world
from tests.engine.objectives.cases import EXAMINATION, LENGTHS, OFFSETS, Array, Case, exposure_of, make_case
from tests.engine.objectives.policies import random_policy
from tests.oracles.enumeration import exposure_under
from tests.oracles.estimators import second_moment

LOGS = 3_000
Z = cantelli(DELTA)


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(seed=5)


def log_of(clicks: Array, interactions: int) -> LogStatistics:
    """One query whose every document is always shown, at a rank of its own: clicks and interactions are what counts."""
    shown = interactions * np.eye(len(clicks), dtype=np.int64)
    clicked = np.diag(clicks.astype(np.int64))
    return LogStatistics(np.array([0, len(clicks)]), np.array([interactions]), shown, clicked)


def worst_case(log: LogStatistics, rho_0: Array, examination: Array, z: float = Z, **options: Any) -> GainBound:
    """The bound that is proven."""
    estimate = exposure_ips(log, rho_0, examination)
    return gain_bound(estimate, log, rho_0, z=z, variance="worst-case", floor=0.0, **options)


def drawn_bounds(world: World, interactions: int, z: float = Z) -> Array:
    """The value for the world's new policy, from each of many logs."""
    clicked = np.zeros((len(world.clicked), len(world.exposure)))
    for outcome, documents in enumerate(world.clicked):
        clicked[outcome, list(documents)] = 1.0
    counts = np.random.default_rng(4).multinomial(interactions, world.chances, size=LOGS)
    rho_0 = np.where(world.logging_exposure > 0, world.logging_exposure, 1.0)  # never shown: no click, and no gain
    rho = np.where(world.logging_exposure > 0, world.exposure, 0.0)
    drawn, which = np.unique(counts @ clicked, axis=0, return_inverse=True)  # a bound depends on these alone
    values = []
    for clicks in drawn:
        bound = worst_case(log_of(clicks, interactions), rho_0, world.examination, z, reference=world.logging_exposure)
        values.append(bound.value(bound.sums(rho)))
    return np.array(values)[which]


@pytest.mark.parametrize("interactions", [3, 300])
@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
def test_the_gain_is_below_the_bound_as_rarely_as_promised_and_not_far_above(world: World, interactions: int) -> None:
    """It is wider than four standard errors by what the worst case for relevance and clicks at once costs."""
    bounds = drawn_bounds(world, interactions)
    assert np.mean(bounds > world.improvement + 1e-12) <= allowed(LOGS)
    width = world.improvement - bounds.mean()
    assert Z * 0.99 < width / np.sqrt(world.variance / interactions) < 6 * Z


def test_a_smaller_z_would_not_do() -> None:
    """One rank, everything relevant: an interaction shows with chance 0.09 what the new policy always shows."""
    world = make_world("two values", {(0,): 0.09, (1,): 0.91}, {(0,): 1.0}, np.ones(1), np.ones(2))
    assert np.mean(drawn_bounds(world, 1) > world.improvement) <= DELTA
    assert np.mean(drawn_bounds(world, 1, 0.7 * Z) > world.improvement) > allowed(LOGS)


def test_several_queries_are_covered_too_and_a_large_gain_is_seen(case: Case) -> None:
    """The gain is that on the logged queries; the new policy ranks by relevance, the logging policy hardly ranks."""
    rng = np.random.default_rng(6)
    logging_scores, new = 0.2 * case.logging_scores, 4.0 * case.relevance
    logging_scores[3] = 0.0
    rho_0, rho = exposure_of(logging_scores), exposure_of(new)
    per_query = query_sums((rho - rho_0) * case.relevance, OFFSETS)
    found = []
    for interactions in (10, 3_000):
        for _ in range(1_000):
            log = simulate(logging_scores, OFFSETS, case.relevance, EXAMINATION, interactions, rng)
            bound = worst_case(log, rho_0, EXAMINATION)
            gain = float(log.interactions @ per_query) / interactions
            found.append((bound.value(bound.sums(rho)), gain))
    bounds, gains = np.array(found).T
    assert np.mean(bounds > gains) <= allowed(1_000)
    assert np.mean(bounds[1_000:] > 0) > 0.95
    assert np.mean(bounds[:1_000] > 0) < 0.05


def test_the_second_moment_is_below_the_squared_risk_and_at_times_close() -> None:
    rng = np.random.default_rng(7)
    ratios = []
    for _ in range(600):
        documents, cutoff = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        examination = np.sort(rng.random(cutoff))[::-1] if rng.random() < 0.5 else np.ones(cutoff)
        largest = rng.uniform(0.05, 1.0)
        relevance = largest * rng.random(documents) ** rng.choice([0.0, 1.0])
        logging, new, old = (random_policy(documents, cutoff, rng) for _ in range(3))
        rho_0, rho, reference = (exposure_under(policy, examination, documents) for policy in (logging, new, old))
        mean, second = second_moment(logging, (rho - reference) / rho_0, relevance, examination)
        assert mean == pytest.approx((rho - reference) @ relevance)
        log = log_of(np.zeros(documents), 1)
        bound = worst_case(log, rho_0, examination, 1.0, reference=reference, largest_relevance=largest)
        squared = bound.sums(rho)[1]
        assert second <= squared + 1e-12
        if squared > 1e-6:  # lists that show everything, all of it examined, expose all alike
            ratios.append(second / squared)
    assert len(ratios) > 500
    assert max(ratios) > 0.9


def weak_and_strong(case: Case) -> tuple[GainBound, GainBound]:
    """The same rewards, once with a risk that they do not outweigh, and once with a hundredth of it."""
    estimate = doubly_robust(case.statistics, case.predicted, case.flat_rho_0, EXAMINATION, clip=0.1)
    bound = gain_bound(estimate, case.statistics, case.flat_rho_0, z=1.0, reference=case.reference)
    assert bound.risk_weight is not None
    risk_weight = 2.0 * bound.evidence * bound.risk_weight
    return replace(bound, risk_weight=risk_weight), replace(bound, risk_weight=risk_weight / 100.0)


def moves(case: Case, count: int) -> Array:
    """Random changes of exposure that sum to 0 over each query."""
    changes = np.random.default_rng(8).normal(size=(count, len(case.scores)))
    return np.array([change - np.repeat(query_sums(change, OFFSETS) / LENGTHS, LENGTHS) for change in changes])


def test_at_the_reference_the_value_is_0_and_the_slope_that_of_steepest_ascent(case: Case) -> None:
    weak, strong = weak_and_strong(case)
    assert weak.evidence == pytest.approx(0.5)
    assert strong.evidence == pytest.approx(50.0)
    for bound in (weak, strong):
        value, slope = bound.value_and_row_slope(case.reference)
        assert value == 0.0
        assert np.isfinite(slope).all()
        for move in moves(case, 300):
            for size in (1e-4, 0.1):
                moved = bound.value_and_row_slope(case.reference + size * move)[0]
                assert moved <= size * slope @ move + 1e-12  # a supergradient
    assert not weak.value_and_row_slope(case.reference)[1].any()


def test_strong_evidence_leads_away_from_the_reference_and_the_slope_changes_without_a_jump(case: Case) -> None:
    weak, strong = weak_and_strong(case)
    slope = strong.value_and_row_slope(case.reference)[1]
    assert strong.risk_weight is not None
    ascent = slope / np.maximum(strong.risk_weight, 1e-12)  # the steepest direction by what it costs in risk
    ascent *= np.repeat(np.asarray(case.statistics.interactions) > 0, LENGTHS)
    np.testing.assert_allclose(query_sums(ascent, OFFSETS), 0.0, atol=1e-9 * np.abs(ascent).max())
    step = 1e-3 / np.abs(ascent).max()
    value, beyond = strong.value_and_row_slope(case.reference + step * ascent)
    assert value == pytest.approx(step * slope @ ascent, rel=1e-6)
    assert value > 0.0
    difference = np.where(ascent != 0, beyond - slope, 0.0)
    for begin, end in pairwise(OFFSETS):  # the same but for a constant of each query
        np.testing.assert_allclose(difference[begin:end], difference[begin], atol=1e-9)
    assert weak.value_and_row_slope(case.reference + step * ascent)[0] < 0.0


def test_a_policy_that_starts_at_the_reference_stays_there_without_evidence(case: Case) -> None:
    weak, strong = weak_and_strong(case)
    scores = case.logging_scores.astype(np.float32)
    start = weak.view(scores, np.arange(len(LENGTHS)))
    value, slope = replace(weak, reference=start.astype(np.float64)).value_and_slope(scores)
    assert value == 0.0
    assert not slope.any()
    assert replace(strong, reference=start.astype(np.float64)).value_and_slope(scores)[1].any()
    rounded = start * (1.0 + 1e-7 * np.random.default_rng(9).uniform(-1, 1, len(start)))
    assert not replace(weak, reference=rounded).value_and_slope(scores)[1].any()
    assert replace(weak, reference=rounded + 1e-3).value_and_slope(scores)[1].any()


def test_the_slope_is_finite_however_close_the_reference_is(case: Case) -> None:
    _, strong = weak_and_strong(case)
    move = moves(case, 1)[0]
    for size in 10.0 ** -np.arange(1, 18):
        slope = strong.value_and_row_slope(case.reference + size * move)[1]
        assert np.isfinite(slope).all()
        assert np.abs(slope).max() < 10.0


def test_documents_without_risk_are_followed_at_once(case: Case) -> None:
    """A risk weight of 0 is evidence without limit, and no division by 0."""
    estimate = exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION)
    bound = gain_bound(estimate, case.statistics, case.flat_rho_0, z=0.0)
    assert bound.evidence > 1e100
    expected = estimate.reward - bound.value_and_row_slope(bound.reference)[1]
    for begin, end in pairwise(OFFSETS):
        np.testing.assert_allclose(expected[begin:end], expected[begin], atol=1e-15)


def test_without_rewards_there_is_no_evidence(case: Case) -> None:
    nothing = direct_method(case.statistics, np.zeros(len(case.scores)), EXAMINATION)
    bound = gain_bound(nothing, case.statistics, case.flat_rho_0, z=1.0)
    assert bound.evidence == 0.0
    assert not bound.value_and_row_slope(bound.reference)[1].any()
    assert replace(bound, risk_weight=None).evidence == np.inf


def small_log() -> LogStatistics:
    """Two queries with 10 and 30 interactions; of two documents each, one is shown always and clicked at times."""
    shown = np.array([[10], [0], [30], [0]])
    return LogStatistics(np.array([0, 2, 4]), np.array([10, 30]), shown, np.array([[2], [0], [6], [0]]))


def test_the_smoothed_variance_by_hand() -> None:
    log, rho_0, examination = small_log(), np.array([0.8, 0.2, 0.5, 0.5]), np.ones(1)
    m = (2 + 6) / (10 * (0.8 + 0.2) + 30 * (0.5 + 0.5))
    smoothed = [
        10 / 40 * (2 + 3.0) / (10 * 0.8 + 3.0 / m) / 0.8,
        10 / 40 * (0 + 3.0) / (10 * 0.2 + 3.0 / m) / 0.2,
        30 / 40 * (6 + 3.0) / (30 * 0.5 + 3.0 / m) / 0.5,
        30 / 40 * (0 + 3.0) / (30 * 0.5 + 3.0 / m) / 0.5,
    ]
    counted = [2 / 40 / 0.8**2, 0.0, 6 / 40 / 0.5**2, 0.0]
    largest = [10 / 40 * 0.3 / 0.8, 10 / 40 * 0.3 / 0.2, 30 / 40 * 0.3 / 0.5, 30 / 40 * 0.3 / 0.5]
    estimate = exposure_ips(log, rho_0, examination)

    def weights(**options: Any) -> Array:
        found = gain_bound(estimate, log, rho_0, z=2.0, **options).risk_weight
        assert found is not None
        return found

    np.testing.assert_allclose(weights(prior_clicks=3.0), np.array(smoothed) * 4.0 / 40)
    np.testing.assert_allclose(weights(prior_clicks=0.0), np.array(counted) * 4.0 / 40)
    np.testing.assert_allclose(weights(prior_clicks=0.0, verdict_interactions=500), np.array(counted) * 4.0 / 500)
    np.testing.assert_allclose(weights(variance="worst-case", largest_relevance=0.3), np.array(largest) * 4.0 / 40)
    unclicked = replace(log, clicked=np.zeros_like(log.clicked))
    found = gain_bound(estimate, unclicked, rho_0, z=2.0, largest_relevance=0.3).risk_weight
    assert found is not None
    np.testing.assert_allclose(found, np.array(largest) * 4.0 / 40)


def test_the_constant_of_a_short_list_and_of_low_relevance() -> None:
    """c = min(K, 1 + Z * largest relevance): K and Z of the ranks that are filled."""
    log = LogStatistics(np.array([0, 1, 4]), np.array([1, 1]), np.zeros((4, 2), int), np.zeros((4, 2), int))
    examination, rho_0 = np.array([1.0, 0.5]), np.ones(4)
    estimate = exposure_ips(log, rho_0, examination)
    for largest, constants in ((1.0, [1.0, 2.0]), (0.4, [1.0, 1.0 + 0.4 * 1.5])):
        found = gain_bound(estimate, log, rho_0, z=1.0, variance="worst-case", largest_relevance=largest).risk_weight
        assert found is not None
        np.testing.assert_allclose(found, largest / 4 * np.array([constants[0]] + [constants[1]] * 3))


def test_the_reference_is_the_logging_exposure_unless_given(case: Case) -> None:
    estimate = exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION)
    bound = gain_bound(estimate, case.statistics, case.flat_rho_0, z=1.0)
    assert bound.value_and_row_slope(case.flat_rho_0)[0] == 0.0
    assert bound.value_and_row_slope(case.reference)[0] < 0.0


def test_rewards_of_any_estimate_count(case: Case) -> None:
    for estimate in (
        exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION),
        direct_method(case.statistics, case.predicted, EXAMINATION),
    ):
        bound = gain_bound(estimate, case.statistics, case.flat_rho_0, z=1.0, reference=case.reference)
        rho = exposure_of(case.scores)
        assert bound.sums(rho)[0] == pytest.approx(estimate.sums(rho)[0] - estimate.sums(case.reference)[0])


@pytest.mark.parametrize(
    "options",
    [
        {"z": -1.0},
        {"z": float("nan")},
        {"z": float("inf")},
        {"variance": "hoped"},
        {"largest_relevance": 0.0},
        {"largest_relevance": 1.1},
        {"prior_clicks": -1.0},
        {"verdict_interactions": 0},
        {"floor": 0.0},
    ],
    ids=str,
)
def test_what_it_cannot_mean(case: Case, options: dict[str, Any]) -> None:
    estimate = exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION)
    assert case.flat_rho_0.min() == 0.0
    with pytest.raises(UsageError):
        gain_bound(estimate, case.statistics, case.flat_rho_0, **({"z": 1.0} | options))


def test_estimates_of_another_form_are_turned_away(case: Case) -> None:
    for estimate in (
        exposure_crm(case.statistics, case.flat_rho_0, EXAMINATION),
        self_normalised_ips(case.statistics, case.flat_rho_0, EXAMINATION),
    ):
        with pytest.raises(UsageError):
            gain_bound(estimate, case.statistics, case.flat_rho_0, z=1.0)


@pytest.mark.parametrize("delta", [0.0, 1.0, float("nan")])
def test_delta_out_of_range(delta: float) -> None:
    with pytest.raises(UsageError):
        cantelli(delta)


def test_cantelli_by_hand() -> None:
    assert cantelli(0.5) == pytest.approx(1.0)
    assert cantelli(0.01) == pytest.approx(99**0.5)
