"""A problem small enough to learn in a moment: relevance is a weighted sum of four features."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.objectives.objective import Objective
from saferank.engine.objectives.skyline import skyline
from saferank.engine.plackett_luce import exposure
from saferank.engine.propensity.logging_exposure import known_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.simulate import simulate
from saferank.learning.methods import METHODS, LoggedPart
from saferank.learning.settings import TrainingSettings
from saferank.policy.scorers import make_scorer, score

EXAMINATION = np.array([1.0, 0.5, 0.25])
FEATURES = 4
SETTINGS = TrainingSettings(epochs=4, patience=4, batch=10, least_steps=10, learning_rate=0.05)
OBJECTIVES = (*(name for name, method in METHODS.items() if method.objective is not None), "skyline")


@dataclass(frozen=True, eq=False)
class Part:
    """Queries, their true relevance, and the clicks that a weak logging policy got on them."""

    data: RankingData
    relevance: NDArray[np.float64]
    logging_scores: NDArray[np.float64]
    log: LogStatistics

    def objective(self, name: str) -> Objective:
        rho_0 = known_logging_exposure(self.logging_scores, self.data.offsets, EXAMINATION)
        if name == "skyline":
            return skyline(self.relevance, self.data.offsets, EXAMINATION)
        made = METHODS[name].objective
        assert made is not None
        return made(LoggedPart(self.data, self.log, EXAMINATION, rho_0, relevance=self.relevance))

    def utility(self, scorer: torch.nn.Module) -> float:
        """Expected clicks of an interaction under the scorer's policy."""
        rho = exposure(score(scorer, self.data.features), self.data.offsets, EXAMINATION)
        return float(rho @ self.relevance) / self.data.queries


def make_part(seed: int, queries: int = 40, interactions: int = 40_000) -> Part:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 8, queries)
    features = rng.normal(size=(lengths.sum(), FEATURES)).astype(np.float32)
    data = RankingData(features, np.cumsum([0, *lengths]))
    relevance = 1 / (1 + np.exp(-2 * features @ [1.0, -1.0, 0.5, 0.0]))
    logging_scores = features @ [0.3, -0.3, -0.3, 0.3]
    log = simulate(logging_scores, data.offsets, relevance, EXAMINATION, interactions, rng, keep_rankings=200)
    return Part(data, relevance, logging_scores, log)


def only_first_queries(log: LogStatistics, issued: int) -> LogStatistics:
    """Forget all interactions of the other queries."""
    other = log.query_of_document >= issued
    shown, clicked = log.shown.copy(), log.clicked.copy()
    shown[other] = clicked[other] = 0
    interactions = np.where(np.arange(log.queries) < issued, log.interactions, 0)
    return replace(log, interactions=interactions, shown=shown, clicked=clicked, rankings=None)


def new_scorer(name: str = "linear", seed: int = 5) -> torch.nn.Module:
    return make_scorer(name, FEATURES, seed=seed)


def parameters(scorer: torch.nn.Module) -> bytes:
    """All parameters, to compare bit by bit."""
    return b"".join(tensor.numpy().tobytes() for tensor in scorer.state_dict().values())
