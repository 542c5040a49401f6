"""The methods that learn from clicks: one registry for the command line, the experiments, the docs and the tests.

A new method is a file in `engine/objectives` and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.objectives.action_crm import action_crm
from saferank.engine.objectives.action_ips import action_ips
from saferank.engine.objectives.direct_method import direct_method
from saferank.engine.objectives.doubly_robust import doubly_robust
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.exposure_poem import exposure_poem
from saferank.engine.objectives.gain_bound import gain_bound
from saferank.engine.objectives.naive import naive
from saferank.engine.objectives.objective import Objective
from saferank.engine.objectives.prpo import growing_limit, prpo
from saferank.engine.objectives.risk import Risk
from saferank.engine.objectives.safe_doubly_robust import safe_doubly_robust
from saferank.engine.objectives.self_normalised_ips import self_normalised_ips
from saferank.engine.propensity.logged_trust import LoggedTrust
from saferank.engine.propensity.logging_exposure import action_propensity
from saferank.engine.ragged import flat_rows
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData

if TYPE_CHECKING:
    from saferank.doctor.ranker_changes import Compared


@dataclass(frozen=True, eq=False)
class LoggedPart:
    """One part of a log with the features of its documents: what an objective is made from."""

    data: RankingData
    """Prepared features."""
    log: LogStatistics
    examination: NDArray[np.float64]
    logging_exposure: NDArray[np.float64]
    """rho_0 of each document, known or counted, as the verdict will have it."""
    clip: float = 0.0
    """Propensities below it are raised to it."""
    risk: Risk = field(default_factory=Risk)
    flatter_exposure: NDArray[np.float64] | None = None
    """rho_0 if users examine low ranks more than `examination` says, to the power 1 - RANGE; None to believe it."""
    training_exposure: NDArray[np.float64] | None = None
    """rho_0 in the objectives of training, if that is another one: see `learning/logging_policy.py`."""
    known: bool = False
    """Whether the logging exposure is that of a policy with known scores."""
    verdict_interactions: int | None = None
    """Interactions that the verdict will have, if it is known; else as many as the log."""
    judged: tuple[Compared, ...] = ()
    """What the verdict may compare, if the ranker changed while it made the log."""
    relevance: NDArray[np.float64] | None = None
    """R-hat of each document, from clicks on other queries; some methods need it."""
    trust: LoggedTrust | None = None
    """Trust bias, in `reproduce` only: exposure IPS and CRM, the doubly robust methods and PRPO correct for it."""

    def of(self, queries: NDArray[np.int64]) -> LoggedPart:
        """Return the part of some of its queries."""
        rows = flat_rows(self.log.offsets, queries)
        return replace(
            self,
            data=self.data.subset(queries),
            log=self.log.subset(queries),
            logging_exposure=self.logging_exposure[rows],
            flatter_exposure=None if self.flatter_exposure is None else self.flatter_exposure[rows],
            training_exposure=None if self.training_exposure is None else self.training_exposure[rows],
            judged=(),
            relevance=None,
            trust=None if self.trust is None else replace(self.trust, exposure=self.trust.exposure[rows]),
        )


@dataclass(frozen=True)
class Method:
    """A way to learn from clicks."""

    name: str
    label: str
    """As figures and tables call it."""
    description: str
    """One line, for --help and the docs."""
    objective: Callable[[LoggedPart], Objective] | None
    """What is maximised; None for a method of another kind, see `learn`."""
    needs: Literal["counts", "rankings"] = "counts"
    """What it needs of a log: counts of what was shown and clicked, or a sample of single rankings."""
    has_risk: bool = False
    """Whether delta matters."""
    needs_relevance: bool = False
    """Whether it needs `LoggedPart.relevance`."""


def predicted_relevance(part: LoggedPart) -> NDArray[np.float64]:
    """Return R-hat of each document, or raise if it was not fitted."""
    if part.relevance is None:
        raise UsageError("this method needs a regression of relevance; learn with it through `learn`.")
    return part.relevance


METHODS = {
    method.name: method
    for method in (
        Method(
            "auto",
            "Auto",
            "correction or gain-bound, and as far from the current ranker as the verdict is predicted to prove",
            None,
        ),
        Method(
            "correction",
            "Correction",
            "the current ranker's scores plus trees that predict relevance, as far as clicks on other queries support "
            "them",
            None,
        ),
        Method(
            "gain-bound",
            "Gain bound",
            "a lower bound on the gain over the current ranker: the estimated gain minus its standard error",
            lambda part: gain_bound(
                exposure_ips(part.log, part.logging_exposure, part.examination, clip=part.clip),
                part.log,
                part.logging_exposure,
                z=1.0,
                verdict_interactions=part.verdict_interactions,
            ),
        ),
        Method(
            "doubly-robust",
            "Doubly robust",
            "predicted relevance, corrected by the clicks that the prediction does not explain",
            lambda part: doubly_robust(
                part.log, predicted_relevance(part), part.logging_exposure, part.examination, clip=part.clip,
                trust=part.trust,
            ),
            needs_relevance=True,
        ),
        Method(
            "safe-doubly-robust",
            "Safe doubly robust",
            "doubly-robust minus the width of the bound of exposure-crm",
            lambda part: safe_doubly_robust(
                part.log, predicted_relevance(part), part.logging_exposure, part.examination, clip=part.clip,
                delta=part.risk.delta, constant=part.risk.constant, trust=part.trust,
            ),
            has_risk=True,
            needs_relevance=True,
        ),
        Method(
            "prpo",
            "PRPO",
            "doubly-robust, with a limit to how far clicks can pull the exposure of a document (grows with the log)",
            lambda part: prpo(
                doubly_robust(
                    part.log, predicted_relevance(part), part.logging_exposure, part.examination, clip=part.clip,
                    trust=part.trust,
                ),
                part.logging_exposure,
                most=growing_limit(part.log.total_interactions),
            ),
            needs_relevance=True,
        ),
        Method(
            "direct",
            "Direct method",
            "predicted relevance, whatever the current ranker showed",
            lambda part: direct_method(part.log, predicted_relevance(part), part.examination),
            needs_relevance=True,
        ),
        Method(
            "naive",
            "Naive",
            "clicks as they are, without any correction",
            lambda part: naive(part.log, part.examination),
        ),
        Method(
            "action-ips",
            "Action IPS",
            "clicks weighted by the inverse probability of the whole ranking",
            lambda part: action_ips(part.log, action_propensity(part.log), clip=part.clip),
            needs="rankings",
        ),
        Method(
            "action-crm",
            "Action CRM",
            "action-ips minus the width of its bound",
            lambda part: action_crm(
                part.log, action_propensity(part.log), clip=part.clip, delta=part.risk.delta
            ),
            needs="rankings",
            has_risk=True,
        ),
        Method(
            "exposure-ips",
            "Exposure IPS",
            "the estimated clicks: each click weighted by the inverse exposure of its document",
            lambda part: exposure_ips(
                part.log, part.logging_exposure, part.examination, clip=part.clip, trust=part.trust
            ),
        ),
        Method(
            "self-normalised-ips",
            "Self-normalised IPS",
            "exposure-ips divided by the mean of its weights; the same where exposure is counted",
            lambda part: self_normalised_ips(part.log, part.logging_exposure, part.examination, clip=part.clip),
        ),
        Method(
            "exposure-poem",
            "Exposure POEM",
            "exposure-ips minus the width of its bound, with the sample variance in place of the divergence",
            lambda part: exposure_poem(
                part.log, part.logging_exposure, part.examination, clip=part.clip, delta=part.risk.delta
            ),
            needs="rankings",
            has_risk=True,
        ),
        Method(
            "exposure-crm",
            "Exposure CRM",
            "a lower bound on the clicks: exposure-ips minus the width of its bound (the paper)",
            lambda part: exposure_crm(
                part.log,
                part.logging_exposure,
                part.examination,
                clip=part.clip,
                delta=part.risk.delta,
                constant=part.risk.constant,
                trust=part.trust,
            ),
            has_risk=True,
        ),
    )
}  # fmt: skip
FROM_COUNTS = tuple(name for name, method in METHODS.items() if method.needs == "counts")
"""The methods that `fit` offers."""


def method_named(name: str, choice: tuple[str, ...] = tuple(METHODS)) -> Method:
    """Return the method of this name, or raise if it is not among the choice."""
    if name not in choice:
        raise UsageError(f"method '{name}' is unknown; choose from: {', '.join(choice)}.")
    return METHODS[name]
