"""What a certificate says in words: its assumptions, what it covers, and what to know about it."""

import math
from collections.abc import Iterator

from saferank.doctor.strata import by_query
from saferank.engine.bounds.differences import Differences
from saferank.engine.bounds.registry import BOUNDS
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.periods import moment_text
from saferank.verdict.curves import UNCHECKED
from saferank.verdict.judge import Judge
from saferank.verdict.new_ranker import NewRanker
from saferank.verdict.settings import CertifySettings

EXAMINATION = "the examination of the ranks is as estimated from the log, within its confidence set"
GIVEN = "the examination of the ranks is as it was given, within the range stated"
KNOWN = "the current ranker draws rankings with Plackett-Luce from the scores given"
STABLE = "the relevance of a document did not change while the ranker changed"
EARLIER = "one ranker made each earlier log, and its users examined the ranks as the users of this log do"
WITHIN = "the relevance of a document did not change within a period"
UNSEEN = "the ranker was made without the held-out part of the log, as its maker states"
UNTIL = "the ranker was made from nothing after {}, as its maker states; only later interactions are evaluated"
ANYBODY = "what is shown does not depend on who is asking"
ALONE = "a search does not depend on what the user was shown or clicked before"
IN_ORDER = "no rule changes the order of the new scores before a list is shown"
NOT_IN_A_LOG = (ANYBODY, ALONE, IN_ORDER)
"""What a log shows in part at most."""
CAPPED = "each interaction draws its ranking anew, whoever asks and however often"
FEW_TIED = 0.01
"""Share of the exposure on documents with equal scores that goes without saying."""
FEW_CLICKS = 50.0
"""Effective clicks below which a verdict rests on very little."""
PER_UNIT = (1000, 500, 200, 100, 50, 20, 10, 5, 3)
"""Interactions that a unit may count with, to choose from."""
Z, LARGE = 2.5, 1.0
"""How far a bound is below the mean, at most: so many standard errors, and so many times the loss of the largest unit
and log(1/delta). On logs with few large users, that of `one-look` was about 2 and 0.7 to 0.95."""


def covers(log: AggregatedLog, most_per_unit: int | None, counted: int) -> str:
    """Return the queries, ranks and time that the verdict is about; `counted`: held-out interactions that count."""
    period = log.manifest.get("period")
    when = ""
    if period is not None:
        begin = (log.manifest.get("split") or {}).get("until", period[0])
        when = f", in the time of the log ({moment_text(begin)[:16]} to {moment_text(period[1])[:16]})"
    which = "the queries of the log, as often as they were issued in the held-out part"
    if by_query(log):
        which = "queries like those of the log, new ones included"
    if most_per_unit is not None:
        share = counted / max(log.manifest["parts"]["certify"]["interactions"], 1)
        which += f", each {unit_name(log)} counting with at most {most_per_unit:,} interactions ({share:.0%} of all)"
    return f"{which}, at ranks 1 to {log.cutoff}{when}"


def unit_name(log: AggregatedLog) -> str:
    """Return what a term of the bound stands for, if it stands for several interactions."""
    return "query" if by_query(log) else str(log.manifest.get("unit"))


def few_large_units(log: AggregatedLog, differences: Differences, settings: CertifySettings) -> Iterator[str]:
    """Yield what the next look would probably decide with, if a few large units keep the verdict open."""
    if differences.sizes is None or settings.most_per_unit is not None:
        return
    delta = settings.delta / ((settings.look + 1) * (settings.look + 2))
    largest, name = differences.largest_size, unit_name(log)
    for most in (each for each in PER_UNIT if each < largest):
        counted = differences.at_most(most)
        width = Z * counted.standard_error - LARGE * counted.low * most * math.log(1.0 / delta) / counted.interactions
        if counted.mean - width >= -settings.tolerance:
            share = counted.interactions / differences.interactions
            yield (
                f"one {name} has {largest / differences.interactions:.1%} of the held-out interactions, and the bound "
                f"has to allow for such a one that dislikes what is new. As a further look, --most-per-unit {most} "
                f"would probably decide: each {name} then counts with at most {most} interactions, {share:.0%} of all, "
                "and these are what the verdict covers."
            )
            return


def warnings_of(
    judge: Judge, worth: float, missing: dict[str, float], ranker: NewRanker, *, changes: bool
) -> list[str]:
    """Return what to know about a verdict; `changes`: whether the new ranker changes anything."""
    found = []
    if judge.curves.kind == UNCHECKED:
        found.append("the examination curve was given and is trusted; this log cannot check it.")
    for drift in judge.comparison.drifts:
        changed, found_none, when = "changed while the log was written", "No drift of demand was found", "over time"
        if drift.by_hour:
            changed, when = "follows the hour of the day", "with the hour"
            found_none = "Demand was not found to do so"
        found.append(
            f"the ranker {changed}. {found_none}, but the bounds allow for what the log cannot exclude "
            f"(relevance that varies by up to {drift.at_most:.0%} {when}). With rankings drawn at random "
            f"{'from the same scores all day' if drift.by_hour else 'within the day'}, no allowance is needed."
        )
    if not BOUNDS[judge.bound].guarantee:
        found.append(f"the bound '{judge.bound}' promises nothing for a given number of interactions.")
    if worth < FEW_CLICKS and changes:
        found.append(f"after weighting, the held-out clicks are worth only {worth:.0f}: log more.")
    if missing["clicks"] > 0 or missing["exposure"] > 0:
        why = "have no features" if ranker.complete else "are not listed"
        found.append(
            f"{missing['clicks']:.1%} of the clicks are on documents that {why}; the new ranker cannot earn these "
            "clicks, so they count against it."
        )
    if missing["interactions"] > 0:
        found.append(
            f"{missing['interactions']:.1%} of the interactions belong to queries that the new ranker does not rank; "
            "the promise holds if these queries keep their current ranking."
        )
    if (tied := ranker.tied(judge.curves.curve)) > FEW_TIED:
        found.append(
            f"{tied:.0%} of the exposure goes to documents with the same score as another of their query. They are "
            "assumed to be shown in random order: make scores differ if production orders them in another way."
        )
    return found
