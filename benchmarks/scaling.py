"""What it costs to fit without scaling features per query, for servers that score one document by itself.

python benchmarks/scaling.py

Three logs of `synthetic:small`, 1e5 interactions each. `SafeRanker(scaling="per-query")`, the default, against
`scaling="none"`, from the same log: NDCG@5 by score on test queries, which no log has seen. The current ranker was
trained on features scaled per query, so a model of it on other features is a coarser one.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from saferank import SafeRanker
from saferank.datasets.dataset import load_dataset
from saferank.engine.metrics import ndcg_by_score
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.paper_methods import evaluate
from saferank.lab.raw_log import write_raw_log
from saferank.lab.world import make_world, prepare
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log

DATA, INTERACTIONS, SEEDS, CUTOFF = "synthetic:small", 10**5, (0, 1, 2), 5
FITS: dict[str, dict[str, Any]] = {
    "fit": {},
    "fit --method correction": {"method": "correction"},
    "fit --method exposure-crm --scorer linear": {"method": "exposure-crm", "scorer": "linear"},
}


def ndcg(ranker: SafeRanker, test: RankingData) -> float:
    return float(ndcg_by_score(ranker.predict(test), test.require_labels(), test.offsets, CUTOFF).mean())


def simulated_log(seed: int, folder: Path) -> tuple[AggregatedLog, float]:
    """Return a log of the training queries, and the NDCG@5 of the ranker that made it."""
    world = make_world(prepare(load_dataset(DATA)), seed=seed)
    file, rng = folder / f"{seed}.parquet", np.random.default_rng([seed, 3])
    write_raw_log(file, world.train, world.logging_scores["train"], world.click_model, INTERACTIONS, rng)
    return load_log(file, cutoff=CUTOFF), evaluate(world.logging_scorer, world.test)[1]


def main() -> int:
    dataset = load_dataset(DATA)
    test, found = dataset.test.with_relevant_document(), np.empty((len(SEEDS), 1 + 2 * len(FITS)))
    with tempfile.TemporaryDirectory() as folder:
        for row, seed in zip(found, SEEDS, strict=True):
            log, row[0] = simulated_log(seed, Path(folder))
            settings = [given | {"scaling": way} for given in FITS.values() for way in ("per-query", "none")]
            for place, given in enumerate(settings, 1):
                ranker = SafeRanker(examination="inverse-rank:2", baselines=False, seed=seed, **given)
                row[place] = ndcg(ranker.fit(log, dataset.train), test)
    runs = f"mean of {len(SEEDS)} (by run: none - per-query)"
    table = Table(title=f"NDCG@5, {DATA}, {INTERACTIONS:,} interactions, {runs}")
    for column in ("", "scaled per query", "--scaling none", "difference"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("current ranker", f"{found[:, 0].mean():.3f}", "", "")
    for name, scaled, raw in zip(FITS, found[:, 1::2].T, found[:, 2::2].T, strict=True):
        each = " ".join(f"{difference:+.3f}" for difference in raw - scaled)
        table.add_row(name, f"{scaled.mean():.3f}", f"{raw.mean():.3f}", f"{(raw - scaled).mean():+.3f} ({each})")
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
