"""Training in several processes gives what one process gives."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from saferank.engine.errors import SaferankError, UsageError
from saferank.learning.processes import Team
from saferank.learning.settings import FitSettings, TrainingSettings
from saferank.learning.training_loop import Epoch, fit
from tests.learning.problem import SETTINGS, Part, new_scorer, only_first_queries


def test_two_processes_learn_what_one_does(train: Part, validation: Part) -> None:
    """With a risk, which is the root of a sum over all queries: every process needs all of it at every step."""
    settings = replace(SETTINGS, epochs=3)
    judge = validation.data, validation.objective("exposure-crm")
    alone, together = new_scorer(), new_scorer()
    told: list[Epoch] = []
    one = fit(alone, train.data, train.objective("exposure-crm"), validation=judge, settings=settings, keep_start=True)
    two = fit(
        together, train.data, train.objective("exposure-crm"), validation=judge,
        settings=replace(settings, processes=2), keep_start=True, progress=told.append,
    )  # fmt: skip
    assert (one.best_epoch, len(told)) == (two.best_epoch, 3)
    np.testing.assert_allclose([e.validation for e in two.history], [e.validation for e in one.history], rtol=1e-4)
    for mine, theirs in zip(alone.parameters(), together.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)
    assert not torch.distributed.is_initialized()


def test_a_log_of_one_query_needs_no_other_process(train: Part) -> None:
    """Nobody would have a query to work on."""
    one = replace(train, log=only_first_queries(train.log, 1))
    together: list[bool] = []
    fit(
        new_scorer(), one.data, one.objective("exposure-ips"), settings=replace(SETTINGS, processes=4),
        progress=lambda _: together.append(torch.distributed.is_initialized()),
    )  # fmt: skip
    assert together
    assert not any(together)


@pytest.mark.engines
def test_a_process_that_dies_is_an_error(train: Part) -> None:
    import multiprocessing

    def kill(_: Epoch) -> None:
        for process in multiprocessing.active_children():
            os.kill(process.pid or 0, signal.SIGKILL)

    with pytest.raises(SaferankError, match="2 processes"):
        fit(
            new_scorer(), train.data, train.objective("exposure-ips"),
            settings=replace(SETTINGS, epochs=50, processes=2), progress=kill,
        )  # fmt: skip
    assert not torch.distributed.is_initialized()


def test_shares_are_whole_queries_and_cover_all() -> None:
    queries = np.arange(11)
    shares = [Team(place, 3).share(queries) for place in range(3)]
    assert sorted(np.concatenate(shares)) == list(queries)


def test_wrong_numbers_of_processes() -> None:
    for processes in (0, TrainingSettings.batch + 1):
        with pytest.raises(UsageError):
            TrainingSettings(processes=processes)
    with pytest.raises(UsageError):
        FitSettings(scorer="gbdt", training=TrainingSettings(processes=2))
