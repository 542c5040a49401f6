"""Training: gradients, settings, and one run at the size of MSLR. `python benchmarks/training.py [--full]`.

NDCG@5 is expected of the policy, on the labels of the validation part; the test part is not used. Ends with an error
unless the exact gradient reaches the best NDCG@5 of REINFORCE (1,000 rankings), less 0.001, in less time. --full goes
on to one run at the size of MSLR: exposure CRM, synthetic:mslr30k, a billion interactions, to convergence (6 GB).
"""

import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import Dataset, load_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.objective import Objective
from saferank.engine.objectives.skyline import skyline
from saferank.engine.plackett_luce import pl_rank_3_gradient, reinforce_gradient
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.paper_methods import evaluate, logged_parts, simulate_logs
from saferank.lab.sampled_gradient import SampledGradient
from saferank.lab.world import make_world, prepare
from saferank.learning.methods import METHODS
from saferank.learning.settings import TrainingSettings
from saferank.learning.training_loop import Epoch, fit
from saferank.policy.scorers import make_scorer

SEEDS = (0, 1)
MODEL = PositionBasedModel()
EPOCHS_SHOWN = (1, 5, 10, 20)
ESTIMATORS = (pl_rank_3_gradient, reinforce_gradient)
NOISE = 0.001
"""NDCG@5 by which the best epochs of two runs differ by chance."""


@dataclass(frozen=True)
class Task:
    """What to learn from, and what early stopping looks at."""

    train: RankingData
    validation: RankingData
    objective: Objective
    judge: Objective
    seed: int

    def scorer(self) -> torch.nn.Module:
        """Return a new one."""
        return make_scorer("mlp", self.train.features.shape[1], seed=self.seed + 1000)

    def ndcg(self, scorer: torch.nn.Module) -> float:
        """Return the expected NDCG@5 on the validation labels."""
        return evaluate(scorer, self.validation.with_relevant_document())[0]


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    ndcg: float
    seconds: float
    epochs: int
    value: float
    """Of the judge, best epoch."""


def from_labels(dataset: Dataset, seed: int) -> Task:
    train, validation = dataset.train, dataset.validation
    objective, judge = (
        skyline(MODEL.relevance(part.require_labels()), part.offsets, MODEL.examination) for part in (train, validation)
    )
    return Task(train, validation, objective, judge, seed)


def from_clicks(dataset: Dataset, seed: int, interactions: int) -> Task:
    """Exposure CRM on a simulated log, as the experiments have it."""
    world = make_world(dataset, seed=seed)
    train, validation = logged_parts(world, simulate_logs(world, interactions, seed))
    made_by = METHODS["exposure-crm"].objective
    assert made_by is not None
    objective = made_by(replace(train, clip=training_clip(interactions)))
    return Task(dataset.train, dataset.validation, objective, made_by(validation), seed)


def by_fit(task: Task, settings: TrainingSettings) -> Outcome:
    scorer, started = task.scorer(), time.perf_counter()
    validation = task.validation, task.judge
    result = fit(scorer, task.train, task.objective, validation=validation, settings=replace(settings, seed=task.seed))
    seconds = time.perf_counter() - started
    return Outcome(task.ndcg(scorer), seconds, len(result.history), max(epoch.validation for epoch in result.history))


def curve(task: Task) -> NDArray[np.float64]:
    """Return (seconds, NDCG@5) before training and after each epoch; the seconds without those for NDCG@5."""
    scorer = task.scorer()
    points = [(0.0, task.ndcg(scorer))]
    resumed = time.perf_counter()

    def note(_: Epoch) -> None:
        nonlocal resumed
        seconds = points[-1][0] + time.perf_counter() - resumed
        points.append((seconds, task.ndcg(scorer)))
        resumed = time.perf_counter()

    fit(scorer, task.train, task.objective, settings=TrainingSettings(seed=task.seed), progress=note)
    return np.array(points)


def sampled_task(task: Task, estimator: Any, samples: int) -> Task:
    assert isinstance(task.objective, ExposureObjective)
    rng = np.random.default_rng(task.seed)
    return replace(task, objective=SampledGradient.of(task.objective, estimator, samples, rng))


def seconds_to(points: NDArray[np.float64], target: float) -> float:
    reached = np.flatnonzero(points[:, 1] >= target)
    return float(points[reached[0], 0]) if len(reached) else float("inf")


def compare_gradients(console: Console, tasks: list[Task]) -> bool:
    """Print NDCG@5 against seconds for each gradient; return whether exact is ahead of REINFORCE."""
    trials: dict[str, Any] = {
        "exact": None,
        "PL-Rank-3, 100 rankings": (pl_rank_3_gradient, 100),
        "REINFORCE, 1,000 rankings": (reinforce_gradient, 1000),
    }
    curves = {
        name: np.mean([curve(task if how is None else sampled_task(task, *how)) for task in tasks], axis=0)
        for name, how in trials.items()
    }
    start, best = curves["exact"][0, 1], curves["exact"][:, 1].max()
    target = start + 0.95 * (best - start)
    title = f"seconds: NDCG@5, synthetic:small from labels; {start:.3f} at the start; mean of {len(tasks)} seeds"
    table = Table(
        "gradient", *(f"epoch {e}" for e in EPOCHS_SHOWN), "best", f"seconds to {target:.3f} (95%)", title=title
    )
    for name, points in curves.items():
        cells = [f"{points[e, 0]:.2f}: {points[e, 1]:.4f}" for e in EPOCHS_SHOWN]
        top = points[points[:, 1].argmax()]
        table.add_row(name, *cells, f"{top[0]:.2f}: {top[1]:.4f}", f"{seconds_to(points, target):.2f}")
    console.print(table)
    sampled = curves["REINFORCE, 1,000 rankings"]
    goal = float(sampled[:, 1].max()) - NOISE
    ours, theirs = seconds_to(curves["exact"], goal), seconds_to(sampled, goal)
    words = f"{goal:.4f}, REINFORCE's best less {NOISE}: exact in {ours:.2f} s, REINFORCE in {theirs:.2f} s"
    console.print(words, highlight=False)
    return ours < theirs


def compare_settings(console: Console, tasks: dict[str, list[Task]]) -> None:
    default = TrainingSettings()
    trials = {f"default: Adam {default.learning_rate:g}, {default.batch} queries per step": default}
    trials |= {f"Adam {rate:g}": replace(default, learning_rate=rate) for rate in (1e-4, 2e-3, 1e-2)}
    trials |= {
        f"Adam {rate:g}, {batch} queries": replace(default, batch=batch, learning_rate=rate)
        for batch, rate in ((8, 2.5e-4), (128, 1e-3), (256, 1.4e-3), (600, 2e-3))
    }
    table = Table("settings", title=f"synthetic:small, mean of {len(SEEDS)} seeds")
    for kind in tasks:
        for heading in (f"{kind}: NDCG@5", "epochs", "seconds"):
            table.add_column(heading, justify="right")
    for name, settings in trials.items():
        cells = []
        for group in tasks.values():
            outcomes = [by_fit(task, settings) for task in group]
            cells.append(f"{np.mean([one.ndcg for one in outcomes]):.4f}")
            cells.append("/".join(str(one.epochs) for one in outcomes))
            cells.append(f"{np.mean([one.seconds for one in outcomes]):.2f}")
        table.add_row(name, *cells)
    console.print(table)


def large_run(console: Console, name: str, interactions: int) -> None:
    """Print how long one run takes, by batch."""
    task = from_clicks(prepare(load_dataset(name)), 0, interactions)
    default = TrainingSettings()
    title = f"exposure CRM, {name}, N = {interactions:.0e}"
    table = Table("queries, rate", "epochs", "seconds", "value", "NDCG@5", title=title)
    for batch in (default.batch, 4 * default.batch, 8 * default.batch):
        rate = default.learning_rate * (batch / default.batch) ** 0.5
        outcome = by_fit(task, replace(default, batch=batch, learning_rate=rate))
        value, ndcg = f"{outcome.value:.5f}", f"{outcome.ndcg:.4f}"
        table.add_row(f"{batch}, {rate:.1e}", str(outcome.epochs), f"{outcome.seconds:.0f}", value, ndcg)
    console.print(table)


def main() -> int:
    console = Console(width=130)
    dataset = prepare(load_dataset("synthetic:small"))
    tasks = {
        "labels": [from_labels(dataset, seed) for seed in SEEDS],
        "1e6 clicks": [from_clicks(dataset, seed, 10**6) for seed in SEEDS],
    }
    for task in (tasks["labels"][0], *(sampled_task(tasks["labels"][0], e, 2) for e in ESTIMATORS)):  # compiles
        by_fit(task, TrainingSettings(epochs=1))
    ahead = compare_gradients(console, tasks["labels"])
    compare_settings(console, tasks)
    if "--full" in sys.argv[1:]:
        large_run(console, "synthetic:mslr30k", 10**9)
    return 0 if ahead else 1


if __name__ == "__main__":
    sys.exit(main())
