"""How to climb: gradients, settings and where the time goes. `python benchmarks/training.py [--full]`.

NDCG@5 is expected of the policy, on the labels of the validation part; the test part is not used. Ends with an error
unless the exact gradient reaches the best NDCG@5 of REINFORCE (1,000 rankings), less 0.001, in less time. --full goes
on to one run at the size of MSLR: exposure CRM, synthetic:mslr30k, a billion interactions, to convergence (6 GB).
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, get_args
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import Dataset, load_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.objectives.skyline import skyline
from saferank.engine.plackett_luce import expected_exposure
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.methods import MethodSettings, evaluate, make_objective, simulate_logs
from saferank.lab.world import make_world, prepare
from saferank.learning import training_loop as fitting
from saferank.learning.early_stopping import EarlyStopping
from saferank.learning.training_loop import Epoch, Gradient, Objective, TrainingSettings, fit
from saferank.policy.scorers import make_scorer

SEEDS = (0, 1)
MODEL = PositionBasedModel()
EPOCHS_SHOWN = (1, 5, 10, 20)
NOISE = 0.001
"""NDCG@5 by which the best epochs of two runs differ by chance."""
LBFGS_SECONDS = 20.0
"""After which it is stopped: it may drive scores so far apart that exposure gets slow."""


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
    objective, judge = (skyline(MODEL.relevance(part.require_labels()), part.offsets) for part in (train, validation))
    return Task(train, validation, objective, judge, seed)


def from_clicks(dataset: Dataset, seed: int, interactions: int) -> Task:
    """Exposure CRM on a simulated log, as the experiments have it."""
    world = make_world(dataset, seed=seed)
    logs = simulate_logs(world, interactions, seed)
    objective, judge = (
        make_objective("exposure-crm", log, MODEL.examination, clip, MethodSettings())
        for log, clip in ((logs.train, training_clip(interactions)), (logs.validation, 0.0))
    )
    return Task(dataset.train, dataset.validation, objective, judge, seed)


def by_fit(task: Task, settings: TrainingSettings, around: AbstractContextManager[Any] | None = None) -> Outcome:
    scorer, started = task.scorer(), time.perf_counter()
    validation = task.validation, task.judge
    settings = replace(settings, seed=task.seed)
    with around or nullcontext():
        result = fit(scorer, task.train, task.objective, MODEL.examination, validation=validation, settings=settings)
    seconds = time.perf_counter() - started
    return Outcome(task.ndcg(scorer), seconds, len(result.history), max(epoch.validation for epoch in result.history))


def by_lbfgs(task: Task, tolerance: float = 1e-5) -> Outcome:
    """L-BFGS on all queries, five iterations an epoch, stopped like the rest; finer exposure, for its line search."""
    scorer, started = task.scorer(), time.perf_counter()
    parts = [(task.train, task.objective), (task.validation, task.judge)]
    optimizer = torch.optim.LBFGS(scorer.parameters(), max_iter=5, history_size=20, line_search_fn="strong_wolfe")
    stopping = EarlyStopping(TrainingSettings().patience)

    def value(part: RankingData, objective: Any) -> torch.Tensor:
        scores = scorer(torch.from_numpy(part.features))
        view = expected_exposure(scores, part.offsets, MODEL.examination, tolerance=tolerance).double()
        linear = torch.from_numpy(objective.reward) @ view
        return linear if objective.spread is None else linear - (torch.from_numpy(objective.spread) @ view**2).sqrt()

    def loss() -> float:
        if time.perf_counter() - started > LBFGS_SECONDS:
            raise TimeoutError
        optimizer.zero_grad()
        negative = -value(*parts[0])
        negative.backward()  # type: ignore[no-untyped-call]
        return float(negative.detach())

    epoch, done = 0, False
    with suppress(TimeoutError):
        while not done:
            optimizer.step(loss)  # type: ignore[no-untyped-call]
            epoch += 1
            with torch.no_grad():
                done = stopping.update(epoch, float(value(*parts[1])), scorer.state_dict())
    scorer.load_state_dict(stopping.best)
    return Outcome(task.ndcg(scorer), time.perf_counter() - started, epoch, stopping.best_value)


def curve(task: Task, settings: TrainingSettings) -> NDArray[np.float64]:
    """Return (seconds, NDCG@5) before training and after each epoch; the seconds without those for NDCG@5."""
    scorer = task.scorer()
    points = [(0.0, task.ndcg(scorer))]
    resumed = time.perf_counter()

    def note(_: Epoch) -> None:
        nonlocal resumed
        seconds = points[-1][0] + time.perf_counter() - resumed
        points.append((seconds, task.ndcg(scorer)))
        resumed = time.perf_counter()

    settings = replace(settings, seed=task.seed)
    fit(scorer, task.train, task.objective, MODEL.examination, settings=settings, progress=note)
    return np.array(points)


def seconds_to(points: NDArray[np.float64], target: float) -> float:
    reached = np.flatnonzero(points[:, 1] >= target)
    return float(points[reached[0], 0]) if len(reached) else float("inf")


def compare_gradients(console: Console, tasks: list[Task]) -> bool:
    """Print NDCG@5 against seconds for each gradient; return whether exact is ahead of REINFORCE."""
    default = TrainingSettings()
    trials = {
        "exact": default,
        "PL-Rank-3, 100 rankings": replace(default, gradient="pl-rank", samples=100),
        "REINFORCE, 1,000 rankings": replace(default, gradient="reinforce", samples=1000),
    }
    curves = {name: np.mean([curve(task, settings) for task in tasks], axis=0) for name, settings in trials.items()}
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
    trials: dict[str, Callable[[Task], Outcome]] = {}

    def add(name: str, **changes: Any) -> None:
        trials[name] = lambda task: by_fit(task, replace(default, **changes))

    add(f"default: Adam {default.learning_rate:g}, {default.batch} queries a step")
    for rate in (1e-4, 2e-3, 1e-2):
        add(f"Adam {rate:g}", learning_rate=rate)
    for batch, rate in ((8, 2.5e-4), (128, 1e-3), (256, 1.4e-3), (600, 2e-3)):
        add(f"Adam {rate:g}, {batch} queries", batch=batch, learning_rate=rate)
    trials["L-BFGS, all 600 queries"] = by_lbfgs
    table = Table("settings", title=f"synthetic:small, mean of {len(SEEDS)} seeds")
    for kind in tasks:
        for heading in (f"{kind}: NDCG@5", "epochs", "seconds"):
            table.add_column(heading, justify="right")
    for name, run in trials.items():
        cells = []
        for group in tasks.values():
            outcomes = [run(task) for task in group]
            cells.append(f"{np.mean([one.ndcg for one in outcomes]):.4f}")
            cells.append("/".join(str(one.epochs) for one in outcomes))
            cells.append(f"{np.mean([one.seconds for one in outcomes]):.2f}")
        table.add_row(name, *cells)
    console.print(table)


def watched(task: Task, settings: TrainingSettings) -> tuple[Outcome, dict[str, float]]:
    """Run `fit`; return also the seconds by what they were spent on, with timers around the functions that it calls."""
    spent: defaultdict[str, float] = defaultdict(float)

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent[name] += time.perf_counter() - started

        return wrapper

    patches = ExitStack()
    for owner, attribute in (
        (fitting, "exposure"),
        (fitting, "exposure_vjp"),
        (type(task.scorer()), "forward"),
        (torch.Tensor, "backward"),
        (fitting._Problem, "_scores"),
        (fitting._Problem, "look"),
        (torch.optim.Adam, "step"),
    ):
        patches.enter_context(patch.object(owner, attribute, timed(attribute, getattr(owner, attribute))))
    outcome = by_fit(task, settings, patches)
    parts = {
        "kernels": spent["exposure"] + spent["exposure_vjp"],
        "matrix products": spent["forward"] + spent["backward"],
        "gather": spent["_scores"] - spent["forward"],
        "optimiser": spent["step"],
    }
    return outcome, {**parts, "other": outcome.seconds - sum(parts.values()), "validation": spent["look"]}


def large_run(console: Console, name: str, interactions: int) -> None:
    """Print how long one run takes, and what it spends its time on, by batch."""
    task = from_clicks(prepare(load_dataset(name)), 0, interactions)
    default, by_threads = TrainingSettings(), {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        by_threads[threads] = by_fit(task, replace(default, epochs=1)).seconds
    best = min(by_threads, key=lambda threads: by_threads[threads])
    torch.set_num_threads(best)
    one, two = by_threads[1], by_threads[2]
    console.print(f"one epoch: {one:.1f} s with one thread for PyTorch, {two:.1f} s with two", highlight=False)
    title = f"exposure CRM, {name}, N = {interactions:.0e}, {best} thread(s) for PyTorch; seconds (share)"
    table = Table("queries, rate", "epochs", "seconds", "value", "NDCG@5", title=title)
    for heading in ("kernels", "matrix products", "gather", "optimiser", "other", "(validation)"):
        table.add_column(heading, justify="right")
    for batch in (default.batch, 4 * default.batch, 8 * default.batch):
        rate = default.learning_rate * (batch / default.batch) ** 0.5
        outcome, spent = watched(task, replace(default, batch=batch, learning_rate=rate))
        cells = [f"{seconds:.1f} ({seconds / outcome.seconds:.0%})" for seconds in spent.values()]
        value, ndcg = f"{outcome.value:.5f}", f"{outcome.ndcg:.4f}"
        table.add_row(f"{batch}, {rate:.1e}", str(outcome.epochs), f"{outcome.seconds:.0f}", value, ndcg, *cells)
    console.print(table)


def main() -> int:
    torch.set_num_threads(1)  # on matrices this small, threads mostly wait for each other
    console = Console(width=130)
    dataset = prepare(load_dataset("synthetic:small"))
    tasks = {
        "labels": [from_labels(dataset, seed) for seed in SEEDS],
        "1e6 clicks": [from_clicks(dataset, seed, 10**6) for seed in SEEDS],
    }
    for gradient in get_args(Gradient):  # compiles
        by_fit(tasks["labels"][0], TrainingSettings(epochs=1, gradient=gradient, samples=2))
    ahead = compare_gradients(console, tasks["labels"])
    compare_settings(console, tasks)
    if "--full" in sys.argv[1:]:
        large_run(console, "synthetic:mslr30k", 10**9)
    return 0 if ahead else 1


if __name__ == "__main__":
    sys.exit(main())
