"""The PyTorch operation equals the kernel, the padded version equals both, and gradients pass gradcheck."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from saferank.engine.plackett_luce import expected_exposure, exposure, exposure_vjp, padded_exposure

OPERATIONS: list[Callable[..., Any]] = [expected_exposure, padded_exposure]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("cutoff", "dtype"), [(1, torch.float64), (3, torch.float32), (12, torch.float64)])
def test_value_and_gradient_equal_the_kernel(operation: Callable[..., Any], cutoff: int, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(cutoff)
    offsets = np.cumsum([0, 1, 7, 40, 3])
    scores, cotangent = rng.normal(size=(2, offsets[-1])) * 3
    examination = 1 / np.arange(1, cutoff + 1)
    tensor = torch.tensor(scores, dtype=dtype, requires_grad=True)
    found = operation(tensor, offsets, examination)
    assert found.dtype == dtype
    (gradient,) = torch.autograd.grad(found @ torch.tensor(cotangent, dtype=dtype), tensor)
    close = 1e-4 if dtype == torch.float32 else 1e-8
    np.testing.assert_allclose(found.detach(), exposure(scores, offsets, examination), atol=close)
    np.testing.assert_allclose(gradient, exposure_vjp(scores, offsets, examination, cotangent), atol=3 * close)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_gradcheck(operation: Callable[..., Any]) -> None:
    scores = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: operation(s, [0, 2, 9], [1.0, 0.5, 0.2]), (scores,))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_minus_infinity_has_no_exposure_and_no_gradient(operation: Callable[..., Any]) -> None:
    scores = torch.tensor([0.5, -math.inf, 1.0], dtype=torch.float64, requires_grad=True)
    found = operation(scores, [0, 3], [1.0, 0.5])
    (gradient,) = torch.autograd.grad(found[0], scores)
    assert found[1] == 0
    assert gradient[1] == 0
    assert torch.isfinite(gradient).all()


def test_a_second_derivative_is_refused_by_the_kernel_and_given_by_the_padded_version() -> None:
    scores = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(expected_exposure(scores, [0, 2], [1.0])[0], scores, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(gradient.sum(), scores)
    # P(first) = sigmoid(s_0 - s_1); its second derivative in s_0 is p (1 - p) (1 - 2 p).
    (gradient,) = torch.autograd.grad(padded_exposure(scores, [0, 2], [1.0])[0], scores, create_graph=True)
    (second,) = torch.autograd.grad(gradient[0], scores)
    p = 1 / (1 + math.exp(0.5))
    assert second[0].item() == pytest.approx(p * (1 - p) * (1 - 2 * p), abs=1e-7)
