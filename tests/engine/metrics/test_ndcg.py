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

from saferank.engine import metrics
from saferank.engine.errors import UsageError
from saferank.engine.metrics.by_score import Ties
from saferank.engine.metrics.ndcg import Gain
from tests.engine.metrics.cases import Case, enumerated, ir_measures_values, random_case

GAINS: tuple[Gain, ...] = ("exponential", "linear")


def test_dcg_of_one_list_by_hand() -> None:
    scores, labels, offsets = [0.1, 0.9, 0.5], [3.0, 0.0, 2.0], [0, 3]
    dcg = metrics.dcg_by_score(scores, labels, offsets)
    assert_allclose(dcg, [(2**2 - 1) / log2(3) + (2**3 - 1) / log2(4)])
    linear = metrics.dcg_by_score(scores, labels, offsets, gain="linear")
    assert_allclose(linear, [2 / log2(3) + 3 / log2(4)])
    ideal = metrics.ideal_dcg(labels, offsets)
    assert_allclose(ideal, [(2**3 - 1) / log2(2) + (2**2 - 1) / log2(3)])
    assert_allclose(metrics.ndcg_by_score(scores, labels, offsets), dcg / ideal)


def test_cutoff_ends_both_the_ranking_and_the_ideal() -> None:
    ndcg = metrics.ndcg_by_score([3.0, 2.0, 1.0], [1.0, 0.0, 2.0], [0, 3], 2)
    assert_allclose(ndcg, [1.0 / (3.0 + 1.0 / log2(3))])


def test_discounts_and_gains() -> None:
    assert_allclose(metrics.discounts(3), [1.0, 1 / log2(3), 0.5])
    assert_array_equal(metrics.gains([0, 1, 2, 4]), [0.0, 1.0, 3.0, 15.0])
    assert_array_equal(metrics.gains([0, 1, 2, 4], "linear"), [0.0, 1.0, 2.0, 4.0])


def test_ties_by_position_and_on_average() -> None:
    tied: dict[str, Any] = {"scores": [1.0, 1.0], "labels": [0.0, 1.0], "offsets": [0, 2]}
    assert_allclose(metrics.ndcg_by_score(**tied, ties="position"), [1 / log2(3)])
    assert_allclose(metrics.ndcg_by_score(**tied, ties="average"), [(1 / log2(3) + 1.0) / 2])
    assert_allclose(metrics.ndcg_by_score(**tied), [(1 / log2(3) + 1.0) / 2])


def test_no_relevant_document_is_nan_and_not_zero() -> None:
    scores, labels, offsets = [1.0, 2.0, 1.0, 2.0], [0.0, 0.0, 1.0, 0.0], [0, 2, 4]
    assert_allclose(metrics.ndcg_by_score(scores, labels, offsets), [np.nan, 1 / log2(3)])
    assert_allclose(metrics.dcg_by_score(scores, labels, offsets), [0.0, 1 / log2(3)])
    assert np.isnan(metrics.expected_ndcg(scores, labels, offsets)).tolist() == [True, False]


def test_unplaced_documents_count_in_the_ideal_only() -> None:
    scores, labels, offsets = [-np.inf, 1.0, -np.inf], [1.0, 0.0, 0.0], [0, 3]
    assert_array_equal(metrics.ndcg_by_score(scores, labels, offsets), [0.0])
    assert_array_equal(metrics.expected_ndcg(scores, labels, offsets), [0.0])


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("cutoff", [1, 3, 5, 20])
def test_equals_scikit_learn(cutoff: int, gain: Gain) -> None:
    case = random_case(cutoff)
    worth = metrics.gains(case.labels, gain)
    dcg = metrics.dcg_by_score(*case, cutoff, gain=gain)
    ndcg = metrics.ndcg_by_score(*case, cutoff, gain=gain)
    for query, (scores, gained) in enumerate(Case(case.scores, worth, case.offsets).queries):
        if len(scores) == 1:
            continue  # scikit-learn refuses lists of one document
        assert_allclose(dcg[query], dcg_score([gained], [scores], k=cutoff))
        if gained.any():  # else scikit-learn has 0
            assert_allclose(ndcg[query], ndcg_score([gained], [scores], k=cutoff))


@pytest.mark.parametrize("gain", GAINS)
def test_equals_ir_measures(gain: Gain) -> None:
    case = random_case(3)
    worth = {label: int(metrics.gains(label, gain)) for label in range(5)}
    theirs = ir_measures_values(ir_measures.nDCG(gains=worth) @ 5, case, larger_id_first=True)
    ours = metrics.ndcg_by_score(*case, 5, gain=gain, ties="position")
    assert_allclose(np.nan_to_num(ours), theirs, rtol=1e-12)
    assert_array_equal(np.isnan(ours), [not labels.any() for _, labels in case.queries])


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("cutoff", [1, 3, 10])
def test_expected_ndcg_equals_enumeration(cutoff: int, ties: bool) -> None:
    def dcg(ranked: list[float]) -> float:
        return sum((2**label - 1) / log2(rank + 1) for rank, label in enumerate(ranked, start=1))

    case = random_case(10 + cutoff, queries=12, longest=6, ties=ties)
    expected = enumerated(case, cutoff, dcg)
    assert_allclose(metrics.expected_dcg(*case, cutoff), expected, rtol=1e-7)
    ideal = metrics.ideal_dcg(case.labels, case.offsets, cutoff)
    some = ideal > 0
    assert_allclose(metrics.expected_ndcg(*case, cutoff)[some], expected[some] / ideal[some], rtol=1e-7)


def test_sharp_policy_ranks_by_score_with_ties_on_average() -> None:
    case = random_case(5)
    sharp = metrics.expected_ndcg(100.0 * case.scores, case.labels, case.offsets)
    assert_allclose(sharp, metrics.ndcg_by_score(*case), rtol=1e-6)


@given(st.data())
def test_ndcg_does_not_depend_on_where_documents_and_queries_lie(data: st.DataObject) -> None:
    lists = data.draw(
        st.lists(
            st.lists(st.tuples(st.sampled_from([-50.0, 0.0, 0.5, 50.0]), st.integers(0, 4)), max_size=7),
            max_size=4,
        )
    )
    shuffled = [data.draw(st.permutations(documents)) for documents in lists]

    def ndcg(lists: list[list[tuple[float, int]]]) -> NDArray[np.float64]:
        flat = np.array([document for documents in lists for document in documents]).reshape(-1, 2)
        return metrics.ndcg_by_score(flat[:, 0], flat[:, 1], np.cumsum([0, *map(len, lists)]), 3)

    values = ndcg(lists)
    assert values.shape == (len(lists),)
    assert_allclose(values, ndcg(shuffled), atol=1e-12)
    assert_allclose(values[::-1], ndcg(lists[::-1]), atol=1e-12)
    some = values[~np.isnan(values)]
    assert ((some >= 0.0) & (some <= 1.0 + 1e-12)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": [0, 3]}, r"scores have shape \(2,\), but offsets end at 3\."),
        ({"labels": [1.0]}, r"labels have shape \(1,\), but offsets end at 2\."),
        (
            {"offsets": [1, 2]},
            "offsets must start at 0 and never fall, with one entry more than there are queries",
        ),
        ({"offsets": [0, 3, 2]}, "offsets must start at 0 and never fall"),
        ({"scores": [0.0, np.nan]}, "document 1 has score nan; a score is a number or -inf"),
        ({"scores": [np.inf, 0.0]}, "document 0 has score inf; a score is a number or -inf"),
        ({"labels": [1.0, -1.0]}, "document 1 has label -1.0; a label is a number from 0 up"),
        ({"cutoff": 0}, "cutoff is 0, but a ranking has at least 1 rank"),
        ({"gain": "square"}, "gain='square' is unknown; choose 'exponential' or 'linear'"),
        ({"ties": "random"}, "ties='random' is unknown; choose 'average' or 'position'"),
    ],
)
def test_says_what_cannot_be_measured(change: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"scores": [1.0, 2.0], "labels": [1.0, 0.0], "offsets": [0, 2]}
    with pytest.raises(UsageError, match=message):
        metrics.ndcg_by_score(**(call | change))


@pytest.mark.parametrize("ties", ["average", "position"])
def test_no_query_at_all(ties: Ties) -> None:
    assert metrics.ndcg_by_score([], [], [0], ties=ties).shape == (0,)


def test_public_names_are_listed_and_load() -> None:
    assert sorted(metrics.__all__) == dir(metrics)
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'auc'"):
        _ = metrics.auc
