"""The closed loop on a world of a few queries."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank.datasets.dataset import Dataset
from saferank.datasets.synthetic import synthetic_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LoggedRankings
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import with_ids
from saferank.lab.closed_loop import NOT_YET, NOTHING_NEW, Round, closed_loop
from saferank.lab.end_to_end import production_policy, true_utility
from saferank.lab.world import World, make_world, prepare
from saferank.learning.fit_policy import FittedPolicy, fit_policy
from saferank.learning.settings import FitSettings
from saferank.logs.aggregated_log import AggregatedLog
from saferank.report.closed_loop_figure import CERTIFIED, closed_loop_figure
from tests.lab.small_world import one_thread

INTERACTIONS = 8_000


@pytest.fixture(scope="module")
def world() -> World:
    """A quarter of `synthetic:small`, with clicks that say much about relevance."""
    small = synthetic_dataset("small")
    quarter = Dataset(small.name, *(split.subset(np.arange(split.queries // 4)) for split in splits(small)))
    model = PositionBasedModel(relevance_slope=0.2, relevance_noise=0.05)
    with one_thread():
        return make_world(prepare(quarter), seed=1, fraction=0.1, click_model=model)


def splits(dataset: Dataset) -> tuple[RankingData, ...]:
    return dataset.train, dataset.validation, dataset.test


@pytest.fixture(scope="module")
def data(world: World) -> RankingData:
    return with_ids(synthetic_dataset("small").train.subset(np.arange(world.train.queries)))


class Fit(NamedTuple):
    """What a call of `fit_policy` was given."""

    log: AggregatedLog
    earlier: list[AggregatedLog]


Certified = tuple[list[Round], list[Fit]]


@pytest.fixture(scope="module")
def certified(world: World, data: RankingData) -> Certified:
    """The certified loop, round by round, and the calls of `fit_policy`."""
    calls: list[Fit] = []

    def fit(log: AggregatedLog, *arguments: Any, earlier: list[AggregatedLog], **options: Any) -> FittedPolicy:
        calls.append(Fit(log, list(earlier)))
        return fit_policy(log, *arguments, earlier=earlier, **options)

    with one_thread(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("saferank.lab.closed_loop.fit_policy", fit)
        done = closed_loop(
            world, data, settings=FitSettings(), certified=True, rounds=4, interactions=INTERACTIONS, seed=0
        )
    return done, calls


def test_what_is_live_changes_only_with_a_certificate(certified: Certified, world: World, data: RankingData) -> None:
    live = true_utility(production_policy(world, data), world, data)
    rho = exposure(world.logging_scores["train"], world.train.offsets, world.click_model.examination)
    assert live == pytest.approx(float(rho @ world.relevance("train")) / data.queries, rel=1e-3)
    verdicts = [one.verdict for one in certified[0]]
    assert set(verdicts) <= {"DEPLOY", "KEEP", "MORE DATA", NOTHING_NEW, NOT_YET}
    assert "DEPLOY" in verdicts[:-1]
    assert len({*verdicts} - {"DEPLOY"}) > 0
    for one in certified[0]:
        assert one.utility == pytest.approx(one.candidate if one.verdict == "DEPLOY" else live)
        assert one.utility >= live
        assert (one.lower >= 0) == (one.verdict == "DEPLOY")
        live = one.utility


def test_logs_are_pooled_while_a_policy_is_live_and_teach_afterwards(certified: Certified) -> None:
    size = 0
    before: list[str] = []
    for one, call in zip(*certified, strict=True):
        size += INTERACTIONS
        parts = call.log.manifest["parts"]
        assert sum(part["interactions"] for part in parts.values()) == size
        assert parts["certify"]["interactions"] == pytest.approx(0.5 * size, rel=0.05)
        assert [log.source for log in call.earlier] == before
        if one.verdict == "DEPLOY":
            before, size = [*before, call.log.source], 0


def test_blindly_everything_goes_live(world: World, data: RankingData) -> None:
    with one_thread():
        (one,) = closed_loop(
            world,
            data,
            settings=FitSettings(method="exposure-ips"),
            certified=False,
            rounds=1,
            interactions=500,
            seed=0,
        )
    assert one.utility == one.candidate
    assert one.verdict == "not asked"


def test_the_figure_has_a_panel_for_each_size() -> None:
    utilities = [0.4, 0.5]
    figure = closed_loop_figure({(CERTIFIED, 10, 0): utilities, ("IPS, blindly", 500, 0): utilities}).to_dict()
    assert [panel["title"] for panel in figure["hconcat"]] == [
        "10 interactions per round",
        "500 interactions per round",
    ]


def test_patterns_of_single_interactions() -> None:
    rankings = LoggedRankings(
        query=np.array([0, 1, 0, 1, 1]),
        ranking=np.array([[0, 1], [1, 0], [1, 0], [2, 1], [0, 2]]),
        clicks=np.array([[1, 1], [0, 0], [0, 0], [0, 1], [0, 0]]),
    )
    patterns = ClickPatterns.of_rankings(rankings, np.array([0, 2, 5]))
    found = {
        (int(query), tuple(sorted(patterns.documents[start:end].tolist()))): int(count)
        for query, start, end, count in zip(
            patterns.query, patterns.offsets, patterns.offsets[1:], patterns.interactions, strict=False
        )
    }
    assert found == {(0, (0, 1)): 1, (1, (3,)): 1, (0, ()): 1, (1, ()): 2}
    assert patterns.total_interactions == 5
