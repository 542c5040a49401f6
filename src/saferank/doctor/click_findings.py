"""What is said about how users click: position-based or not, bots, heavy units."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from saferank.doctor.health import Finding, Health

BLOCKING_BOTS = 0.015
"""Share of impressions in which everything is clicked from which no verdict is given, so that bots of 2% hardly ever
pass: they flatten the curve and hide differences by about as much as their share of the clicks, which is several times
that of the impressions."""
MANY_GAPS = 0.05
"""Share of impressions whose positions have gaps that is worth a word."""


def click_findings(health: Health) -> Iterator[Finding]:
    """Return what speaks for and against users who click as the verdict takes them to."""
    yield _position_based(health)
    odd = health.suspicious
    bots = odd.all_clicked
    if bots is not None and bots.significant:
        blocks = bots.share >= BLOCKING_BOTS
        text = (
            f"In {bots.found / bots.impressions:.1%} of the impressions everything is clicked, "
            f"where users would do so in {bots.expected / bots.impressions:.1%}: bots, or a fault of the log."
        )
        remedy = "Leave out what bots and tests click on."
        yield Finding("bad" if blocks else "caution", text, remedy, code="bots", blocks=blocks)
    if odd.units is not None and odd.units.heavy:
        text = (
            f"A few of the {odd.units.units:,} units have much of the log: the largest {odd.units.largest:.1%} of the "
            f"interactions, the top hundredth {odd.units.clicks_of_top:.0%} of the clicks."
        )
        yield Finding("caution", text, "Find out whether they are users.", code="heavy-units")
    if odd.rows_missing > MANY_GAPS:
        text = f"{odd.rows_missing:.0%} of the impressions have a rank without a row above their last one."
        yield Finding("caution", text, "Log all rows, or number positions without gaps.", code="gaps-in-positions")


def _position_based(health: Health) -> Finding:
    tests = health.position_based
    if not tests.holds:
        signs = []
        if tests.context.significant:
            less = "less" if tests.context.size < 0 else "more"
            signs.append(
                f"a document is clicked {abs(tests.context.size):.0%} {less} often per click to be expected above it"
            )
        if tests.users_stop:
            signs.append(f"two clicks in an impression are {-tests.stop.size:.0%} rarer than independent ones would be")
        if tests.trust.significant:
            steeper = "faster" if tests.trust.size > 0 else "more slowly"
            signs.append(f"clicks on poor documents fall {steeper} with rank than those on good ones")
        text = (
            f"Clicks do not follow from rank and document alone: {'; '.join(signs)}. Users may not be position-based, "
            "or rankings may follow who asks or when."
        )
        remedy = "No verdict from clicks by position holds for them: compare the rankers in an A/B test."
        return Finding("bad", text, remedy, code="not-position-based", blocks=True)
    if not np.isfinite([tests.context.error, tests.trust.error]).any():
        text = "Whether users click by position and relevance alone cannot be told: documents hardly change ranks."
        return Finding("caution", text, "Vary rankings at random.", code="position-based-unchecked")
    if not np.isfinite(tests.stop.error):
        text = "Whether users stop after a click cannot be told: the statistics hold no single impressions."
        return Finding("caution", text, "Aggregate the log again.", code="position-based-unchecked")
    text = "Nothing speaks against users who click by position and relevance alone."
    if tests.stop.significant and tests.stop.size > 0:
        text += " Clicks come together more often than independent ones, as users differ; that does no harm."
    return Finding("good", text, code="position-based")
