"""The closed loop on a world of a few queries."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from benchmarks.closed_loop import CERTIFIED, NOT_YET, NOTHING_NEW, Round, closed_loop, closed_loop_figure
from numpy.typing import NDArray

from saferank.datasets.synthetic import synthetic_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LoggedRankings
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import with_ids
from saferank.lab.end_to_end import production_policy, true_utility
from saferank.lab.world import World
from saferank.learning.fit_policy import FittedPolicy, fit_policy
from saferank.learning.settings import FitSettings
from saferank.logs.aggregated_log import AggregatedLog
from tests.lab.small_world import one_thread, small_world


@pytest.fixture(scope="module")
def data() -> RankingData:
    return with_ids(synthetic_dataset("small").train)


@pytest.fixture(scope="module")
def rounds(data: RankingData) -> dict[str, list[Round]]:
    with one_thread():
        return {
            way: closed_loop(
                small_world(), data, settings=FitSettings(method=method), certified=certified, rounds=count,
                interactions=4_000, seed=0,
            )
            for way, method, certified, count in (
                (CERTIFIED, "auto", True, 2), ("IPS, blindly", "exposure-ips", False, 1)
            )
        }  # fmt: skip


def test_what_is_live_changes_only_with_a_certificate(rounds: dict[str, list[Round]], data: RankingData) -> None:
    world = small_world()
    live = true_utility(production_policy(world, data), world, data)
    assert live == pytest.approx(float(exposure_of_logging() @ world.relevance("train")) / data.queries, rel=1e-3)
    verdicts = [one.verdict for one in rounds[CERTIFIED]]
    assert set(verdicts) <= {"DEPLOY", "KEEP", "MORE DATA", NOTHING_NEW, NOT_YET}
    for one in rounds[CERTIFIED]:
        assert one.utility == pytest.approx(one.candidate if one.verdict == "DEPLOY" else live)
        assert (one.lower >= 0) == (one.verdict == "DEPLOY")
        live = one.utility


def exposure_of_logging() -> NDArray[np.float64]:
    world = small_world()
    return exposure(world.logging_scores["train"], world.train.offsets, world.click_model.examination)


@pytest.fixture(scope="module")
def steep_world() -> World:
    """One in which clicks say much about relevance."""
    model = PositionBasedModel(relevance_slope=0.2, relevance_noise=0.05)
    return replace(small_world(), click_model=model)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What every call of `fit_policy` was given."""
    made: list[dict[str, Any]] = []

    def fit(log: AggregatedLog, *arguments: Any, earlier: list[AggregatedLog], **options: Any) -> FittedPolicy:
        made.append({"log": log, "earlier": list(earlier)})
        return fit_policy(log, *arguments, earlier=earlier, **options)

    monkeypatch.setattr("saferank.lab.end_to_end.fit_policy", fit)
    return made


def test_logs_are_pooled_while_a_policy_is_live_and_teach_afterwards(
    steep_world: World, data: RankingData, calls: list[dict[str, Any]]
) -> None:
    with one_thread():
        done = closed_loop(
            steep_world, data, settings=FitSettings(), certified=True, rounds=4, interactions=8_000, seed=0
        )
    verdicts = [one.verdict for one in done]
    assert "DEPLOY" in verdicts[:-1]
    assert len({*verdicts} - {"DEPLOY"}) > 0
    start = true_utility(production_policy(steep_world, data), steep_world, data)
    assert all(after >= before for before, after in pairwise([start, *(one.utility for one in done)]))
    size = 0
    before: list[str] = []
    for call, one in zip(calls, done, strict=True):
        size += 8_000
        parts = call["log"].manifest["parts"]
        assert sum(part["interactions"] for part in parts.values()) == size
        assert parts["certify"]["interactions"] == pytest.approx(0.5 * size, rel=0.05)
        assert [log.source for log in call["earlier"]] == before
        if one.verdict == "DEPLOY":
            before, size = [*before, call["log"].source], 0


def test_blindly_everything_goes_live(rounds: dict[str, list[Round]]) -> None:
    for one in rounds["IPS, blindly"]:
        assert one.utility == one.candidate
        assert one.verdict == "not asked"


def test_the_figure_has_a_panel_for_each_size(rounds: dict[str, list[Round]]) -> None:
    utilities = [one.utility for one in rounds[CERTIFIED]]
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
