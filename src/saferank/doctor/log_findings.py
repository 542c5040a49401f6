"""What the numbers of a log mean, in plain words: what it can and cannot support, and what to log differently.

All findings, in the order in which they are shown; those about what a verdict assumes are in `assumption_findings`
and `user_findings`.
"""

from collections.abc import Iterator

from saferank.doctor.assumption_findings import (
    RANDOMISE,
    click_findings,
    examination_finding,
    list_findings,
    time_findings,
)
from saferank.doctor.feature_columns import FeatureColumns
from saferank.doctor.health import Finding, Health, Level, blocking, caution, good
from saferank.doctor.user_findings import context_findings, group_findings, user_findings
from saferank.features.schema import listed
from saferank.logs.row_checks import describe_dropped

FEW_CHANGES, SOME_CHANGES = 0.01, 0.1
"""Chance that rank 1 changes between two interactions of a query. Below 1 in 100, documents shown elsewhere than usual
are the exception even in a query with a hundred interactions; from 1 in 10 on, ten interactions show one."""
FEW_UNSEEN = 0.1
"""Share of candidates never shown that costs little. A larger share limits what can be learned, but is not a defect:
most logs show few of many candidates."""
FEW_MISSING, MANY_MISSING = 0.01, 0.2
"""Share of what was shown without features, which training leaves out: 1% is the noise of any join; losing a fifth
changes what a list is."""
LARGE_GAIN, SMALL_GAIN, WANTED_GAIN = 0.1, 0.02, 0.05
"""Relative gain in clicks that can be proven. Rankers in use are rarely improved by more than a tenth, and often by a
few per cent; most teams would want to be able to prove 5%."""
FEW_EFFECTIVE, MANY_EFFECTIVE = 400, 10_000
"""Effective clicks, where no part is held out to compute the gain from: standard errors of 5% and of 1%."""
ENOUGH_INTERACTIONS, MOST = 10, 0.5
"""Interactions of a query from which counted exposure is worth something (a document shown half the time is then
counted to within a third), and the share of the interactions that such queries should have."""

LOG_ALL = "Log every document that was shown, clicked or not, in every impression."


def findings(health: Health) -> Iterator[Finding]:
    """Yield what the numbers mean, one finding per subject."""
    if health.traffic.clicks == 0:
        text = "This log has no clicks, so nothing can be learned from it."
        yield blocking("no-clicks", text, "Check the click column.")
        return
    incomplete = list(_incomplete(health))
    yield from incomplete
    if health.traffic.pairs == health.traffic.queries:
        text = "No query ever shows two documents, so there is no order to learn."
        yield _graded("bad", "no-order", text, "Check the document column, and log lists of several documents.")
    elif not incomplete:  # what is left of an incomplete log does not show how its users click
        about_clicks = list(click_findings(health))
        blocked = any(one.blocks for one in about_clicks)
        for one in (_effective(health), _varies(health), examination_finding(health), *about_clicks):
            if not (blocked and one.level == "good"):
                yield one
        yield from time_findings(health)
        yield from group_findings(health)
        yield from context_findings(health)
        yield from list_findings(health)
        yield from user_findings(health)
    yield from _candidates(health)
    if health.columns is not None:
        yield from _columns(health.columns)
    if health.leaks:
        days = health.leaks[0].days
        when = "this log" if days is None else f"the last {days} periods of this log"
        names = ", ".join(leak.feature for leak in health.leaks[:3]) + (", ..." if len(health.leaks) > 3 else "")
        text = (
            f"Features that know the held-out clicks: {names}. Among documents with the same value, more clicks in "
            f"training go with fewer held out (correlation {health.leaks[0].correlation:.2f}), as if the feature had "
            f"been computed from all clicks of {when}."
        )
        yield blocking("feature-knows-clicks", text, "Compute such features from clicks before this log.")
    if not incomplete:
        yield _repeated(health)
    if health.dropped:
        rows = "; ".join(describe_dropped(kind, count) for kind, count in health.dropped.items())
        yield caution("dropped-rows", f"Left out: {rows}.", "Find out what caused them.")


def _graded(level: Level, code: str, text: str, remedy: str) -> Finding:
    """Return a finding with a remedy unless it is good."""
    return Finding(level, text, "" if level == "good" else remedy, code=code)


def _grade(value: float, caution: float, bad: float) -> Level:
    """Grade a number: beyond `caution`, or beyond `bad`, on the side on which `bad` lies."""
    sign = 1.0 if bad > caution else -1.0
    return "bad" if sign * value > sign * bad else "caution" if sign * value > sign * caution else "good"


def _incomplete(health: Health) -> Iterator[Finding]:
    """Yield what shows that rows or impressions without a click were left out."""
    odd = health.suspicious
    if odd.every_row_clicked and odd.rows_missing > 0:
        text = "Every row is a click, and the ranks in between are missing: rows without a click were not logged."
        yield blocking("only-clicked-rows", text, LOG_ALL)
    elif odd.every_row_clicked:
        text = "Every row is a click: rows without a click were not logged, or all rows are marked as clicked."
        yield blocking("everything-clicked", text, f"Check the click column. {LOG_ALL}")
    elif odd.clickless_missing:
        text = (
            f"{odd.without_click:,} interactions have no click, where about {odd.without_click_expected:,.0f} would be "
            "expected: impressions without a click were not logged."
        )
        yield blocking("only-clicked-impressions", text, LOG_ALL)


def _effective(health: Health) -> Finding:
    code, effective = "effective-clicks", health.effective
    if effective is None:
        text = "The effective number of clicks cannot be computed, because the examination curve is unknown."
        return _graded("bad", code, text, "Vary the rankings so that it can be estimated, or give --examination.")
    text = (
        f"For judging a ranking sorted by clicks, the {effective.clicks:,} clicks are worth "
        f"{effective.by_clicks:,.0f} ({effective.by_clicks / effective.clicks:.0%})."
    )
    remedy = "Log longer, or randomise more: clicks on a document shown at many ranks get smaller weights."
    gain = effective.provable_gain
    if gain is None:
        return _graded(_grade(effective.by_clicks, MANY_EFFECTIVE, FEW_EFFECTIVE), code, text, remedy)
    if gain > WANTED_GAIN and health.changes.none:
        factor = (gain / WANTED_GAIN) ** 2
        remedy = (
            f"To prove a gain of {WANTED_GAIN:.0%}, log about {factor:,.{1 if factor < 10 else 0}f} times as much, or "
            "less than that with more randomness."
        )
    text += f" The held-out part can prove a gain in clicks of about {gain:.1%} or more."
    if effective.drift_allowance > 0.0:
        text += (
            f" Of this, {effective.drift_allowance:.1%} is what a verdict allows for because rankings changed over "
            "time: demand may have changed with them, unnoticed."
        )
        remedy = (
            "Draw rankings at random from the same scores all day (`saferank plan`): no such allowance is needed then. "
            "Logging longer reduces it only slowly."
        )
    if health.unit is not None:
        text += f" If a few values of {health.unit} account for most searches, the gain must be far larger."
    return _graded(_grade(gain, SMALL_GAIN, LARGE_GAIN), code, text, remedy)


def _varies(health: Health) -> Finding:
    code, changes = "rankings-vary", health.randomness.top_changes
    if changes is None:
        text = "No query has two impressions, so nothing shows whether rankings vary."
        remedy = "Log longer, or normalise queries (lower case, no extra spaces)."
        return _graded("bad", code, text, remedy)
    level = _grade(changes, SOME_CHANGES, FEW_CHANGES)
    how = {"good": "vary", "caution": "vary a little", "bad": "hardly vary"}[level]
    differ = f"differ at rank 1 in {changes:.1%} of cases" if changes > 0 else "never differ at rank 1"
    text = f"Rankings {how}: two impressions of a query {differ}."
    if level != "good":
        text += " Learning can reorder what was shown, but little more."
    return _graded(level, code, text, RANDOMISE)


def _candidates(health: Health) -> Iterator[Finding]:
    coverage = health.coverage
    if coverage is None:
        text = "Without --features, it is unknown which candidates were never shown."
        yield caution("never-shown", text, "Give --features.")
        return
    if coverage.candidates:
        level: Level = "good" if coverage.never_shown_share <= FEW_UNSEEN else "caution"
        share = f"{coverage.never_shown_share:.0%}" if coverage.never_shown_share >= 0.005 else "Less than 1%"
        text = f"{share} of the candidates were never shown" if coverage.never_shown else "Every candidate was shown"
        text += "." if level == "good" else ", so the log says nothing about them."
        remedy = f"Now and then, show a random candidate from below rank {health.cutoff}."
        yield _graded(level, "never-shown", text, remedy)
    for one in coverage.unmatched:
        many = f"{one.unmatched:,} of {one.ids:,} ids in the column {one.column} of the log"
        text = f"{many} do not occur in the features: {one.both}."
        level = _grade(one.unmatched / one.ids, 0.0, MANY_MISSING)
        yield _graded(level, "unmatched-ids", text, f"{one.remedy[0].upper()}{one.remedy[1:]}.")
    lacking = coverage.queries_without_features
    if coverage.queries_in_both and coverage.pairs_without_features:
        text = f"{coverage.shown_without_features:.1%} of what was shown has no features, and training leaves it out"
        if lacking:
            text += f" ({lacking:,} {'query has' if lacking == 1 else 'queries have'} none at all)"
        level = _grade(coverage.shown_without_features, FEW_MISSING, MANY_MISSING)
        remedy = "Compute the features of every document when it is shown."
        yield _graded(level, "missing-features", f"{text}.", remedy)


def _columns(columns: FeatureColumns) -> Iterator[Finding]:
    """Yield what `fit` stops at, leaves out, or cannot use."""
    if columns.missing:
        worst = sorted(columns.missing, key=lambda name: -columns.missing[name])
        shares = listed([f"{name} ({columns.missing[name] / columns.rows:.1%} of the rows)" for name in worst], 3)
        text = f"Features with missing values, at which `fit` stops ({len(worst):,} of {columns.features:,}): {shares}."
        remedy = "Fill them in, or say how to treat them: `fit --missing indicator`, or `fit --missing 0`."
        yield caution("missing-values", text, remedy)
    if columns.text:
        names = f"({len(columns.text):,}): {listed(columns.text, 3)}"
        text = f"Columns that `fit` leaves out, because they hold no numbers {names}."
        remedy = f"If such a column has few values, `fit --categorical {columns.text[0]}` makes each of them a feature."
        yield caution("text-columns", text, remedy)
    if columns.constant:
        names = f"({len(columns.constant):,} of {columns.features:,}): {listed(columns.constant, 3)}"
        text = f"Features with the same value in all rows {names}."
        yield caution("constant-features", text, "Check how they were computed, or leave them out (`fit --ignore`).")


def _repeated(health: Health) -> Finding:
    share = health.traffic.share_in_queries_of(ENOUGH_INTERACTIONS)
    once = health.traffic.queries_seen_once / max(health.traffic.queries, 1)
    seen = f"{once:.0%} of the queries were seen once" if once > 0 else "no query was seen only once"
    text = f"{share:.0%} of the interactions belong to queries with at least {ENOUGH_INTERACTIONS} of them; {seen}."
    if share >= MOST:
        return good("repeated-queries", text)
    remedy = "Log the scores from which rankings are drawn (`fit --logging-scores`); exposure is then exact."
    text += " For the other queries, counted exposure is only a rough estimate."
    return caution("repeated-queries", text, remedy)
