"""The examination curve as a user writes it."""

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import check_probabilities, inverse_rank
from saferank.engine.errors import UsageError


def parse_examination(text: str, cutoff: int | None = None) -> NDArray[np.float64]:
    """Examination as a user writes it: `inverse-rank:POWER`, or one probability per rank: `1,0.5,0.3`.

    The power has no default: a curve is given by someone who knows it, or estimated from the log. The length of a list
    must agree with the cutoff; for `inverse-rank` the cutoff is 5 unless given.
    """
    kind, _, power = text.partition(":")
    if kind == "inverse-rank" and not power:
        raise UsageError(
            f"examination {text}: has no power. Give it, such as inverse-rank:1 for 1/rank, only if you know it; where "
            "a log is read, leaving --examination out estimates the curve from the log."
        )
    try:
        if kind == "inverse-rank":
            return inverse_rank(5 if cutoff is None else cutoff, float(power))
        listed = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(
            f"examination {text}: write inverse-rank:POWER, with a power from 0 up, "
            "or a probability for each rank, such as 1,0.5,0.3."
        ) from error
    if cutoff not in (None, len(listed)):
        raise UsageError(f"examination {text} is for {len(listed)} ranks, but the cutoff is {cutoff}: leave it out.")
    return check_probabilities("examination", listed)
