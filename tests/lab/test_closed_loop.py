"""The closed loop on a world of a few queries."""

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.datasets.synthetic import synthetic_dataset
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LoggedRankings
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import with_ids
from saferank.lab.closed_loop import Round, closed_loop
from saferank.lab.end_to_end import production_policy, true_utility
from saferank.learning.settings import FitSettings, TrainingSettings
from saferank.report.closed_loop_figure import closed_loop_figure
from tests.lab.small_world import one_thread, small_world


@pytest.fixture(scope="module")
def data() -> RankingData:
    return with_ids(synthetic_dataset("small").train)


@pytest.fixture(scope="module")
def rounds(data: RankingData) -> dict[str, list[Round]]:
    training = TrainingSettings(epochs=1, least_steps=1)
    with one_thread():
        return {
            method: closed_loop(
                small_world(), data, settings=FitSettings(method=method, scorer="mlp", training=training),
                certified=certified, rounds=2, interactions=3_000, seed=0,
            )
            for method, certified in (("exposure-crm", True), ("exposure-ips", False))
        }  # fmt: skip


def test_what_is_live_changes_only_with_a_certificate(rounds: dict[str, list[Round]], data: RankingData) -> None:
    world = small_world()
    live = true_utility(production_policy(world, data), world, data)
    assert live == pytest.approx(float(exposure_of_logging() @ world.relevance("train")) / data.queries, rel=1e-3)
    for one in rounds["exposure-crm"]:
        assert one.verdict in ("DEPLOY", "KEEP", "MORE DATA")
        assert one.utility == pytest.approx(one.candidate if one.verdict == "DEPLOY" else live)
        assert (one.lower >= 0) == (one.verdict == "DEPLOY")
        live = one.utility


def exposure_of_logging() -> NDArray[np.float64]:
    world = small_world()
    return exposure(world.logging_scores["train"], world.train.offsets, world.click_model.examination)


def test_blindly_everything_goes_live(rounds: dict[str, list[Round]]) -> None:
    for one in rounds["exposure-ips"]:
        assert one.utility == one.candidate
        assert one.verdict == "not asked"


def test_the_figure_has_a_panel_for_each_size(rounds: dict[str, list[Round]]) -> None:
    utilities = [one.utility for one in rounds["exposure-crm"]]
    figure = closed_loop_figure({("CRM, certified", 10, 0): utilities, ("IPS, blindly", 500, 0): utilities}).to_dict()
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
