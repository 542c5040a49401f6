"""How far scores are apart after export, on random documents: every format and scorer that goes together.

python benchmarks/export.py [DOCUMENTS]

Fails if a score differs by more than 1e-5 of its size (or of the spread of the scores, where that is larger).
"""

import sys
from typing import Any

import lightgbm
import numpy as np
from rich.console import Console
from rich.table import Table

from saferank.export.export_policy import FORMATS, TOLERATED
from saferank.export.golden import largest_difference, random_rows
from saferank.export.inputs import Inputs, scores_of
from saferank.export.refusal import CannotExport
from saferank.features.schema import FeatureSchema
from saferank.learning.lightgbm_trees import forest_of
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import make_scorer, weights_of
from saferank.policy.scorers.trees import Trees

FEATURES, TREES, CANDIDATES = 40, 200, 100
SCORERS = ("linear", "mlp", "gbdt", "gbdt on a column", "gbdt on linear", "gbdt on mlp")
SCHEMAS: dict[str, dict[str, Any]] = {
    "per query, log1p": {},
    "none, log1p": {"scaling": "none"},
    "none, no log1p": {"scaling": "none", "log1p": False},
    "none, log1p, missing 0": {"scaling": "none", "missing": 0.0},
    "per query, log1p, indicator": {"missing": "indicator", "indicators": ("f0",)},
}


def make_policy(scorer: str, **settings: Any) -> Policy:
    names = [f"f{place}" for place in range(FEATURES)] + [
        f"{name} is missing" for name in settings.get("indicators", ())
    ]
    start = {"gbdt": "none", "gbdt on a column": "column"}.get(scorer, scorer.split()[-1])
    schema = FeatureSchema(tuple(names), base="base" if start == "column" else None, **settings)
    width = len(schema.columns)
    if not scorer.startswith("gbdt"):
        return Policy(ScorerKind(scorer), weights_of(make_scorer(scorer, width, seed=0)), schema, np.ones(5))
    trees = Trees.on(make_scorer(start, width, seed=0), width) if start in ("linear", "mlp") else Trees(width, start)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, len(names))) * 10.0 ** rng.uniform(-2, 3, size=(20_000, len(names)))
    x = np.sign(x) * np.log1p(np.abs(x)) if schema.log1p else x
    x = (rng.random(x.shape) if schema.scaling == "per-query" else x).astype(np.float32)
    settings = {"verbose": -1, "num_leaves": 31, "num_threads": 1, "max_bin": 63}
    target = np.sin(x).sum(axis=1) + rng.normal(size=len(x))
    trees.grow(forest_of(lightgbm.train(settings, lightgbm.Dataset(x, target), TREES)))
    return Policy(ScorerKind("gbdt", trees.settings), weights_of(trees), schema, np.ones(5))


def difference(policy: Policy, to: str, documents: int) -> float:
    rows = random_rows(policy, documents, np.random.default_rng(1))
    offsets = np.arange(0, documents + 1, CANDIDATES)
    text, names = FORMATS[to].encode(policy, "benchmark"), Inputs.of(policy.schema).names
    if to == "onnx":  # one call is one query
        theirs = np.concatenate([FORMATS[to].scores(text, rows[a : a + CANDIDATES], names) for a in offsets[:-1]])
    else:
        theirs = FORMATS[to].scores(text, rows, names)
    return largest_difference(theirs, scores_of(policy, rows, offsets))


def main() -> int:
    documents = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000
    title = f"Largest relative difference of scores, {documents:,} random documents, {TREES} trees, {FEATURES} features"
    table = Table(title=title, title_justify="left")
    for column in ("scaling", "scorer", *FORMATS):
        table.add_column(column, no_wrap=column == "scorer")
    worst = 0.0
    for schema, settings in SCHEMAS.items():
        for scorer in SCORERS:
            policy, cells = make_policy(scorer, **settings), []
            for to in FORMATS:
                try:
                    found = difference(policy, to, documents)
                    worst = max(worst, found)
                    cells.append(f"{found:.0e}")
                except CannotExport as refused:
                    cells.append(f"refused: {refused.reason}")
            table.add_row(schema, scorer, *cells)
        table.add_section()
    Console(width=160).print(table)
    print(f"Largest of all: {worst:.1e}; tolerated: {TOLERATED:.0e}.")
    return int(worst > TOLERATED)


if __name__ == "__main__":
    sys.exit(main())
