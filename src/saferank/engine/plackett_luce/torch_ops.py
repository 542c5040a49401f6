"""Exposure as a differentiable PyTorch operation: on the CPU by the compiled kernel, elsewhere on padded tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from saferank.engine.plackett_luce.exact import exposure, exposure_vjp
from saferank.engine.plackett_luce.padded import padded_exposure


def expected_exposure(
    scores: Tensor,
    offsets: ArrayLike,
    examination: ArrayLike,
    *,
    nodes: int | None = None,
    tolerance: float | None = None,
) -> Tensor:
    """Exposure of each document, differentiable (once) with respect to the scores; see `exposure`.

    Scores on the CPU go through the ragged kernel; on another device through `padded_exposure`.
    """
    if scores.device.type != "cpu":
        return padded_exposure(scores, offsets, examination, nodes=nodes, tolerance=tolerance)
    result: Tensor = _Exposure.apply(scores, offsets, examination, nodes, tolerance)  # type: ignore[no-untyped-call]
    return result


class _Exposure(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        offsets: ArrayLike,
        examination: ArrayLike,
        nodes: int | None,
        tolerance: float | None,
    ) -> Tensor:
        ctx.save_for_backward(scores)
        ctx.rest = offsets, examination, nodes, tolerance
        return torch.from_numpy(
            exposure(scores.detach().numpy(), offsets, examination, nodes=nodes, tolerance=tolerance)
        )

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None, None, None]:
        (scores,) = ctx.saved_tensors
        offsets, examination, nodes, tolerance = ctx.rest
        pull = np.ascontiguousarray(cotangent.numpy())
        gradient = exposure_vjp(scores.detach().numpy(), offsets, examination, pull, nodes=nodes, tolerance=tolerance)
        return torch.from_numpy(gradient), None, None, None, None
