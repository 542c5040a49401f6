"""How to climb: time and quality by gradient, learning rate and batch. `python benchmarks/training.py`.

A policy trained on the labels of synthetic:small (the skyline of the experiments), for each way to get the gradient and
around the default settings; expected NDCG@5 on the validation part, mean over two seeds. The test part is not used.
"""

import sys
import time
from dataclasses import replace

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from saferank.data.dataset import load_dataset
from saferank.experiments.methods import evaluate
from saferank.experiments.world import prepare, train_on_labels
from saferank.scorers import make_scorer
from saferank.simulation.click_model import PositionBasedModel
from saferank.training.fit import TrainingSettings

SEEDS = (0, 1)


def main() -> int:
    torch.set_num_threads(1)
    dataset = prepare(load_dataset("synthetic:small"))
    judged = dataset.validation.with_relevant_document()
    default = TrainingSettings()

    def measure(settings: TrainingSettings) -> tuple[float, float]:
        values, started = [], time.perf_counter()
        for seed in SEEDS:
            scorer = make_scorer("mlp", dataset.train.features.shape[1], seed=seed)
            train_on_labels(
                scorer, dataset.train, dataset.validation, PositionBasedModel(), replace(settings, seed=seed)
            )
            values.append(evaluate(scorer, judged)[0])
        return float(np.mean(values)), (time.perf_counter() - started) / len(SEEDS)

    measure(replace(default, epochs=1))  # compiles
    trials = {"default (exact, Adam 5e-4, 32 queries a step)": default}
    for samples in (10, 100, 1000):
        trials[f"PL-Rank-3, {samples} rankings"] = replace(default, gradient="pl-rank", samples=samples)
        trials[f"REINFORCE, {samples} rankings"] = replace(default, gradient="reinforce", samples=samples)
    for rate in (1e-4, 2e-3):
        trials[f"learning rate {rate:g}"] = replace(default, learning_rate=rate)
    for batch in (8, 128):
        trials[f"{batch} queries a step"] = replace(default, batch=batch)
    table = Table("settings", "NDCG@5", "seconds", title="synthetic:small, validation part, mean of two seeds")
    results = {}
    for name, settings in trials.items():
        results[name] = measure(settings)
        table.add_row(name, f"{results[name][0]:.3f}", f"{results[name][1]:.1f}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
