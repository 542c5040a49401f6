"""The same exposure in plain PyTorch on padded tensors: for other devices, and a second opinion on the kernel.

One loop over documents carries the truncated Poisson-binomial products for all queries and nodes at once; autograd
does the rest. Memory grows with queries * longest list * cutoff * nodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from saferank.engine.plackett_luce.exact import accuracy
from saferank.engine.plackett_luce.grid import node_count, plan
from saferank.engine.ragged import check_offsets, check_scores


def padded_exposure(
    scores: Tensor,
    offsets: ArrayLike,
    examination: ArrayLike,
    *,
    nodes: int | None = None,
    tolerance: float | None = None,
) -> Tensor:
    """Exposure of each document (flat, ragged by offsets), differentiable any number of times."""
    bounds = check_offsets(offsets)
    weights = torch.as_tensor(np.asarray(examination), dtype=scores.dtype, device=scores.device)
    log_time, node_weight = _grid(scores, bounds, len(weights), nodes, tolerance)
    lengths = np.diff(bounds)
    queries, longest = len(lengths), int(lengths.max(initial=0))
    row = np.repeat(np.arange(queries), lengths)
    column = np.arange(bounds[-1]) - np.repeat(bounds[:-1], lengths)
    rows, columns = torch.as_tensor(row, device=scores.device), torch.as_tensor(column, device=scores.device)
    table = scores.new_full((queries, longest), -math.inf)  # padding can never arrive
    table = table.index_put((rows, columns), scores)

    u = torch.exp((table[:, :, None] + log_time[:, None, :]).clamp(max=math.log(80.0)))
    density = u * torch.exp(-u) * node_weight[:, None, :]
    p = -torch.expm1(-u)
    prefixes, suffixes = _products(p, len(weights)), _products(p.flip(1), len(weights))[::-1]
    columns_out = [
        _combine(before, behind, weights, density[:, d])
        for d, (before, behind) in enumerate(zip(prefixes, suffixes, strict=True))
    ]
    return torch.stack(columns_out, dim=1)[rows, columns]


def _products(p: Tensor, cutoff: int) -> list[Tensor]:
    """For each document, the first coefficients of the product over the documents before it: (query, node, K)."""
    queries, documents, nodes = p.shape
    here = torch.cat([p.new_ones(queries, nodes, 1), p.new_zeros(queries, nodes, cutoff - 1)], dim=2)
    result = [here]
    for d in range(documents - 1):
        before = torch.nn.functional.pad(here[..., :-1], (1, 0))
        here = here + p[:, d, :, None] * (before - here)
        result.append(here)
    return result


def _combine(before: Tensor, behind: Tensor, weights: Tensor, density: Tensor) -> Tensor:
    """Sum over nodes and ranks of density * examination[m + j] * before[m] * behind[j]."""
    cutoff = len(weights)
    index = torch.arange(cutoff, device=weights.device)
    sums = index[:, None] + index[None, :]
    hankel = torch.where(sums < cutoff, weights[sums.clamp(max=cutoff - 1)], 0.0)
    return torch.einsum("qtm,mj,qtj,qt->q", before, hankel, behind, density)


def _grid(
    scores: Tensor, offsets: Any, cutoff: int, nodes: int | None, tolerance: float | None
) -> tuple[Tensor, Tensor]:
    """Log times and weights, (query, node): the kernel's grid, every query with the largest node count."""
    values = check_scores(scores.detach().cpu().numpy())
    count, cut = accuracy(nodes, tolerance, values.dtype)
    ends, counts = plan(values.astype(np.float64), offsets, cutoff, count, cut)
    most = count or max([node_count(e[2] - e[1], cutoff, cut) for e in ends[counts > 0]], default=2)
    center, left, right = (ends[:, i, None] for i in range(3))
    y = left + (right - left) * np.linspace(0.0, 1.0, most)
    weight = (right - left) / (most - 1) * (1.0 + np.exp(-y))
    kind: dict[str, Any] = {"dtype": scores.dtype, "device": scores.device}
    return torch.as_tensor(center + y - np.exp(-y), **kind), torch.as_tensor(weight, **kind)
