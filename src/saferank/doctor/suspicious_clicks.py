"""Clicks that users do not make: rows or impressions without a click are missing, bots, units with most of the log."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions, codes
from saferank.engine.types.log_statistics import LogStatistics

UNITS = (
    "user", "u", "customer", "shopper", "buyer", "person", "member", "account", "subscriber", "reader", "visitor",
    "guest", "client", "profile", "cookie", "browser", "device", "session", "visit",
)  # fmt: skip
"""What columns of users or sessions are called, alone or as an id: `user_id`, `SessionID`. The widest unit first."""
KINDS = ("member", "guest", "client", "browser", "device")
"""Which of these may also name a kind: of few values (phone, tablet), they do."""
SHORTEST = 3
"""Documents of a list from which clicking them all is unusual."""
SIGNIFICANT = 4.0
FEW_EXPECTED = 20.0
"""Impressions without a click that must be expected before their absence says anything."""
MISSING_BELOW = 0.03
"""Impressions without a click, relative to what independent clicks would leave, below which they were left out. Users
who stop after a click may leave ten times fewer than independent ones."""


@dataclass(frozen=True)
class AllClicked:
    """Impressions of at least three documents in which each is clicked, as by a bot."""

    share: float
    """Of such impressions, beyond those that users would make."""
    z: float
    found: int
    expected: float
    impressions: int

    @property
    def significant(self) -> bool:
        """Whether there are more than users make, beyond chance."""
        return self.z > SIGNIFICANT and self.share > 0.001


@dataclass(frozen=True)
class Units:
    """How interactions and clicks are distributed over users or sessions."""

    units: int
    largest: float
    """Share of the interactions that the largest unit has."""
    clicks_of_top: float
    """Share of the clicks that come from the hundredth of the units that clicks most."""

    @property
    def heavy(self) -> bool:
        """Whether one unit has more than 5% of the interactions, or a hundredth of them most of the clicks."""
        return self.units >= 20 and (
            (self.largest > 0.05 and self.largest * self.units > 10) or (self.units >= 100 and self.clicks_of_top > 0.5)
        )


@dataclass(frozen=True)
class SuspiciousClicks:
    """What is found, and how many impressions or rows it rests on."""

    every_row_clicked: bool
    rows_missing: float
    """Share of the impressions with a gap in their positions: a rank above the last one has no row."""
    without_click: int
    """Interactions without a click."""
    without_click_expected: float
    """Interactions without a click that independent clicks at the same rates would leave."""
    all_clicked: AllClicked | None
    """None without a sample of impressions, or if lists are shorter than three."""
    units: Units | None
    """None if the log was aggregated without units."""

    @property
    def clickless_missing(self) -> bool:
        """Whether impressions without a click were left out of the log."""
        expected = self.without_click_expected
        return expected > FEW_EXPECTED and self.without_click < MISSING_BELOW * expected


def suspicious_clicks(
    statistics: LogStatistics, patterns: pa.Table, sample: SampledImpressions | None
) -> SuspiciousClicks:
    """Return what is odd about the clicks; `patterns` are those of the aggregated log."""
    times, clicks = patterns["interactions"].to_numpy(), pc.list_value_length(patterns["clicked"]).to_numpy()
    per_rank = statistics.shown.sum(axis=0)
    interactions = max(statistics.total_interactions, 1)
    bots = None
    if sample is None:
        # every list has a first rank; those that end early show less at lower ranks, never more
        gaps = max(interactions - int(per_rank[0]), int(np.diff(per_rank).max(initial=0)), 0) / interactions
        rates = statistics.clicked.sum(axis=0) / interactions
        expected = interactions * float(np.prod(1.0 - np.minimum(rates, 1.0)))
    else:
        gaps = float((np.diff(sample.offsets) < sample.rank[sample.offsets[1:] - 1] + 1).mean())
        place = sample.document, sample.rank
        rate: NDArray[np.float64] = statistics.clicked[place] / np.maximum(statistics.shown[place], 1)
        expected = interactions * float(np.multiply.reduceat(1.0 - rate, sample.offsets[:-1]).mean())
        bots = all_clicked(sample, rate)
    has_units = patterns["unit"].null_count < len(patterns)
    return SuspiciousClicks(
        every_row_clicked=int(statistics.clicks.sum()) == int(statistics.times_shown.sum()),
        rows_missing=gaps,
        without_click=int(times[clicks == 0].sum()),
        without_click_expected=expected,
        all_clicked=bots,
        units=units_of(codes(patterns["unit"]), times, clicks.astype(np.int64)) if has_units else None,
    )


def all_clicked(sample: SampledImpressions, rate: NDArray[np.float64]) -> AllClicked | None:
    """Compare the impressions in which everything is clicked with those to be expected of users.

    Expected is the larger of two numbers, for each length L of a list: what independent clicks at the given rates
    would give, and f(L-1)^2 / f(L-2), with f(m) the impressions with m clicks. The distribution of a sum of independent
    clicks is log-concave, so f(L) is smaller than that by a factor of at least 2 (Newton's inequality), which leaves
    room for users of whom some click more than others. Bots stand out where few users click on all but one: in lists
    of three where most is clicked they look like eager users. None if no list has three documents.
    """
    lengths = np.diff(sample.offsets)
    clicks = sample.sums(sample.click).astype(np.int64)
    long = lengths >= SHORTEST
    if not long.any():
        return None
    independent = np.multiply.reduceat(rate, sample.offsets[:-1])
    found = expected = 0.0
    for length in np.unique(lengths[long]):
        of_length = lengths == length
        counts = np.bincount(clicks[of_length], minlength=length + 1)
        smooth = counts[length - 1] ** 2 / max(int(counts[length - 2]), 1)
        found += counts[length]
        expected += max(float(independent[of_length].sum()), float(smooth))
    impressions = int(long.sum())
    # the expectation is itself an estimate, from counts at least as large
    error = math.sqrt(max(3.0 * expected, 1.0))
    return AllClicked((found - expected) / impressions, (found - expected) / error, int(found), expected, impressions)


def likely_unit(manifest: Mapping[str, Any]) -> str | None:
    """Return the column of a log that seems to name users or sessions; None if a unit is named, or it is the query."""
    if manifest.get("unit") is not None or (manifest.get("split") or {}).get("by") == "query":
        return None
    few_values = manifest.get("groups") or ()
    plain = {re.sub("[^a-z]", "", name.lower()): name for name in manifest.get("other_columns") or ()}
    plain = {ours: name for ours, name in plain.items() if not (ours in KINDS and name in few_values)}
    names = (found for unit in UNITS for found in (unit, f"{unit}id", f"{unit}uuid", f"{unit}hash"))
    return next((plain[name] for name in names if name in plain), None)


def units_of(unit: NDArray[np.int64], interactions: NDArray[np.int64], clicks: NDArray[np.int64]) -> Units:
    """Return the distribution over units, from the unit (-1 for none), interactions and clicks of each pattern."""
    known = unit >= 0
    per_unit = np.bincount(unit[known], interactions[known])
    clicked = np.sort(np.bincount(unit[known], (interactions * clicks)[known]))[::-1]
    top = max(len(clicked) // 100, 1)
    return Units(
        units=len(per_unit),
        largest=float(per_unit.max() / per_unit.sum()),
        clicks_of_top=float(clicked[:top].sum() / max(clicked.sum(), 1)),
    )
