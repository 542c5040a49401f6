"""Learning from the counts of a log, against the parts that it is made of, each tested by itself elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips, training_clip
from saferank.engine.objectives.naive import naive
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure, known_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate
from saferank.learning.learn_from_log import METHODS, LearningSettings, LoggedParts, learn_from_log
from saferank.learning.training_loop import fit
from tests.learning.problem import EXAMINATION, SETTINGS, Part, make_part, new_scorer, only_first_queries, parameters


@pytest.fixture(scope="module")
def part() -> Part:
    return make_part(1)


@pytest.fixture(scope="module")
def parts(part: Part) -> LoggedParts:
    """The part's log to train on, and a smaller one of the same queries to validate with."""
    return LoggedParts.of(part.log, second_log(part, 9_000), EXAMINATION)


def second_log(part: Part, interactions: int) -> LogStatistics:
    rng = np.random.default_rng(8)
    return simulate(part.logging_scores, part.data.offsets, part.relevance, EXAMINATION, interactions, rng)


def test_logging_exposure_is_counted_from_both_parts(part: Part, parts: LoggedParts) -> None:
    shown = parts.train.shown + parts.validation.shown
    issued = (parts.train.interactions + parts.validation.interactions)[part.data.query_of_document]
    np.testing.assert_allclose(parts.logging_exposure, (shown @ EXAMINATION) / issued, rtol=1e-12)
    assert parts.ever_shown.all() == (shown.sum(axis=1) > 0).all()


def test_known_logging_scores_give_the_exact_exposure(part: Part) -> None:
    known = LoggedParts.of(
        part.log, second_log(part, 9_000), EXAMINATION, logging_scores=part.logging_scores.astype(np.float32)
    )
    exact = known_logging_exposure(part.logging_scores, part.data.offsets, EXAMINATION)
    np.testing.assert_allclose(known.logging_exposure, exact, rtol=1e-3)


def test_click_rate(parts: LoggedParts) -> None:
    for part, log in (("train", parts.train), ("validation", parts.validation)):
        assert parts.click_rate(part) == log.clicked.sum() / log.interactions.sum()


@pytest.mark.parametrize("method", METHODS)
def test_learning_is_the_loop_on_the_methods_objectives(method: str, part: Part, parts: LoggedParts) -> None:
    """Clipped on the training part, as it is on the validation part, the logging exposure of both together."""
    rho_0 = estimated_logging_exposure(parts.train.merge(parts.validation), EXAMINATION)
    clip = training_clip(parts.train.total_interactions)
    assert 0 < clip < 1
    objectives = {
        "naive": (naive(parts.train), naive(parts.validation)),
        "exposure-ips": (exposure_ips(parts.train, rho_0, clip=clip), exposure_ips(parts.validation, rho_0)),
        "exposure-crm": (
            exposure_crm(parts.train, rho_0, EXAMINATION, delta=0.2, bound="paper", clip=clip),
            exposure_crm(parts.validation, rho_0, EXAMINATION, delta=0.2, bound="paper"),
        ),
    }[method]
    expected, found = new_scorer(), new_scorer()
    by_hand = fit(
        expected, part.data, objectives[0], EXAMINATION, validation=(part.data, objectives[1]), settings=SETTINGS
    )
    settings = LearningSettings(method=method, delta=0.2, bound="paper", training=SETTINGS)
    result = learn_from_log(found, part.data, parts, settings)
    assert result == by_hand
    assert parameters(found) == parameters(expected)
    assert parameters(found) != parameters(new_scorer())


def test_it_learns(part: Part, parts: LoggedParts) -> None:
    """From many clicks, more of them: well above the logging policy, whose scores know half of what matters."""
    scorer = new_scorer()
    learn_from_log(scorer, part.data, parts, LearningSettings(training=replace(SETTINGS, epochs=10)))
    logging = known_logging_exposure(part.logging_scores, part.data.offsets, EXAMINATION)
    utility = float(logging @ part.relevance) / part.data.queries
    assert part.utility(scorer) > 1.1 * utility


def test_a_log_that_teaches_nothing(part: Part) -> None:
    nothing = replace(part.log, clicked=np.zeros_like(part.log.clicked), rankings=None)
    with pytest.raises(DataError, match="part 'validation' of the log has no click on these documents; there is"):
        LoggedParts.of(part.log, nothing, EXAMINATION)
    with pytest.raises(DataError, match="part 'train' of the log has no interaction with these queries; log more"):
        LoggedParts.of(only_first_queries(part.log, 0), part.log, EXAMINATION)


def test_an_unknown_method() -> None:
    with pytest.raises(UsageError, match="method 'magic' is unknown; choose from: naive, exposure-ips, exposure-crm"):
        LearningSettings(method="magic")
