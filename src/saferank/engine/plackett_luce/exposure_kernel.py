"""The compiled loops behind `exact.py`: placement, exposure and its gradient by quadrature over arrival times.

A Plackett-Luce ranking is the order of arrival of independent exponential clocks with rates w_d = exp(s_d). Given
that d arrives at time t, the number of documents before it is Poisson-binomial with probabilities
p_j = 1 - exp(-w_j t), the coefficients of prod_{j != d} (q_j + p_j z) with q_j = 1 - p_j. So, with u_d = w_d t,

    P(rank(d) = k) = integral over x = log t of  f_d [z^(k-1)] prod_{j != d} (q_j + p_j z),    f_d = u_d exp(-u_d)

No factor is ever divided out (unstable for p near 1): a walk forward stores the products of the documents before d
(`prefix`), a walk back carries what the documents behind d make of the examination vector (`adjoint`):

    adjoint[m] = sum_j examination[m + j] * suffix[j],      exposure(d) = sum_nodes f_d sum_m prefix_d[m] adjoint[m]

Nodes are worked on in blocks of `LANES`, one vector; work arrays are flat, vector after vector, and their size is
documents * cutoff * LANES whatever the number of nodes.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.jit import jit
from saferank.engine.plackett_luce.grid import fill_grid, longest_list, plan, whole_vectors
from saferank.engine.simd import LANES, load, power_of_half, rounded, smaller, spread, store, total

Array = NDArray[Any]
_LARGEST = 80.0  # exp(-80) is next to nothing in either precision, and still a normal number


def exp_constants(dtype: Any) -> Array:
    """Return what exp(-u) = 2^-k exp(-r), u = k log 2 + r, needs: 1 / log 2, log 2 in two parts, Taylor in r."""
    single = dtype == np.float32
    log_2 = (0.693145751953125, 1.4286068203094172e-06) if single else (0.6931471803691238, 1.9082149292705877e-10)
    taylor = [(-1.0) ** i / math.factorial(i) for i in range(1, 8 if single else 14)]
    return np.array([math.log2(math.e), *log_2, *taylor], dtype=dtype)


@jit
def _arrivals(scores: Array, x: Array, constants: Array, u: Array, f: Array, p: Array) -> None:
    """Fill u = w t, f = u exp(-u) and p = 1 - exp(-u) of every document at the LANES log times x."""
    ratio_array = np.empty(LANES, u.dtype)
    for i in range(LANES):
        ratio_array[i] = math.exp(x[i] - x[0])
    ratio = load(ratio_array, 0)
    one, largest = spread(u.dtype.type(1)), spread(u.dtype.type(_LARGEST))
    per_log_2, high, low = spread(constants[0]), spread(constants[1]), spread(constants[2])
    for d in range(len(scores)):
        start = u.dtype.type(math.exp(min(scores[d] + x[0], 5.0)))  # capped, so that nothing overflows
        u_d = smaller(spread(start) * ratio, largest)
        k = rounded(u_d * per_log_2)
        scale = power_of_half(k)
        r = (u_d - k * high) - k * low
        less = spread(constants[len(constants) - 1])
        for i in range(len(constants) - 2, 2, -1):
            less = spread(constants[i]) + r * less
        less = scale * (r * less)  # scale * (exp(-r) - 1)
        store(u, d * LANES, u_d)
        store(f, d * LANES, u_d * (scale + less))
        store(p, d * LANES, (one - scale) - less)  # no cancellation for small u: scale is 1 there


@jit
def _walk_forward(p: Array, documents: int, cutoff: int, prefix: Array) -> None:
    """Fill prefix[d] with the first `cutoff` coefficients of prod_{j < d} (q_j + p_j z)."""
    row = cutoff * LANES
    zero = spread(p.dtype.type(0))
    prefix[:row] = 0
    prefix[:LANES] = 1
    for d in range(documents - 1):
        p_d = load(p, d * LANES)
        before = zero
        for at in range(d * row, (d + 1) * row, LANES):
            here = load(prefix, at)
            store(prefix, at + row, here + p_d * (before - here))
            before = here


@jit
def placement_kernel(
    scores: Array, offsets: Array, cutoff: int, nodes: int, tolerance: float, constants: Array, out: Array
) -> None:
    """Add P(rank(d) = k + 1) to out[d, k] for the queries between the given offsets."""
    row = cutoff * LANES
    longest = longest_list(offsets)
    u, f = np.empty(longest * LANES, out.dtype), np.empty(longest * LANES, out.dtype)
    p, prefix = np.empty(longest * LANES, out.dtype), np.empty(longest * row, out.dtype)
    suffix = np.empty(row, out.dtype)
    ends, counts = plan(scores, offsets, cutoff, nodes, tolerance)
    x = np.empty(whole_vectors(np.max(counts)))
    weight = np.empty(len(x), out.dtype)
    zero = spread(out.dtype.type(0))
    for q in range(len(offsets) - 1):
        begin, documents = offsets[q], offsets[q + 1] - offsets[q]
        query_scores = scores[begin : begin + documents]
        fill_grid(ends[q], counts[q], x, weight)
        for first in range(0, counts[q], LANES):
            _arrivals(query_scores, x[first : first + LANES], constants, u, f, p)
            _walk_forward(p, documents, cutoff, prefix)
            suffix[:] = 0
            suffix[:LANES] = 1
            for d in range(documents - 1, -1, -1):
                density = load(f, d * LANES) * load(weight, first)
                for k in range(min(cutoff, documents)):
                    convolution = zero
                    for m in range(k + 1):
                        convolution += load(prefix, d * row + m * LANES) * load(suffix, (k - m) * LANES)
                    out[begin + d, k] += total(density * convolution)
                p_d = load(p, d * LANES)
                before = zero
                for m in range(0, row, LANES):
                    here = load(suffix, m)
                    store(suffix, m, here + p_d * (before - here))
                    before = here


@jit
def exposure_kernel(
    scores: Array,
    offsets: Array,
    examination: Array,
    nodes: int,
    tolerance: float,
    constants: Array,
    out: Array,
) -> None:
    """Add the exposure of each document to out, for the queries between the given offsets."""
    cutoff = len(examination)
    row = cutoff * LANES
    longest = longest_list(offsets)
    u, f = np.empty(longest * LANES, out.dtype), np.empty(longest * LANES, out.dtype)
    p, prefix = np.empty(longest * LANES, out.dtype), np.empty(longest * row, out.dtype)
    adjoint = np.zeros(row + LANES, out.dtype)
    ends, counts = plan(scores, offsets, cutoff, nodes, tolerance)
    x = np.empty(whole_vectors(np.max(counts)))
    weight = np.empty(len(x), out.dtype)
    zero = spread(out.dtype.type(0))
    for q in range(len(offsets) - 1):
        begin, documents = offsets[q], offsets[q + 1] - offsets[q]
        query_scores = scores[begin : begin + documents]
        fill_grid(ends[q], counts[q], x, weight)
        for first in range(0, counts[q], LANES):
            _arrivals(query_scores, x[first : first + LANES], constants, u, f, p)
            _walk_forward(p, documents, cutoff, prefix)
            for m in range(cutoff):
                adjoint[m * LANES : (m + 1) * LANES] = examination[m]
            for d in range(documents - 1, -1, -1):
                p_d = load(p, d * LANES)
                inner, here = zero, load(adjoint, 0)
                for m in range(0, row, LANES):
                    behind = load(adjoint, m + LANES)
                    inner += load(prefix, d * row + m) * here
                    store(adjoint, m, here + p_d * (behind - here))
                    here = behind
                out[begin + d] += total(load(weight, first) * load(f, d * LANES) * inner)


@jit
def exposure_vjp_kernel(
    scores: Array,
    offsets: Array,
    examination: Array,
    cotangent: Array,
    nodes: int,
    tolerance: float,
    constants: Array,
    out: Array,
    curvature: Array | None,
) -> None:
    """Add the gradient of sum_d cotangent[d] * exposure(d) with respect to the scores to out.

    Beside each polynomial goes its dual: the sum of the products in which one factor j is replaced by the density
    cotangent_j f_j. The dual of the whole product, weighted by the examination, is the value itself (one node's
    share of it); d p_j / d s_j = f_j = -d q_j / d s_j and d f_j / d s_j = f_j (1 - u_j) give its derivative.
    Unless it is None, what a score does to the document's own term, minus what it does to the others', is added to
    curvature.
    """
    cutoff = len(examination)
    row = cutoff * LANES
    longest = longest_list(offsets)
    u, f = np.empty(longest * LANES, out.dtype), np.empty(longest * LANES, out.dtype)
    p, prefix = np.empty(longest * LANES, out.dtype), np.empty(longest * row, out.dtype)
    dual = np.empty(longest * row, out.dtype)
    adjoint, adjoint_dual = np.zeros(row + LANES, out.dtype), np.zeros(row + LANES, out.dtype)
    ends, counts = plan(scores, offsets, cutoff, nodes, tolerance)
    x = np.empty(whole_vectors(np.max(counts)))
    weight = np.empty(len(x), out.dtype)
    zero, one = spread(out.dtype.type(0)), spread(out.dtype.type(1))
    for q in range(len(offsets) - 1):
        begin, documents = offsets[q], offsets[q + 1] - offsets[q]
        query_scores = scores[begin : begin + documents]
        fill_grid(ends[q], counts[q], x, weight)
        for first in range(0, counts[q], LANES):
            _arrivals(query_scores, x[first : first + LANES], constants, u, f, p)
            prefix[:row] = 0
            prefix[:LANES] = 1
            dual[:row] = 0
            for d in range(documents - 1):
                p_d = load(p, d * LANES)
                pull = spread(cotangent[begin + d]) * load(f, d * LANES)
                before, before_dual = zero, zero
                for at in range(d * row, (d + 1) * row, LANES):
                    here, here_dual = load(prefix, at), load(dual, at)
                    store(prefix, at + row, here + p_d * (before - here))
                    store(dual, at + row, here_dual + p_d * (before_dual - here_dual) + pull * here)
                    before, before_dual = here, here_dual
            for m in range(cutoff):
                adjoint[m * LANES : (m + 1) * LANES] = examination[m]
            adjoint_dual[:] = 0
            for d in range(documents - 1, -1, -1):
                p_d, f_d = load(p, d * LANES), load(f, d * LANES)
                v = spread(cotangent[begin + d])
                pull = v * f_d
                inner, slope = zero, zero
                here, here_dual = load(adjoint, 0), load(adjoint_dual, 0)
                for m in range(0, row, LANES):
                    behind, behind_dual = load(adjoint, m + LANES), load(adjoint_dual, m + LANES)
                    rise, rise_dual = behind - here, behind_dual - here_dual
                    front = load(prefix, d * row + m)
                    inner += front * here
                    slope += load(dual, d * row + m) * rise + front * rise_dual
                    store(adjoint, m, here + p_d * rise)
                    store(adjoint_dual, m, here_dual + p_d * rise_dual + pull * here)
                    here, here_dual = behind, behind_dual
                change = f_d * (slope + v * (one - load(u, d * LANES)) * inner)
                out[begin + d] += total(load(weight, first) * change)
                if curvature is not None:  # compiled separately, so that the gradient alone costs no more
                    apart = f_d * (v * (one - load(u, d * LANES)) * inner - slope)
                    curvature[begin + d] += total(load(weight, first) * apart)
