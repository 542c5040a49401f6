"""Learning from the counts of a log, against the parts that it is made of, each tested by itself elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips, training_clip
from saferank.engine.objectives.naive import naive
from saferank.engine.objectives.risk import Risk
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure, known_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate
from saferank.learning.fit_policy import logged_parts
from saferank.learning.learn import learn
from saferank.learning.methods import METHODS, LoggedPart
from saferank.learning.settings import FitSettings
from saferank.learning.training_loop import fit
from tests.learning.problem import EXAMINATION, SETTINGS, Part, make_part, new_scorer, only_first_queries, parameters

RISK = Risk(delta=0.2, constant="paper")


@pytest.fixture(scope="module")
def part() -> Part:
    return make_part(1)


@pytest.fixture(scope="module")
def parts(part: Part) -> tuple[LoggedPart, LoggedPart]:
    """The part's log to train on, and a smaller one of the same queries to validate with."""
    return logged_parts(part.data, part.log, second_log(part, 9_000), EXAMINATION, RISK)


def second_log(part: Part, interactions: int) -> LogStatistics:
    rng = np.random.default_rng(8)
    return simulate(part.logging_scores, part.data.offsets, part.relevance, EXAMINATION, interactions, rng)


def test_logging_exposure_is_counted_from_both_parts(part: Part, parts: tuple[LoggedPart, LoggedPart]) -> None:
    train, validation = parts
    shown = train.log.shown + validation.log.shown
    issued = (train.log.interactions + validation.log.interactions)[part.data.query_of_document]
    np.testing.assert_allclose(train.logging_exposure, (shown @ EXAMINATION) / issued, rtol=1e-12)
    np.testing.assert_array_equal(validation.logging_exposure, train.logging_exposure)


def test_known_logging_scores_give_the_exact_exposure(part: Part) -> None:
    scores = part.logging_scores.astype(np.float32)
    known, _ = logged_parts(part.data, part.log, second_log(part, 9_000), EXAMINATION, RISK, scores)
    exact = known_logging_exposure(part.logging_scores, part.data.offsets, EXAMINATION)
    np.testing.assert_allclose(known.logging_exposure, exact, rtol=1e-3)


@pytest.mark.parametrize("method", ["naive", "exposure-ips", "exposure-crm"])
def test_learning_is_the_loop_on_the_methods_objectives(method: str, part: Part) -> None:
    """Clipped on the training part, as it is on the validation part, the logging exposure of both together."""
    train, validation = second_log(part, 900), part.log  # so few to train on that clipping matters
    parts = logged_parts(part.data, train, validation, EXAMINATION, RISK)
    rho_0 = estimated_logging_exposure(train.merge(validation), EXAMINATION)
    clip = training_clip(train.total_interactions)
    assert clip == pytest.approx(1 / 3)
    assert all((rho_0[log.clicks > 0] < clip).any() for log in (train, validation))
    objectives = {
        "naive": (naive(train, EXAMINATION), naive(validation, EXAMINATION)),
        "exposure-ips": (
            exposure_ips(train, rho_0, EXAMINATION, clip=clip),
            exposure_ips(validation, rho_0, EXAMINATION),
        ),
        "exposure-crm": (
            exposure_crm(train, rho_0, EXAMINATION, delta=0.2, constant="paper", clip=clip),
            exposure_crm(validation, rho_0, EXAMINATION, delta=0.2, constant="paper"),
        ),
    }[method]
    expected, found = new_scorer(), new_scorer()
    by_hand = fit(expected, part.data, objectives[0], validation=(part.data, objectives[1]), settings=SETTINGS)
    result = learn(found, METHODS[method], *parts, training=SETTINGS)
    assert (result.best_epoch, result.history) == (by_hand.best_epoch, by_hand.history)
    assert parameters(found) == parameters(expected)
    assert parameters(found) != parameters(new_scorer())


def test_it_learns(part: Part, parts: tuple[LoggedPart, LoggedPart]) -> None:
    """From many clicks, more of them: well above the logging policy, whose scores know half of what matters."""
    scorer = new_scorer()
    learn(scorer, METHODS["exposure-crm"], *parts, training=replace(SETTINGS, epochs=10))
    logging = known_logging_exposure(part.logging_scores, part.data.offsets, EXAMINATION)
    utility = float(logging @ part.relevance) / part.data.queries
    assert part.utility(scorer) > 1.1 * utility


def test_a_log_that_teaches_nothing(part: Part) -> None:
    nothing = replace(part.log, clicked=np.zeros_like(part.log.clicked), rankings=None)
    with pytest.raises(DataError, match="part 'validation' of the log has no click"):
        logged_parts(part.data, part.log, nothing, EXAMINATION)
    with pytest.raises(DataError, match="part 'train' of the log has no interaction"):
        logged_parts(part.data, only_first_queries(part.log, 0), part.log, EXAMINATION)


def test_an_unknown_method() -> None:
    with pytest.raises(UsageError, match="exposure-crm"):
        FitSettings(method="magic")
