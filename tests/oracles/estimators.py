"""The estimators of the paper straight from their equations: one interaction after another, ranking by ranking."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.oracles import enumeration


class Interaction(NamedTuple):
    """One issue of a query: the documents shown, in order, and whether each was clicked."""

    query: int
    ranking: tuple[int, ...]
    clicks: tuple[bool, ...]


Log = Sequence[Interaction]
PerQuery = Sequence[Sequence[float]]
"""Numbers of each query's documents."""


def rankings(scores: Sequence[float], cutoff: int) -> dict[tuple[int, ...], float]:
    """Return the chance of each ranking; remembered, for every interaction of a query asks for the same."""
    return _rankings(tuple(scores), cutoff)


_rankings = lru_cache(maxsize=64)(enumeration.ranking_probabilities)


def draw_log(
    scores: PerQuery,
    relevance: PerQuery,
    examination: Sequence[float],
    interactions: int,
    rng: np.random.Generator,
    queries: Sequence[int],
) -> list[Interaction]:
    """Simulate one by one: a query, a ranking from the list of all of them, a coin for each document shown."""
    drawn = []
    for query in rng.choice(queries, interactions).tolist():
        chance_of = rankings(scores[query], len(examination))
        ranking = list(chance_of)[rng.choice(len(chance_of), p=list(chance_of.values()))]
        chances = [examination[rank] * relevance[query][d] for rank, d in enumerate(ranking)]
        drawn.append(Interaction(query, ranking, tuple(bool(rng.random() < chance) for chance in chances)))
    return drawn


def logging_exposure(log: Log, lengths: Sequence[int], examination: Sequence[float]) -> list[list[float]]:
    """rho-hat_0(d) = (1/N_q) sum over the query's interactions of the examination of d's rank in it."""
    exposure = [[0.0] * length for length in lengths]
    for query, _ in enumerate(lengths):
        own = [interaction for interaction in log if interaction.query == query]
        for interaction in own:
            for rank, document in enumerate(interaction.ranking):
                exposure[query][document] += examination[rank] / len(own)
    return exposure


def action_propensity(log: Log, interaction: Interaction) -> float:
    """Product over ranks of the share of the query's interactions that showed the same document there."""
    own = [other for other in log if other.query == interaction.query]
    shares = [
        sum(other.ranking[rank] == document for other in own) / len(own)
        for rank, document in enumerate(interaction.ranking)
    ]
    return math.prod(shares)


def exposure_ips(log: Log, scores: PerQuery, examination: Sequence[float], rho_0: PerQuery, clip: float) -> float:
    """The mean of the terms."""
    return sum(exposure_ips_terms(log, scores, examination, rho_0, clip)) / len(log)


def exposure_ips_terms(
    log: Log, scores: PerQuery, examination: Sequence[float], rho_0: PerQuery, clip: float
) -> list[float]:
    """Of each interaction: sum over rankings y of pi(y | q_i) sum_k examination_k c_i(y_k) / max(rho_0(y_k), clip)."""
    terms = []
    for query, shown, clicks in log:
        clicked = {document for document, click in zip(shown, clicks, strict=True) if click}
        total = 0.0
        for ranking, probability in rankings(scores[query], len(examination)).items():
            for rank, document in enumerate(ranking):
                if document in clicked:
                    total += probability * examination[rank] / max(rho_0[query][document], clip)
        terms.append(total)
    return terms


def doubly_robust(
    log: Log, scores: PerQuery, examination: Sequence[float], rho_0: PerQuery, clip: float, predicted: PerQuery
) -> float:
    """As exposure_ips, c_i(y_k) less what the regression predicts of it, plus the regression's own clicks."""
    total = 0.0
    for query, shown, clicks in log:
        surprise = {
            document: click - examination[rank] * predicted[query][document]
            for rank, (document, click) in enumerate(zip(shown, clicks, strict=True))
        }
        for ranking, probability in rankings(scores[query], len(examination)).items():
            for rank, document in enumerate(ranking):
                weighted = surprise.get(document, 0.0) / max(rho_0[query][document], clip)
                total += probability * examination[rank] * (predicted[query][document] + weighted)
    return total / len(log)


def prpo(
    log: Log,
    scores: PerQuery,
    examination: Sequence[float],
    rho_0: PerQuery,
    clip: float,
    predicted: PerQuery,
    most: float,
) -> float:
    """As doubly_robust, document by document, exposure counting up to `most` times rho_0, or down to 1 / most of it."""
    total = 0.0
    for query, own_scores in enumerate(scores):
        own = [interaction for interaction in log if interaction.query == query]
        for document, rho in enumerate(enumeration.exposure(own_scores, examination)):
            relevance, reference = predicted[query][document], rho_0[query][document]
            reward = len(own) * relevance
            for _, shown, clicks in own:
                if document in shown:
                    rank = list(shown).index(document)
                    reward += (clicks[rank] - examination[rank] * relevance) / max(reference, clip)
            total += reward * (min(rho, most * reference) if reward >= 0 else max(rho, reference / most))
    return total / len(log)


def self_normalised_ips(
    log: Log, scores: PerQuery, examination: Sequence[float], rho_0: PerQuery, clip: float
) -> float:
    """Mean over queries, by interactions, of Z_q times the weighted clicks of exposure_ips per weighted examination."""
    total = 0.0
    for query, own_scores in enumerate(scores):
        own = [interaction for interaction in log if interaction.query == query]
        if not own:
            continue
        rho = enumeration.exposure(own_scores, examination)
        ever_shown = {document for interaction in own for document in interaction.ranking}
        weight = sum(len(own) * exposure for document, exposure in enumerate(rho) if document not in ever_shown)
        for interaction in own:
            for rank, document in enumerate(interaction.ranking):
                weight += rho[document] * examination[rank] / rho_0[query][document]
        clicks = len(own) * exposure_ips(own, scores, examination, rho_0, clip)
        total += len(own) * sum(examination[: len(own_scores)]) * clicks / weight
    return total / len(log)


def squared_gain_risk(
    log: Log,
    scores: PerQuery,
    examination: Sequence[float],
    reference: PerQuery,
    rho_0: PerQuery,
    constants: Sequence[float],
    *,
    worst_case: bool,
) -> float:
    """(1/N) sum_i c_q times the sum of ((rho(d) - reference(d)) / rho_0(d))^2 over what was clicked in i.

    In the worst case over all documents instead, each weighted by rho_0: over what would have been clicked on average
    if everything that is examined were.
    """
    total = 0.0
    for query, shown, clicks in log:
        rho = enumeration.exposure(scores[query], examination)
        weights = [(new - old) / logged for new, old, logged in zip(rho, reference[query], rho_0[query], strict=True)]
        if worst_case:
            squares = sum(weight**2 * logged for weight, logged in zip(weights, rho_0[query], strict=True))
        else:
            squares = sum(weights[document] ** 2 for document, click in zip(shown, clicks, strict=True) if click)
        total += constants[query] * squares
    return total / len(log)


def cross_entropy(log: Log, scores: PerQuery, examination: Sequence[float]) -> float:
    """(1/N) sum_i sum_k examination_k log rho(y_ik)."""
    total = 0.0
    for query, shown, _ in log:
        rho = enumeration.exposure(scores[query], examination)
        total += sum(examination[rank] * math.log(rho[document]) for rank, document in enumerate(shown))
    return total / len(log)


def divergence(
    log: Log,
    scores: PerQuery,
    examination: Sequence[float],
    rho_0: PerQuery,
    floor: float,
    constants: Sequence[float],
) -> float:
    """(1/N) sum_i c_q Z_q E_{d ~ rho_0 / Z_q} (rho(d) / rho_0(d))^2: the paper's Z d_2 if the constants are 1."""
    total = 0.0
    for query, _, _ in log:
        exposure = [0.0] * len(scores[query])
        for ranking, probability in rankings(scores[query], len(examination)).items():
            for rank, document in enumerate(ranking):
                exposure[document] += probability * examination[rank]
        filled = min(len(exposure), len(examination))
        total_examination = sum(examination[:filled])
        for rho, logged in zip(exposure, rho_0[query], strict=True):
            share, logged_share = rho / total_examination, max(logged, floor) / total_examination
            total += constants[query] * total_examination * (share**2 / logged_share)
    return total / len(log)


def action_ips(log: Log, scores: PerQuery, cutoff: int, propensity: Sequence[float], clip: float) -> float:
    """(1/N) sum_i pi(y_i) / max(pi_0(y_i), clip) times the clicks of i."""
    total = 0.0
    for interaction, pi_0 in zip(log, propensity, strict=True):
        pi = rankings(scores[interaction.query], cutoff)[interaction.ranking]
        total += sum(interaction.clicks) * pi / max(pi_0, clip)
    return total / len(log)


def action_divergence(log: Log, scores: PerQuery, cutoff: int, propensity: Sequence[float]) -> float:
    """(1/N) sum_i (pi(y_i) / pi_0(y_i))^2."""
    total = 0.0
    for interaction, pi_0 in zip(log, propensity, strict=True):
        pi = rankings(scores[interaction.query], cutoff)[interaction.ranking]
        total += (pi / pi_0) ** 2
    return total / len(log)


def utility(scores: PerQuery, relevance: PerQuery, examination: Sequence[float]) -> float:
    """Expected clicks of an interaction, queries uniform: (1/Q) sum_q sum_y pi(y) sum_k examination_k R(y_k)."""
    total = 0.0
    for own_scores, own_relevance in zip(scores, relevance, strict=True):
        for ranking, probability in rankings(own_scores, len(examination)).items():
            total += probability * sum(examination[rank] * own_relevance[d] for rank, d in enumerate(ranking))
    return total / len(scores)


def second_moment(
    logging: dict[tuple[int, ...], float],
    weights: NDArray[np.float64],
    relevance: NDArray[np.float64],
    examination: NDArray[np.float64],
) -> tuple[float, float]:
    """E[X] and E[X^2] of X = sum_d weights(d) c(d) over all rankings and, for each, all patterns of clicks."""
    first, second = 0.0, 0.0
    for ranking, probability in logging.items():
        chances = [examination[rank] * relevance[d] for rank, d in enumerate(ranking)]
        for clicks in product((False, True), repeat=len(ranking)):
            chance = probability * math.prod(p if c else 1 - p for p, c in zip(chances, clicks, strict=True))
            x = sum(weights[d] for d, c in zip(ranking, clicks, strict=True) if c)
            first, second = first + chance * x, second + chance * x**2
    return first, second
