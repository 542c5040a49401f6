"""The synthetic data looks like MSLR-WEB30K: kinds of features, lists, labels; and a ranker can learn from it."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import ndcg_score

from saferank.datasets.dataset import Dataset, load_dataset
from saferank.datasets.synthetic import (
    FACTS,
    FEATURE_NAMES,
    PRESETS,
    STATISTICS,
    Preset,
    synthetic_dataset,
)
from saferank.engine.errors import UsageError
from saferank.engine.types.ranking_data import RankingData

STREAMS = ("body", "anchor", "title", "url", "whole")


@pytest.fixture(scope="module")
def small() -> Dataset:
    return synthetic_dataset("small")


@pytest.fixture(scope="module")
def long_lists() -> RankingData:
    """Return a thousand queries with lists as long as in the MSLR presets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "long", Preset((1_000, 1, 1), PRESETS["mslr30k"].mean_length, noise=0.45))
        return synthetic_dataset("long").train


def column(data: RankingData, name: str) -> NDArray[np.float32]:
    return data.features[:, FEATURE_NAMES.index(name)]


def digest(dataset: Dataset) -> str:
    total = hashlib.sha256()
    for part in dataset.splits.values():
        for array in (part.features, part.offsets, part.require_labels()):
            total.update(array.tobytes())
    return total.hexdigest()


def mean_ndcg(scores: NDArray[np.float64], data: RankingData) -> float:
    gains = 2.0 ** data.require_labels() - 1.0
    return float(
        np.mean(
            [
                ndcg_score([gains[start:end]], [scores[start:end]], k=5)
                for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)
                if end - start > 1 and gains[start:end].max() > 0
            ]
        )
    )


def test_same_seed_gives_the_same_bytes(small: Dataset) -> None:
    assert digest(synthetic_dataset("small", seed=0)) == digest(small)
    assert digest(synthetic_dataset("small@0", seed=3)) == digest(small)  # the seed in the name counts


def test_another_seed_gives_other_data(small: Dataset) -> None:
    seventh = load_dataset("synthetic:small@7")
    assert digest(seventh) != digest(small)
    assert digest(seventh) == digest(synthetic_dataset("small", seed=7))


def test_names_tell_where_the_data_came_from(small: Dataset) -> None:
    assert small.name == "synthetic:small@0"
    assert synthetic_dataset("small@7").test.source == "synthetic:small@7"
    for part, data in small.splits.items():
        assert data.query_ids is not None
        assert list(data.query_ids) == [f"{part}-{query}" for query in range(data.queries)]
        assert data.feature_names == FEATURE_NAMES


@pytest.mark.parametrize("preset", ["tiny@3", "small@", "small@x", "small@-1"])
def test_unknown_presets_and_seeds(preset: str) -> None:
    with pytest.raises(UsageError, match=preset.split("@")[0]):
        synthetic_dataset(preset)


def test_splits_have_nothing_in_common(small: Dataset) -> None:
    rows = [{row.tobytes() for row in part.features} for part in small.splits.values()]
    assert len(set.union(*rows)) == sum(part.documents for part in small.splits.values())
    lengths = np.array([part.lengths[:200] for part in small.splits.values()])
    correlations = np.atleast_2d(np.corrcoef(lengths))[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(200)


def test_list_lengths(small: Dataset, long_lists: RankingData) -> None:
    # gamma of shape 2 over gamma of shape 8: variance = mean^2 (2 + 8 - 1) / (2 (8 - 2))
    for lengths, mean in ((small.train.lengths, 40.0), (long_lists.lengths, 120.0)):
        assert abs(lengths.mean() - mean) < 5 * mean * np.sqrt(0.75 / len(lengths))
        assert 1 <= lengths.min() < 0.15 * mean
        assert 4.5 * mean < lengths.max() <= 1_000


def test_longest_and_shortest_list() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "longest", Preset((3, 3, 3), mean_length=1e6, noise=0.45))
        patch.setitem(PRESETS, "shortest", Preset((70, 1, 1), mean_length=1e-6, noise=0.45))
        longest, shortest = synthetic_dataset("longest"), synthetic_dataset("shortest")
    assert all((part.lengths == 1_000).all() for part in longest.splits.values())
    assert all((part.lengths == 1).all() for part in shortest.splits.values())


def test_label_shares(small: Dataset, long_lists: RankingData) -> None:
    everything = np.concatenate([part.require_labels() for part in small.splits.values()])
    for labels in (everything, long_lists.require_labels()):
        shares = np.bincount(labels.astype(np.int64)) / len(labels)
        # leniency is shared within a query, so the shares vary more than those of independent labels
        np.testing.assert_allclose(shares, [0.55, 0.30, 0.13, 0.015, 0.006], atol=0.03, rtol=0.0)
        np.testing.assert_allclose(shares[3:], [0.015, 0.006], rtol=0.3)


def test_features_are_raw_finite_float32(small: Dataset) -> None:
    for part in small.splits.values():
        assert part.features.dtype == np.float32
        assert part.features.shape == (part.documents, 136)
        assert np.isfinite(part.features).all()
    assert len(set(FEATURE_NAMES)) == 136 == len(STREAMS) * len(STATISTICS) + len(FACTS)
    assert (small.train.features.std(axis=0) > 0).all()


def test_booleans(small: Dataset) -> None:
    for stream in STREAMS:
        boolean = column(small.train, f"{stream}_all_covered")
        assert set(np.unique(boolean)) == {0.0, 1.0}
        np.testing.assert_array_equal(boolean == 1.0, column(small.train, f"{stream}_covered_ratio") == 1.0)


def test_counts_are_whole_numbers(small: Dataset) -> None:
    names = [f"{stream}_{count}" for stream in STREAMS for count in ("length", "covered_terms", "tf_sum")]
    for name in (*names, "inlinks", "outlinks", "url_slashes", "url_clicks", "query_url_clicks", "page_rank"):
        values = column(small.train, name)
        assert (values >= 0).all(), name
        np.testing.assert_array_equal(values, values.round(), err_msg=name)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("body_tf_sum", 0.04, 0.2),
        ("anchor_tf_sum", 0.8, 0.95),
        ("title_tf_sum", 0.25, 0.5),
        ("url_tf_sum", 0.5, 0.75),
        ("inlinks", 0.25, 0.45),
        ("query_url_clicks", 0.95, 0.99),
        ("url_dwell_time", 0.65, 0.8),
    ],
)
def test_share_of_zeros(small: Dataset, name: str, low: float, high: float) -> None:
    assert low < np.mean(column(small.train, name) == 0.0) < high


@pytest.mark.parametrize("name", ["body_tf_variance", "inlinks", "url_clicks", "body_length"])
def test_heavy_tails(small: Dataset, name: str) -> None:
    values = column(small.train, name)
    assert values.max() > 10 * max(float(np.percentile(values, 90)), 1.0)


def test_statistics_of_a_stream_fit_together(small: Dataset) -> None:
    data = small.train
    for stream in STREAMS:
        for count in ("tf", "tf_per_word", "tf_idf"):
            low, mean, high, total = (
                column(data, f"{stream}_{count}_{s}").astype(np.float64) for s in ("min", "mean", "max", "sum")
            )
            slack = 1e-5 * high
            assert ((low <= mean + slack) & (mean <= high + slack) & (high <= total + slack)).all()
        assert (column(data, f"{stream}_tf_per_word_sum") <= 1.0 + 1e-5).all()
        assert (column(data, f"{stream}_cosine") <= 1.0 + 1e-5).all()
        for model in ("absolute", "dirichlet", "jelinek_mercer"):
            assert (column(data, f"{stream}_lm_{model}") <= 1e-5).all()
    for statistic in ("tf_sum", "length"):
        parts = sum(column(data, f"{stream}_{statistic}") for stream in STREAMS[:4])
        np.testing.assert_array_equal(parts, column(data, f"whole_{statistic}"))


def test_idf_belongs_to_the_query(small: Dataset) -> None:
    starts = small.train.offsets[:-1]
    for stream in STREAMS:
        idf = column(small.train, f"{stream}_idf")
        np.testing.assert_array_equal(np.minimum.reduceat(idf, starts), np.maximum.reduceat(idf, starts))


def test_groups_of_features_are_strongly_correlated(small: Dataset) -> None:
    scaled = small.train.log1p()

    def correlation(one: str, other: str) -> float:
        return float(np.corrcoef(column(scaled, one), column(scaled, other))[0, 1])

    assert correlation("body_tf_sum", "whole_tf_sum") > 0.9
    assert correlation("body_tf_sum", "body_tf_max") > 0.9
    assert correlation("title_tf_sum", "title_tf_idf_sum") > 0.85
    assert correlation("page_rank", "site_rank") > 0.6
    assert 0.1 < correlation("body_bm25", "title_bm25") < 0.8  # the topic shows in both
    assert abs(correlation("page_rank", "quality_score")) < 0.05


def test_least_squares_learns_to_rank(small: Dataset) -> None:
    train = small.train.log1p().scaled_per_query()
    test = small.test.log1p().scaled_per_query()
    gains = np.log1p(train.require_labels())
    starts, query = train.offsets[:-1], train.query_of_document
    gains -= (np.add.reduceat(gains, starts) / train.lengths)[query]
    gram = train.features.T @ train.features + 10.0 * np.eye(train.features.shape[1])
    weights = np.linalg.solve(gram, train.features.T @ gains)
    at_random = mean_ndcg(np.random.default_rng(0).random(test.documents), test)
    by_bm25 = mean_ndcg(column(test, "whole_bm25").astype(np.float64), test)
    learned = mean_ndcg(test.features @ weights, test)
    assert at_random < 0.33
    assert at_random + 0.07 < by_bm25 < learned
    assert at_random + 0.12 < learned < 0.6
