"""The closed loop on a world of a few queries."""

import numpy as np
import pytest

from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LoggedRankings
from saferank.lab.closed_loop import Round, closed_loop, start_utility
from saferank.learning.training_loop import TrainingSettings
from saferank.report.closed_loop_figure import closed_loop_figure
from tests.lab.small_world import one_thread, small_world


@pytest.fixture(scope="module")
def rounds() -> dict[str, list[Round]]:
    with one_thread():
        return {
            method: closed_loop(
                small_world(), method=method, certified=certified, rounds=2, interactions=3_000, seed=0,
                training=TrainingSettings(epochs=1, least_steps=1),
            )
            for method, certified in (("exposure-crm", True), ("exposure-ips", False))
        }  # fmt: skip


def test_what_is_live_changes_only_with_a_certificate(rounds: dict[str, list[Round]]) -> None:
    live = start_utility(small_world())
    for one in rounds["exposure-crm"]:
        assert one.verdict in ("DEPLOY", "MORE DATA")
        assert one.utility == pytest.approx(one.candidate if one.verdict == "DEPLOY" else live)
        assert (one.lower >= 0) == (one.verdict == "DEPLOY")
        live = one.utility


def test_blindly_everything_goes_live(rounds: dict[str, list[Round]]) -> None:
    for one in rounds["exposure-ips"]:
        assert one.utility == one.candidate
        assert one.verdict == "not asked"


def test_the_figure_has_a_panel_for_each_size(rounds: dict[str, list[Round]]) -> None:
    utilities = [one.utility for one in rounds["exposure-crm"]]
    figure = closed_loop_figure({("CRM, certified", 10, 0): utilities, ("IPS, blindly", 500, 0): utilities}).to_dict()
    assert [panel["title"] for panel in figure["hconcat"]] == ["10 interactions a round", "500 interactions a round"]


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
