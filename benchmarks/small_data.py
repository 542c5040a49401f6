"""Why CRM falls short of the logging policy at N = 400: whose fault is it? `python benchmarks/small_data.py`.

Exposure CRM on synthetic:mslr10k at N = 400, from a random start, with the logging exposure counted from the log (as
in the paper) and with the exact one. With fewer interactions than queries, a query's frequencies are those of one
ranking: the divergence to them is least for a policy that hedges, so what is learned has the right order but is too
flat. NDCG@5 on the test queries, expected under the policy and by score.
"""

import sys

import torch
from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import load_dataset
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.lab.methods import MethodSettings, evaluate, make_objective, simulate_logs
from saferank.lab.world import make_world, prepare
from saferank.learning.training_loop import TrainingSettings, fit
from saferank.policy.scorers import make_scorer

INTERACTIONS = 400


def main() -> int:
    torch.set_num_threads(1)
    dataset = prepare(load_dataset("synthetic:mslr10k"))
    table = Table("run", "policy", "NDCG@5 expected", "by score", title=f"synthetic:mslr10k, N = {INTERACTIONS}")
    for run in range(3):
        world = make_world(dataset, seed=run)
        logs, examination = simulate_logs(world, INTERACTIONS, run), world.click_model.examination
        table.add_row(str(run), "logging", *(f"{value:.4f}" for value in evaluate(world.logging_scorer, world.test)))
        for name, known in (("CRM, rho_0 counted", False), ("CRM, rho_0 exact", True)):
            clips = {"train": training_clip(INTERACTIONS), "validation": 0.0}
            train, judge = (
                make_objective(
                    "exposure-crm",
                    getattr(logs, part),
                    examination,
                    clip,
                    MethodSettings(),
                    world.logging_scores[part] if known else None,
                )
                for part, clip in clips.items()
            )
            scorer = make_scorer("mlp", world.train.features.shape[1], seed=run + 1000)
            settings = TrainingSettings(seed=run)
            fit(scorer, world.train, train, examination, validation=(world.validation, judge), settings=settings)
            table.add_row("", name, *(f"{value:.4f}" for value in evaluate(scorer, world.test)))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
