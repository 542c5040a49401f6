"""What delta can do to exposure CRM at a given N, by arithmetic. `python benchmarks/delta.py [DATA [N]]`.

The optimum's distance from the logging policy (`saferank.lab.delta_effect`), with the true relevance as reward and the
logging exposure known, and with both as CRM has them: counted from the log.
"""

import sys

import numpy as np
from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import load_dataset
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.propensity.logging_exposure import known_logging_exposure
from saferank.lab.delta_effect import interactions_to_move, optimal_shift, reward_spread, risk_weight
from saferank.lab.experiment import ABLATION
from saferank.lab.paper_methods import logged_parts, simulate_logs
from saferank.lab.world import make_world, prepare


def main() -> None:
    data = sys.argv[1] if len(sys.argv) > 1 else "synthetic:small"
    interactions = round(float(sys.argv[2])) if len(sys.argv) > 2 else 100
    world = make_world(prepare(load_dataset(data)), seed=0)
    offsets, examination = world.train.offsets, world.click_model.examination
    rho_0 = known_logging_exposure(world.logging_scores["train"], offsets, examination)
    uniform = np.full(world.train.queries, 1 / world.train.queries)
    true = reward_spread(world.relevance("train"), rho_0, offsets, uniform)
    part, _ = logged_parts(world, simulate_logs(world, interactions, 0))
    issued = np.repeat(np.maximum(part.log.interactions, 1), np.diff(offsets))
    reward = part.log.clicks / np.maximum(part.logging_exposure, training_clip(interactions)) / issued
    share = part.log.interactions / interactions
    counted = reward_spread(reward, part.logging_exposure, offsets, share)
    table = Table(title=f"{data}, N = {interactions:,}: sigma {true:.3f} of the truth, {counted:.3f} as counted")
    for column in ("delta", "lambda", "shift, truth", "shift, counted", "N to move, truth", "N to move, counted"):
        table.add_column(column, justify="right")
    for delta in ABLATION:
        table.add_row(
            f"{delta:g}",
            f"{risk_weight(delta, interactions):.2f}",
            *(f"{optimal_shift(delta, interactions, spread):.1%}" for spread in (true, counted)),
            *(f"{interactions_to_move(delta, spread):.1e}" for spread in (true, counted)),
        )
    Console().print(table)


if __name__ == "__main__":
    main()
