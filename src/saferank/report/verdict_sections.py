"""What the report tells of a certificate: improvement, bounds, delta, looks, segments, assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from saferank.engine.bounds.registry import BOUNDS, INDEPENDENT, MIX, NORMAL, POSITION_BASED, THEOREM_1
from saferank.report.page import beside, charts, figure, finding, folded, paragraph, section, table, tiles
from saferank.report.report_charts import (
    MOST_ROWS,
    bounds_chart,
    dial_chart,
    improvement_chart,
    lot,
    segments_chart,
    watch_chart,
)
from saferank.verdict.certificate import Certificate, Verdict, confidence, meaning
from saferank.verdict.decision import EXAMINATION, GIVEN, KNOWN, STABLE, WITHIN

LEVELS = {Verdict.DEPLOY: "good", Verdict.KEEP: "bad", Verdict.MORE_DATA: "caution"}
SERVED = {"deterministic": "by score", "sampled": "as rankings drawn from the policy"}
BREAKS = {
    INDEPENDENT: "Users who come back (give `--unit`), bots, a sale or a season in the log; other traffic after "
    "deployment. A split by time, with the last days held out, shows whether yesterday tells of tomorrow.",
    MIX: "Other queries after deployment than in the held-out part.",
    POSITION_BASED: "Users who click high ranks because they are high; a good document that takes the clicks of those "
    "below it; a layout in which ranks do not look alike.",
    EXAMINATION: "Other devices or layouts mixed in one log; users who are not position-based.",
    GIVEN: "A curve from other traffic, another device or another layout. If it is too steep, clicks at low "
    "ranks count too much, and documents brought up from there look better than they are.",
    KNOWN: "Rules or filters that change the ranking after the scores; scores of another version of the ranker.",
    STABLE: "A ranker that moves documents up on the day on which they are wanted. With timestamps it is checked.",
    WITHIN: "A ranker that follows demand from hour to hour.",
    NORMAL: "A few clicks with very large weights: then it takes far more interactions than it seems.",
    THEOREM_1: "Rankings in which documents come and go together: there the constant is too small.",
}
"""Assumption -> what would break it."""


def verdict_head(certificate: Certificate) -> Iterator[str]:
    """The verdict, what it means, what to do next, and its numbers."""
    level = LEVELS[certificate.verdict]
    if certificate.unchecked:
        yield finding("caution", "This rests on an examination curve that was given and that the log cannot check.")
    yield f'<p class="verdict {level}">{escape(certificate.verdict.value)}</p>'
    yield f"<h1>{escape(meaning(certificate))}</h1>"
    yield paragraph(_next(certificate), "next")
    yield from (finding("caution", f"{warning[0].upper()}{warning[1:]}") for warning in certificate.warnings if warning)
    yield from (finding("caution", f"{doubt.text} {doubt.remedy}".strip()) for doubt in certificate.doubts)
    yield paragraph(f"The promise covers {certificate.covers}.", "soft")
    share, low, high = certificate.relative
    yield tiles(
        [
            (
                f"{share:+.1%}",
                f"clicks; at least {low:+.1%} and at most {high:+.1%}, each with "
                f"{confidence(certificate.spent)} confidence",
            ),
            (f"{certificate.click_rate:.5f}", "clicks per interaction of the current ranker"),
            (f"{certificate.interactions:,}", "held-out interactions, never seen in training"),
            (f"{certificate.effective_clicks:,.0f}", "clicks that they are worth, after weighting"),
            (f"{certificate.unsupported_exposure:.1%}", "of the new exposure on documents not shown there"),
        ]
    )


def _next(certificate: Certificate) -> str:
    served = SERVED.get(certificate.serve_as, certificate.serve_as)
    if certificate.verdict is Verdict.DEPLOY:
        return (
            f"Next: put it live, served {served}, as it was certified. Go on logging: the next policy is "
            "learned from what this one shows."
        )
    if certificate.verdict is Verdict.KEEP:
        return (
            "Next: keep the current ranker. Fit again with more caution (a smaller `--delta`), or from a log that is "
            "larger or more random; `saferank doctor` tells which."
        )
    return (
        "Next: keep the current ranker and go on logging it. `saferank plan` says how much randomness would decide "
        "sooner; `saferank certify --watch` looks again as the log grows."
    )


def verdict_sections(certificate: Certificate) -> Iterator[str]:
    """Return the sections, those without data left out."""
    sure = confidence(certificate.spent)
    share, low, high = certificate.relative
    yield section(
        "improvement",
        "Improvement",
        charts(
            figure(
                improvement_chart(certificate),
                f"Estimate {certificate.improvement:+.5f} ({share:+.2%}); at least {certificate.lower:+.5f} "
                f"({low:+.2%}) and at most {certificate.upper:+.5f} ({high:+.2%}), each with {sure} confidence by the "
                f"bound '{certificate.bound}'.",
            ),
            figure(
                dial_chart(certificate),
                "The delta dial: what another delta would have said. The verdict is that of the delta asked for; to "
                "turn the dial after having looked is to choose the answer.",
            ),
        ),
    )
    if certificate.bounds:
        yield _bounds(certificate)
    if certificate.other_curves:
        yield _curves(certificate)
    looks = certificate.inputs.get("looks") or []
    if looks:
        rows = [
            (
                str(look["at"]),
                f"{look['interactions']:,}",
                *_signed(look["improvement"], look["lower"], look["upper"]),
                str(look["verdict"]),
            )
            for look in looks
        ]
        told = table(("look", "interactions", "improvement", "lower", "upper", "verdict"), rows)
        drawn = figure(
            watch_chart(looks, certificate.tolerance),
            f"Estimate and bounds at each of {len(looks):,} looks at this data, by this model and others. Delta is "
            "shared among them, so that they hold together.",
        )
        body = (told,) if len(looks) == 1 else (drawn, folded("All looks", told))
        yield section("watch", "The verdict over time", *body)
    if certificate.segments:
        yield _segments(certificate)
    if certificate.traffic:
        heads = ("queries", "interactions", "improvement", "lower", "upper")
        rows = [
            (row.segment, f"{row.interactions:,}", *_signed(row.improvement, row.lower, row.upper))
            for row in certificate.traffic
        ]
        yield section("traffic", "Queries seen in training, and new ones", table(heads, rows))


def _curves(certificate: Certificate) -> str:
    rows = [
        (row.curve, f"{row.last:.2f}", *_signed(row.improvement, row.lower), row.verdict)
        for row in certificate.other_curves
    ]
    kinds = ["chosen" if row.curve == "as used" else "" for row in certificate.other_curves]
    curve = ", ".join(f"{value:.2g}" for value in certificate.examination["curve"])
    return section(
        "curves",
        "If the examination curve were different",
        paragraph(f"The curve ({certificate.examination['kind']}): {curve}. The verdict holds for all curves near it."),
        table(("curve", "last rank", "improvement", "lower", "verdict"), rows, kinds=kinds),
    )


def _bounds(certificate: Certificate) -> str:
    rows, kinds = [], []
    for row in certificate.bounds:
        holds = "at every look" if row.any_time else "at one look" if row.guarantee else "no promise"
        rows.append((row.name, *_signed(row.lower, row.upper), holds))
        kinds.append("chosen" if row.name == certificate.bound else "" if row.guarantee else "soft")
    return section(
        "bounds",
        "Bounds side by side",
        beside(
            figure(
                bounds_chart(certificate),
                "The same data under every bound. Without promise: may be narrower, and wrong more often than delta.",
            ),
            table(("bound", "lower", "upper", "holds"), rows, kinds=kinds),
        ),
    )


def _segments(certificate: Certificate) -> str:
    rows = [
        (row.segment or "(none)", f"{row.interactions:,}", *_signed(row.improvement, row.lower, row.upper), lot(row))
        for row in certificate.segments
    ]
    caption = (
        "Worst first, if all segments are shown the same rankings. Delta is shared among the segments, so that all "
        "intervals hold together."
    )
    if len(rows) > MOST_ROWS:
        caption += f" Drawn: the worst {MOST_ROWS} of {len(rows):,}."
    return section(
        "segments",
        "Who gains, who loses",
        figure(segments_chart(certificate), caption),
        table(("segment", "interactions", "improvement", "lower", "upper", ""), rows),
    )


def assumptions_section(certificate: Certificate) -> str:
    """What the verdict rests on, and what would break it."""
    pieces = []
    for assumption in certificate.assumptions:
        broken = paragraph(f"Broken by: {_small(BREAKS[assumption])}", "soft") if assumption in BREAKS else ""
        pieces.append(f"<li>{paragraph(f'{assumption[:1].upper()}{assumption[1:]}.')}{broken}</li>")
    bound = BOUNDS.get(certificate.bound)
    promise = "" if bound is None or bound.guarantee else " This bound gives no promise even so."
    told = paragraph(f"The promise holds as far as these do.{promise}")
    return section("assumptions", "What it assumes, and what would break it", told, f"<ul>{''.join(pieces)}</ul>")


def _signed(*values: float | None) -> tuple[str, ...]:
    return tuple("unknown" if value is None else f"{value:+.5f}" for value in values)


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]
