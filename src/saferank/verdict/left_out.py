"""Whether a DEPLOY rests on documents that something other than the ranker leaves out of lists."""

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import shown_pairs
from saferank.logs.aggregated_log import pair_ids, places_of
from saferank.verdict.checks import Refused
from saferank.verdict.comparison import Comparison, Rankers

Floats = NDArray[np.float64]


def credited(share: Floats, rankers: Rankers, test: Comparison, curve: Floats) -> float:
    """Return what the new ranker is credited with, per interaction, in lists that such documents are missing from.

    credit = sum_d P(q) share(d) rho(d) relevance(d),    `share`: of the lists, for each pair that the log shows

    As if nothing else were clicked in their place.
    """
    part, pairs = test.part, rankers.pairs
    left_out = np.zeros(pairs.documents)
    left_out[places_of(pairs).of_pairs(*pair_ids(shown_pairs(rankers.log)))] = share
    clicks = np.bincount(part.pair, part.clicked.sum(axis=1), pairs.documents)
    examined = np.bincount(part.pair, part.shown @ curve, pairs.documents)
    relevance = clicks / np.maximum(examined, 1e-300)
    issued = np.bincount(part.query, part.interactions, pairs.queries)[pairs.query_of_document]
    worth = test.click_rate * float(part.interactions.sum()) / max(float(clicks.sum()), 1.0)  # of a click
    earned = issued * left_out * (rankers.placement @ curve) * relevance
    return worth * float(earned.sum()) / max(float(part.interactions.sum()), 1.0)


def check_left_out(
    share: Floats | None, rankers: Rankers, test: Comparison, curve: Floats, lower: float, tolerance: float
) -> None:
    """Raise if the lower bound would not be enough without what the new ranker may not be able to show."""
    if share is None or not share.any():
        return
    credit = credited(share, rankers, test, curve)
    if lower - credit >= -tolerance:
        return
    raise Refused(
        "a DEPLOY would rest on documents that something other than the ranker seems to leave out of some lists. If "
        "stock, regions or rules do, up to "
        f"{credit / test.click_rate:.1%} of what the current ranker earns is credited to the new one by mistake, and "
        f"only {lower / test.click_rate:+.1%} is proven. Make what decides it part of query_id (shoes|region=north), "
        "or leave such impressions out. If it is only the ranker that varies, say so (certify --trust-candidates).",
        code="high-or-missing",
        file=rankers.log.source,
    )
