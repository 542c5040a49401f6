"""The training loop: it learns, keeps the best epoch, and is the same for a seed."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from saferank.engine.errors import UsageError
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.exposure_objective import ACCURACY, ExposureObjective
from saferank.engine.objectives.naive import naive
from saferank.engine.objectives.objective import Array, Objective
from saferank.engine.plackett_luce import exposure, pl_rank_3_gradient, reinforce_gradient
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.sampled_gradient import Estimator, SampledGradient
from saferank.learning.adam import Adam
from saferank.learning.training_loop import Epoch, fit
from saferank.policy.scorers import score
from tests.learning.problem import (
    EXAMINATION,
    OBJECTIVES,
    SETTINGS,
    Part,
    new_scorer,
    only_first_queries,
    parameters,
)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_it_learns(train: Part, validation: Part, name: str) -> None:
    scorer = new_scorer()
    best = float(np.mean([_best_utility(validation, query) for query in range(validation.data.queries)]))
    start = validation.utility(scorer)
    judge = validation.data, validation.objective(name)
    result = fit(scorer, train.data, train.objective(name), validation=judge, settings=SETTINGS)
    learned = validation.utility(scorer)
    assert learned - start > 0.5 * (best - start)
    values = [epoch.validation for epoch in result.history]
    assert result.best_epoch == 1 + int(np.argmax(values))
    assert _value(scorer, *judge) == pytest.approx(max(values), rel=1e-3)


@pytest.mark.parametrize("estimator", [reinforce_gradient, pl_rank_3_gradient])
def test_it_learns_by_sampled_gradients_too_each_in_its_own_way(
    train: Part, validation: Part, estimator: Estimator
) -> None:
    def run(samples: int) -> bytes:
        objective = train.objective("exposure-crm")
        assert isinstance(objective, ExposureObjective)
        sampled = SampledGradient.of(objective, estimator, samples, np.random.default_rng(1))
        scorer = new_scorer()
        start = validation.utility(scorer)
        fit(scorer, train.data, sampled, settings=SETTINGS)
        assert validation.utility(scorer) > start + 0.05
        return parameters(scorer)

    exact = new_scorer()
    fit(exact, train.data, train.objective("exposure-crm"), settings=SETTINGS)
    assert len({run(5), run(5), run(30), parameters(exact)}) == 3


def _best_utility(part: Part, query: int) -> float:
    rows = slice(part.data.offsets[query], part.data.offsets[query + 1])
    top = np.sort(part.relevance[rows])[::-1][: len(EXAMINATION)]
    return float(top @ EXAMINATION[: len(top)])


def _value(scorer: torch.nn.Module, data: RankingData, objective: Objective) -> float:
    scores = score(scorer, data.features).astype(np.float64)
    return objective.value_and_slope(scores)[0]


@pytest.mark.parametrize("scorer_name", ["linear", "mlp"])
@pytest.mark.parametrize("name", ["exposure-crm", "action-crm"])
def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(train: Part, name: str, scorer_name: str) -> None:
    def run(seed: int) -> bytes:
        scorer = new_scorer(scorer_name)
        settings = replace(SETTINGS, epochs=2, learning_rate=0.01, seed=seed)
        fit(scorer, train.data, train.objective(name), settings=settings)
        return parameters(scorer)

    assert run(0) == run(0)
    assert run(0) != run(1)


def test_the_history_tells_the_sums_of_the_objective(train: Part) -> None:
    """With a step too small to move anything, they are those at the start."""
    scorer = new_scorer()
    objective = train.objective("exposure-crm")
    settings = replace(SETTINGS, epochs=1, learning_rate=1e-12)
    (epoch,) = fit(scorer, train.data, objective, validation=(train.data, objective), settings=settings).history
    rho = exposure(score(scorer, train.data.features), train.data.offsets, EXAMINATION)
    assert epoch.estimate == pytest.approx(float(objective.sums(rho)[0]), rel=1e-3)
    assert epoch.risk == pytest.approx(math.sqrt(objective.sums(rho)[1]), rel=1e-3)
    assert epoch.validation == pytest.approx(epoch.estimate - epoch.risk, rel=1e-6)


def test_every_step_knows_the_sums_of_all_queries(train: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first one on: with steps too small to move anything, they are those at the start."""
    seen: list[Array] = []
    slope = ExposureObjective.slope

    def told(self: ExposureObjective, x: Array, sums: Array, queries: Array) -> Array:
        seen.append(sums)
        return slope(self, x, sums, queries)

    monkeypatch.setattr(ExposureObjective, "slope", told)
    objective, scorer = train.objective("exposure-crm"), new_scorer()
    fit(scorer, train.data, objective, settings=replace(SETTINGS, epochs=1, learning_rate=1e-12))
    rho = exposure(score(scorer, train.data.features), train.data.offsets, EXAMINATION)
    assert len(seen) == 12  # 40 queries, ten at a time, passed over three times
    np.testing.assert_allclose(seen, np.tile(objective.sums(rho), (12, 1)), rtol=1e-3)


def test_the_best_epoch_is_restored_not_the_last(train: Part) -> None:
    """The validation objective likes the opposite of what is learned: it is at its best after the first epoch."""
    objective = train.objective("skyline")
    assert isinstance(objective, ExposureObjective)
    opposite = replace(objective, reward=-objective.reward)
    scorer = new_scorer()
    seen: list[Epoch] = []
    result = fit(
        scorer,
        train.data,
        objective,
        validation=(train.data, opposite),
        settings=replace(SETTINGS, epochs=20, patience=3),
        progress=seen.append,
    )
    assert result.history == tuple(seen)
    assert [epoch.epoch for epoch in seen] == [1, 2, 3, 4]  # the best, and three that are no better
    assert result.best_epoch == 1
    values = [epoch.validation for epoch in seen]
    assert values[0] == max(values) > values[-1] + 0.01
    assert _value(scorer, train.data, opposite) == pytest.approx(values[0], rel=1e-3)
    one = new_scorer()
    fit(one, train.data, objective, settings=replace(SETTINGS, epochs=1, patience=3))
    assert parameters(scorer) == parameters(one)


def test_without_validation_the_last_epoch_is_kept(train: Part) -> None:
    objective = train.objective("naive")
    result = fit(new_scorer(), train.data, objective, settings=replace(SETTINGS, patience=1))
    assert len(result.history) == result.best_epoch == SETTINGS.epochs


def test_it_trains_on_one_thread_and_leaves_the_callers_setting_alone(train: Part) -> None:
    before, during = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        told = lambda _: during.append(torch.get_num_threads())  # noqa: E731
        fit(new_scorer(), train.data, train.objective("naive"), settings=SETTINGS, progress=told)
        assert set(during) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_good_start_is_kept_if_asked_for(train: Part) -> None:
    objective = train.objective("skyline")
    scorer = new_scorer()
    fit(scorer, train.data, objective, settings=replace(SETTINGS, epochs=10))
    good, value = parameters(scorer), train.utility(scorer)
    wild = replace(SETTINGS, learning_rate=30.0, epochs=2)
    bad = replace(objective, reward=-objective.reward)
    judge = train.data, objective
    result = fit(scorer, train.data, bad, validation=judge, settings=wild, keep_start=True)
    assert result.best_epoch == 0
    assert parameters(scorer) == good
    result = fit(scorer, train.data, bad, validation=judge, settings=wild)
    assert result.best_epoch > 0
    assert train.utility(scorer) < value - 0.1


def test_queries_without_interactions_are_not_touched(train: Part) -> None:
    """Their features are not numbers: one look at them, and no score would be."""
    features = train.data.features.copy()
    features[train.data.offsets[25] :] = np.nan
    blank = RankingData(features, train.data.offsets, check_finite=False)
    log = only_first_queries(train.log, issued=25)
    objective = exposure_ips(log, np.full(log.documents, 0.2), EXAMINATION)
    first, second = new_scorer(), new_scorer()
    fit(first, train.data, objective, validation=(train.data, objective), settings=SETTINGS)
    fit(second, blank, objective, validation=(blank, objective), settings=SETTINGS)
    assert np.isfinite(score(second, train.data.features)).all()
    assert parameters(first) == parameters(second) != parameters(new_scorer())


def test_a_log_without_interactions_leaves_the_scorer_alone(train: Part) -> None:
    scorer = new_scorer()
    before = parameters(scorer)
    empty = naive(only_first_queries(train.log, issued=0), EXAMINATION)
    result = fit(scorer, train.data, empty, settings=SETTINGS)
    assert (result.best_epoch, result.history) == (0, ())
    assert parameters(scorer) == before


def test_no_epoch_leaves_the_scorer_alone(train: Part) -> None:
    scorer = new_scorer()
    result = fit(scorer, train.data, train.objective("naive"), settings=replace(SETTINGS, epochs=0))
    assert (result.best_epoch, result.history) == (0, ())
    assert parameters(scorer) == parameters(new_scorer())


def test_a_validation_log_without_interactions_still_lets_it_train(train: Part) -> None:
    nothing = naive(only_first_queries(train.log, issued=0), EXAMINATION)
    settings = replace(SETTINGS, patience=2, epochs=10)
    objective = train.objective("naive")
    result = fit(new_scorer(), train.data, objective, validation=(train.data, nothing), settings=settings)
    assert [epoch.validation for epoch in result.history] == [0.0, 0.0, 0.0]


def test_few_queries_are_passed_over_as_often_as_the_least_steps_ask_for(
    train: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    step = Adam.step

    def counted(self: Adam) -> None:
        steps.append(1)
        step(self)

    monkeypatch.setattr(Adam, "step", counted)
    objective = train.objective("naive")  # 40 queries
    for batch, least, expected in ((10, 0, 4), (10, 4, 4), (10, 5, 8), (16, 1, 3), (100, 7, 7)):
        steps.clear()
        settings = replace(SETTINGS, epochs=1, batch=batch, least_steps=least)
        fit(new_scorer(), train.data, objective, settings=settings)
        assert len(steps) == expected


def test_objective_and_features_must_be_of_the_same_documents(train: Part, validation: Part) -> None:
    message = "the objective was made from a log of other queries or documents than the features"
    with pytest.raises(UsageError, match=message):
        fit(new_scorer(), validation.data, train.objective("naive"), settings=SETTINGS)
    wrong = train.data, validation.objective("naive")
    with pytest.raises(UsageError, match=message):
        fit(new_scorer(), train.data, train.objective("naive"), validation=wrong, settings=SETTINGS)


def test_why_the_accuracy_is_a_tolerance_and_not_a_number_of_nodes() -> None:
    """Scores that spread in training outgrow a fixed grid: exposure then appears from nowhere, or is lost."""
    offsets, total = np.array([0, 10]), 1.0 + 0.5 + 0.25
    narrow, wide = (np.linspace(0, spread, 10, dtype=np.float32) for spread in (2, 200))
    tolerance = ACCURACY
    for scores in (narrow, wide):
        assert exposure(scores, offsets, EXAMINATION, tolerance=tolerance).sum() == pytest.approx(total, rel=tolerance)
    assert exposure(narrow, offsets, EXAMINATION, nodes=16).sum() == pytest.approx(total, rel=tolerance)
    assert abs(exposure(wide, offsets, EXAMINATION, nodes=16).sum() / total - 1) > 0.05
