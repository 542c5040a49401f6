"""An aggregated log of the small problem, with features by name."""

from dataclasses import replace

import numpy as np

from saferank.features.load_features import with_ids
from saferank.lab.simulate import simulate
from tests.learning.aggregated import aggregated_log
from tests.learning.problem import EXAMINATION, SETTINGS, make_part

NAMES = ("a", "b", "c", "d")
QUICK = replace(SETTINGS, seed=4)
PART = make_part(1)
DATA = with_ids(replace(PART.data, feature_names=NAMES, source="features.parquet"))
LOGS = {
    part: simulate(
        PART.logging_scores, DATA.offsets, PART.relevance, EXAMINATION, size, np.random.default_rng([6, size])
    )
    for part, size in (("train", 6_000), ("validation", 2_000), ("certify", 2_001))
}
LOG = aggregated_log(DATA, LOGS)
