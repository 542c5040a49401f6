"""Where no guarantee can be given, and why: said in plain words instead of a verdict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.data.log_statistics import LogStatistics
from saferank.errors import DataError

MOST_UNSUPPORTED = 0.2
"""Share of exposure on never-shown documents from which there is no verdict: the log says nothing about those."""
LEAST_EFFECTIVE_CLICKS = 50.0
"""Fewer than so many clicks, after weighting, cannot tell policies apart by any bound."""
OTHER_RANKER = 6.0
"""Standard deviations by which what stands at rank 1 may differ from what the logging exposure was taken from."""
LEAST_EXPECTED = 1.0
"""Cells with a smaller expected count tell too little, one by one, for a normal approximation of their sum."""


class Refused(DataError):
    """No certificate: a guarantee cannot be given for this policy from this log."""


def check_untouched(model: dict[str, Any], log: dict[str, Any]) -> None:
    """Raise if the part `certify` of this log may have been used in training, by the two manifests.

    It was not if the log was split as it was for training: the split goes by the impression's id or its time, so that
    an impression keeps its part however the log grows. Split otherwise, it must be another log altogether.
    """
    if "certify" in model.get("used_parts", []):
        raise Refused("the model was trained on the part 'certify' too, so nothing is held out; fit it anew without.")
    trained = model.get("inputs", {}).get("log")
    if not trained or trained.get("split") == log.get("split"):
        return
    hashes = [{file["sha256"] for file in of.get("files", []) if file.get("sha256")} for of in (trained, log)]
    if trained.get("source") == log.get("source") or hashes[0] & hashes[1]:
        raise Refused(
            f"the model was trained on this log split as {_words(trained.get('split'))}, but here it is split as "
            f"{_words(log.get('split'))}, so that parts of both are the same impressions; split it as for training.",
            file=log.get("source"),
        )


def check_support(unsupported_exposure: float, most: float = MOST_UNSUPPORTED) -> None:
    """Raise if too much of the new policy's exposure is on documents that the log never shows."""
    if unsupported_exposure > most:
        raise Refused(
            f"{unsupported_exposure:.0%} of the new policy's exposure is on documents that the log never shows, of "
            f"which it says nothing (at most {most:.0%} may be); fit with more caution (a smaller delta), or log a "
            "ranker that shows more."
        )


def check_effective_clicks(effective: float, least: float = LEAST_EFFECTIVE_CLICKS) -> None:
    """Raise if the weighted clicks are worth too few."""
    if effective < least:
        raise Refused(
            f"the held-out clicks are worth {effective:.0f} after weighting, fewer than the {least:.0f} that any "
            "verdict needs; log more, or fit a policy that stays nearer to the one that made the log."
        )


def check_same_ranker(
    held_out: LogStatistics,
    *,
    chances: NDArray[np.float64] | None = None,
    earlier: LogStatistics | None = None,
    source: object = None,
) -> None:
    """Raise if rank 1 of the held-out part was filled otherwise than by the policy that it is weighed with.

    That policy is known by its `chances` of each document to stand there, or by what stood there in the `earlier` part.
    The usual chi-square over the documents with enough expected counts; beyond OTHER_RANKER standard deviations the
    log is refused.
    """
    at_top = _per_document(held_out)
    observed = held_out.shown[:, 0]
    if earlier is not None:
        before = _per_document(earlier)
        either = np.maximum(at_top + before, 1)
        chances, share = (observed + earlier.shown[:, 0]) / either, at_top / either
        wanted, spread = chances * at_top, chances * (1.0 - chances) * at_top * (1.0 - share)
    else:
        assert chances is not None
        wanted, spread = chances * at_top, chances * (1.0 - chances) * at_top
    cells = spread >= LEAST_EXPECTED
    if not cells.any():
        return
    excess = np.square(observed[cells] - wanted[cells]) / spread[cells] - 1.0
    deviations = float(excess.sum() / math.sqrt(float((2.0 + 1.0 / spread[cells]).sum())))
    if deviations > OTHER_RANKER:
        raise Refused(
            f"what stands at rank 1 in the held-out part is not what the logging policy shows there ({deviations:.0f} "
            "standard deviations off): a log of another ranker, or of one that changed; certify on its own log.",
            file=source,
        )


def _per_document(log: LogStatistics) -> NDArray[np.int64]:
    """Return for each document how often its query had something at rank 1."""
    return np.repeat(np.add.reduceat(log.shown[:, 0], log.offsets[:-1]), np.diff(log.offsets))


def _words(split: Any) -> str:
    if not isinstance(split, dict):
        return "unknown"
    shares = "/".join(f"{100 * share:g}" for share in split.get("shares", []))
    more = f", seed {split['seed']}" if "seed" in split else ""
    return f"{shares} by {split.get('by')}{more}"
