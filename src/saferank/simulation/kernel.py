"""The compiled part of the simulation: Plackett-Luce rankings of one query after another, counted as they are drawn.

Documents are handled in order of falling score, from the first to the last that can be placed at all. Two ways to
draw, of one distribution:

- One by one. The next document of a ranking is drawn from an alias table (Walker 1977), and again if it is placed
  already. Table j holds the documents from the j-th on, so the first document that is not placed, j, is its
  likeliest: the K - 1 placed ones weigh at most K - 1 times as much, and a draw succeeds with chance 1/K at least,
  however peaked the scores.
- In bulk. All the interactions whose rankings begin alike are shared out over the documents that may come next, by
  a chain of binomial numbers, and so on down the tree of beginnings, as long as there are many of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank._jit import jit
from saferank._random import binomial, next_fraction

Array = NDArray[Any]


@jit
def simulate_queries(
    scores: Array,
    offsets: Array,
    relevance: Array,
    examination: Array,
    interactions: Array,
    seeds: Array,
    split_from: float,
    shown: Array,
    clicked: Array,
    kept_ends: Array,
    kept_rankings: Array,
    kept_clicks: Array,
) -> None:
    """Add the interactions of each query to shown and clicked; keep those that kept_* has room for.

    kept_ends[q]:kept_ends[q + 1] are the rows of query q in kept_rankings (-1 where a list ends) and kept_clicks.
    """
    cutoff = len(examination)
    longest = np.max(np.diff(offsets))
    tables = np.empty((cutoff, longest))
    aliases = np.empty((cutoff, longest), np.int64)
    weights, small, large = np.empty(longest), np.empty(longest, np.int64), np.empty(longest, np.int64)
    ranking = np.empty(cutoff, np.int64)
    state = np.empty(1, np.uint64)
    for q in range(len(offsets) - 1):
        if interactions[q] == 0:
            continue
        first = offsets[q]
        s = scores[first : offsets[q + 1]]
        order = np.argsort(-s, kind="mergesort")
        n = np.sum(s > -np.inf)
        depth = min(cutoff, n)
        if depth == 0:
            continue
        s = s[order[:n]]
        for j in range(depth):
            _fill_table(s, j, tables[j], aliases[j], weights, small, large)
        counts = np.zeros((n, cutoff), np.int64)
        last_seen = np.full(n, -1, np.int64)
        state[0] = seeds[q]

        drawn = kept_ends[q + 1] - kept_ends[q]
        for i in range(drawn):
            _draw(i, 0, depth, n, tables, aliases, last_seen, state, ranking)
            row = kept_ends[q] + i
            for k in range(depth):
                d = order[ranking[k]]
                shown[first + d, k] += 1
                kept_rankings[row, k] = d
                if next_fraction(state) < examination[k] * relevance[first + d]:
                    clicked[first + d, k] += 1
                    kept_clicks[row, k] = True

        last_seen[:] = -1
        _count(s, interactions[q] - drawn, depth, split_from, tables, aliases, last_seen, state, ranking, counts)
        for i in range(n):
            d = first + order[i]
            for k in range(depth):
                shown[d, k] += counts[i, k]
                clicked[d, k] += binomial(state, counts[i, k], examination[k] * relevance[d])


@jit
def _fill_table(s: Array, j: int, table: Array, alias: Array, weights: Array, small: Array, large: Array) -> None:
    """Make the alias table of the documents from j on, with weights exp(s) (Vose 1991)."""
    n = len(s) - j
    total = 0.0
    for i in range(n):
        weights[i] = math.exp(s[j + i] - s[j])
        total += weights[i]
    smalls = larges = 0
    for i in range(n):
        weights[i] *= n / total
        if weights[i] < 1.0:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        i, rich = small[smalls], large[larges - 1]
        table[i], alias[i] = weights[i], j + rich
        weights[rich] -= 1.0 - weights[i]
        if weights[rich] < 1.0:
            larges -= 1
            small[smalls] = rich
            smalls += 1
    for i in small[:smalls]:  # these would have 1 but for rounding
        table[i], alias[i] = 1.0, j + i
    for i in large[:larges]:
        table[i], alias[i] = 1.0, j + i


@jit
def _draw(
    mark: int,
    begin: int,
    depth: int,
    n: int,
    tables: Array,
    aliases: Array,
    last_seen: Array,
    state: Array,
    ranking: Array,
) -> None:
    """Draw ranks begin .. depth of one ranking, given those before; mark tells it from all others of the query."""
    for k in range(begin):
        last_seen[ranking[k]] = mark
    top = 0
    for k in range(begin, depth):
        while last_seen[top] == mark:
            top += 1
        while True:
            x = next_fraction(state) * (n - top)
            i = int(x)
            d = top + i if x - i < tables[top, i] else aliases[top, i]
            if last_seen[d] != mark:
                break
        last_seen[d] = mark
        ranking[k] = d


@jit
def _count(
    s: Array,
    interactions: int,
    depth: int,
    split_from: float,
    tables: Array,
    aliases: Array,
    last_seen: Array,
    state: Array,
    ranking: Array,
    counts: Array,
) -> None:
    """Add to counts[d, k] how often d comes at rank k in so many rankings.

    The tree of beginnings, depth first: `ranking[:level]` is the beginning that is being shared out, `left[level]`
    what is left of its interactions, `place[level]` the document whose share comes next.
    """
    n = len(s)
    mark = 0
    if interactions < split_from * n:
        for mark in range(interactions):
            _draw(mark, 0, depth, n, tables, aliases, last_seen, state, ranking)
            for k in range(depth):
                counts[ranking[k], k] += 1
        return
    total = np.ones(n)  # of the weights from each document on, in units of its own: nothing under- or overflows
    for i in range(n - 2, -1, -1):
        total[i] = 1.0 + math.exp(s[i + 1] - s[i]) * total[i + 1]
    left, place = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    left[0] = interactions
    level = 0
    while level >= 0:
        if left[level] == 0:
            level -= 1
            continue
        d = place[level]
        place[level] += 1
        weight = total[d]
        before = 0
        placed = False
        for k in range(level):
            if ranking[k] > d:
                weight -= math.exp(s[ranking[k]] - s[d])
            elif ranking[k] < d:
                before += 1
            else:
                placed = True
        if placed:
            continue
        last = n - d == level - before + 1  # all behind d are placed
        share = left[level] if last else binomial(state, left[level], 1.0 / weight)
        if share == 0:
            continue
        left[level] -= share
        counts[d, level] += share
        ranking[level] = d
        if level + 1 == depth:
            continue
        if share >= split_from * (n - level - 1):
            level += 1
            left[level], place[level] = share, 0
            continue
        for _ in range(share):
            _draw(mark, level + 1, depth, n, tables, aliases, last_seen, state, ranking)
            mark += 1
            for k in range(level + 1, depth):
                counts[ranking[k], k] += 1
