"""Lists that end at clicks are found; lists that are short for another reason are left alone."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.list_ends import ListEnds, list_ends
from saferank.doctor.log_arrays import SampledImpressions
from tests.shops import noisy_world

RANKS, QUERIES, DOCUMENTS = 5, 20, 7
EXAMINATION = 1.0 / np.arange(1, RANKS + 1)


def sample_of(click: NDArray[np.bool_], ranking: NDArray[np.int64], length: NDArray[np.int64]) -> SampledImpressions:
    """The first `length` rows of each impression."""
    kept = np.arange(RANKS) < length[:, None]
    return SampledImpressions(
        offsets=np.concatenate([[0], np.cumsum(length)]),
        document=ranking[kept],
        rank=np.broadcast_to(np.arange(RANKS), ranking.shape)[kept],
        click=click[kept].astype(np.float64),
        period=np.zeros(kept.sum(), np.int64),
    )


def lists(
    rng: np.random.Generator, impressions: int = 6_000, often: float | NDArray[np.float64] = 1.0
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Rankings drawn at random, and position-based clicks on them, `often` times as many."""
    relevance = rng.uniform(0.1, 0.5, QUERIES * DOCUMENTS)
    query = rng.integers(0, QUERIES, impressions)
    ranking = query[:, None] * DOCUMENTS + rng.random((impressions, DOCUMENTS)).argsort(axis=1)[:, :RANKS]
    chance = EXAMINATION * relevance[ranking] * np.reshape(often, (-1, 1))
    return rng.random(chance.shape) < chance, ranking


@pytest.mark.parametrize("rule", ["only what was seen is logged", "only up to the last click"])
def test_lists_that_end_at_clicks_are_found(rule: str) -> None:
    rng = np.random.default_rng(0)
    click, ranking = lists(rng)
    if rule == "only up to the last click":
        length = np.where(click.any(axis=1), RANKS - click[:, ::-1].argmax(axis=1), RANKS)
    else:
        stops = (click & (rng.random(click.shape) < 0.5)) | (rng.random(click.shape) < 0.05)
        length = np.where(stops.any(axis=1), stops.argmax(axis=1) + 1, RANKS)
    found = list_ends(sample_of(click, ranking, length))
    assert found.significant
    assert found.ratio > 1.5


def test_short_lists_of_other_reasons_do_no_harm() -> None:
    """Lengths are those of the screen, or of how far a user scrolls; users of small screens click twice as often."""
    deviates = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        phone = rng.random(6_000) < 0.5
        click, ranking = lists(rng, often=np.where(phone, 1.6, 0.8))
        length = np.where(phone, 3, RANKS) if seed % 2 else np.minimum(rng.geometric(0.2, 6_000), RANKS)
        deviates.append(list_ends(sample_of(click, ranking, length)).z)
    assert max(deviates) < 4.0
    assert abs(np.mean(deviates)) < 5.0 / np.sqrt(40)


def test_lists_of_one_document_have_nothing_above_them() -> None:
    """Their users click more often; no other row of such a list tells whether they do so everywhere."""
    rng = np.random.default_rng(3)
    single = rng.random(6_000) < 0.5
    click, ranking = lists(rng, often=np.where(single, 1.6, 0.8))
    assert not list_ends(sample_of(click, ranking, np.where(single, 1, RANKS))).significant


def test_nothing_to_compare() -> None:
    rng = np.random.default_rng(1)
    click, ranking = lists(rng, 200)
    assert list_ends(None) == ListEnds()
    assert list_ends(sample_of(click, ranking, np.full(200, RANKS))) == ListEnds()
    assert list_ends(sample_of(click & False, ranking, rng.integers(1, RANKS + 1, 200))) == ListEnds()


def test_a_verdict_is_refused() -> None:
    drawn = noisy_world(queries=20).draw(3_000, np.random.default_rng(2))
    lengths = np.where(drawn.clicks.any(axis=1), drawn.clicks.shape[1] - drawn.clicks[:, ::-1].argmax(axis=1), 9)
    up_to_the_last_click = drawn.table().filter((np.arange(drawn.clicks.shape[1]) < lengths[:, None]).ravel())
    health = diagnose(up_to_the_last_click, em=False, replicates=2)
    assert "lists-end-at-clicks" in {finding.code for finding in health.blocking}
    assert not replace(health.list_ends, ratio=1.2).significant
