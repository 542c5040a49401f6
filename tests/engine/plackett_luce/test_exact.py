"""Placement, exposure and gradient against enumeration, Monte Carlo, and what they must sum to."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.engine.plackett_luce import (
    exposure,
    exposure_vjp,
    exposure_vjp_with_curvature,
    placement,
    sample_rankings,
)
from tests.oracles import enumeration

CASES = [(1, 1, 1), (1, 3, 2), (2, 1, 0), (2, 5, 2), (4, 4, 1), (5, 3, 2), (6, 1, 2), (6, 6, 0), (7, 5, 1), (7, 8, 2)]
"""Documents, cutoff, and which scale of scores: lists shorter than, as long as and longer than the cutoff."""


def random_scores(documents: int, seed: int) -> list[float]:
    rng = np.random.default_rng([documents, seed])
    return list(rng.normal(size=documents) * [0.1, 1.0, 6.0][seed])


@pytest.mark.parametrize(("documents", "cutoff", "seed"), CASES)
def test_placement_equals_enumeration(documents: int, cutoff: int, seed: int) -> None:
    scores = random_scores(documents, seed)
    found = placement(scores, [0, documents], cutoff)
    np.testing.assert_allclose(found, enumeration.placement(scores, cutoff), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("documents", "cutoff", "seed"), CASES)
def test_exposure_equals_enumeration(documents: int, cutoff: int, seed: int) -> None:
    scores = random_scores(documents, seed)
    examination = np.random.default_rng(cutoff).random(cutoff)
    expected = enumeration.exposure(scores, list(examination))
    np.testing.assert_allclose(exposure(scores, [0, documents], examination), expected, rtol=0, atol=1e-8)
    single = exposure(np.asarray(scores, np.float32), [0, documents], examination)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("documents", "cutoff", "seed"), [c for c in CASES if c[0] <= 6])
def test_vjp_equals_central_differences_of_enumeration(documents: int, cutoff: int, seed: int) -> None:
    scores = np.array(random_scores(documents, seed))
    rng = np.random.default_rng(cutoff)
    examination, cotangent = list(rng.random(cutoff)), rng.normal(size=documents)
    step = 1e-5
    expected = [
        cotangent
        @ (enumeration.exposure(scores + nudge, examination) - enumeration.exposure(scores - nudge, examination))
        / (2 * step)
        for nudge in step * np.eye(documents)
    ]
    found = exposure_vjp(scores, [0, documents], examination, cotangent)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    single = exposure_vjp(np.asarray(scores, np.float32), [0, documents], examination, cotangent)
    np.testing.assert_allclose(single, expected, rtol=0, atol=3e-4)


@pytest.mark.parametrize(("documents", "cutoff", "seed"), [c for c in CASES if c[0] <= 6])
def test_curvature_adds_up_what_a_score_does_to_every_exposure(documents: int, cutoff: int, seed: int) -> None:
    """Also with negative cotangents, of which only the differences within a query count, and beside another query."""
    scores = np.array(random_scores(documents, seed))
    rng = np.random.default_rng(cutoff)
    examination, cotangent = sorted(rng.random(cutoff), reverse=True), rng.normal(size=documents)
    step = 1e-5
    jacobian = np.array(
        [
            (enumeration.exposure(scores + nudge, examination) - enumeration.exposure(scores - nudge, examination))
            / (2 * step)
            for nudge in step * np.eye(documents)
        ]
    )
    expected = np.abs(jacobian) @ (cotangent - cotangent.min())
    two = np.concatenate([scores, [0.3, -0.2]]), [0, documents, documents + 2], examination, [*cotangent, -9.0, -7.0]
    gradient, curvature = exposure_vjp_with_curvature(*two)
    np.testing.assert_allclose(gradient[:-2], jacobian @ cotangent, rtol=0, atol=1e-8)
    np.testing.assert_allclose(curvature[:-2], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("documents", "cutoff", "score_range"), [(1, 3, 1.0), (2, 5, 100.0), (30, 1, 10.0), (30, 30, 0.0), (1251, 10, 60.0)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_and_columns_of_placement_sum_to_what_they_must(
    documents: int, cutoff: int, score_range: float, dtype: type[np.floating[Any]]
) -> None:
    rng = np.random.default_rng(documents + cutoff)
    scores = np.asarray(rng.random(documents) * score_range, dtype)
    found = placement(scores, [0, documents], cutoff)
    close = 2e-4 if dtype is np.float32 else 1e-8
    filled = min(documents, cutoff)
    np.testing.assert_allclose(found.sum(axis=0), [1.0] * filled + [0.0] * (cutoff - filled), atol=close)
    assert found.min() >= 0
    assert found.sum(axis=1).max() <= 1 + close
    if cutoff >= documents:
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=close)


@given(
    lists=st.lists(st.lists(st.floats(-50, 50), min_size=1, max_size=6), min_size=1, max_size=6),
    cutoff=st.integers(1, 8),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_any_ragged_lists_give_what_each_gives_alone(
    lists: list[list[float]], cutoff: int, data: st.DataObject
) -> None:
    offsets = np.cumsum([0] + [len(scores) for scores in lists])
    flat = [score for scores in lists for score in scores]
    examination = data.draw(st.lists(st.floats(0, 1), min_size=cutoff, max_size=cutoff))
    found = exposure(flat, offsets, examination)
    expected = np.concatenate([enumeration.exposure(scores, examination) for scores in lists])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    matrix = placement(flat, offsets, cutoff)
    np.testing.assert_allclose(matrix @ examination, found, rtol=0, atol=1e-8)


def test_ties_share_exposure_equally() -> None:
    found = exposure([2.0, 2.0, 2.0, 2.0], [0, 4], [1.0, 0.5])
    np.testing.assert_allclose(found, (1.0 + 0.5) / 4, atol=1e-9)


def test_a_document_with_score_minus_infinity_is_never_placed() -> None:
    scores = [0.3, -math.inf, 1.2, -math.inf, -0.5]
    for cutoff in (1, 3, 5):
        found = placement(scores, [0, 5], cutoff)
        np.testing.assert_allclose(found, enumeration.placement(scores, cutoff), atol=1e-8)
    assert exposure_vjp(scores, [0, 5], [1.0, 0.5], [1.0, 2.0, 3.0, 4.0, 5.0])[[1, 3]].tolist() == [0.0, 0.0]


def test_a_query_in_which_no_document_can_arrive_has_no_exposure() -> None:
    scores = [-math.inf, -math.inf, 0.5]
    assert exposure(scores, [0, 2, 3], [1.0, 0.5])[:2].tolist() == [0.0, 0.0]
    assert exposure_vjp(scores, [0, 2, 3], [1.0, 0.5], [1.0, 1.0, 1.0])[:2].tolist() == [0.0, 0.0]


def test_scores_too_far_apart_for_their_exponentials() -> None:
    scores = [0.0, 900.0, -900.0, 1800.0]
    expected = np.eye(4)[[2, 1, 3, 0]]
    np.testing.assert_allclose(placement(scores, [0, 4], 4), expected, atol=1e-8)
    np.testing.assert_allclose(placement(np.asarray(scores, np.float32), [0, 4], 4), expected, atol=1e-3)


def test_exposure_does_not_depend_on_a_constant_added_to_the_scores() -> None:
    scores = np.random.default_rng(0).normal(size=50)
    np.testing.assert_allclose(
        exposure(scores + 1000.0, [0, 50], [1.0, 0.5]), exposure(scores, [0, 50], [1.0, 0.5]), atol=1e-9
    )
    gradient = exposure_vjp(scores, [0, 50], [1.0, 0.5], np.arange(50.0))
    assert abs(gradient.sum()) < 1e-7


@pytest.mark.parametrize("cutoff", [1, 20])
def test_long_lists_agree_with_sampled_rankings(cutoff: int) -> None:
    scores = np.random.default_rng(cutoff).normal(size=1251)
    samples = 20_000
    rankings = sample_rankings(scores, [0, 1251], cutoff, samples, np.random.default_rng(1))[0]
    examination = 1 / np.arange(1, cutoff + 1)
    seen = np.zeros(1251)
    for rank in range(cutoff):
        seen += examination[rank] * np.bincount(rankings[:, rank], minlength=1251)
    exact = exposure(scores, [0, 1251], examination)
    error = np.sqrt(exact / samples)  # Var[examination of d] <= E[examination^2] <= rho(d)
    assert np.all(np.abs(seen / samples - exact) <= 5 * error)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize(
    ("documents", "cutoff", "scale"),
    [(2, 1, 1), (5, 5, 1), (120, 5, 5), (1000, 10, 0.3), (300, 50, 0.5), (60, 20, 15)],
)
def test_the_stated_tolerance_is_kept(documents: int, cutoff: int, scale: float, tolerance: float) -> None:
    rng = np.random.default_rng(documents * cutoff)
    scores, cotangent = rng.normal(size=documents) * scale, rng.normal(size=documents)
    for examination in (1 / np.arange(1, cutoff + 1), np.eye(cutoff)[-1]):
        call = scores, [0, documents], examination
        reference = exposure(*call, nodes=800, tolerance=1e-14)
        error = exposure(*call, tolerance=tolerance) - reference
        assert np.linalg.norm(error) <= tolerance * np.linalg.norm(reference)
        reference = exposure_vjp(*call, cotangent, nodes=800, tolerance=1e-14)
        error = exposure_vjp(*call, cotangent, tolerance=tolerance) - reference
        assert np.linalg.norm(error) <= tolerance * np.linalg.norm(reference)


def test_single_precision_keeps_the_default_tolerance() -> None:
    rng = np.random.default_rng(0)
    scores, cotangent = rng.normal(size=1251) * 3, rng.normal(size=1251)
    examination = 1 / np.log2(np.arange(2, 12))
    exact = exposure(scores, [0, 1251], examination)
    found = exposure(np.asarray(scores, np.float32), [0, 1251], examination)
    assert np.linalg.norm(found - exact) < 1e-5 * np.linalg.norm(exact)
    exact = exposure_vjp(scores, [0, 1251], examination, cotangent)
    found = exposure_vjp(np.asarray(scores, np.float32), [0, 1251], examination, cotangent)
    assert np.linalg.norm(found - exact) < 1e-5 * np.linalg.norm(exact)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, *rng.integers(1, 200, size=200)])
    scores, cotangent = rng.normal(size=(2, offsets[-1])).astype(np.float32)
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("SAFERANK_THREADS", threads)
        results.append((exposure(scores, offsets, [1, 0.5]), exposure_vjp(scores, offsets, [1, 0.5], cotangent)))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0][0], other[0])
        np.testing.assert_array_equal(results[0][1], other[1])


def test_no_query_at_all() -> None:
    assert exposure([], [0], [1.0]).shape == (0,)
    assert placement([], [0], 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exposure([0.0, math.nan], [0, 2], [1.0]), r"scores\[1\] is nan"),
        (lambda: exposure([[0.0]], [0, 1], [1.0]), "scores must be flat"),
        (lambda: exposure([0.0, 1.0], [0, 3], [1.0]), "offsets end at 3, but there are 2 scores"),
        (lambda: exposure([0.0, 1.0], [0, 0, 2], [1.0]), "no query may be empty"),
        (lambda: exposure([0.0], [0, 1], [math.nan]), "examination must be a list of at least one finite"),
        (lambda: exposure([0.0], [0, 1], [1.0], nodes=1), "nodes must be at least 2"),
        (lambda: exposure([0.0], [0, 1], [1.0], tolerance=0.0), "tolerance must be between 0 and 1"),
        (lambda: exposure_vjp([0.0], [0, 1], [1.0], [1.0, 2.0]), "cotangent must have the shape of scores"),
        (lambda: placement([0.0], [0, 1], 0), "cutoff must be at least 1"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()
