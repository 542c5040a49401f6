"""What training takes the logging policy to show."""

from typing import Any

import numpy as np
import pytest

from saferank.engine.errors import UsageError
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure, known_logging_exposure
from saferank.lab.simulate import simulate
from saferank.learning.fit_policy import fit_policy
from saferank.learning.learn import for_training
from saferank.learning.logged_parts import logged_parts
from saferank.learning.logging_policy import training_exposure
from saferank.learning.methods import LoggedPart
from saferank.learning.settings import FitSettings
from tests.learning.problem import EXAMINATION, Part, make_part, parameters
from tests.learning.small_log import DATA, LOG, PART, QUICK


def logged(part: Part, scores: Any, interactions: int, *, known: bool = False) -> tuple[LoggedPart, LoggedPart]:
    train, validation = (
        simulate(scores, part.data.offsets, part.relevance, EXAMINATION, size, np.random.default_rng([3, size]))
        for size in (interactions, interactions // 2)
    )
    given = scores.astype(np.float32) if known else None
    return logged_parts(part.data, train, validation, EXAMINATION, logging_scores=given)


@pytest.fixture(scope="module")
def part() -> Part:
    return make_part(2, queries=200)


def test_a_model_is_nearer_than_few_displays_where_the_features_explain_the_ranker(part: Part) -> None:
    scores = 5 * part.logging_scores
    parts = logged(part, scores, 400)
    found = training_exposure("modelled", *parts, None, kind="linear")
    assert found.kind == "modelled"
    truth = known_logging_exposure(scores, part.data.offsets, EXAMINATION)
    error, counted_error = (np.abs(rho - truth).mean() for rho in (found.exposure, parts[0].logging_exposure))
    assert error < 0.7 * counted_error
    assert found.exposure.min() > 0


def test_without_scores_it_is_counted_unless_a_model_is_asked_for(part: Part) -> None:
    parts = logged(part, part.logging_scores, 900)
    found = training_exposure("auto", *parts, None, kind="linear")
    assert found.kind == "counted"
    np.testing.assert_array_equal(found.exposure, parts[0].logging_exposure)


@pytest.mark.parametrize(("wanted", "kind"), [("auto", "known"), ("known", "known"), ("counted", "counted")])
def test_scores_that_are_given_are_used_unless_counts_are_asked_for(part: Part, wanted: Any, kind: str) -> None:
    train, validation = logged(part, part.logging_scores, 900, known=True)
    found = training_exposure(wanted, train, validation, None, kind="linear")
    assert found.kind == kind
    counted = estimated_logging_exposure(train.log.merge(validation.log), EXAMINATION)
    np.testing.assert_array_equal(found.exposure, train.logging_exposure if kind == "known" else counted)


def test_known_without_scores_is_refused(part: Part) -> None:
    parts = logged(part, part.logging_scores, 900)
    with pytest.raises(UsageError, match="`logging_scores`"):
        training_exposure("known", *parts, None, kind="linear")
    with pytest.raises(UsageError, match="`logging_scores`"):
        fit_policy(LOG, DATA, EXAMINATION, FitSettings(logging_policy="known"))
    with pytest.raises(UsageError, match="guessed"):
        FitSettings(logging_policy="guessed")  # type: ignore[arg-type]


def test_objectives_are_made_from_it_and_the_comparison_is_not() -> None:
    fitted = {
        way: fit_policy(
            LOG,
            DATA,
            EXAMINATION,
            FitSettings(method="exposure-ips", scorer="linear", training=QUICK, logging_policy=way),
        )
        for way in ("counted", "modelled")
    }
    one, two = (fitted[way].policy for way in ("counted", "modelled"))
    assert parameters(one.scorer) != parameters(two.scorer)
    assert fitted["counted"].comparison[0] == fitted["modelled"].comparison[0]
    for way, made in fitted.items():
        settings = made.policy.manifest["settings"]
        assert settings["logging_exposure"] == way
        assert settings["logging_policy"]["asked"] == way
    assert two.manifest["settings"]["logging_policy"]["modelled"].keys() == {"log_likelihood", "strength"}


def test_a_part_without_another_exposure_is_as_it_was() -> None:
    train, _ = logged(PART, PART.logging_scores, 900)
    assert for_training(train) is train
