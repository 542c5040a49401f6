"""Why CRM falls short of the logging policy at N = 400: whose fault is it? `python benchmarks/small_data.py`.

Exposure CRM on synthetic:mslr10k at N = 400, from a random start, with the logging exposure counted from the log (as
in the paper) and with the exact one. With fewer interactions than queries, a query's frequencies are those of one
ranking: the divergence to them is least for a policy that hedges, so what is learned has the right order but is too
flat. NDCG@5 on the test queries, expected under the policy and by score.
"""

import sys

from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import load_dataset
from saferank.lab.paper_methods import evaluate, logged_parts, simulate_logs
from saferank.lab.world import make_world, prepare
from saferank.learning.learn import learn
from saferank.learning.methods import METHODS
from saferank.learning.settings import TrainingSettings
from saferank.policy.scorers import make_scorer

INTERACTIONS = 400


def main() -> int:
    dataset = prepare(load_dataset("synthetic:mslr10k"))
    table = Table("run", "policy", "NDCG@5 expected", "by score", title=f"synthetic:mslr10k, N = {INTERACTIONS}")
    for run in range(3):
        world = make_world(dataset, seed=run)
        logs = simulate_logs(world, INTERACTIONS, run)
        table.add_row(str(run), "logging", *(f"{value:.4f}" for value in evaluate(world.logging_scorer, world.test)))
        for name, known in (("CRM, rho_0 counted", False), ("CRM, rho_0 exact", True)):
            scorer = make_scorer("mlp", world.train.features.shape[1], seed=run + 1000)
            parts = logged_parts(world, logs, exposure="known" if known else "counted")
            learn(scorer, METHODS["exposure-crm"], *parts, training=TrainingSettings(seed=run))
            table.add_row("", name, *(f"{value:.4f}" for value in evaluate(scorer, world.test)))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
