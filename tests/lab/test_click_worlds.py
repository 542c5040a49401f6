"""Worlds whose clicks are not those that learners assume: what is clicked, how often, and on which queries."""

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.ragged import query_sums
from saferank.lab.click_worlds import CLICK_WORLDS
from saferank.lab.paper_methods import simulate_logs, true_clicks
from saferank.lab.world import World
from tests.lab.small_world import small_world

N = 400_000


def click_rates(world: World, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Clicks and impressions by (label, rank), and interactions by query, of the training part."""
    log = simulate_logs(world, N, 0, CLICK_WORLDS[name]).train
    labels = world.train.require_labels().astype(np.int64)
    clicked, shown = (np.zeros((labels.max() + 1, log.cutoff)) for _ in range(2))
    np.add.at(clicked, labels, log.clicked)
    np.add.at(shown, labels, log.shown)
    return clicked, shown, log.interactions.astype(np.float64)


def relevance(world: World) -> NDArray[np.float64]:
    return world.click_model.relevance(np.arange(world.train.require_labels().max() + 1))


@pytest.mark.parametrize("name", CLICK_WORLDS)
def test_what_is_clicked(name: str) -> None:
    world = small_world()
    clicked, shown, _ = click_rates(world, name)
    examination, ranks = world.click_model.examination, np.arange(1.0, 6.0)
    by_label = relevance(world)[::-1] if name == "adversarial" else relevance(world)
    expected = np.multiply.outer(by_label, examination)
    if name == "trust-bias":  # relevant: 0.98; irrelevant: 0.65 / k
        expected = examination * (0.98 * by_label[:, None] + 0.65 / ranks * (1.0 - by_label[:, None]))
    enough = shown > 100
    assert enough.sum() > 10
    error = np.sqrt(expected * (1.0 - expected) / np.maximum(shown, 1.0))
    assert (np.abs(clicked / np.maximum(shown, 1.0) - expected)[enough] < 5.0 * error[enough]).all()


def test_traffic_and_validation() -> None:
    world = small_world()
    _, _, even = click_rates(world, "position-based")
    _, _, tail = click_rates(world, "tail")
    assert even.max() < 1.2 * even.mean()
    queries = world.train.queries
    harmonic = (1.0 / np.arange(1, queries + 1)).sum()
    expected = N / harmonic / np.arange(1, queries + 1)
    assert (np.abs(tail - expected) < 5.0 * np.sqrt(expected) + 1.0).all()
    few = CLICK_WORLDS["small-validation"].of(world)
    assert few.validation.queries == max(1, round(0.05 * world.validation.queries))
    assert len(few.logging_scores["validation"]) == few.validation.documents
    np.testing.assert_array_equal(few.validation.features, world.validation.features[: few.validation.documents])


def test_true_clicks_go_by_labels_whatever_was_clicked() -> None:
    world = small_world()
    traffic = CLICK_WORLDS["tail"].traffic(world.train.queries)
    assert traffic is not None
    log = simulate_logs(world, N, 1).train
    per_query = query_sums(log.clicks, log.offsets) / log.interactions
    for shares in (None, traffic):
        found = true_clicks(world.logging_scorer, world, shares)
        weights = np.full(len(per_query), 1.0 / len(per_query)) if shares is None else shares
        error = np.sqrt((weights**2 * per_query / log.interactions).sum())
        assert abs(found - weights @ per_query) < 5.0 * error
