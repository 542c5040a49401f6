"""The regression of relevance: what it finds, and what it must not have seen."""

import tracemalloc
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import lightgbm
import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.files import large_table
from saferank.learning import lightgbm_trees
from saferank.learning import relevance as regression
from saferank.learning.relevance import FOLDS, RelevanceModel, Sample, fit_relevance
from tests.learning.problem import EXAMINATION, make_part, only_first_queries

DOCUMENTS = 6


def even_log(relevance: NDArray[np.float64], times: int, seed: int = 0) -> LogStatistics:
    """Queries of six documents, each shown so many times at each of three ranks."""
    rng = np.random.default_rng(seed)
    queries = len(relevance) // DOCUMENTS
    shown = np.full((len(relevance), 3), times)
    clicked = rng.binomial(shown, relevance[:, None] * EXAMINATION)
    offsets = np.arange(0, len(relevance) + 1, DOCUMENTS)
    return LogStatistics(offsets, np.full(queries, DOCUMENTS * times), shown, clicked)


def features_and_relevance(queries: int, seed: int = 0) -> tuple[RankingData, NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(queries * DOCUMENTS, 3)).astype(np.float32)
    relevance = np.where(features[:, 0] > 0, 0.6, 0.2)
    return RankingData(features, np.arange(0, len(features) + 1, DOCUMENTS)), relevance


def test_the_clicks_on_a_query_do_not_move_its_own_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the number of trees stays, which all folds choose together, the fold of the query sees no difference."""
    monkeypatch.setattr(regression, "MOST_TREES", 8)
    data, relevance = features_and_relevance(20)
    log = even_log(relevance, 200)
    query = 3
    own = slice(data.offsets[query], data.offsets[query + 1])
    clicked = log.clicked.copy()
    clicked[own] = np.where(np.arange(DOCUMENTS)[:, None] < 3, log.shown[own], 0)
    first = replace(log, clicked=clicked)
    clicked = clicked.copy()
    clicked[own] = clicked[own][::-1]
    models = [fit_relevance([Sample(data, one, EXAMINATION)]) for one in (first, replace(log, clicked=clicked))]
    assert [forest.trees for model in models for forest in model.forests] == [8] * (2 * FOLDS)
    one, two = (model.cross_fitted(0, data) for model in models)
    np.testing.assert_allclose(one[own], two[own], rtol=1e-6)
    fold = models[0].folds[0]
    others = fold != fold[own][0]
    assert np.abs(one - two)[others].max() > 1e-3
    seen = [model.forest.scores(data.features) for model in models]
    assert np.abs(seen[0] - seen[1])[own].max() > 1e-3


def test_queries_are_not_divided_between_folds_and_folds_are_even() -> None:
    samples = [Sample(part.data, part.log, EXAMINATION) for part in (make_part(1), make_part(2, queries=23))]
    folds = fit_relevance(samples).folds
    of_query = []
    for sample, fold in zip(samples, folds, strict=True):
        first = fold[sample.data.offsets[:-1]]
        np.testing.assert_array_equal(fold, first[sample.data.query_of_document])
        of_query.append(first)
    assert np.ptp(np.bincount(np.concatenate(of_query), minlength=FOLDS)) <= 1


def fitted(seed: int) -> tuple[RelevanceModel, RankingData]:
    part = make_part(1)
    return fit_relevance([Sample(part.data, part.log, EXAMINATION)], seed=seed), part.data


def as_bytes(model: RelevanceModel, data: RankingData) -> bytes:
    arrays = [array for forest in model.forests for array in forest.arrays().values()]
    return b"".join(array.tobytes() for array in [*arrays, model.cross_fitted(0, data)])


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others() -> None:
    assert as_bytes(*fitted(0)) == as_bytes(*fitted(0))
    assert as_bytes(*fitted(0)) != as_bytes(*fitted(1))


def test_it_finds_a_known_function_and_better_with_more_clicks() -> None:
    data, relevance = features_and_relevance(80)
    errors = []
    for times in (1, 2000):
        model = fit_relevance([Sample(data, even_log(relevance, times), EXAMINATION)])
        errors.append(np.abs(model.cross_fitted(0, data) - relevance))
    assert errors[1].mean() < 0.01
    assert errors[1].mean() < 0.2 * errors[0].mean()


def test_a_document_shown_low_is_as_relevant_as_the_same_one_shown_high() -> None:
    """Half of the documents are always on top, half always at rank 3; users like them alike, and click the first."""
    queries, times = 60, 4000
    rng = np.random.default_rng(1)
    low = np.tile([0, 0, 0, 1, 1, 1], queries)
    features = np.column_stack([low, rng.normal(size=len(low))]).astype(np.float32)
    shown = np.zeros((len(low), 3), np.int64)
    shown[low == 0, 0] = shown[low == 1, 2] = times
    clicked = rng.binomial(shown, 0.4 * EXAMINATION)
    data = RankingData(features, np.arange(0, len(low) + 1, DOCUMENTS))
    log = LogStatistics(data.offsets, np.full(queries, 3 * times), shown, clicked)
    found = fit_relevance([Sample(data, log, EXAMINATION)]).cross_fitted(0, data)
    rates = [clicked[low == place].sum() / shown[low == place].sum() for place in (0, 1)]
    assert rates[0] > 3 * rates[1]
    np.testing.assert_allclose([found[low == 0].mean(), found[low == 1].mean()], [0.4, 0.4], atol=0.01)


def test_what_is_examined_more_has_more_weight() -> None:
    """Of two kinds of documents with the same features, the one with a hundred times the examinations decides."""
    queries = 40
    often = np.tile([1, 0], 3 * queries)
    features = np.random.default_rng(2).normal(size=(len(often), 1)).astype(np.float32)
    shown = np.where(often, 200, 2)[:, None] * np.ones((1, 3), np.int64)
    clicked = np.where(often[:, None], 0.2 * shown * EXAMINATION, shown * EXAMINATION).astype(np.int64)
    data = RankingData(features, np.arange(0, len(often) + 1, DOCUMENTS))
    log = LogStatistics(data.offsets, np.full(queries, 1000), shown, clicked)
    found = fit_relevance([Sample(data, log, EXAMINATION)]).cross_fitted(0, data).mean()
    plain = (log.clicks / (shown @ EXAMINATION)).mean()
    assert found == pytest.approx(0.2, abs=0.06) != pytest.approx(plain, abs=0.2)


def test_two_samples_teach_one_another() -> None:
    """The second has no click of its own to speak of, and is predicted by what the first one shows."""
    data, relevance = features_and_relevance(60)
    other, truth = features_and_relevance(20, seed=5)
    samples = [Sample(data, even_log(relevance, 500), EXAMINATION), Sample(other, even_log(truth, 1), EXAMINATION)]
    assert np.abs(fit_relevance(samples).cross_fitted(1, other) - truth).mean() < 0.05


def test_only_the_first_features_are_read() -> None:
    data, relevance = features_and_relevance(40)
    swapped = replace(data, features=data.features[:, [1, 2, 0]])
    log = even_log(relevance, 200)
    assert fit_relevance([Sample(swapped, log, EXAMINATION)]).forest.features_read == 3
    assert fit_relevance([Sample(swapped, log, EXAMINATION)], features=2).forest.features_read <= 2


def test_few_queries_are_divided_by_document() -> None:
    data, relevance = features_and_relevance(4)
    model = fit_relevance([Sample(data, even_log(relevance, 500), EXAMINATION)])
    assert len(model.forests) == FOLDS
    assert len(np.unique(model.folds[0][: data.offsets[1]])) > 1
    assert np.isfinite(model.cross_fitted(0, data)).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("issued", [1, 2, 10])
def test_queries_that_were_never_issued_are_predicted_too(issued: int, seed: int) -> None:
    """Few of the queries were ever issued, by chance none of some fifth of them."""
    data, relevance = features_and_relevance(40)
    log = only_first_queries(even_log(relevance, 500), issued)
    found = fit_relevance([Sample(data, log, EXAMINATION)], seed=seed).cross_fitted(0, data)
    assert np.all((found > 0) & (found < 1))


def test_no_clicks_are_too_few() -> None:
    data, relevance = features_and_relevance(12)
    log = even_log(0 * relevance, 5)
    with pytest.raises(DataError):
        fit_relevance([Sample(data, log, EXAMINATION)])


def test_progress_is_told_the_number_of_trees() -> None:
    data, relevance = features_and_relevance(20)
    told: list[int] = []
    model = fit_relevance([Sample(data, even_log(relevance, 50), EXAMINATION)], progress=told.append)
    assert told == list(range(1, len(told) + 1))
    assert len(told) >= model.forests[0].trees > 0


def test_folds_one_by_one_are_those_grown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regression, "MOST_TREES", 8)
    data, relevance = features_and_relevance(40)
    sample = Sample(data, even_log(relevance, 20), EXAMINATION)
    at_once = fit_relevance([sample])
    monkeypatch.setattr(regression, "LARGE", 0)
    one_by_one = fit_relevance([sample])
    assert [forest.trees for forest in one_by_one.forests] == [8] * FOLDS
    assert as_bytes(one_by_one, data) == as_bytes(at_once, data)


def test_of_large_tables_the_first_fold_chooses_the_number_of_trees_and_one_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regression, "LARGE", 0)
    monkeypatch.setattr(regression, "PATIENCE_OF_ONE", 3)
    train, grown, wanted = lightgbm.train, WeakSet[Any](), []

    def watched(parameters: Any, table: Any, trees: int, **others: Any) -> lightgbm.Booster:
        assert len(grown) == 0
        wanted.append(trees)
        booster = train(parameters, table, trees, **others)
        grown.update([booster, table])
        return booster

    monkeypatch.setattr(lightgbm, "train", watched)
    data, relevance = features_and_relevance(40)
    model = fit_relevance([Sample(data, even_log(relevance, 5), EXAMINATION)])
    first = model.forests[0].trees
    assert wanted == [regression.MOST_TREES] + [first] * (FOLDS - 1)
    assert [forest.trees for forest in model.forests] == [first] * FOLDS


def test_no_copy_of_the_features_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of all rows have one number per row; whatever has all columns is a block of rows, or the sample for bins.

    Only what NumPy allocates is counted: the bins of LightGBM are not.
    """
    monkeypatch.setattr(regression, "MOST_TREES", 2)
    monkeypatch.setattr(regression, "PARAMETERS", regression.PARAMETERS | {"bin_construct_sample_cnt": 500})
    for module in (lightgbm_trees, large_table):
        monkeypatch.setattr(module, "BLOCK", 500)
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((12_000, 400), np.float32), np.arange(0, 12_001, DOCUMENTS))
    sample = Sample(data, even_log(np.full(12_000, 0.3), 3), EXAMINATION)
    tracemalloc.start()
    try:
        fit_relevance([sample]).cross_fitted(0, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.7 * data.features.nbytes
