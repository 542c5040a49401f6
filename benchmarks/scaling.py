"""What it costs to fit without scaling features per query, for servers that score one document by itself.

python benchmarks/scaling.py [LETOR FOLDER]

Three logs of `synthetic:small`, 1e5 interactions each. `SafeRanker(scaling="per-query")`, the default, against
`scaling="none"`, from the same log: NDCG@5 by score on test queries, which no log has seen. The current ranker was
trained on features scaled per query, so a model of it on other features is a coarser one.

With a folder, LightGBM's lambdarank on the labels of those documents instead: 12 random splits of all its queries, half
to learn from, a quarter to stop by and a quarter to test on.
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

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.learners import Rows, label_rows, lambdarank

SPLITS = 12
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


def on_labels(folder: str) -> str:
    """Return NDCG@5 of lambdarank with and without scaling, and the difference with its standard error."""
    raw = [part.log1p() for part in load_dataset(folder).splits.values()]
    ways, found = (raw, [part.scaled_per_query() for part in raw]), np.empty((SPLITS, 2))
    for seed, row in enumerate(found):
        rng = np.random.default_rng(seed)
        orders = [rng.permutation(part.queries) for part in raw]
        cuts = [np.split(order, [len(order) // 2, len(order) * 3 // 4]) for order in orders]
        for place, way in enumerate(ways):
            train, stop, test = (
                [part.subset(np.sort(cut[k])) for part, cut in zip(way, cuts, strict=True)] for k in range(3)
            )
            predict = lambdarank(joined(train), joined(stop), seed)
            row[place] = np.concatenate(
                [
                    ndcg_by_score(predict(part.features), part.require_labels(), part.offsets, CUTOFF)
                    for part in (one.with_relevant_document() for one in test)
                ]
            ).mean()
    difference = found[:, 0] - found[:, 1]
    none, scaled, error = found[:, 0].mean(), found[:, 1].mean(), difference.std(ddof=1) / np.sqrt(SPLITS)
    return f"scaled per query {scaled:.3f}, not {none:.3f}: {difference.mean():+.3f} (standard error {error:.3f})"


def joined(parts: list[RankingData]) -> Rows:
    rows = [label_rows(part) for part in parts]
    return Rows(
        *(np.concatenate([getattr(one, name) for one in rows]) for name in ("features", "label", "weight", "group"))
    )


def main() -> int:
    if len(sys.argv) > 1:
        print(on_labels(sys.argv[1]))
        return 0
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
