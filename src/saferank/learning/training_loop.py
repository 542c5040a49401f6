"""The one training loop: any objective, any scorer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.objectives.objective import Objective
from saferank.engine.ragged import flat_rows
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.adam import Adam
from saferank.learning.foresight import Foreseen
from saferank.learning.processes import ALONE, Team, team_of
from saferank.learning.settings import TrainingSettings

Array = NDArray[Any]


@dataclass(frozen=True)
class Epoch:
    """What an epoch ended with; `estimate` and `risk` as last seen on each training query.

    Without a validation objective, `validation` counts up, so that the last epoch is the best.
    """

    epoch: int
    estimate: float
    risk: float
    validation: float


@dataclass(frozen=True, eq=False)
class FitResult:
    """How training went; the scorer that was handed in has the parameters of the best epoch."""

    best_epoch: int
    """Or number of trees."""
    history: tuple[Epoch, ...]
    path: tuple[Foreseen, ...] = ()
    """The policies that were chosen from, if several were foreseen."""
    chosen: Foreseen | None = None
    held_out_scores: NDArray[np.float32] | None = None
    """Scores of the training documents by a policy that did not see clicks on their query; None if there is none."""
    saw_validation: bool = False
    """Whether it was taught by the clicks of the validation part on these documents, so that they cannot judge it."""

    @property
    def worth(self) -> float:
        """The foreseen worth of what was chosen; 0 if nothing was."""
        return 0.0 if self.chosen is None else self.chosen.worth


def fit(
    scorer: torch.nn.Module,
    data: RankingData,
    objective: Objective,
    *,
    validation: tuple[RankingData, Objective] | None = None,
    settings: TrainingSettings = TrainingSettings(),  # noqa: B008 (frozen)
    keep_start: bool = False,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Maximise `objective` over the scorer's parameters, in place, and leave it with those of the best epoch.

    The best epoch is the one with the highest value of the validation objective (the last, if there is none).
    `keep_start` lets the parameters at the start compete too: for a start from a policy that is known to be good.
    The same seed gives the same result, with several processes up to rounding.
    """
    problems = [(data, objective), *([] if validation is None else [validation])]
    with team_of(scorer, problems, settings, keep_start=keep_start) as team:
        return maximise(scorer, problems, settings, team, keep_start=keep_start, progress=progress)


def maximise(
    scorer: torch.nn.Module,
    problems: list[tuple[RankingData, Objective]],
    settings: TrainingSettings,
    team: Team = ALONE,
    *,
    keep_start: bool = False,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Do what `fit` says, as one of a team of processes, all of which do the same; `problems`: train, validation."""
    problem, *judges = (_Problem(*one, team) for one in problems)
    judge, objective = judges[0] if judges else None, problem.objective
    history: list[Epoch] = []
    if len(problem.active) == 0:
        return FitResult(0, ())
    optimizer = Adam(scorer.parameters(), rate=settings.learning_rate, weight_decay=settings.weight_decay)
    rng = np.random.default_rng(settings.seed)
    best_epoch, best_value, best = 0, -math.inf, None
    with one_thread():
        problem.evaluate(scorer)
        if keep_start and judge is not None:
            best_value, best = judge.value(scorer), _copied(scorer)
        while len(history) < settings.epochs and len(history) - best_epoch < settings.patience:
            problem.climb(scorer, optimizer, rng, settings)
            value = judge.value(scorer) if judge is not None else float(len(history))
            sums = problem.sums
            estimate = objective.estimate(sums)
            history.append(Epoch(len(history) + 1, estimate, estimate - objective.value(sums), value))
            if value > best_value:
                best_epoch, best_value, best = len(history), value, _copied(scorer)
            if progress is not None:
                progress(history[-1])
    if best is not None:
        scorer.load_state_dict(best)
    return FitResult(best_epoch, tuple(history))


class _Problem:
    """An objective on its data: steps on mini-batches, and the terms of its sums as last seen on each query."""

    def __init__(self, data: RankingData, objective: Objective, team: Team) -> None:
        if not np.array_equal(data.offsets, objective.offsets):
            raise UsageError("the objective was made from a log of other queries or documents than the features.")
        self.data, self.objective, self.active = data, objective, objective.active
        self.terms = np.zeros((2, data.queries))
        self.team = team

    @property
    def sums(self) -> Array:
        """What the value is made of, each query as last seen."""
        sums: Array = self.terms.sum(axis=1)
        return sums

    def value(self, scorer: torch.nn.Module) -> float:
        """Return the value of the objective at the scorer's parameters."""
        self.evaluate(scorer)
        return self.objective.value(self.sums)

    def evaluate(self, scorer: torch.nn.Module) -> None:
        """Evaluate the terms of every query, without a step."""
        with torch.no_grad():
            for queries in np.array_split(self.active, max(1, len(self.active) // 512)):
                mine = self.team.share(queries)
                self._view(self._scores(scorer, mine).numpy(), mine, queries)

    def climb(
        self,
        scorer: torch.nn.Module,
        optimizer: Adam,
        rng: np.random.Generator,
        settings: TrainingSettings,
    ) -> None:
        """Take the steps of one epoch."""
        per_pass = math.ceil(len(self.active) / settings.batch)
        for _ in range(math.ceil(max(settings.least_steps, 1) / per_pass)):
            for queries in np.array_split(rng.permutation(self.active), per_pass):
                mine = self.team.share(queries)
                scores = self._scores(scorer, mine)
                values = scores.detach().numpy()
                x = self._view(values, mine, queries)
                slope = self.objective.pull_back(values, x, self.objective.slope(x, self.sums, mine), mine)
                gradient = torch.from_numpy((slope * (-len(self.active) / len(queries))).astype(np.float32))
                optimizer.clear_gradients()
                scores.backward(gradient)  # type: ignore[no-untyped-call]
                self.team.add_up_gradients(scorer)
                optimizer.step()

    def _scores(self, scorer: torch.nn.Module, queries: Array) -> torch.Tensor:
        scores: torch.Tensor = scorer(torch.from_numpy(self.data.features[flat_rows(self.data.offsets, queries)]))
        return scores

    def _view(self, scores: Array, mine: Array, queries: Array) -> Array:
        """Return x of this process's share of the queries; the terms are those of all of them."""
        x = self.objective.view(scores, mine)
        self.terms[:, queries] = 0.0
        self.terms[:, mine] = self.objective.terms(x, mine)
        self.terms[:, queries] = self.team.add_up(self.terms[:, queries])
        return x


def _copied(scorer: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in scorer.state_dict().items()}


@contextmanager
def one_thread() -> Iterator[None]:
    """Run PyTorch on one thread: for batches this small, a second one mostly waits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
