from collections.abc import Iterator
from typing import Any

import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.health import Health
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog
from saferank.verdict import log_doubts


@pytest.fixture(autouse=True, scope="module")
def _each_log_diagnosed_once() -> Iterator[None]:
    """Many rankers are judged by the same log; what doctor finds there does not depend on them, but on features."""
    known: list[tuple[AggregatedLog, dict[str, Any], Health]] = []

    def diagnosed(log: AggregatedLog, features: RankingData | None = None, **options: Any) -> Health:
        if features is not None:
            return diagnose(log, features, **options)
        for one, given, health in known:
            if one is log and given == options:
                return health
        known.append((log, options, diagnose(log, **options)))
        return known[-1][2]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_doubts, "diagnose", diagnosed)
        yield
