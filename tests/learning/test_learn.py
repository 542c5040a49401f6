"""Learning from the counts of a log, against the parts that it is made of, each tested by itself elsewhere."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips, training_clip
from saferank.engine.objectives.naive import naive
from saferank.engine.objectives.objective import Objective
from saferank.engine.objectives.risk import Risk
from saferank.engine.plackett_luce import exposure
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure, known_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.features.schema import FeatureSchema
from saferank.lab.simulate import simulate
from saferank.learning.boosting import boost
from saferank.learning.climb import STOPS, climb
from saferank.learning.correction import correct
from saferank.learning.evidence import find_evidence
from saferank.learning.foresight import most_worth
from saferank.learning.learn import LIKELY, learn, queries_come_again
from saferank.learning.logged_parts import logged_parts
from saferank.learning.methods import METHODS, LoggedPart
from saferank.learning.relevance import Sample, fit_relevance
from saferank.learning.settings import FitSettings, StopBy, TrainingSettings
from saferank.learning.training_loop import fit
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees
from tests.learning.problem import (
    EXAMINATION,
    FEATURES,
    SETTINGS,
    Part,
    make_part,
    new_scorer,
    only_first_queries,
    parameters,
)
from tests.shops import World, make_shop, noisy

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


@pytest.mark.parametrize("method", ["doubly-robust", "direct"])
def test_methods_that_need_relevance_get_it_from_other_queries(
    method: str, part: Part, parts: tuple[LoggedPart, LoggedPart]
) -> None:
    seen: list[LoggedPart] = []
    made = METHODS[method].objective
    assert made is not None

    def told(one: LoggedPart) -> Objective:
        seen.append(one)
        return made(one)

    scorer = new_scorer()
    learn(scorer, replace(METHODS[method], objective=told), *parts, training=SETTINGS)
    model = fit_relevance([Sample(part.data, parts[0].log.merge(parts[1].log), EXAMINATION)])
    expected = np.clip(model.cross_fitted(0, part.data), 0, 1)
    assert [one.log for one in seen] == [one.log for one in parts]
    for one in seen:
        np.testing.assert_array_equal(one.relevance, expected)
    assert np.corrcoef(expected, part.relevance)[0, 1] > 0.8
    assert part.utility(scorer) > part.utility(new_scorer())


@pytest.mark.parametrize("method", ["doubly-robust", "direct"])
def test_without_a_regression_there_is_no_objective(method: str, parts: tuple[LoggedPart, LoggedPart]) -> None:
    made = METHODS[method].objective
    assert made is not None
    with pytest.raises(UsageError):
        made(parts[0])


@pytest.mark.parametrize("method", ["auto", "correction"])
@pytest.mark.parametrize("scorer", ["linear", "mlp"])
def test_what_grows_trees_needs_them(method: str, scorer: str, parts: tuple[LoggedPart, LoggedPart]) -> None:
    with pytest.raises(UsageError, match="gbdt"):
        learn(new_scorer(scorer), METHODS[method], *parts)


def test_trees_are_boosted_on_the_clipped_objective(part: Part) -> None:
    parts = logged_parts(part.data, second_log(part, 900), part.log, EXAMINATION, RISK)
    rho_0, clip = parts[0].logging_exposure, training_clip(900)
    found, expected = Trees(FEATURES), Trees(FEATURES)
    learn(found, METHODS["exposure-ips"], *parts)
    judge = part.data, exposure_ips(part.log, rho_0, EXAMINATION)
    objective = exposure_ips(parts[0].log, rho_0, EXAMINATION, clip=clip)
    boost(expected, part.data, objective, validation=judge)
    assert found.forest.trees > 0
    assert parameters(found) == parameters(expected)


# Correction, path of trees or gain bound: what `auto` chooses


def in_a_shop(interactions: int, *, sampled: bool, scale: float = 1.0) -> tuple[LoggedPart, LoggedPart, Trees]:
    """A log of a ranker that draws its rankings, or shows the same one again and again."""
    rng = np.random.default_rng(3)
    shop = make_shop(rng, queries=60, documents=8, cutoff=3)
    world = World(shop, noisy(shop, rng, sampled=sampled, scale=scale))
    log = world.draw(interactions, rng).aggregated(rng)
    data = shop.features(rng)
    logs = [log.statistics(part, data) for part in ("train", "validation")]
    prepared = FeatureSchema.of(data).prepare(data)
    start = replace(prepared, features=np.column_stack([prepared.features, world.logging.flat]), feature_names=None)
    train, validation = logged_parts(start, logs[0], logs[1], shop.examination)
    return train, validation, Trees(start.features.shape[1], "column")


def test_auto_falls_back_to_the_gain_bound_where_rankings_do_not_vary() -> None:
    train, validation, scorer = in_a_shop(8_000, sampled=False, scale=4.0)
    assert np.mean(train.logging_exposure > 0) == pytest.approx(3 / 8)  # the same three documents, always
    expected, by_correction = deepcopy(scorer), deepcopy(scorer)
    correction = correct(by_correction, find_evidence(by_correction, train, validation))
    result = learn(scorer, METHODS["auto"], train, validation)
    assert correction.chosen is not None
    assert correction.chosen.chance < LIKELY
    climbed = climb(deepcopy(expected), find_evidence(expected, train, validation))
    assert climbed.worth == 0  # no policy on the path is likely to be proven
    assert [one.name for one in result.path] == [one.name for one in (*correction.path, *climbed.path, result.path[-1])]
    assert result.path[-1].name == "gain-bound"
    assert result.chosen == result.path[-1]
    assert result.chosen.worth > correction.chosen.worth
    assert result.held_out_scores is None
    learn(expected, METHODS["gain-bound"], train, validation)
    assert parameters(scorer) == parameters(expected) != parameters(by_correction)


def test_auto_climbs_where_rankings_vary_and_queries_come_again() -> None:
    train, validation, scorer = in_a_shop(8_000, sampled=True)
    expected, by_correction = deepcopy(scorer), deepcopy(scorer)
    result = learn(scorer, METHODS["auto"], train, validation)
    assert result.chosen is not None
    assert result.chosen.chance >= LIKELY
    assert result.chosen.worth > correct(by_correction, find_evidence(by_correction, train, validation)).worth
    assert "gain-bound" not in {one.name for one in result.path}
    climb(expected, find_evidence(expected, train, validation))
    assert parameters(scorer) == parameters(expected)


def test_a_path_ends_where_it_cannot_be_worth_enough_any_more() -> None:
    train, validation, scorer = in_a_shop(8_000, sampled=True)
    evidence = find_evidence(scorer, train, validation)
    whole = climb(deepcopy(scorer), evidence)
    for to_beat in (0.0, 0.9 * whole.worth):  # within reach: nothing changes
        assert climb(deepcopy(scorer), evidence, to_beat=to_beat).path == whole.path
    given_up = climb(deepcopy(scorer), evidence, to_beat=2.0 * whole.worth).path
    assert given_up == whole.path[: len(given_up)]
    assert len(given_up) < len(whole.path)
    first, last = given_up[-2:]
    left = len(STOPS) - len(given_up)
    assert most_worth(last.gain + left * (last.gain - first.gain)) < 2.0 * whole.worth


def by_query(train: LoggedPart, validation: LoggedPart) -> tuple[LoggedPart, LoggedPart]:
    """Both parts with every second query, train with the first, validation with the others."""
    return tuple(  # type: ignore[return-value]
        replace(part, log=only_queries(part.log, np.arange(part.log.queries) % 4 // 3 == place))
        for place, part in enumerate((train, validation))
    )


def only_queries(log: LogStatistics, chosen: NDArray[np.bool_]) -> LogStatistics:
    there = chosen[log.query_of_document][:, None]
    return replace(
        log, interactions=np.where(chosen, log.interactions, 0), shown=log.shown * there, clicked=log.clicked * there,
        rankings=None,
    )  # fmt: skip


def test_auto_corrects_where_whole_queries_are_held_out() -> None:
    train, validation, scorer = in_a_shop(60_000, sampled=True)
    train, validation = by_query(train, validation)
    assert not queries_come_again(train, validation)
    expected = deepcopy(scorer)
    result = learn(scorer, METHODS["auto"], train, validation)
    assert result.chosen is not None
    correct(expected, find_evidence(expected, train, validation))
    assert parameters(scorer) == parameters(expected)


def test_correction_takes_the_largest_gain() -> None:
    train, validation, scorer = in_a_shop(8_000, sampled=False, scale=4.0)
    result = learn(scorer, METHODS["correction"], train, validation)
    assert result.chosen == max(result.path, key=lambda one: one.gain)


def test_auto_keeps_trees_that_are_worth_more_than_the_gain_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """However unlikely its proof."""
    monkeypatch.setattr("saferank.learning.learn.LIKELY", 2.0)
    train, validation, scorer = in_a_shop(8_000, sampled=True)
    expected = deepcopy(scorer)
    result = learn(scorer, METHODS["auto"], train, validation)
    climb(expected, find_evidence(expected, train, validation))
    bound = result.path[-1]
    assert bound.name == "gain-bound"
    assert result.chosen is not None
    assert result.chosen.worth >= bound.worth
    assert parameters(scorer) == parameters(expected)


def test_a_log_that_teaches_nothing(part: Part) -> None:
    nothing = replace(part.log, clicked=np.zeros_like(part.log.clicked), rankings=None)
    with pytest.raises(DataError, match="part 'validation' of the log has no click"):
        logged_parts(part.data, part.log, nothing, EXAMINATION)
    with pytest.raises(DataError, match="part 'train' of the log has no interaction"):
        logged_parts(part.data, only_first_queries(part.log, 0), part.log, EXAMINATION)


def test_an_unknown_method() -> None:
    with pytest.raises(UsageError, match="exposure-crm"):
        FitSettings(method="magic")


@pytest.mark.parametrize("name", ["naive", "exposure-ips", "exposure-crm", "gain-bound"])
def test_early_stopping_looks_at_the_methods_objective_or_at_the_clicks_of_ips(
    name: str, parts: tuple[LoggedPart, LoggedPart]
) -> None:
    """By hand: the validation value of the one epoch, at the parameters that it ended with."""
    train, validation = parts
    exposure_of_best = {}
    stop_by: StopBy
    for stop_by in ("objective", "clicks"):
        settings = TrainingSettings(epochs=1, least_steps=5, stop_by=stop_by)
        scorer = new_scorer()
        (epoch,) = learn(scorer, METHODS[name], train, validation, training=settings).history
        rho = exposure(score(scorer, validation.data.features), validation.data.offsets, EXAMINATION)
        exposure_of_best[stop_by] = rho
        clicks = float((rho * validation.log.clicks / np.maximum(validation.logging_exposure, 1e-12)).sum())
        clicks /= validation.log.total_interactions
        is_clicks = epoch.validation == pytest.approx(clicks, rel=1e-3)
        assert is_clicks == (stop_by == "clicks" or name == "exposure-ips")
    np.testing.assert_array_equal(exposure_of_best["objective"], exposure_of_best["clicks"])
