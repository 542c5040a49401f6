"""The closed loop on a world of a few queries."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.closed_loop import (
    CERTIFIED,
    NOT_YET,
    NOTHING_NEW,
    WORTH_A_LOOK,
    Round,
    _verdict,
    closed_loop,
    closed_loop_figure,
)

from saferank.datasets.dataset import Dataset
from saferank.datasets.synthetic import synthetic_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LoggedRankings
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import with_ids
from saferank.lab.end_to_end import production_policy, true_utility
from saferank.lab.world import World, make_world, prepare
from saferank.learning.settings import FitSettings
from saferank.learning.training_loop import one_thread
from saferank.logs.aggregated_log import AggregatedLog
from saferank.policy.policy import Policy


@pytest.fixture(scope="module")
def world() -> World:
    """An eighth of `synthetic:small`, with clicks that say much about relevance."""
    small = synthetic_dataset("small")
    part = Dataset(small.name, *(split.subset(np.arange(split.queries // 8)) for split in splits(small)))
    model = PositionBasedModel(relevance_slope=0.2, relevance_noise=0.05)
    with one_thread():
        return make_world(prepare(part), seed=1, fraction=0.1, click_model=model)


def splits(dataset: Dataset) -> tuple[RankingData, ...]:
    return dataset.train, dataset.validation, dataset.test


@pytest.fixture(scope="module")
def data(world: World) -> RankingData:
    return with_ids(synthetic_dataset("small").train.subset(np.arange(world.train.queries)))


@pytest.fixture(scope="module")
def loop(world: World, data: RankingData) -> Callable[[int, int], list[Round]]:
    def run(rounds: int, interactions: int) -> list[Round]:
        with one_thread():
            return closed_loop(
                world, data, settings=FitSettings(), certified=True, explore=True, rounds=rounds,
                interactions=interactions, seed=0,
            )  # fmt: skip

    return run


@pytest.mark.usefixtures("short_training")
def test_what_is_live_changes_only_with_a_certificate(
    loop: Callable[[int, int], list[Round]], world: World, data: RankingData
) -> None:
    before = true_utility(production_policy(world, data), world, data)
    rho = exposure(world.logging_scores["train"], world.train.offsets, world.click_model.examination)
    assert before == pytest.approx(float(rho @ world.relevance("train")) / data.queries, rel=1e-3)
    first, second = loop(2, 5_000)
    assert first.verdict == "DEPLOY"
    assert first.lower >= 0
    assert first.candidate > first.utility > before  # flatter than what was learned, and better than what was live
    assert first.temperature > 1.0
    assert second.utility >= first.utility
    assert second.verdict == "DEPLOY" or second.utility == first.utility
    assert (second.lower >= 0) == (second.verdict == "DEPLOY")
    (few,) = loop(1, 300)
    assert few.verdict in ("KEEP", "MORE DATA", NOTHING_NEW, NOT_YET)
    assert few.utility == pytest.approx(before)


def test_logs_are_pooled_while_a_policy_is_live_and_teach_afterwards(
    loop: Callable[[int, int], list[Round]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is learned, and the verdicts are given."""
    given = iter(["MORE DATA", "DEPLOY", "KEEP", "DEPLOY"])
    sizes, held_out, earlier_sources, sources = [], [], [], []

    def fit(log: AggregatedLog, *_: Any, start: Policy, earlier: list[AggregatedLog], **__: Any) -> Any:
        parts = log.manifest["parts"]
        sizes.append(sum(part["interactions"] for part in parts.values()))
        held_out.append(parts["certify"]["interactions"])
        earlier_sources.append([one.source for one in earlier])
        sources.append(log.source)
        return SimpleNamespace(policy=replace(start, manifest={"training": {"chosen": None}}))

    monkeypatch.setattr("saferank.lab.end_to_end.fit_policy", fit)
    monkeypatch.setattr("benchmarks.closed_loop._verdict", lambda *_: (next(given), 0.0, 1.0))
    loop(4, 1_000)
    assert sizes == [1_000, 2_000, 1_000, 2_000]
    assert earlier_sources == [[], [], sources[1:2], sources[1:2]]
    np.testing.assert_allclose(held_out, 0.5 * np.array(sizes), rtol=0.1)


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({"best_epoch": 0, "chosen": None}, NOTHING_NEW),
        ({"best_epoch": 3, "chosen": {"chance": WORTH_A_LOOK - 0.01}}, NOT_YET),
        ({"best_epoch": 3, "chosen": {"chance": WORTH_A_LOOK}}, "asked"),
        ({"best_epoch": 3, "chosen": None}, "asked"),
    ],
)
def test_held_out_data_is_looked_at_only_if_a_proof_is_likely(
    training: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = SimpleNamespace(verdict=SimpleNamespace(value="asked"), lower=0.0, temperature=1.0)
    monkeypatch.setattr("benchmarks.closed_loop.certify_learned", lambda *_, **__: answer)
    policy: Any = SimpleNamespace(manifest={"training": training})
    nothing: Any = None
    assert _verdict(policy, nothing, nothing, nothing, nothing, [], nothing, False)[0] == expected


@pytest.mark.usefixtures("short_training")
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
