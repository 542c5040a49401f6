"""A log small enough to enumerate, its counts, and every objective beside its equation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import Constant
from saferank.engine.objectives.action_crm import action_crm
from saferank.engine.objectives.action_ips import action_ips
from saferank.engine.objectives.direct_method import direct_method
from saferank.engine.objectives.doubly_robust import doubly_robust
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.exposure_poem import exposure_poem
from saferank.engine.objectives.gain_bound import GainBound, Variance, cantelli, gain_bound
from saferank.engine.objectives.imitation import imitation
from saferank.engine.objectives.naive import naive
from saferank.engine.objectives.objective import Objective
from saferank.engine.objectives.prpo import prpo
from saferank.engine.objectives.safe_doubly_robust import safe_doubly_robust
from saferank.engine.objectives.self_normalised_ips import self_normalised_ips
from saferank.engine.objectives.skyline import skyline
from saferank.engine.types.log_statistics import LoggedRankings, LogStatistics
from tests.oracles import enumeration
from tests.oracles import estimators as oracle

Array = NDArray[np.float64]
RANKS = [1.0, 0.6, 0.3]
EXAMINATION = np.array(RANKS)
LENGTHS = [4, 1, 3, 5, 3, 2]
OFFSETS = np.cumsum([0, *LENGTHS])
NEVER_CLICKED, NEVER_ISSUED = 2, 4
DELTA, CLIP, FLOOR, MOST = 0.05, 0.35, 0.02, 1.3


@dataclass(frozen=True, eq=False)
class Case:
    """Lists longer and shorter than the cutoff, a document never shown, a query never clicked, one never issued."""

    log: list[oracle.Interaction]
    statistics: LogStatistics
    """Its counts."""
    logging_scores: Array
    relevance: Array
    scores: Array
    """Of the new policy."""

    @cached_property
    def rho_0(self) -> list[list[float]]:
        return oracle.logging_exposure(self.log, LENGTHS, RANKS)

    @cached_property
    def flat_rho_0(self) -> Array:
        return np.concatenate(self.rho_0)

    @cached_property
    def known_rho_0(self) -> Array:
        """What rho_0 is on average."""
        return exposure_of(self.logging_scores)

    @cached_property
    def reference(self) -> Array:
        """Exposure of a policy that is neither the logging policy nor the new one."""
        return exposure_of(0.5 * self.logging_scores)

    @cached_property
    def predicted(self) -> Array:
        """A bad regression of relevance."""
        return 0.05 + 0.5 * self.relevance[::-1]

    @cached_property
    def pi_0(self) -> Array:
        return np.array([oracle.action_propensity(self.log, interaction) for interaction in self.log])


def make_case(seed: int, interactions: int = 60) -> Case:
    rng = np.random.default_rng(seed)
    logging_scores, scores = rng.normal(size=(2, sum(LENGTHS)))
    logging_scores[3] = -30.0  # of the first query: never shown
    relevance = rng.uniform(0.2, 0.9, sum(LENGTHS))
    relevance[OFFSETS[NEVER_CLICKED] : OFFSETS[NEVER_CLICKED + 1]] = 0.0
    issued = [query for query, _ in enumerate(LENGTHS) if query != NEVER_ISSUED]
    log = oracle.draw_log(lists(logging_scores), lists(relevance), RANKS, interactions, rng, issued)
    log.sort(key=lambda interaction: interaction.query)
    return Case(log, count(log, OFFSETS, len(RANKS)), logging_scores, relevance, scores)


def lists(flat: Array) -> list[list[float]]:
    """Return the numbers of each query's documents."""
    return [flat[begin:end].tolist() for begin, end in pairwise(OFFSETS)]


def exposure_of(scores: Array) -> Array:
    """Return the exposure by enumeration."""
    return np.concatenate([enumeration.exposure(own, RANKS) for own in lists(scores)])


def count(log: oracle.Log, offsets: NDArray[np.int64], cutoff: int) -> LogStatistics:
    """Count what a log shows."""
    interactions = np.zeros(len(offsets) - 1, np.int64)
    shown, clicked = np.zeros((2, offsets[-1], cutoff), np.int64)
    rankings, clicks = np.full((len(log), cutoff), -1), np.zeros((len(log), cutoff), np.bool_)
    for i, (query, ranking, click) in enumerate(log):
        interactions[query] += 1
        for rank, document in enumerate(ranking):
            shown[offsets[query] + document, rank] += 1
            clicked[offsets[query] + document, rank] += click[rank]
            rankings[i, rank], clicks[i, rank] = document, click[rank]
    queries = np.array([interaction.query for interaction in log], np.int32)
    return LogStatistics(
        offsets, interactions, shown, clicked, LoggedRankings(queries, rankings.astype(np.int32), clicks)
    )


@dataclass(frozen=True)
class Method:
    """How to make an objective from counts, the equation for its value, and which queries that value depends on."""

    make: Callable[[Case], Objective]
    equation: Callable[[Case, Array], float]
    """Of (case, scores of the new policy)."""
    active: set[int]
    crm: bool = False

    def value(self, case: Case, scores: Array, *, risk: bool = True) -> float:
        """Return what the code gives."""
        objective = self.make(case) if risk else replace(self.make(case), risk_weight=None)
        return objective.value_and_slope(scores)[0]


Exposing = TypeVar("Exposing", bound=ExposureObjective)


def exact(objective: Exposing) -> Exposing:
    """Return the objective with exposure as accurate as it gets."""
    return replace(objective, accuracy=1e-9)


def _crm(case: Case, constant: Constant) -> ExposureObjective:
    return exact(
        exposure_crm(
            case.statistics, case.flat_rho_0, EXAMINATION, delta=DELTA, constant=constant, clip=CLIP, floor=FLOOR
        )
    )


def _gain_bound(case: Case, variance: Variance) -> GainBound:
    return gain_bound(
        exact(exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION, clip=CLIP)),
        case.statistics,
        case.flat_rho_0,
        z=cantelli(DELTA),
        reference=case.reference,
        variance=variance,
        prior_clicks=0.0,
        floor=FLOOR,
    )


def _naive(case: Case, scores: Array) -> float:
    ones = [[1.0] * length for length in LENGTHS]
    return oracle.exposure_ips(case.log, lists(scores), RANKS, ones, clip=0.0)


def _exposure_ips(case: Case, scores: Array) -> float:
    return oracle.exposure_ips(case.log, lists(scores), RANKS, case.rho_0, CLIP)


def _exposure_crm(case: Case, scores: Array, constants: list[float]) -> float:
    divergence = oracle.divergence(case.log, lists(scores), RANKS, case.rho_0, FLOOR, constants)
    return _exposure_ips(case, scores) - sqrt((1 - DELTA) / DELTA * divergence / len(case.log))


def _exposure_poem(case: Case, scores: Array) -> float:
    terms = oracle.exposure_ips_terms(case.log, lists(scores), RANKS, case.rho_0, CLIP)
    return float(np.mean(terms)) - sqrt((1 - DELTA) / DELTA * float(np.var(terms)) / len(case.log))


def _doubly_robust(case: Case, scores: Array) -> float:
    return oracle.doubly_robust(case.log, lists(scores), RANKS, case.rho_0, CLIP, lists(case.predicted))


def _safe_doubly_robust(case: Case, scores: Array) -> float:
    divergence = oracle.divergence(case.log, lists(scores), RANKS, case.rho_0, FLOOR, PROVEN)
    return _doubly_robust(case, scores) - sqrt((1 - DELTA) / DELTA * divergence / len(case.log))


def _prpo(case: Case, scores: Array) -> float:
    return oracle.prpo(case.log, lists(scores), RANKS, case.rho_0, CLIP, lists(case.predicted), MOST)


def _direct_method(case: Case, scores: Array) -> float:
    own = [oracle.utility([lists(scores)[i.query]], [lists(case.predicted)[i.query]], RANKS) for i in case.log]
    return sum(own) / len(own)


def _self_normalised_ips(case: Case, scores: Array) -> float:
    return oracle.self_normalised_ips(case.log, lists(scores), RANKS, lists(case.known_rho_0), CLIP)


def _gain(case: Case, scores: Array, *, worst_case: bool) -> float:
    floored = lists(np.maximum(case.flat_rho_0, FLOOR))
    squared = oracle.squared_gain_risk(
        case.log, lists(scores), RANKS, lists(case.reference), floored, PROVEN, worst_case=worst_case
    )
    gain = _exposure_ips(case, scores) - _exposure_ips(case, 0.5 * case.logging_scores)
    return gain - sqrt((1 - DELTA) / DELTA * squared / len(case.log))


def _action_ips(case: Case, scores: Array) -> float:
    return oracle.action_ips(case.log, lists(scores), len(RANKS), list(case.pi_0), CLIP)


def _action_crm(case: Case, scores: Array) -> float:
    divergence = oracle.action_divergence(case.log, lists(scores), len(RANKS), list(np.maximum(case.pi_0, CLIP)))
    return _action_ips(case, scores) - sqrt((1 - DELTA) / DELTA * divergence / len(case.log))


ALL = set(range(len(LENGTHS)))
ISSUED = ALL - {NEVER_ISSUED}
CLICKED = ISSUED - {NEVER_CLICKED}
# min(K, 1 + Z) with Z of the ranks that each list fills: Z is 1 for one document, 1.6 for two, 1.9 for more.
PROVEN = [2.9, 1.0, 2.9, 2.9, 2.9, 2.0]

METHODS = {
    "naive": Method(lambda case: exact(naive(case.statistics, EXAMINATION)), _naive, CLICKED),
    "exposure-ips": Method(
        lambda case: exact(exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION, clip=CLIP)),
        _exposure_ips,
        CLICKED,
    ),
    "exposure-crm, paper": Method(
        lambda case: _crm(case, "paper"),
        lambda case, scores: _exposure_crm(case, scores, [1.0] * len(LENGTHS)),
        ISSUED,
        crm=True,
    ),
    "exposure-crm, proven": Method(
        lambda case: _crm(case, "proven"),
        lambda case, scores: _exposure_crm(case, scores, PROVEN),
        ISSUED,
        crm=True,
    ),
    "exposure-poem": Method(
        lambda case: exact(exposure_poem(case.statistics, case.flat_rho_0, EXAMINATION, delta=DELTA, clip=CLIP)),
        _exposure_poem,
        CLICKED,
        crm=True,
    ),
    "doubly-robust": Method(
        lambda case: exact(doubly_robust(case.statistics, case.predicted, case.flat_rho_0, EXAMINATION, clip=CLIP)),
        _doubly_robust,
        ISSUED,
    ),
    "safe-doubly-robust": Method(
        lambda case: exact(
            safe_doubly_robust(
                case.statistics, case.predicted, case.flat_rho_0, EXAMINATION, delta=DELTA, clip=CLIP, floor=FLOOR
            )
        ),
        _safe_doubly_robust,
        ISSUED,
        crm=True,
    ),
    "prpo": Method(
        lambda case: prpo(
            exact(doubly_robust(case.statistics, case.predicted, case.flat_rho_0, EXAMINATION, clip=CLIP)),
            case.flat_rho_0,
            most=MOST,
        ),
        _prpo,
        ISSUED,
    ),
    "direct-method": Method(
        lambda case: exact(direct_method(case.statistics, case.predicted, EXAMINATION)), _direct_method, ISSUED
    ),
    "self-normalised-ips": Method(
        lambda case: exact(self_normalised_ips(case.statistics, case.known_rho_0, EXAMINATION, clip=CLIP)),
        _self_normalised_ips,
        CLICKED,
    ),
    "gain-bound, worst case": Method(
        lambda case: _gain_bound(case, "worst-case"),
        lambda case, scores: _gain(case, scores, worst_case=True),
        ISSUED,
        crm=True,
    ),
    "gain-bound, clicks": Method(
        lambda case: _gain_bound(case, "clicks"),
        lambda case, scores: _gain(case, scores, worst_case=False),
        CLICKED,
        crm=True,
    ),
    "imitation": Method(
        lambda case: exact(imitation(case.statistics, EXAMINATION)),
        lambda case, scores: oracle.cross_entropy(case.log, lists(scores), RANKS),
        ISSUED,
    ),
    "action-ips": Method(lambda case: action_ips(case.statistics, case.pi_0, clip=CLIP), _action_ips, CLICKED),
    "action-crm": Method(
        lambda case: action_crm(case.statistics, case.pi_0, delta=DELTA, clip=CLIP), _action_crm, ISSUED, crm=True
    ),
    "skyline": Method(
        lambda case: exact(skyline(case.relevance, OFFSETS, EXAMINATION)),
        lambda case, scores: oracle.utility(lists(scores), lists(case.relevance), RANKS),
        ALL - {NEVER_CLICKED},
    ),
}
