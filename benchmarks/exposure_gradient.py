"""Exposure and its gradient: exact against sampled, in time and error. `python benchmarks/exposure_gradient.py`.

256 queries x 120 documents, K = 5, standard normal scores and cotangent; all of it our own code on the same threads:
the value and the gradient of sum(cotangent * exposure), error relative (L2) against 200 nodes in float64. Ends with
an error if exact at an error below 2e-3 is not faster than PL-Rank-3 with 100 rankings and 10 times faster than with
1,000. Then how time grows with documents and with K.
"""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.engine.plackett_luce import (
    exposure,
    exposure_vjp,
    padded_exposure,
    pl_rank_3_gradient,
    reinforce_gradient,
    sample_rankings,
)
from saferank.engine.ragged import thread_count

Array = NDArray[Any]


def median_seconds(call: Callable[[], Array], repeats: int = 9) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        if sum(times) > 10:
            break
    return statistics.median(times)


def exact(scores: Array, offsets: Array, examination: Array, cotangent: Array, nodes: int | None) -> Array:
    exposure(scores, offsets, examination, nodes=nodes)
    return exposure_vjp(scores, offsets, examination, cotangent, nodes=nodes)


def padded(scores: Array, offsets: Array, examination: Array, cotangent: Array, nodes: int) -> Array:
    tensor = torch.tensor(scores, requires_grad=True)
    value = padded_exposure(tensor, offsets, examination, nodes=nodes)
    (gradient,) = torch.autograd.grad(value @ torch.tensor(cotangent), tensor)
    return gradient.numpy()


def even_grid_error(scores: Array, examination: Array, cotangent: Array, nodes: int) -> float:
    """Error of the gradient with an even grid in log t, as first designed, for one query: by central differences."""
    weights = np.exp(scores)
    low, high = np.log(1e-7 / weights.sum()), np.log(20.0 / np.sort(weights)[-len(examination)])
    time_nodes = np.exp(np.linspace(low, high, nodes))

    def value(s: Array) -> float:
        u = np.exp(s)[:, None] * time_nodes
        p, density = -np.expm1(-u), u * np.exp(-u) * (high - low) / (nodes - 1)
        prefix = np.zeros((len(s) + 1, len(examination), nodes))
        prefix[0, 0] = 1
        for d in range(len(s)):
            prefix[d + 1] = prefix[d] * (1 - p[d])
            prefix[d + 1, 1:] += prefix[d, :-1] * p[d]
        adjoint, result = np.repeat(examination[:, None], nodes, axis=1), 0.0
        for d in range(len(s) - 1, -1, -1):
            result += cotangent[d] * (density[d] * (prefix[d] * adjoint).sum(axis=0)).sum()
            adjoint = adjoint * (1 - p[d]) + p[d] * np.append(adjoint[1:], np.zeros((1, nodes)), axis=0)
        return float(result)

    step = 1e-5 * np.eye(len(scores))
    gradient = np.array([(value(scores + nudge) - value(scores - nudge)) / 2e-5 for nudge in step])
    reference = exposure_vjp(scores, [0, len(scores)], examination, cotangent)
    return float(np.linalg.norm(gradient - reference) / np.linalg.norm(reference))


def main() -> int:
    console = Console()
    rng = np.random.default_rng(0)
    queries, documents, cutoff = 256, 120, 5
    offsets = np.arange(queries + 1) * documents
    scores, cotangent = rng.normal(size=(2, queries * documents)).astype(np.float32)
    examination = 1 / np.arange(1, cutoff + 1) ** 2
    problem = scores, offsets, examination, cotangent
    reference = exposure_vjp(scores.astype(np.float64), offsets, examination, cotangent, nodes=200, tolerance=1e-13)

    def sampled(estimator: Callable[..., Array], samples: int) -> Callable[[], Array]:
        draw = np.random.default_rng(1)
        return lambda: estimator(*problem, sample_rankings(scores, offsets, cutoff, samples, draw))

    rows: list[tuple[str, str, Callable[[], Array]]] = []
    for nodes in (16, 24, 32, 48, 64):
        rows.append((f"exact, {nodes} nodes", "exact", partial(exact, *problem, nodes)))
    rows.append(("exact, default", "exact", lambda: exact(*problem, None)))
    for samples in (10, 100, 1000):
        rows.append((f"PL-Rank-3, {samples} rankings", f"pl-rank {samples}", sampled(pl_rank_3_gradient, samples)))
    for samples in (10, 100, 1000):
        rows.append((f"REINFORCE, {samples} rankings", "reinforce", sampled(reinforce_gradient, samples)))
    rows.append(("padded PyTorch, 24 nodes", "padded", lambda: padded(*problem, 24)))

    title = f"{queries} queries x {documents} documents, K = {cutoff}, float32, {thread_count()} threads"
    table = Table("value and gradient by", "ms", "error", "time / exact 16", title=title)
    timed = {}
    for name, kind, call in rows:
        error = float(np.linalg.norm(call() - reference) / np.linalg.norm(reference))
        timed[name] = median_seconds(call), error, kind
        relative = timed[name][0] / timed["exact, 16 nodes"][0]
        table.add_row(name, f"{timed[name][0] * 1e3:.2f}", f"{error:.1e}", f"{relative:.1f}")
    console.print(table)

    grid = Table("nodes", "even in log t", "saferank's", title="error by grid, one query of 120 documents")
    one = scores[:120].astype(np.float64), np.array([0, 120]), examination, cotangent[:120].astype(np.float64)
    target = exposure_vjp(*one, nodes=200, tolerance=1e-13)
    for nodes in (16, 24, 32, 48):
        ours = np.linalg.norm(exposure_vjp(*one, nodes=nodes) - target) / np.linalg.norm(target)
        even = even_grid_error(one[0], examination, one[3], nodes)
        grid.add_row(str(nodes), f"{even:.1e}", f"{ours:.1e}")
    console.print(grid)

    growth = Table(
        "documents",
        "K",
        "ms",
        "ns a document and rank",
        title="growth, 30,000 documents in all, default nodes",
    )
    for length, ranks in [(10, 5), (100, 5), (1000, 5), (120, 1), (120, 2), (120, 5), (120, 10), (120, 20)]:
        bounds = np.arange(30_000 // length + 1) * length
        spread = rng.normal(size=bounds[-1]).astype(np.float32)
        weights, pull = 1 / np.arange(1, ranks + 1), cotangent[: bounds[-1]]
        seconds = median_seconds(partial(exact, spread, bounds, weights, pull, None))
        growth.add_row(str(length), str(ranks), f"{seconds * 1e3:.2f}", f"{seconds / bounds[-1] / ranks * 1e9:.0f}")
    console.print(growth)

    fastest = min(seconds for seconds, error, kind in timed.values() if kind == "exact" and error <= 2e-3)
    by_100, by_1000 = (timed[f"PL-Rank-3, {samples} rankings"][0] / fastest for samples in (100, 1000))
    console.print("exact at error <= 2e-3 is faster than PL-Rank-3", highlight=False)
    console.print(
        f"  with   100 rankings: {by_100:.1f} times\n  with 1,000 rankings: {by_1000:.0f} times", highlight=False
    )
    return 0 if by_100 > 1 and by_1000 >= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
