"""What `fit` foresees, against the truth: where there is little to gain, and where there is much."""

from copy import deepcopy

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.plackett_luce import exposure
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.simulate import simulate
from saferank.learning.evidence import find_evidence
from saferank.learning.learn import choose
from saferank.learning.logged_parts import logged_parts
from saferank.learning.start import logging_model
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees

QUERIES, DOCUMENTS, INTERACTIONS = 200, 15, 8_000
EXAMINATION = 1 / np.arange(1, 6) ** 0.7


@pytest.mark.parametrize(("noise", "sharpness", "too_high", "too_low"), [(0.2, 2.5, 0.02, 0.02), (1.5, 1.0, 0.02, 0.1)])
def test_what_is_foreseen_is_not_better_than_the_truth(
    noise: float, sharpness: float, too_high: float, too_low: float
) -> None:
    """The ranker knows more of the documents than the features tell, and is nearly the best, or far from it.

    In shares of the clicks of the current ranker.
    """
    rng = np.random.default_rng(1)
    offsets = np.arange(0, QUERIES * DOCUMENTS + 1, DOCUMENTS)
    features = rng.normal(size=(offsets[-1], 6)).astype(np.float32)
    told = features[:, 0] + 0.7 * np.tanh(2 * features[:, 1]) + 0.5 * features[:, 2] * features[:, 3]
    value = 0.7 * told + 0.7 * rng.normal(size=len(told))
    relevance = 1 / (1 + np.exp(1.5 - value))
    ranker = (sharpness * (value + noise * rng.normal(size=len(told)))).astype(np.float32)
    data = RankingData(features, offsets)
    logs = [
        simulate(ranker, offsets, relevance, EXAMINATION, round(share * INTERACTIONS), np.random.default_rng(part))
        for part, share in enumerate((0.6, 0.2))
    ]
    train, validation = logged_parts(data, logs[0], logs[1], EXAMINATION)
    start = logging_model("gbdt", train, validation)
    assert isinstance(start, Trees)
    learned = deepcopy(start)
    foreseen = choose(learned, find_evidence(start, train, validation), train, validation, seed=0).chosen
    assert foreseen is not None
    issued = logs[0].merge(logs[1]).interactions[data.query_of_document]

    def clicks(scores: NDArray[np.float32]) -> float:
        return DOCUMENTS * float((exposure(scores, offsets, EXAMINATION) * relevance) @ issued) / float(issued.sum())

    now = clicks(ranker)
    truth = clicks(score(learned, features)) / now - 1
    assert truth - too_low < foreseen.improvement / now < truth + too_high
