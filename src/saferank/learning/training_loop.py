"""The one training loop: any objective, any scorer, the gradient exact or sampled."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.objectives.action_objective import ActionObjective
from saferank.engine.objectives.exposure_objective import ExposureObjective, root_slope
from saferank.engine.plackett_luce.exact import exposure, exposure_vjp
from saferank.engine.plackett_luce.gradients import pl_rank_3_gradient, reinforce_gradient
from saferank.engine.plackett_luce.sampling import sample_rankings
from saferank.engine.ragged import flat_rows
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.checkpoint import load_checkpoint, save_checkpoint
from saferank.learning.early_stopping import EarlyStopping
from saferank.learning.one_thread import one_thread

Array = NDArray[Any]
Objective = ExposureObjective | ActionObjective
Gradient = Literal["exact", "reinforce", "pl-rank"]


@dataclass(frozen=True)
class TrainingSettings:
    """How to climb; `benchmarks/training.py` measures what the settings do."""

    epochs: int = 20
    patience: int = 5
    """Epochs without a better validation value after which training stops."""
    batch: int = 32
    """Queries a step."""
    least_steps: int = 50
    """Steps an epoch has at least: a log of few queries is passed over several times."""
    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    gradient: Gradient = "exact"
    samples: int = 100
    """Rankings a query for the sampled gradients."""
    tolerance: float = 1e-3
    """Of exposure and gradient. A tolerance, never a fixed number of nodes: scores spread during training, and a
    policy soon learns to live off the error of a grid that is too coarse for them."""
    seed: int = 0


@dataclass(frozen=True)
class Epoch:
    """What an epoch ended with; `estimate` and `risk` as last seen on each training query.

    Without a validation objective, `validation` counts up, so that the last epoch is the best.
    """

    epoch: int
    estimate: float
    risk: float
    validation: float


@dataclass(frozen=True)
class FitResult:
    """How training went; the scorer that was handed in has the parameters of the best epoch."""

    best_epoch: int
    history: tuple[Epoch, ...]


@one_thread()
def fit(
    scorer: torch.nn.Module,
    data: RankingData,
    objective: Objective,
    examination: Array,
    *,
    validation: tuple[RankingData, Objective] | None = None,
    settings: TrainingSettings = TrainingSettings(),  # noqa: B008 (frozen)
    keep_start: bool = False,
    checkpoint: Path | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Maximise `objective` over the scorer's parameters, in place, and leave it with those of the best epoch.

    The best epoch is the one with the highest value of the validation objective (the last, if there is none).
    `keep_start` lets the parameters at the start compete too: for a start from a policy that is known to be good.
    With `checkpoint`, each epoch is written there, and a run that finds one of the same settings, objectives and
    start goes on from it; the same seed gives the same result, interrupted or not.
    """
    if settings.gradient not in ("exact", "reinforce", "pl-rank"):
        raise UsageError(f"gradient {settings.gradient!r} is unknown; choose exact, reinforce or pl-rank.")
    problem = _Problem(data, objective, np.asarray(examination, np.float64), settings)
    judge = None if validation is None else _Problem(*validation, problem.examination, settings)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    stopping = EarlyStopping(settings.patience)
    history: list[Epoch] = []
    rng = np.random.default_rng(settings.seed)
    if len(problem.active) == 0:
        return FitResult(0, ())
    fingerprint = "" if checkpoint is None else _fingerprint(scorer, problem, judge, keep_start)
    run = _Run(scorer, optimizer, stopping, history, rng, problem, fingerprint)
    done = run.resume(checkpoint)
    if not history:
        problem.look(scorer)
        if keep_start and judge is not None:
            stopping.update(0, judge.value(scorer), scorer.state_dict())
    while not done and len(history) < settings.epochs:
        problem.climb(scorer, optimizer, rng)
        value = judge.value(scorer) if judge is not None else float(len(history))
        history.append(Epoch(len(history) + 1, problem.estimate, math.sqrt(max(problem.squared_risk, 0.0)), value))
        done = stopping.update(len(history), value, scorer.state_dict())
        run.save(checkpoint, done)
        if progress is not None:
            progress(history[-1])
    if stopping.best:  # not after zero epochs
        scorer.load_state_dict(stopping.best)
    return FitResult(stopping.best_epoch, tuple(history))


class _Problem:
    """An objective on its data: gradients on mini-batches, and both of its sums as last seen on each query."""

    def __init__(self, data: RankingData, objective: Objective, examination: Array, settings: TrainingSettings) -> None:
        if not np.array_equal(data.offsets, objective.offsets):
            raise UsageError("the objective was made from a log of other queries or documents than the features.")
        self.data, self.objective, self.examination, self.settings = data, objective, examination, settings
        self.active = objective.active
        self.estimates, self.squared = np.zeros(data.queries), np.zeros(data.queries)

    @property
    def estimate(self) -> float:
        """The linear part of the value, each query as last seen."""
        return float(self.estimates.sum())

    @property
    def squared_risk(self) -> float:
        """The sum under the root, each query as last seen."""
        return float(self.squared.sum())

    def value(self, scorer: torch.nn.Module) -> float:
        """Return the value of the objective at the scorer's parameters."""
        self.look(scorer)
        return self.estimate - math.sqrt(max(self.squared_risk, 0.0))

    def look(self, scorer: torch.nn.Module) -> None:
        """Look at every query once, without a step."""
        with torch.no_grad():
            for queries in np.array_split(self.active, max(1, len(self.active) // 512)):
                rows, offsets, scores = self._scores(scorer, queries)
                self._note(queries, rows, offsets, self._view(scores.numpy(), offsets, queries))

    def climb(self, scorer: torch.nn.Module, optimizer: torch.optim.Optimizer, rng: np.random.Generator) -> None:
        """Take the steps of one epoch."""
        per_pass = math.ceil(len(self.active) / self.settings.batch)
        for _ in range(math.ceil(max(self.settings.least_steps, 1) / per_pass)):
            for queries in np.array_split(rng.permutation(self.active), per_pass):
                rows, offsets, scores = self._scores(scorer, queries)
                values = scores.detach().numpy()
                view = self._view(values, offsets, queries)
                self._note(queries, rows, offsets, view)
                slope = self._score_slope(values, offsets, queries, rows, view, rng)
                gradient = torch.from_numpy((slope * (-len(self.active) / len(queries))).astype(np.float32))
                optimizer.zero_grad()
                scores.backward(gradient)  # type: ignore[no-untyped-call]
                optimizer.step()

    def _scores(self, scorer: torch.nn.Module, queries: Array) -> tuple[Array, Array, torch.Tensor]:
        rows = flat_rows(self.data.offsets, queries)
        offsets = np.concatenate([[0], np.cumsum(self.data.lengths[queries])])
        return rows, offsets, scorer(torch.from_numpy(self.data.features[rows]))

    def _view(self, scores: Array, offsets: Array, queries: Array) -> Array:
        """What the objective is a function of: exposure of documents, or probabilities of logged rankings."""
        if isinstance(self.objective, ActionObjective):
            return self.objective.probabilities(scores, queries)
        return exposure(scores, offsets, self.examination, tolerance=self.settings.tolerance)

    def _note(self, queries: Array, rows: Array, offsets: Array, view: Array) -> None:
        if isinstance(self.objective, ActionObjective):
            rows = self.objective.rows(queries)
            offsets = np.concatenate([[0], np.cumsum(np.diff(self.objective.bounds)[queries])])
        self.estimates[queries] = np.add.reduceat(self.objective.reward[rows] * view, offsets[:-1])
        if self.objective.spread is not None:
            squares = self.objective.spread[rows] * np.square(view, dtype=np.float64)
            self.squared[queries] = np.add.reduceat(squares, offsets[:-1])

    def _score_slope(
        self, scores: Array, offsets: Array, queries: Array, rows: Array, view: Array, rng: np.random.Generator
    ) -> Array:
        lam = root_slope(self.squared_risk)
        if isinstance(self.objective, ActionObjective):
            return self.objective.score_slope(scores, view, lam, queries)
        slope = self.objective.slope(view, lam, rows)
        if self.settings.gradient == "exact":
            return exposure_vjp(scores, offsets, self.examination, slope, tolerance=self.settings.tolerance)
        estimator = reinforce_gradient if self.settings.gradient == "reinforce" else pl_rank_3_gradient
        rankings = sample_rankings(scores, offsets, len(self.examination), self.settings.samples, rng)
        return estimator(scores, offsets, self.examination, slope, rankings)


def _fingerprint(scorer: torch.nn.Module, problem: _Problem, judge: _Problem | None, keep_start: bool) -> str:
    """Return a hash of all that decides how a run goes, but for the features: too many to read only for this."""
    digest = hashlib.sha256(json.dumps([asdict(problem.settings), keep_start]).encode())
    arrays = {f"start.{name}": tensor.numpy() for name, tensor in scorer.state_dict().items()}
    for role, one in (("train", problem), ("validation", judge)):
        if one is not None:
            arrays |= {f"{role}.{name}": array for name, array in vars(one.objective).items() if array is not None}
    for name, array in (arrays | {"examination": problem.examination}).items():
        digest.update(f"{name} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


@dataclass
class _Run:
    """Where a run stands, to and from a checkpoint."""

    scorer: torch.nn.Module
    optimizer: torch.optim.Adam
    stopping: EarlyStopping
    history: list[Epoch]
    rng: np.random.Generator
    problem: _Problem
    fingerprint: str

    def save(self, path: Path | None, done: bool) -> None:
        if path is None:
            return
        tensors = {f"model.{name}": tensor for name, tensor in self.scorer.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.stopping.best.items()}
        tensors |= {"estimates": torch.from_numpy(self.problem.estimates)}
        tensors |= {"squared": torch.from_numpy(self.problem.squared)}
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": tensor for name, tensor in moments.items()}
        state = {
            "fingerprint": self.fingerprint,
            "done": done,
            "history": [asdict(epoch) for epoch in self.history],
            "best_value": self.stopping.best_value,
            "best_epoch": self.stopping.best_epoch,
            "rng": self.rng.bit_generator.state,
        }
        save_checkpoint(path, tensors, state)

    def resume(self, path: Path | None) -> bool:
        """Go on from the checkpoint, if there is one of the same run; return whether it was done."""
        found = None if path is None else load_checkpoint(path)
        if found is None or found[1].get("fingerprint") != self.fingerprint:
            return False
        tensors, state = found

        def part(prefix: str) -> dict[str, torch.Tensor]:
            return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}

        self.scorer.load_state_dict(part("model."))
        self.stopping.best = part("best.")
        self.stopping.best_value, self.stopping.best_epoch = state["best_value"], state["best_epoch"]
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in part("adam.").items():
            number, key = name.split(".")
            moments.setdefault(int(number), {})[key] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        self.problem.estimates[:], self.problem.squared[:] = tensors["estimates"].numpy(), tensors["squared"].numpy()
        self.history.extend(Epoch(**epoch) for epoch in state["history"])
        self.rng.bit_generator.state = state["rng"]
        return bool(state["done"])
