"""The risk of exposure CRM: which constant bounds the variance, short lists, and documents never shown."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.engine.click_models.examination import Constant, risk_constant
from saferank.engine.errors import UsageError
from saferank.engine.objectives.action_crm import action_crm
from saferank.engine.objectives.exposure_crm import FLOOR, exposure_crm
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.log_statistics import LogStatistics
from tests.engine.objectives.cases import EXAMINATION, Array, Case, exposure_of, make_case
from tests.engine.objectives.policies import random_policy
from tests.oracles.enumeration import Policy, exposure_under
from tests.oracles.estimators import second_moment


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(seed=3)


def one_interaction(documents: int, cutoff: int) -> LogStatistics:
    """The first documents in order, nothing clicked."""
    shown = np.eye(documents, cutoff, dtype=np.int64)
    return LogStatistics(np.array([0, documents]), np.array([1]), shown, np.zeros_like(shown))


def bound_on_second_moment(rho: Array, rho_0: Array, examination: Array, constant: Constant) -> float:
    """The squared risk of one interaction; delta = 1/2 makes the factor (1 - delta) / delta 1."""
    log = one_interaction(len(rho), len(examination))
    return float(exposure_crm(log, rho_0, examination, delta=0.5, constant=constant, floor=0.0).sums(rho)[1])


def test_the_proven_constant_bounds_the_second_moment_and_the_papers_does_not() -> None:
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(600):
        documents, cutoff = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        examination = np.sort(rng.random(cutoff))[::-1] if rng.random() < 0.5 else np.ones(cutoff)
        relevance = rng.random(documents) if rng.random() < 0.5 else np.ones(documents)
        logging, new = random_policy(documents, cutoff, rng), random_policy(documents, cutoff, rng)
        rho_0 = exposure_under(logging, examination, documents)
        rho = exposure_under(new, examination, documents)
        mean, second = second_moment(logging, rho / rho_0, relevance, examination)
        assert mean == pytest.approx(rho @ relevance)  # X is the IPS estimate: this is its utility
        proven, paper = (bound_on_second_moment(rho, rho_0, examination, constant) for constant in ("proven", "paper"))
        ratios.append([second / proven, (second - mean**2) / paper])
    worst_proven, worst_paper = np.max(ratios, axis=0)
    assert 0.9 < worst_proven <= 1 + 1e-12
    assert worst_paper > 1.05


def test_the_counterexample_of_the_guarantees() -> None:
    """K = 2, all examined and relevant; the log shows (A, B) with chance 0.1, else (C, D); the new policy always."""
    examination, everything = np.ones(2), np.ones(4)
    logging: Policy = {(0, 1): 0.1, (2, 3): 0.9}
    new: Policy = {(0, 1): 1.0}
    rho_0, rho = exposure_under(logging, examination, 4), exposure_under(new, examination, 4)
    mean, second = second_moment(logging, rho / rho_0, everything, examination)
    assert second - mean**2 == pytest.approx(36)
    assert bound_on_second_moment(rho, rho_0, examination, "paper") == pytest.approx(20)
    assert bound_on_second_moment(rho, rho_0, examination, "proven") == pytest.approx(second) == pytest.approx(40)


def test_with_one_rank_and_full_relevance_both_bounds_are_the_second_moment() -> None:
    rng = np.random.default_rng(1)
    logging, new = random_policy(3, 1, rng), random_policy(3, 1, rng)
    examination = np.ones(1)
    rho_0, rho = exposure_under(logging, examination, 3), exposure_under(new, examination, 3)
    second = second_moment(logging, rho / rho_0, np.ones(3), examination)[1]
    for constant in ("paper", "proven"):
        assert bound_on_second_moment(rho, rho_0, examination, constant) == pytest.approx(second)


def test_the_proven_risk_is_never_below_the_papers(case: Case) -> None:
    for scores in (case.scores, case.logging_scores, 5 * case.scores):
        rho = exposure_of(scores)
        paper, proven = (
            exposure_crm(case.statistics, case.flat_rho_0, EXAMINATION, constant=constant).sums(rho)[1]
            for constant in ("paper", "proven")
        )
        assert paper <= proven <= 2.9 * paper


def test_the_constant_of_a_short_list_is_its_own() -> None:
    lengths = np.array([1, 2, 3, 9])
    examination = np.array([0.5, 0.25, 0.125, 0.0625])
    expected = [1.0, 1 + 0.5 + 0.25, 1 + 0.5 + 0.25 + 0.125, 1 + 0.5 + 0.25 + 0.125 + 0.0625]
    np.testing.assert_allclose(risk_constant(examination, lengths), expected)
    np.testing.assert_allclose(risk_constant(np.ones(4), lengths), [1, 2, 3, 4])


def test_the_logging_policy_itself_has_a_divergence_of_one(case: Case) -> None:
    """rho = rho_0: Z d2 is each query's own Z, 1 for one document, 1.6 for two, 1.9 for more."""
    risk = exposure_crm(case.statistics, case.flat_rho_0, EXAMINATION, delta=0.5, constant="paper", floor=1e-9)
    own = np.array([1.9, 1.0, 1.9, 1.9, 1.9, 1.6]) @ case.statistics.interactions / len(case.log)
    assert risk.sums(case.flat_rho_0)[1] == pytest.approx(own / len(case.log))


def test_the_floor_takes_the_place_of_smaller_logging_exposure(case: Case) -> None:
    rho_0 = case.flat_rho_0.copy()
    rho_0[:4] = [0.0, FLOOR / 2, FLOOR, 2 * FLOOR]
    risk_weight = exposure_crm(case.statistics, rho_0, EXAMINATION).risk_weight
    assert risk_weight is not None
    np.testing.assert_allclose(risk_weight[:3], risk_weight[2])
    assert risk_weight[2] == pytest.approx(2 * risk_weight[3])
    wide = exposure_crm(case.statistics, rho_0, EXAMINATION, floor=0.5).risk_weight
    assert wide is not None
    np.testing.assert_allclose(wide[:4], 2 * FLOOR * risk_weight[3] / 0.5)


def test_an_unseen_document_is_never_promoted_by_risk_alone() -> None:
    """Where it has more exposure for its floor than any seen one has for its logging exposure, risk lowers it."""
    rng = np.random.default_rng(2)
    tried = 0
    for _ in range(300):
        documents = int(rng.integers(2, 8))
        log = one_interaction(documents, 3)
        logging_scores, scores = rng.normal(size=(2, documents))
        logging_scores[-1] = -np.inf
        rho_0 = exposure(logging_scores, log.offsets, EXAMINATION)
        risk = replace(exposure_crm(log, rho_0, EXAMINATION), reward=np.zeros(documents))
        rho = exposure(scores, log.offsets, EXAMINATION)
        assert rho_0[-1] == 0.0
        if rho[-1] / FLOOR <= np.max(rho[:-1] / np.maximum(rho_0[:-1], FLOOR)):
            continue
        tried += 1
        gradient = replace(risk, accuracy=1e-9).value_and_slope(scores)[1]
        assert gradient[-1] < 0
        step = 1e-4 * gradient / np.abs(gradient).max()
        assert exposure(scores + step, log.offsets, EXAMINATION)[-1] < rho[-1]
    assert tried > 200


def test_the_least_risky_exposure_leaves_an_unseen_document_its_floor() -> None:
    """Of all exposures with the same total, risk is least at rho in proportion to max(rho_0, floor)."""
    rho_0 = np.array([1.0, 0.6, 0.3, 0.0])
    risk = exposure_crm(one_interaction(4, 3), rho_0, EXAMINATION)
    least = 1.9 * np.maximum(rho_0, FLOOR) / (1.9 + FLOOR)
    slope = risk.value_and_row_slope(least)[1]
    np.testing.assert_allclose(slope, slope[0])  # nothing is gained by moving exposure from one to another
    assert least[-1] < FLOOR


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_delta_out_of_range(case: Case, delta: float) -> None:
    with pytest.raises(UsageError):
        exposure_crm(case.statistics, case.flat_rho_0, EXAMINATION, delta=delta)
    with pytest.raises(UsageError):
        action_crm(case.statistics, case.pi_0, delta=delta)


def test_a_smaller_delta_is_a_larger_risk_by_the_root_of_the_odds(case: Case) -> None:
    rho = exposure_of(case.scores)
    squared = [
        exposure_crm(case.statistics, case.flat_rho_0, EXAMINATION, delta=delta).sums(rho)[1] for delta in (0.5, 0.01)
    ]
    assert squared[1] == pytest.approx(99 * squared[0])


def test_an_unknown_constant(case: Case) -> None:
    with pytest.raises(UsageError, match=r"constant 'hoped' is unknown"):
        exposure_crm(case.statistics, case.flat_rho_0, EXAMINATION, constant="hoped")  # type: ignore[arg-type]


def test_a_document_without_any_logging_exposure_needs_a_floor(case: Case) -> None:
    with pytest.raises(UsageError, match="the divergence needs a floor above 0"):
        exposure_crm(case.statistics, np.zeros(case.statistics.documents), EXAMINATION, floor=0.0)
