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

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.engine.jit import jit
from saferank.engine.plackett_luce.grid import longest_list
from saferank.engine.random_streams import STEP, binomial, fraction, next_random

Array = NDArray[Any]
BATCH = 256
"""Rankings drawn side by side."""
FIRST: Any = np.int64(0)
"""The first rank and the first document; as a plain 0, Numba would compile what is called with it once more."""


class Tables(NamedTuple):
    """The alias tables of one query, made when they are first needed, and the room to make them in.

    To draw from table j: take cell i of those from 0 on at random; choices[j, 2 * i] with chance chances[j, i], else
    choices[j, 2 * i + 1].
    """

    scores: Array
    """Of the documents that can be placed, from the highest to the lowest."""
    chances: Array
    choices: Array
    made: Array
    """How many tables are made."""
    weights: Array
    small: Array
    large: Array


@jit
def simulate_queries(
    scores: Array,
    offsets: Array,
    relevance: Array,
    examination: Array,
    trust: Array,
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
    longest = longest_list(offsets)
    scratch = np.empty(longest), np.empty(longest, np.int64), np.empty(longest, np.int64)
    chances, choices, made = (
        np.empty((cutoff, longest)),
        np.empty((cutoff, 2 * longest), np.int32),
        np.empty(1, np.int64),
    )
    waiting = np.empty((cutoff, cutoff, BATCH), np.int32)
    state = np.empty(1, np.uint64)
    for q in range(len(offsets) - 1):
        if interactions[q] == 0:
            continue
        first = offsets[q]
        s = scores[first : offsets[q + 1]]
        order = np.argsort(-s, kind="mergesort")
        n = int(np.sum(s > -np.inf))
        depth = min(cutoff, n)
        if depth == 0:
            continue
        made[0] = 0
        tables = Tables(s[order[:n]], chances, choices, made, *scratch)
        counts = np.zeros((cutoff, n), np.int64)
        state[0] = seeds[q]

        begin, end = kept_ends[q], kept_ends[q + 1]
        for batch in range(begin, end, BATCH):
            size = min(BATCH, end - batch)
            _complete(waiting[0], size, FIRST, depth, tables, state, counts)
            for b in range(size):
                for k in range(depth):
                    d = order[waiting[0, k, b]]
                    kept_rankings[batch + b, k] = d
                    if next_random(state) < examination[k] * relevance[first + d] + trust[k]:
                        kept_clicks[batch + b, k] = True
                        clicked[first + d, k] += 1
        if end > begin:
            for i in range(n):
                for k in range(depth):
                    shown[first + order[i], k] += counts[k, i]
            counts[:] = 0

        _count(interactions[q] - (end - begin), depth, split_from, tables, waiting, state, counts)
        for i in range(n):
            d = first + order[i]
            for k in range(depth):
                if counts[k, i] > 0:  # a page of the tables that is never written takes no memory
                    shown[d, k] += counts[k, i]
                    clicked[d, k] += binomial(state, counts[k, i], examination[k] * relevance[d] + trust[k])


@jit
def _make_tables(tables: Tables, count: int) -> None:
    """Make those of the first alias tables that are not there yet (Vose 1991)."""
    for j in range(tables.made[0], count):
        _make_table(tables, j)
    tables.made[0] = max(tables.made[0], count)


@jit
def _make_table(tables: Tables, j: int) -> None:
    s, weights, small, large = tables.scores, tables.weights, tables.small, tables.large
    chance, choice = tables.chances[j], tables.choices[j]
    n = len(s) - j
    total = 0.0
    for i in range(n):
        weights[i] = math.exp(s[j + i] - s[j])
        total += weights[i]
    smalls = larges = 0
    for i in range(n):
        weights[i] *= n / total
        choice[2 * i] = choice[2 * i + 1] = j + i
        if weights[i] < 1.0:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        i, rich = small[smalls], large[larges - 1]
        chance[i], choice[2 * i + 1] = weights[i], j + rich
        weights[rich] -= 1.0 - weights[i]
        if weights[rich] < 1.0:
            larges -= 1
            small[smalls] = rich
            smalls += 1
    for i in small[:smalls]:  # these would have 1 but for rounding
        chance[i] = 1.0
    for i in large[:larges]:
        chance[i] = 1.0


@jit
def _complete(rankings: Array, size: int, begin: int, depth: int, tables: Tables, state: Array, counts: Array) -> None:
    """Draw ranks begin .. depth of a batch of rankings, (rank, ranking) -> document, given their first; count them.

    Rank by rank, in loops that vectorise or at least have no `if` that is a coin toss to the processor: rankings
    whose draw was placed already, and those that need the next table, are listed first, and then seen to.
    """
    top = np.zeros(BATCH, np.int64)  # the first document that is not placed, of each ranking
    listed = np.empty(BATCH, np.int64)
    placed = np.empty(BATCH, np.int32)
    uniform = np.empty(BATCH)
    highest = 0
    for b in range(size):
        top[b] = _first_not_placed(rankings, b, begin, FIRST)
        highest = max(highest, top[b])
    z = state[0]
    for k in range(begin, depth):
        here = rankings[k]
        _make_tables(tables, highest + 1)
        for b in range(size):
            z += STEP
            uniform[b] = fraction(z)
        for b in range(size):
            here[b] = _look_up(uniform[b], top[b], tables)
            placed[b] = 0
        for earlier in range(k):
            for b in range(size):
                placed[b] |= np.int32(rankings[earlier, b] == here[b])
        length = 0
        for b in range(size):
            listed[length] = b
            length += placed[b]
        for b in listed[:length]:
            again = True
            while again:
                z += STEP
                here[b] = _look_up(fraction(z), top[b], tables)
                again = False
                for earlier in range(k):
                    again |= rankings[earlier, b] == here[b]
        length = 0
        for b in range(size):
            counts[k, here[b]] += 1
            listed[length] = b
            length += int(here[b] == top[b])
        for b in listed[:length]:
            top[b] = _first_not_placed(rankings, b, k + 1, top[b] + 1)
            highest = max(highest, top[b])
    state[0] = z


@jit
def _look_up(uniform: float, top: int, tables: Tables) -> int:
    """Return the document that a uniform number in [0, 1) stands for in the table of the documents from top on."""
    x = uniform * (len(tables.scores) - top)
    i = int(x)
    document: int = tables.choices[top, 2 * i + int(x - i >= tables.chances[top, i])]
    return document


@jit
def _first_not_placed(rankings: Array, b: int, ranks: int, d: int) -> int:
    """Return the first document from d on that is not at one of the first ranks of ranking b."""
    while True:
        placed = False
        for k in range(ranks):
            placed |= rankings[k, b] == d
        if not placed:
            return d
        d += 1


@jit
def _count(
    interactions: int,
    depth: int,
    split_from: float,
    tables: Tables,
    waiting: Array,
    state: Array,
    counts: Array,
) -> None:
    """Add to counts[k, d] how often d comes at rank k in so many rankings.

    The tree of beginnings, depth first: `ranking[:level]` is the beginning that is being shared out, `left[level]`
    what is left of its interactions, `place[level]` the document whose share comes next. Rankings that are to be
    drawn one by one wait until there is a batch of them that have equally many ranks.
    """
    s = tables.scores
    n = len(s)
    if interactions < split_from * n:
        for batch in range(0, interactions, BATCH):
            _complete(waiting[0], min(BATCH, interactions - batch), FIRST, depth, tables, state, counts)
        return
    total = np.ones(n)  # of the weights from each document on, in units of its own: nothing under- or overflows
    for i in range(n - 2, -1, -1):
        total[i] = 1.0 + math.exp(s[i + 1] - s[i]) * total[i + 1]
    left, place, ranking = np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    sizes = np.zeros(depth, np.int64)
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
        counts[level, d] += share
        ranking[level] = d
        if level + 1 == depth:
            continue
        level += 1
        if share >= split_from * (n - level):
            left[level], place[level] = share, 0
            continue
        for _ in range(share):
            for k in range(level):
                waiting[level, k, sizes[level]] = ranking[k]
            sizes[level] += 1
            if sizes[level] == BATCH:
                _complete(waiting[level], sizes[level], level, depth, tables, state, counts)
                sizes[level] = 0
        level -= 1
    for level in range(1, depth):
        _complete(waiting[level], sizes[level], level, depth, tables, state, counts)
