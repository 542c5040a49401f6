"""Findings about who is asking: groups of users, their taste, and what they were shown before."""

from collections.abc import Iterator, Sequence

from saferank.doctor.health import Finding, Health, blocking, caution, good
from saferank.logs.layouts import GROUPS
from saferank.logs.log_queries import MOST_GROUPS

FEW_REPEATS = 0.2
"""Share of what was shown in queries that a user issued twice, below which rankings by user cannot be found."""


def group_findings(health: Health) -> Iterator[Finding]:
    """Yield the columns of the log that decide what is there, or that rankings follow, and whether demand does too.

    And the columns for which neither was found, or that could not be tested well.
    """
    roughly = health.untested_groups
    harmless = [
        one.column
        for one in health.groups
        if one.column not in roughly and not one.missing.significant and not one.moves_ranker
    ]
    if harmless:
        yield good("groups-tested", f"Rankings do not depend on {_listed(harmless)}.")
    if roughly:
        text = (
            f"Whether rankings and demand depend on {_listed(roughly)} was tested roughly, or not at all: a column has "
            f"more than {MOST_GROUPS} values, or there are more than {len(GROUPS)} columns."
        )
        remedy = (
            "If they may, log a column with fewer values (regions in place of postal codes), or add it to query_id. "
            "Otherwise leave the column out."
        )
        yield caution("groups-not-tested", text, remedy)
    for group in health.groups:
        if group.missing.significant:
            number = f"{group.missing.documents:,} documents" if group.missing.documents else "Documents"
            text = (
                f"{number} are never shown for some values of {group.column}, and often for others "
                f"({group.missing.share:.0%} of what would be shown). What is not delivered to a region, or offered to "
                "members alone, cannot be shown to everyone by a new ranker either."
            )
            remedy = (
                f"Add {group.column} to query_id (shoes|{group.column}=...). If it is only the ranker that prefers "
                "others there, say so (certify --trust-candidates)."
            )
            yield blocking("missing-by-group", text, remedy)
        if not group.moves_ranker:
            continue
        text = (
            f"Rankings depend on {group.column}: two interactions of a query show the same document at a rank less "
            f"often if {group.column} differs, by {100 * group.ranker.size:.1f} percentage points."
        )
        remedy = f"Add {group.column} to query_id (shoes|{group.column}=...)."
        if group.follows_demand:
            text += (
                " Clicks on the same document at the same rank depend on it too, so they show how good a document is "
                "only for the group that it is shown to."
            )
            yield blocking("ranker-follows-group", text, remedy)
        elif not group.missing.significant:
            text += (
                " No sign was found that demand does; if it does a little, a verdict errs a little. It errs more if "
                "this is not the ranker's doing (advertisements, editors, a filter)."
            )
            yield caution("ranker-by-group", text, f"To be sure: {remedy[0].lower()}{remedy[1:]}")


def _listed(names: Sequence[str]) -> str:
    """Return `a, b or c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def context_findings(health: Health) -> Iterator[Finding]:
    """Yield whether something that the log does not hold decides what is shown and what is wanted."""
    if health.hidden_context.significant:
        text = (
            "Clicks on the same document at the same rank depend on what else is shown: lists that are alike are "
            f"clicked alike ({health.hidden_context.z:.1f} standard errors). Something that is not part of the query "
            "seems to decide both what is shown and what is wanted: the user's taste, the region, the season. Then "
            "clicks show how good a document is only for those to whom it is shown."
        )
        remedy = "Add what rankings depend on to query_id. If some impressions were logged twice, leave the copies out."
        yield blocking("hidden-context", text, remedy)


def user_findings(health: Health) -> Iterator[Finding]:
    """Yield whether there are users that were not named, and whether searches depend on the user or on earlier ones."""
    yield from _earlier_searches(health)
    found, column = health.personalised, health.likely_unit
    if column is not None:
        text = (
            f"The log has a column {column}, but --unit was not given. If users come back, their clicks depend on each "
            "other, and no verdict holds."
        )
        yield caution("units-not-named", text, f"With --unit={column}, a verdict also holds for returning users.")
    if found.significant:
        text = (
            f"Rankings depend on the user ({found.z:.1f} standard errors): two interactions of a query show the same "
            "document at a rank more often if they are from the same user. If rankings follow the user's taste, clicks "
            "do not show how good a document is for others."
        )
        remedy = (
            "Add the group that rankings depend on to query_id. If rankings were drawn at random for each user, use "
            "certify --random-per-unit."
        )
        yield blocking("personalised", text, remedy)
    elif found.repeated < FEW_REPEATS and health.suspicious.units is not None and not health.hidden_context.significant:
        text = (
            "Nothing shows that rankings depend on who is asking, but a slight dependence cannot be excluded: users "
            "seldom repeat a query. If there is one, no verdict holds."
        )
        remedy = "In that case, add what rankings depend on to query_id."
        yield caution("personalised-unchecked", text, remedy)


def _earlier_searches(health: Health) -> Iterator[Finding]:
    found = health.earlier_searches
    remedy = "Keep only the first search of each user for a query, and certify on these."
    if found.clicks.significant:
        rarer, fewer = ("less", "more") if found.clicks.effect < 0 else ("more", "fewer")
        text = (
            f"Users click {rarer} often on what they were shown in an earlier search: without this, there would be "
            f"{abs(found.clicks.effect):.1%} {fewer} clicks. A new ranker changes what users have seen before, and no "
            "verdict accounts for that."
        )
        yield blocking("users-remember", text, remedy)
    if found.rankings.significant:
        lower = "lower" if found.rankings.effect < 0 else "higher"
        text = (
            f"Once a user has clicked on a document, later searches show it {lower}. So the clicks on it come from "
            "users of one kind, those who have not clicked on it or those who have, and do not show how good it is "
            "for all."
        )
        yield blocking("ranker-remembers", text, remedy)
    if health.suspicious.units is not None and not found.checked:
        text = (
            "Whether users click less on what they were shown in an earlier search cannot be checked: the log has no "
            "users who issue a query again and are shown another list then, or no times of their searches."
        )
        remedy = "If users search again for what they have not found, keep only their first search for a query."
        yield caution("earlier-searches-unchecked", text, remedy)
