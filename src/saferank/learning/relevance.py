"""A regression of relevance on the features, cross-fitted: what one document teaches about another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.propensity.click_evidence import click_evidence
from saferank.engine.ragged import query_sums
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.files.large_table import row_blocks
from saferank.learning.lightgbm_trees import ALWAYS, built, can_split, forest_of, give_memory_back, rows_of, threads_for
from saferank.policy.scorers.forest import Forest

if TYPE_CHECKING:
    import lightgbm

Part: TypeAlias = tuple[Any, Any]
"""Rows that a fold learns from, and those that it holds out: arrays, where LightGBM is annotated to take lists."""
FOLDS = 5
MOST_TREES = 2000
PATIENCE = 30
"""Trees without a smaller error on the held-out folds after which no more are grown."""
PATIENCE_OF_ONE = 60
"""The same where one fold decides, whose error is noisier. With 30, R-hat correlated with relevance by 0.001 to 0.009
less than if all folds decide, with 60 by 0.000 to 0.001, with 100 by -0.006 to 0.001 (five logs of 250,000 pairs)."""
LARGE = 30_000_000
"""Values in a table from which on folds are grown one after the other: all at once need some ten bytes per value."""
PARAMETERS: dict[str, Any] = ALWAYS | {
    "objective": "l2",
    "learning_rate": 0.05,
    "num_leaves": 7,
    "feature_fraction": 0.5,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 2.5,
    "lambda_l2": 2.5,
}
"""Small trees, and few leaves that rest on fewer than 2.5 expected clicks."""
LONGER_STEPS = ((100_000, 0.1), (400_000, 0.2))
"""(documents, learning rate): with so many, fewer trees do. At 97,000 documents of synthetic:mslr10k@101, 0.1 takes
half the time of 0.05, and R-hat correlates with relevance within queries by 0.2927 in place of 0.2937."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Clicks on documents with (prepared) features; several logs of the same documents are merged first."""

    data: RankingData
    log: LogStatistics
    examination: NDArray[np.float64]
    beta: NDArray[np.float64] | None = None
    """Part of the examination that is trust bias, if it is known or estimated."""


@dataclass(frozen=True, eq=False)
class RelevanceModel:
    """R-hat: one forest per fold, grown without the queries of that fold."""

    forests: tuple[Forest, ...]
    folds: tuple[NDArray[np.int64], ...]
    """Of each document, for every sample it was fitted to."""

    @property
    def forest(self) -> Forest:
        """The mean of all folds: R-hat of documents that it may have seen."""
        return Forest.joined([forest.times(1 / len(self.forests)) for forest in self.forests])

    def cross_fitted(self, sample: int, data: RankingData) -> NDArray[np.float64]:
        """Return R-hat of each document of a sample, fitted without the clicks on its query."""
        out = np.empty(data.documents)
        for fold, forest in enumerate(self.forests):
            held_out = np.flatnonzero(self.folds[sample] == fold)
            for block in row_blocks(len(held_out)):
                rows = held_out[block]
                out[rows] = forest.scores(data.features[rows])
        return out


def fit_relevance(
    samples: Sequence[Sample],
    *,
    features: int | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> RelevanceModel:
    """Fit clicks / examined by trees, weighted as `click_evidence` says.

    The clicks are corrected for examination, so the logging exposure is not needed, and logs of different rankers may
    be mixed. Trees read the first so many `features`, by default all. The number of trees is the same in all folds,
    that with the smallest error on what each fold held out, or, of LARGE tables, on what the first one did. `progress`
    is told the number of trees.
    """
    import lightgbm

    evidence = [click_evidence(sample.log, sample.examination, sample.beta) for sample in samples]
    folds = _folds(samples, [one.weight > 0 for one in evidence], seed)
    rows = [np.flatnonzero(one.weight > 0) for one in evidence]
    fold = np.concatenate([each[kept] for each, kept in zip(folds, rows, strict=True)])
    count = int(fold.max(initial=-1)) + 1
    if count < 2:
        raise DataError("the log has clicks on too few documents for a regression; log more of them.")
    read = samples[0].data.features.shape[1] if features is None else features
    if not any(can_split(sample.data.features[:, :read]) for sample in samples):
        return RelevanceModel((Forest.empty(),) * FOLDS, folds)
    steps = [{"learning_rate": rate} for documents, rate in LONGER_STEPS if len(fold) >= documents]
    parameters = PARAMETERS | (steps[-1] if steps else {}) | {"seed": seed} | threads_for(len(fold), read)
    bins = lightgbm.Dataset(
        [rows_of(sample.data.features, kept, read) for sample, kept in zip(samples, rows, strict=True) if len(kept)],
        np.concatenate([one.relevance[kept] for one, kept in zip(evidence, rows, strict=True)]),
        weight=np.concatenate([one.weight[kept] for one, kept in zip(evidence, rows, strict=True)]),
        params=parameters,
    )
    table = built(bins, *(sample.data.features for sample in samples))
    tell = [] if progress is None else [lambda step: progress(step.iteration + 1)]
    grow = _one_by_one if len(fold) * read >= LARGE else _at_once
    parts = [(np.flatnonzero(fold != held), np.flatnonzero(fold == held)) for held in range(count)]
    forests = grow(parameters, table, parts, tell)
    del table, bins
    give_memory_back()
    return RelevanceModel(forests, folds)


def _at_once(
    parameters: dict[str, Any], table: lightgbm.Dataset, parts: Sequence[Part], tell: list[Callable[[Any], None]]
) -> tuple[Forest, ...]:
    """Return the forest of each fold; the mean error of all folds chooses the number of trees."""
    import lightgbm

    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    found = lightgbm.cv(parameters, table, MOST_TREES, folds=parts, callbacks=[stop, *tell], return_cvbooster=True)
    boosters: Any = found["cvbooster"]
    return tuple(forest_of(booster, boosters.best_iteration) for booster in boosters.boosters)


def _one_by_one(
    parameters: dict[str, Any], table: lightgbm.Dataset, parts: Sequence[Part], tell: list[Callable[[Any], None]]
) -> tuple[Forest, ...]:
    """Return the forest of each fold; the first fold chooses the number of trees. One fold at a time is in memory."""
    import lightgbm

    stop, forests = lightgbm.early_stopping(PATIENCE_OF_ONE, verbose=False), list[Forest]()
    for learned_from, held_out in parts:
        first = not forests
        booster = lightgbm.train(
            parameters,
            table.subset(learned_from),
            MOST_TREES if first else forests[0].trees,
            valid_sets=[table.subset(held_out)] if first else None,
            callbacks=[stop, *tell] if first else tell,
        )
        forests.append(forest_of(booster, booster.best_iteration))
        del booster
        give_memory_back()
    return tuple(forests)


def _folds(
    samples: Sequence[Sample], examined: Sequence[NDArray[np.bool_]], seed: int
) -> tuple[NDArray[np.int64], ...]:
    """Return the fold of each document: that of its query, or its own if there are too few queries.

    What was examined is shared out evenly, so that no fold is without clicks; what was not teaches none.
    """
    rng = np.random.default_rng([seed, 7])

    def drawn(groups: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.int64]]:
        every = np.concatenate(groups)
        fold = np.zeros(len(every), np.int64)
        fold[every] = rng.permutation(int(every.sum())) % FOLDS
        return np.split(fold, np.cumsum([len(group) for group in groups])[:-1])

    issued = [
        query_sums(seen.astype(np.int64), sample.data.offsets) > 0
        for seen, sample in zip(examined, samples, strict=True)
    ]
    if sum(int(queries.sum()) for queries in issued) < 2 * FOLDS:
        return tuple(drawn(examined))
    return tuple(part[sample.data.query_of_document] for part, sample in zip(drawn(issued), samples, strict=True))
