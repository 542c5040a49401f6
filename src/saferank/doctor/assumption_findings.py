"""Findings about what a verdict assumes: examination, how users click, what changed over time, and complete lists."""

from collections.abc import Iterator

import numpy as np

from saferank.doctor.drift import FEW_REPEATED
from saferank.doctor.health import Finding, Health, blocking, caution, good
from saferank.doctor.hour_of_day import LEAST_SIZE, HourOfDay
from saferank.logs.periods import datetime_of

ABOVE_ONE, ABOVE_ONE_ERRORS = 1.1, 3.3
"""A rank is examined more often than rank 1 if by more than a tenth, and by so many standard errors."""
BLOCKING_BOTS = 0.015
"""Share of impressions in which everything is clicked from which no verdict is given, so that bots of 2% hardly ever
pass: they flatten the curve and hide differences by about as much as their share of the clicks, which is several times
that of the impressions."""
MANY_GAPS = 0.05
"""Share of impressions whose positions have gaps from which it is reported."""

RANDOMISE = (
    "Swap neighbouring ranks at random now and then, or draw rankings from scores and keep their probabilities "
    "(`saferank rank`)."
)
HOUR_REMEDY = (
    "Add the time of day (in blocks of three hours, say) to query_id. Or draw rankings at random from scores that do "
    "not depend on the hour, and give those scores (--logging-scores)."
)
RANDOMISE_WITHIN = "Draw rankings at random within the day, so that documents appear at several ranks on the same day."


def examination_finding(health: Health) -> Finding:
    """Return whether the curve is known: estimated from the log, or given and checked."""
    if health.given is not None:
        return _given(health)
    harvested = health.harvested
    warnings = [text[0].upper() + text[1:] for text in harvested.warnings]
    if health.within_periods and (not harvested.complete or health.check.wide):
        text = (
            "The ranker changes over time. Whether demand does too is unknown, because no document returns to a rank."
        )
        if health.demand.significant:
            text = "Demand changes over time, and the ranker changes with it."
        text += " So examination has to be estimated within periods, but within a period rankings vary too little."
        return blocking("ranker-follows-demand", text, RANDOMISE_WITHIN)
    empty = np.flatnonzero(health.shown[: np.flatnonzero(health.shown).max(initial=0)] == 0)
    if len(empty) and not harvested.complete:
        text = f"No row has position {', '.join(str(rank + 1) for rank in empty)}, and rows below have: "
        text += "examination cannot be estimated there."
        return blocking("position-without-rows", text, "Number positions without gaps.")
    if not harvested.complete:
        remedy = f"{RANDOMISE} If you know the curve, give --examination."
        return blocking("examination-incomplete", warnings[0], remedy)
    text = "Position bias can be estimated from this log"
    rate = health.click_rate
    if health.cutoff > 1 and rate[0] > 0:
        text += (
            f": rank {health.cutoff} is examined {harvested.curve[-1]:.2f} times as often as rank 1 (and clicked "
            f"{rate[-1] / rate[0]:.2f} times as often)"
        )
    if health.within_periods:
        text += ", by comparing within periods"
    curve, error = health.check.curve, health.check.error
    with np.errstate(invalid="ignore", divide="ignore"):
        above = (curve > ABOVE_ONE) & (np.log(curve) > ABOVE_ONE_ERRORS * error)
    if above.any():
        highest = int(np.argmax(np.where(above, curve, 0.0)))
        text += f". Rank {highest + 1} is examined more often than rank 1, which is unusual for a list"
    if warnings:
        text += f", but with reservations. {' '.join(warnings)}"
        return caution("examination-estimated", text, "Give --examination if you know it.")
    if above.any():
        remedy = "Check that positions count from the top, and that all rows are logged."
        return caution("examination-above-1", f"{text}.", remedy)
    return good("examination-estimated", f"{text}.")


def _given(health: Health) -> Finding:
    given, check = health.given, health.check
    assert given is not None
    if given[0] == 0:
        text = "According to --examination, rank 1 is never examined."
        return blocking("examination-contradicted", text, "Check --examination.")
    if check.status == "agrees":
        text = (
            f"The given examination curve agrees with the log ({check.documents:,} documents shown at several ranks)."
        )
        return good("examination-agrees", text)
    if check.status == "contradicted":
        text = f"The log contradicts the given examination curve: {check.contradiction(given)}."
        return blocking("examination-contradicted", text, "Leave --examination out, or find out why they differ.")
    text = "The log cannot check the given examination curve: "
    if health.within_periods:
        text += "demand and ranker changed together, and within a period "
    if np.isfinite(check.error).all():
        rank = (check.worst_rank or 0) + 1
        text += f"there are too few clicks to estimate how often rank {rank} is examined."
    else:
        text += "documents hardly changed ranks."
    return blocking("examination-unchecked", text, RANDOMISE_WITHIN if health.within_periods else RANDOMISE)


def click_findings(health: Health) -> Iterator[Finding]:
    """Yield what supports and what contradicts users who click as the verdict assumes."""
    odd, bots, units = health.suspicious, health.suspicious.all_clicked, health.suspicious.units
    if health.repeated.significant:
        text = (
            f"About {health.repeated.share:.0%} of the impressions are copies of another one: same query, time, list "
            "and clicks, under a different id. Copies of held-out clicks are then in the training data, and every copy "
            "counts as further evidence."
        )
        remedy = "Leave the copies out: of impressions with the same user, query, time, list and clicks, keep one."
        yield blocking("repeated-impressions", text, remedy)
    if bots is not None and bots.significant:
        text = (
            f"In {bots.found / bots.impressions:.1%} of the impressions everything is clicked; with real users that "
            f"would happen in {bots.expected / bots.impressions:.1%}. The cause is bots, or an error in the log."
        )
        found = blocking if bots.share >= BLOCKING_BOTS else caution
        yield found("bots", text, "Leave out the impressions of bots and tests.")
    yield _position_based(health)
    if units is not None and units.heavy:
        text = (
            f"A few of the {units.units:,} units make up much of the log: the largest has {units.largest:.1%} of the "
            f"interactions, and the top 1% have {units.clicks_of_top:.0%} of the clicks."
        )
        remedy = "Find out whether they are real users. If so, certify --most-per-unit limits how much each counts."
        yield caution("heavy-units", text, remedy)
    if odd.rows_missing > MANY_GAPS:
        text = f"In {odd.rows_missing:.0%} of the impressions, a rank above the last one has no row."
        yield caution("gaps-in-positions", text, "Log all rows, or number positions without gaps.")


def _position_based(health: Health) -> Finding:
    tests = health.position_based
    if not tests.holds:
        signs = []
        if tests.context.significant:
            less = "less" if tests.context.size < 0 else "more"
            signs.append(
                f"with each expected click above it, a document is clicked {abs(tests.context.size):.0%} {less} often"
            )
        if tests.users_stop:
            signs.append(
                f"two clicks in one impression are {-tests.stop.size:.0%} rarer than if clicks were independent"
            )
        if tests.trust.significant:
            steeper = "faster" if tests.trust.size > 0 else "more slowly"
            signs.append(f"with rank, clicks on poor documents fall {steeper} than clicks on good ones")
        text = (
            f"Clicks depend on more than rank and document: {'; '.join(signs)}. Users may not be position-based, "
            "bots may be among them, rankings may depend on the user or the time, or searches or rows may be missing "
            "from the log, or be in it twice."
        )
        remedy = (
            "A verdict that assumes position-based clicks does not hold here. If the log is complete, and users look "
            "further down for some kinds of queries than for others, try one log for each kind; otherwise compare the "
            "rankers in an A/B test."
        )
        if health.suspicious.rows_missing > MANY_GAPS:
            remedy = f"In {health.suspicious.rows_missing:.0%} of the impressions, rows are missing. Log all rows."
        return blocking("not-position-based", text, remedy)
    if not np.isfinite([tests.context.error, tests.trust.error]).any():
        text = "Whether clicks depend only on position and relevance is unknown, because documents hardly change ranks."
        return caution("position-based-unchecked", text, "Vary rankings at random.")
    if not np.isfinite(tests.stop.error):
        text = "Whether users stop after a click is unknown, because the aggregated log has no single impressions."
        return caution("position-based-unchecked", text, "Aggregate the log again.")
    text = "As far as the log shows, clicks depend only on position and relevance."
    if tests.stop.significant and tests.stop.size > 0:
        text += " Clicks occur together more often than independent ones would, because users differ; that is harmless."
    return good("position-based", text)


def time_findings(health: Health) -> Iterator[Finding]:
    """Yield what changed over the periods of the log, and over the hours of the day."""
    demand, ranker, hours, periods = health.demand, health.ranker, health.hours, _periods(health)
    if not health.periods:
        text = "Without timestamps, nothing shows whether demand or the ranker changed."
        remedy = "Log a timestamp for each impression, or name its column: --column timestamp=THEIRS."
        yield caution("no-timestamps", text, remedy)
        return
    if ranker.significant:
        text = (
            f"The ranker changed over time, most {_from(health, ranker.boundary)}. Two interactions of a query show "
            f"the same document at a rank less often if they are from different {periods}, by "
            f"{100 * ranker.size:.1f} percentage points."
        )
        remedy = (
            "If it was one change, and the earlier ranker is no longer used, use only the log after it. If it changes "
            "again and again, draw rankings at random within the day: a verdict then need not allow for drift."
        )
        yield caution("ranker-moved", text, remedy)
    if demand.significant:
        text = (
            f"Demand changed over time, most {_from(health, demand.boundary)}: the click-through of a document at a "
            f"given rank varies by about {demand.size:.0%} between {periods}."
        )
        remedy = "A verdict holds for the time of the log; certify again when demand has changed."
        yield caution("demand-drifts", text, remedy)
    if not (demand.significant or ranker.significant) and len(health.periods) > 1:
        yield good("steady", f"No change in demand or in the ranker was found over {len(health.periods)} {periods}.")
    if hours is None and periods == "days":
        text = "Whether rankings follow the hour of the day cannot be checked, because the log has no hours."
        remedy = "Log the time of each impression, not only the day, and aggregate the log again."
        yield caution("hour-unchecked", text, remedy)
    if hours is not None and hours.ranker.significant:
        yield _by_hour(hours)
    if health.moment.significant:
        text = (
            "Rankings follow demand from hour to hour: while a document is shown more than usual, it is also clicked "
            f"more than usual at the same rank ({health.moment.z:.0f} standard errors). The reason may be sales, "
            "stock, the news, or a ranker that learns from clicks as they come. Then clicks show how good a document "
            "is only at the times when it is shown."
        )
        remedy = (
            "Add what rankings follow to query_id (shoes|sale=...), or draw rankings at random from scores that stay "
            "the same within the day. If some impressions were logged twice, leave the copies out."
        )
        yield blocking("ranker-follows-moment", text, remedy)


def _by_hour(hours: HourOfDay) -> Finding:
    text = (
        "Rankings follow the hour of the day: two interactions of a query show the same document at a rank less often "
        f"if they are from different hours, by {100 * hours.ranker.size:.1f} percentage points."
    )
    if not hours.follows_demand:
        few = hours.ranker.size < LEAST_SIZE
        text += " That is little." if few else " Demand was not found to change with the hour."
        return caution("ranker-by-hour", text, "" if few else HOUR_REMEDY)
    if hours.demand.repeated < FEW_REPEATED:
        text += " Whether demand does too is unknown, because no document returns to a rank at another hour."
    else:
        text += " Demand changes with the hour too, so clicks show how good a document is only at its own hours."
    return blocking("ranker-follows-hour", text, HOUR_REMEDY)


def _from(health: Health, boundary: int | None) -> str:
    """Name the moment of a change: `from 2026-03-06 on`."""
    if boundary is None or boundary >= len(health.periods):
        return "in between"
    first = health.periods[boundary][0]
    moment = datetime_of(first)
    if moment is None:
        return f"from {first} on"
    return f"from {moment:%Y-%m-%d} on" if _periods(health) == "days" else f"from {moment:%Y-%m-%d %H:%M} on"


def _periods(health: Health) -> str:
    """Name the periods: `days`, or `hours` of a short log."""
    moments = [datetime_of(health.periods[place][0]) for place in (0, -1) if health.periods]
    if not moments or moments[0] is None or moments[1] is None:
        return "periods"
    first, last = moments[0], moments[1]
    each = (last - first).total_seconds() / max(len(health.periods) - 1, 1)
    return "hours" if each < 12 * 3600 else "days" if each < 36 * 3600 else "periods"


def list_findings(health: Health) -> Iterator[Finding]:
    """Yield whether something other than the ranker limits what can be shown."""
    kinds, missing, ends = health.list_kinds, health.high_or_missing, health.list_ends
    if ends.significant:
        text = (
            f"Lists end {ends.ratio:.1f} times as often at a document that was clicked as at one that was not. Rows "
            "seem to be logged only if users saw them, or only up to the last click. A new ranker would change how "
            "much they see, and no verdict accounts for that."
        )
        yield blocking("lists-end-at-clicks", text, "Log every document of a list, whether users saw it or not.")
    if health.pinned.significant:
        queries = "1 query" if health.pinned.queries == 1 else f"{health.pinned.queries:,} queries"
        text = (
            f"In {queries} ({health.pinned.share:.0%} of the impressions) a "
            "document is always at the same rank, though those above it change: it seems to be pinned to that slot. A "
            "verdict would credit a new ranker with filling the slot itself."
        )
        remedy = (
            "If the same slots are pinned in every search, leave the rows of pinned results out and number the others "
            "without gaps; otherwise certify the searches with pins separately, in the same way. If the new ranker may "
            "move them, say so (certify --trust-candidates)."
        )
        yield blocking("pinned", text, remedy)
    if kinds.significant:
        text = (
            "The lists of a query come in different kinds: two lists share nearly all documents, or very few, more "
            "often than if one ranker chose from the same candidates each time "
            f"(by {kinds.size:.1%}, {kinds.z:.0f} standard errors). Filters, sort orders, second pages or stock may "
            "decide what is shown, and a new ranker could not change that."
        )
        remedy = (
            "Make what decides it part of query_id (shoes|brand=x, shoes|page=2, shoes|warehouse=3), or leave such "
            "impressions out. If it is only rankers mixed at random (an A/B test, or random results in between), say "
            "so (certify --trust-candidates)."
        )
        if not health.periods:
            remedy += " If the ranker changed during the log, name its timestamps (--column timestamp=THEIRS)."
        yield blocking("lists-in-kinds", text, remedy)
    elif missing.significant:
        text = (
            "Documents are high in some lists of a query and missing from others, rarely in between "
            f"({missing.share:.0%} of the upper halves of the lists, {missing.z:.0f} standard errors). A ranker that "
            "passes over a document at the top would show it further down. So it seems that stock, regions, filters or "
            "rules (at most two per brand, say) leave it out, and a new ranker could not change that."
        )
        remedy = (
            "Make what decides it part of query_id (shoes|region=north), or leave such impressions out. If it is only "
            "the ranker that varies (an A/B test, results replaced at random, uncertain documents tried at the top), "
            "or rules that the new lists keep to as well, say so (certify --trust-candidates)."
        )
        yield blocking("high-or-missing", text, remedy)
