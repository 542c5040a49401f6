"""A true curve agrees, a wrong one is contradicted, and a log that does not vary cannot tell."""

import numpy as np
import pytest

from saferank.doctor.examination_check import examination_check
from saferank.engine.types.log_statistics import LogStatistics

TRUE = np.array([1.0, 0.8, 0.65, 0.5, 0.4, 0.3])


def counts(seed: int, *, queries: int = 40, times: int = 20, fixed: bool = False) -> LogStatistics:
    """Six documents per query, each shown about `times` times at every rank, or at one only."""
    rng = np.random.default_rng(seed)
    relevance = rng.uniform(0.05, 0.6, (queries * 6, 1))
    if fixed:
        shown = np.tile(np.diag([times * 6] * 6), (queries, 1))
    else:
        latin = np.array([[(rank + document) % 6 for rank in range(6)] for document in range(6)])
        shown = np.stack([rng.multinomial(times * 6, [1 / 6] * 6) for _ in range(queries)])[:, latin].reshape(-1, 6)
    clicked = rng.binomial(shown, TRUE * relevance)
    return LogStatistics(np.arange(0, queries * 6 + 1, 6), np.full(queries, times * 6), shown, clicked)


def test_a_true_curve_agrees() -> None:
    found = [examination_check(counts(seed), 0.9 * TRUE) for seed in range(100)]
    assert sum(one.status != "agrees" for one in found) <= 2
    deviates = np.array([one.z for one in found])
    # clicks given their number vary less than the multinomial that the test takes them for
    assert -1.0 < deviates.mean() < 5 / np.sqrt(100)
    assert deviates.std() < 1.2


def test_errors_are_those_of_the_estimate() -> None:
    found = [examination_check(counts(seed)) for seed in range(100)]
    off = np.array([np.log(one.curve / TRUE)[1:] / one.error[1:] for one in found])
    assert 0.6 < off.std() < 1.1


@pytest.mark.parametrize("power", [0.5, 1.5])
def test_a_wrong_curve_is_contradicted(power: float) -> None:
    found = examination_check(counts(0), TRUE**power)
    assert found.status == "contradicted"
    assert found.worst_rank is not None
    assert found.worst_rank >= 3
    assert found.z > 5.0


def test_a_slightly_wrong_curve_passes_however_large_the_log() -> None:
    found = examination_check(counts(0, queries=200, times=2_000), TRUE * [1, 0.95, 0.95, 0.95, 0.95, 0.95])
    assert found.status == "agrees"
    assert found.z > 5.0


def test_what_cannot_be_checked() -> None:
    fixed = examination_check(counts(0, fixed=True), TRUE)
    assert (fixed.status, fixed.z, fixed.documents) == ("unchecked", 0.0, 0)
    small = examination_check(counts(0, queries=8, times=2), TRUE)
    assert small.status == "unchecked"
    assert small.worst_rank is not None
    assert np.argmax(small.error) == small.worst_rank
    assert examination_check(counts(0)).status == "agrees"


def test_ranks_that_are_never_looked_at() -> None:
    never = examination_check(counts(0), np.array([1.0, 0.8, 0.65, 0.5, 0.4, 0.0]))
    assert (never.status, never.worst_rank) == ("contradicted", 5)
    one = LogStatistics(np.array([0, 2]), np.array([10]), np.array([[6], [4]]), np.array([[3], [1]]))
    assert examination_check(one, np.array([1.0])).status == "agrees"
