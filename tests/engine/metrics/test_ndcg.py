"""DCG and NDCG against arithmetic, enumeration of all rankings, scikit-learn and ir-measures."""

from math import log2
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.metrics import dcg_score, ndcg_score

from saferank.engine.errors import UsageError
from saferank.engine.metrics.ndcg import (
    Gain,
    dcg_by_score,
    discounts,
    expected_dcg,
    expected_ndcg,
    gains,
    ideal_dcg,
    ndcg_by_score,
    normalised_gains,
)
from saferank.engine.plackett_luce import exposure
from tests.engine.metrics.cases import Case, enumerated, ir_measures_values, random_case


def test_dcg_of_one_list_by_hand() -> None:
    scores, labels, offsets = [0.1, 0.9, 0.5], [3.0, 0.0, 2.0], [0, 3]
    dcg = dcg_by_score(scores, labels, offsets)
    assert_allclose(dcg, [(2**2 - 1) / log2(3) + (2**3 - 1) / log2(4)])
    assert_allclose(dcg_by_score(scores, labels, offsets, gain="linear"), [2 / log2(3) + 3 / log2(4)])
    ideal = ideal_dcg(labels, offsets)
    assert_allclose(ideal, [(2**3 - 1) / log2(2) + (2**2 - 1) / log2(3)])
    assert_allclose(ndcg_by_score(scores, labels, offsets), dcg / ideal)
    assert_allclose(discounts(3), [1.0, 1 / log2(3), 0.5])


def test_cutoff_ends_both_the_ranking_and_the_ideal() -> None:
    ndcg = ndcg_by_score([3.0, 2.0, 1.0], [1.0, 0.0, 2.0], [0, 3], 2)
    assert_allclose(ndcg, [1.0 / (3.0 + 1.0 / log2(3))])


def test_without_a_relevant_document_ndcg_is_nan_and_not_zero() -> None:
    scores, labels, offsets = [1.0, 2.0, 1.0, 2.0], [0.0, 0.0, 1.0, 0.0], [0, 2, 4]
    assert_allclose(ndcg_by_score(scores, labels, offsets), [np.nan, 1 / log2(3)])
    assert_allclose(dcg_by_score(scores, labels, offsets), [0.0, 1 / log2(3)])
    assert np.isnan(expected_ndcg(scores, labels, offsets)).tolist() == [True, False]


def test_normalised_gains_by_hand_and_as_expected_ndcg() -> None:
    labels, offsets = [1.0, 3.0, 0.0, 0.0, 0.0], [0, 3, 5]
    ideal = (2**3 - 1) / log2(2) + (2**1 - 1) / log2(3)
    found = normalised_gains(labels, offsets, 2)
    assert_allclose(found, [1 / ideal, 7 / ideal, 0.0, 0.0, 0.0])
    scores = [0.3, -0.2, 0.9, 0.1, 0.0]
    expected = expected_ndcg(scores, labels, offsets, 2)[0]
    assert_allclose(found @ exposure(scores, offsets, discounts(2)), expected, rtol=1e-9)


def test_unplaced_documents_count_in_the_ideal_only() -> None:
    scores, labels, offsets = [-np.inf, 1.0, -np.inf], [1.0, 0.0, 0.0], [0, 3]
    assert_array_equal(ndcg_by_score(scores, labels, offsets), [0.0])
    assert_array_equal(expected_ndcg(scores, labels, offsets), [0.0])


@pytest.mark.parametrize(("cutoff", "gain"), [(1, "exponential"), (5, "linear"), (20, "exponential")])
def test_equals_scikit_learn_ties_included(cutoff: int, gain: Gain) -> None:
    case = random_case(cutoff)
    dcg, ndcg = (metric(*case, cutoff, gain=gain) for metric in (dcg_by_score, ndcg_by_score))
    for query, (scores, gained) in enumerate(Case(case.scores, gains(case.labels, gain), case.offsets).queries):
        if len(scores) == 1:
            continue  # scikit-learn refuses lists of one document
        assert_allclose(dcg[query], dcg_score([gained], [scores], k=cutoff))
        if gained.any():  # else scikit-learn has 0
            assert_allclose(ndcg[query], ndcg_score([gained], [scores], k=cutoff))


def test_equals_ir_measures() -> None:
    case = random_case(3, ties=False)
    exponential = {label: int(gains(label)) for label in range(5)}
    ours = ndcg_by_score(*case, 5)
    assert_allclose(np.nan_to_num(ours), ir_measures_values(ir_measures.nDCG(gains=exponential) @ 5, case), rtol=1e-12)
    assert_array_equal(np.isnan(ours), [not labels.any() for _, labels in case.queries])


@pytest.mark.parametrize(("cutoff", "ties"), [(1, True), (3, False), (10, True)])
def test_expected_ndcg_equals_enumeration(cutoff: int, ties: bool) -> None:
    def dcg(ranked: list[float]) -> float:
        return sum((2**label - 1) / log2(rank + 1) for rank, label in enumerate(ranked, start=1))

    case = random_case(10 + cutoff, queries=12, longest=6, ties=ties)
    expected = enumerated(case, cutoff, dcg)
    assert_allclose(expected_dcg(*case, cutoff), expected, rtol=1e-7)
    ideal = ideal_dcg(case.labels, case.offsets, cutoff)
    some = ideal > 0
    assert_allclose(expected_ndcg(*case, cutoff)[some], expected[some] / ideal[some], rtol=1e-7)


def test_sharp_policy_ranks_by_score_with_ties_on_average() -> None:
    case = random_case(5)
    sharp = expected_ndcg(100.0 * case.scores, case.labels, case.offsets)
    assert_allclose(sharp, ndcg_by_score(*case), rtol=1e-6)


@given(st.data())
def test_ndcg_does_not_depend_on_where_documents_and_queries_lie(data: st.DataObject) -> None:
    document = st.tuples(st.sampled_from([-50.0, 0.0, 0.5, 50.0]), st.integers(0, 4))
    lists = data.draw(st.lists(st.lists(document, min_size=1, max_size=7), max_size=4))
    shuffled = [data.draw(st.permutations(documents)) for documents in lists]

    def ndcg(lists: list[list[tuple[float, int]]]) -> NDArray[np.float64]:
        flat = np.array([document for documents in lists for document in documents]).reshape(-1, 2)
        return ndcg_by_score(flat[:, 0], flat[:, 1], np.cumsum([0, *map(len, lists)]), 3)

    values = ndcg(lists)
    assert values.shape == (len(lists),)
    assert_allclose(values, ndcg(shuffled), atol=1e-12)
    assert_allclose(values[::-1], ndcg(lists[::-1]), atol=1e-12)
    some = values[~np.isnan(values)]
    assert ((some >= 0.0) & (some <= 1.0 + 1e-12)).all()


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": [0, 3]},
        {"labels": [1.0]},
        {"offsets": [1, 2]},
        {"scores": [0.0, np.nan]},
        {"labels": [1.0, -1.0]},
        {"cutoff": 0},
        {"gain": "square"},
    ],
)
def test_refuses_what_cannot_be_measured(change: dict[str, Any]) -> None:
    call: dict[str, Any] = {"scores": [1.0, 2.0], "labels": [1.0, 0.0], "offsets": [0, 2]}
    with pytest.raises(UsageError):
        ndcg_by_score(**(call | change))
