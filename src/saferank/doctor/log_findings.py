"""What a log's numbers mean, in plain words: what it can and cannot support, and what to log differently."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from saferank.doctor.click_findings import click_findings
from saferank.doctor.health import Finding, Health, Level
from saferank.doctor.time_findings import RANDOMISE_WITHIN, time_findings
from saferank.logs.row_checks import KINDS

FEW_CHANGES, SOME_CHANGES = 0.01, 0.1
"""Chance that rank 1 changes between two interactions of a query. Below 1 in 100, documents shown elsewhere than usual
are the exception even in a query with a hundred interactions; from 1 in 10 on, ten interactions show one."""
FEW_UNSEEN = 0.1
"""Share of candidates never shown that costs little. More is a limit of what can be learned, and no defect: most logs
show a few of many candidates."""
FEW_MISSING, MANY_MISSING = 0.01, 0.2
"""Share of what was shown without features, which training leaves out: 1% is the noise of any join; losing a fifth
changes what a list is."""
LARGE_GAIN, SMALL_GAIN = 0.1, 0.02
"""Relative gain in clicks that can be proven. Rankers in use are rarely improved by more than a tenth, and often by a
few per cent."""
WANTED_GAIN = 0.05
"""A gain that most would want to be able to prove."""
FEW_EFFECTIVE, MANY_EFFECTIVE = 400, 10_000
"""Effective clicks, where no part is held out to tell the gain: standard errors of 5% and of 1%."""
ENOUGH_INTERACTIONS = 10
"""Interactions of a query from which counted exposure is worth something: a document shown half the time is then
counted to within a third."""
FEW_REPEATS = 0.2
"""Share of what was shown in queries that a user issued twice, below which rankings by user cannot be found."""
MOST = 0.5
"""More than half of the interactions: what holds for them decides."""

ABOVE_ONE, ABOVE_ONE_ERRORS = 1.1, 3.3
"""A rank is looked at more often than rank 1 if by more than a tenth, and by so many standard errors."""

RANDOMISE = (
    "Swap neighbouring ranks at random now and then, or draw rankings from scores and keep their probabilities "
    "(`saferank rank`)."
)


def findings(health: Health) -> Iterator[Finding]:
    """Say what the numbers mean, one finding per subject."""
    if health.traffic.clicks == 0:
        text = "There is no click in this log: nothing can be learned from it."
        yield Finding("bad", text, "Check the click column.", code="no-clicks", blocks=True)
        return
    incomplete = list(_incomplete(health))
    yield from incomplete
    if health.traffic.pairs == health.traffic.queries:
        text = "No query was ever shown with two documents: there is no order to learn."
        yield Finding("bad", text, "Check the column of documents; log lists of several.", code="no-order")
    elif not incomplete:
        # what is left of an incomplete log tells nothing about how its users click
        clicks = list(click_findings(health))
        judged = [_enough(health), _random(health), _examination(health), *clicks]
        if any(one.blocks for one in clicks):
            judged = [one for one in judged if one.level != "good"]
        yield from judged
        yield from time_findings(health)
        yield from _personalised(health)
    yield from _unseen(health)
    yield from _joined(health)
    if not incomplete:
        yield _repeated(health)
    if health.dropped:
        rows = "; ".join(
            KINDS[kind].describe_dropped(count) if kind in KINDS else f"{count:,} ({kind})"
            for kind, count in health.dropped.items()
        )
        yield Finding("caution", f"Left out: {rows}.", "Find out where they come from.", code="dropped-rows")


def _personalised(health: Health) -> Iterator[Finding]:
    found = health.personalised
    if found.significant:
        text = (
            "Rankings depend on the user: two interactions of a query agree on the document at a rank more often if "
            f"they are of the same user, by {100 * found.size:.0f} points. If they follow the user's taste, clicks do "
            "not tell how good a document is for others."
        )
        remedy = (
            "Make the group that rankings depend on part of query_id. If rankings were drawn at random per user, say "
            "so (certify --random-per-unit)."
        )
        yield Finding("bad", text, remedy, code="personalised", blocks=True)
    elif found.repeated < FEW_REPEATS:
        why = "users seldom repeat a query" if found.repeated > 0 else "the log has no users (--unit)"
        text = (
            f"Whether rankings depend on who asks (personalised, by region, by stock) cannot be checked: {why}. If "
            "they do, no verdict holds."
        )
        remedy = "If they do, make what they depend on part of query_id."
        yield Finding("caution", text, remedy, code="personalised-unchecked")


def _incomplete(health: Health) -> Iterator[Finding]:
    """Logs that leave out what was not clicked."""
    odd = health.suspicious
    remedy = "Log every document that was shown, clicked or not, in every impression."
    if odd.every_row_clicked and odd.rows_missing > 0:
        text = "Every row is a click, and ranks are missing between them: rows without a click were not logged."
        yield Finding("bad", text, remedy, code="only-clicked-rows", blocks=True)
    elif odd.every_row_clicked:
        text = "Every document that was shown was clicked: rows without a click were not logged, or all is marked so."
        yield Finding("bad", text, f"Check the click column. {remedy}", code="everything-clicked", blocks=True)
    elif odd.clickless_missing:
        text = (
            f"{odd.without_click:,} interactions have no click, where about {odd.without_click_expected:,.0f} were to "
            "be expected: impressions without a click were not logged."
        )
        yield Finding("bad", text, remedy, code="only-clicked-impressions", blocks=True)


def _grade(value: float, caution: float, bad: float) -> Level:
    """Grade a number: beyond `caution`, or beyond `bad`, on the side on which `bad` lies."""
    sign = 1.0 if bad > caution else -1.0
    return "bad" if sign * value > sign * bad else "caution" if sign * value > sign * caution else "good"


def _enough(health: Health) -> Finding:
    effective = health.effective
    if effective is None:
        text = "How much the clicks are worth cannot be told, because examination is not known."
        return Finding(
            "bad",
            text,
            "Log what lets it be estimated (below), or give --examination if you know it.",
            code="effective-clicks",
        )
    kept = effective.by_clicks / effective.clicks
    worth = (
        f"{effective.clicks:,} clicks are worth {effective.by_clicks:,.0f} ({kept:.0%}) for judging a ranking by clicks"
    )
    more = "Log longer, or more at random: a document shown in many places weighs little each time."
    if effective.provable_gain is None:
        level = _grade(effective.by_clicks, MANY_EFFECTIVE, FEW_EFFECTIVE)
        return Finding(level, f"{worth}.", "" if level == "good" else more, code="effective-clicks")
    level = _grade(effective.provable_gain, SMALL_GAIN, LARGE_GAIN)
    text = f"{worth}. The held-out part can prove gains in clicks from about {effective.provable_gain:.1%} up."
    if effective.provable_gain > WANTED_GAIN:
        factor = (effective.provable_gain / WANTED_GAIN) ** 2
        times = f"{factor:,.{1 if factor < 10 else 0}f}"
        more = f"Log about {times} times as much to prove {WANTED_GAIN:.0%}, or less of it and more at random."
    return Finding(level, text, "" if level == "good" else more, code="effective-clicks")


def _random(health: Health) -> Finding:
    changes = health.randomness.top_changes
    if changes is None:
        text = "No query has two impressions: whether rankings vary cannot be told."
        remedy = "Log longer, or name queries so that the same ones meet (lower case, no spaces)."
        return Finding("bad", text, remedy, code="rankings-vary")
    level = _grade(changes, SOME_CHANGES, FEW_CHANGES)
    often = f"two impressions of a query differ at rank 1 in {changes:.1%} of cases"
    if level == "good":
        return Finding(level, f"Rankings vary: {often}.", code="rankings-vary")
    how = "hardly vary" if level == "bad" else "vary a little"
    text = f"Rankings {how}: {often}. Learning can re-sort what was shown, and has little to go by beyond that."
    return Finding(level, text, RANDOMISE, code="rankings-vary")


def _examination(health: Health) -> Finding:
    if health.given is not None:
        return _given(health)
    harvested = health.harvested
    if health.within_periods and (not harvested.complete or health.check.wide):
        text = (
            f"{_changed_together(health)} So examination must be estimated within periods, and rankings vary too "
            "little within them."
        )
        return Finding("bad", text, RANDOMISE_WITHIN, code="ranker-follows-demand", blocks=True)
    if not harvested.complete:
        doubt = f"{harvested.warnings[0][0].upper()}{harvested.warnings[0][1:]}"
        return Finding(
            "bad",
            doubt,
            f"{RANDOMISE} If you know the curve, give --examination.",
            code="examination-incomplete",
            blocks=True,
        )
    text = "Position bias can be told from this log"
    if health.cutoff > 1 and health.click_rate[0] > 0:
        naive = health.click_rate[-1] / health.click_rate[0]
        text += (
            f": rank {health.cutoff} is looked at {harvested.curve[-1]:.2f} times as often as rank 1 "
            f"(its click rate is {naive:.2f} times that of rank 1)"
        )
    if health.within_periods:
        text += ", by comparing within periods"
    above = _above_one(health)
    if above is not None:
        text += f". Rank {above + 1} is looked at more often than rank 1, which is unusual for a list"
    if not harvested.warnings:
        level: Level = "good" if above is None else "caution"
        remedy = "" if above is None else "Check that positions count from the top, and that all rows are logged."
        code = "examination-estimated" if above is None else "examination-above-1"
        return Finding(level, f"{text}.", remedy, code=code)
    doubts = " ".join(f"{warning[0].upper()}{warning[1:]}" for warning in harvested.warnings)
    return Finding(
        "caution", f"{text}, with doubts. {doubts}", "Give --examination if you know it.", code="examination-estimated"
    )


def _above_one(health: Health) -> int | None:
    """Return the rank that is looked at most, if that is clearly more often than rank 1."""
    curve, error = health.check.curve, health.check.error
    with np.errstate(invalid="ignore", divide="ignore"):
        clear = (curve > ABOVE_ONE) & (np.log(curve) > ABOVE_ONE_ERRORS * error)
    return int(np.argmax(np.where(clear, curve, 0.0))) if clear.any() else None


def _given(health: Health) -> Finding:
    given, check = health.given, health.check
    assert given is not None
    if given[0] == 0:
        text = "The examination given says that rank 1 is never looked at."
        return Finding("bad", text, "Check --examination.", code="examination-contradicted", blocks=True)
    if check.status == "agrees":
        text = f"The examination given agrees with the log ({check.documents:,} documents moved between ranks)."
        return Finding("good", text, code="examination-agrees")
    rank = check.worst_rank
    assert rank is not None
    if check.status == "contradicted":
        text = f"The log contradicts the examination given: rank {rank + 1} is given as {given[rank] / given[0]:.2f}"
        if np.isfinite(check.curve[rank]):
            low, high = check.curve[rank] * np.exp([-1.96 * check.error[rank], 1.96 * check.error[rank]])
            text += f" of rank 1, and estimated as {check.curve[rank]:.2f} ({low:.2f} to {high:.2f})."
        else:
            text += ", and was clicked."
        remedy = "Leave --examination out, or find out why they differ."
        return Finding("bad", text, remedy, code="examination-contradicted", blocks=True)
    text = "The examination given cannot be checked: "
    if health.within_periods:
        text += "demand and ranker changed together, and within a period "
    text += (
        "documents hardly moved between ranks."
        if not np.isfinite(check.error).all()
        else f"too few clicks tell how often rank {rank + 1} is looked at."
    )
    remedy = RANDOMISE_WITHIN if health.within_periods else RANDOMISE
    return Finding("bad", text, remedy, code="examination-unchecked", blocks=True)


def _changed_together(health: Health) -> str:
    if health.demand.significant:
        return "Demand changes over time, and the ranker moves with it."
    return "The ranker changes over time; whether demand does cannot be told, as documents do not return to a rank."


def _unseen(health: Health) -> Iterator[Finding]:
    coverage = health.coverage
    if coverage is None:
        text = "Without --features it cannot be told which candidates were never shown."
        yield Finding("caution", text, "Give --features.", code="never-shown")
    elif coverage.candidates:
        share = coverage.never_shown_share
        level: Level = "good" if share <= FEW_UNSEEN else "caution"
        text = f"{share:.0%} of the candidates were never shown"
        text += ": nothing can be said about them." if level != "good" else "."
        remedy = f"Let candidates from below rank {health.cutoff} into the list at random, now and then."
        yield Finding(level, text, "" if level == "good" else remedy, code="never-shown")


def _joined(health: Health) -> Iterator[Finding]:
    coverage = health.coverage
    if coverage is None:
        return
    if coverage.queries_in_both == 0:
        text = "No query of the log has features."
        yield Finding("bad", text, "Check that both name queries alike.", code="missing-features")
        return
    share = coverage.shown_without_features
    level = _grade(share, FEW_MISSING, MANY_MISSING)
    if coverage.pairs_without_features:
        text = f"{share:.1%} of what was shown has no features and is left out of training"
        lacking = coverage.queries_without_features
        if lacking:
            text += f" ({lacking:,} {'query lacks' if lacking == 1 else 'queries lack'} them altogether)"
        text += "."
        remedy = "" if level == "good" else "Compute features for all that is shown, when it is shown."
        yield Finding(level, text, remedy, code="missing-features")


def _repeated(health: Health) -> Finding:
    share = health.traffic.share_in_queries_of(ENOUGH_INTERACTIONS)
    once = health.traffic.queries_seen_once / max(health.traffic.queries, 1)
    text = (
        f"{share:.0%} of the interactions are of queries with at least {ENOUGH_INTERACTIONS}; "
        f"{once:.0%} of the queries were seen once."
    )
    if share >= MOST:
        return Finding("good", text, code="repeated-queries")
    remedy = "Log the scores that rankings are drawn by (`fit --logging-scores`): exposure is then exact."
    text += " How often a document was exposed is a guess for the others."
    return Finding("caution", text, remedy, code="repeated-queries")
