"""Where to evaluate the integral over arrival times: a trapezoid rule after a change of variable.

In x = log t the integrand falls off like exp(-exp(x)) to the right, but only like exp(x) to the left: an even grid
in x spends most of its nodes where next to nothing happens. With

    x(y) = x_0 + y - exp(-y),        dx = (1 + exp(-y)) dy,        x_0 = 1 - log sum_j w_j

both ends die off doubly exponentially, and an even grid in y needs less than half the nodes for the same error
(`benchmarks/exposure_gradient.py` shows both). The grid runs from "nothing has arrived yet" to "the first K have
surely arrived"; a wide range of scores stretches it, and the node count with it.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.jit import jit
from saferank.engine.simd import LANES

Array = NDArray[Any]
_SHIFT = 1.0
_TAIL = 0.01  # what is cut off at either end, as a share of the tolerance


@jit
def span(scores: Array, cutoff: int, tolerance: float) -> tuple[float, float, float]:
    """Return x_0 and the two ends of the grid in y; equal ends if no document can ever arrive."""
    largest = np.max(scores)
    if largest == -np.inf:
        return 0.0, 0.0, 0.0
    weights = 0.0
    for score in scores:
        weights += math.exp(score - largest)
    center = _SHIFT - largest - math.log(weights)
    cut = _TAIL * tolerance
    right = math.log(-math.log(cut)) - kth_largest(scores, cutoff) - center
    left, target = -1.0, math.log(cut) - _SHIFT
    for _ in range(8):  # Newton for left - exp(-left) = target
        left -= (left - math.exp(-left) - target) / (1.0 + math.exp(-left))
    return center, left, max(right, left + 1.0)


@jit
def kth_largest(scores: Array, k: int) -> float:
    """Return the k-th largest of the finite scores, or the smallest if they are fewer.

    A loop, because `np.partition` takes nine seconds to compile.
    """
    top = np.full(k, -np.inf)  # in falling order: nearly every score is turned away at the first comparison
    for score in scores:
        if score > top[k - 1]:
            place = k - 1
            while place > 0 and top[place - 1] < score:
                top[place] = top[place - 1]
                place -= 1
            top[place] = score
    place = k - 1
    while top[place] == -np.inf:
        place -= 1
    return float(top[place])


@jit
def node_count(width: float, cutoff: int, tolerance: float) -> int:
    """Return how many nodes keep the relative error of exposure and gradient below `tolerance`.

    The arrival of the K-th document is the narrower the larger K, and each digit asks for a finer step:
    1 / step^2 = a K + b with a and b rising in log(1 / tolerance), fitted to 20 kinds of lists (2 to 1,000 documents,
    K from 1 to 100, scores spread over 0.4 to 60) with a margin of 5%.
    """
    digits = -math.log(tolerance)
    step = 0.95 / math.sqrt((0.1 + 0.05 * digits) * cutoff + max(0.5 * digits - 1.2, 1.5))
    return math.ceil(width / step) + 1


@jit
def plan(scores: Array, offsets: Array, cutoff: int, nodes: int, tolerance: float) -> tuple[Array, Array]:
    """Return for each query (x_0, left end, right end), and its number of nodes: as given, or 0 to choose it.

    A chosen number is rounded up to whole vectors; a query in which no document can arrive gets 0.
    """
    queries = len(offsets) - 1
    ends, counts = np.empty((queries, 3)), np.zeros(queries, np.int64)
    for q in range(queries):
        ends[q, 0], ends[q, 1], ends[q, 2] = span(scores[offsets[q] : offsets[q + 1]], cutoff, tolerance)
        if ends[q, 2] > ends[q, 1]:
            chosen = whole_vectors(node_count(ends[q, 2] - ends[q, 1], cutoff, tolerance))
            counts[q] = nodes if nodes > 0 else chosen
    return ends, counts


@jit
def fill_grid(ends: Array, nodes: int, x: Array, weight: Array) -> None:
    """Fill the log times and the weights of `nodes` nodes; those that fill up the last vector get weight 0."""
    center, left, right = ends
    step = (right - left) / (nodes - 1)
    for i in range(whole_vectors(nodes)):
        y = left + step * min(i, nodes - 1)
        x[i] = center + y - math.exp(-y)
        weight[i] = step * (1.0 + math.exp(-y)) if i < nodes else 0.0


@jit
def whole_vectors(nodes: int) -> int:
    """Return the number of nodes rounded up to whole vectors."""
    return (nodes + LANES - 1) // LANES * LANES


@jit
def longest_list(offsets: Array) -> int:
    """Return the number of documents of the longest query. A loop, because `np.diff` takes seconds to compile."""
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    return longest
