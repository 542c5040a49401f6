"""doctor.html: the health of a log on one page that needs no network and no script."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saferank import __version__
from saferank.report.doctor_charts import curve_chart, traffic_chart
from saferank.report.page import charts, figure, finding, items, page, paragraph, table, tiles, write_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from saferank.doctor.health import Health
    from saferank.engine.propensity.examination_estimate import ExaminationEstimate

HEADLINES = {
    "good": "This log is fit to learn from.",
    "caution": "This log can be learned from, with care.",
    "bad": "This log is not yet fit to learn from.",
}


def doctor_page(health: Health) -> str:
    """Return the page."""
    period = f", {escape(health.period[0])} to {escape(health.period[1])}" if health.period else ""
    body = [
        f"<h1>{HEADLINES[health.level]}</h1>",
        f'<p class="soft source">{escape(health.source)}{period}. Top {health.cutoff} ranks.</p>',
        *blocked(health),
        *(finding(one.level, one.text, one.remedy) for one in health.findings),
        tiles(_tiles(health)),
        charts(
            figure(
                curve_chart(health),
                "How often a rank is clicked, and how often it is looked at. Where the click rate falls faster, better "
                f"documents stand higher. Bands: {health.harvested.confidence:.0%} intervals.",
            ),
            figure(traffic_chart(health), "Few interactions a query leave its exposure and its relevances a guess."),
        ),
        "<h2>By rank</h2>",
        table(*_by_rank(health)),
        "<h2>What was tested</h2>",
        table(("test", "deviate", "size", "rests on"), _tests(health)),
        "<h2>All numbers</h2>",
        table(("", "value"), _numbers(health)),
        *_doubts(health),
        f'<p class="soft">Made by saferank {__version__}. Examination is relative to rank 1; harvested: from where '
        "documents were clicked that stood at several ranks; EM: by expectation maximisation with a relevance for "
        "each document; moved: documents shown at several ranks, and clicked.</p>",
    ]
    return page("saferank doctor", body)


def blocked(health: Health) -> Iterable[str]:
    """Say that no verdict can be given, if so, and why, by the codes of the findings."""
    if health.blocking:
        yield paragraph(f"No verdict is possible from this log: {', '.join(one.code for one in health.blocking)}.")


def write_doctor_page(health: Health, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_page(doctor_page(health), path)


def _tiles(health: Health) -> Iterable[tuple[str, str]]:
    traffic, changes = health.traffic, health.randomness.top_changes
    yield f"{traffic.interactions:,}", "interactions"
    yield f"{traffic.queries:,}", "queries"
    yield f"{traffic.clicks:,}", f"clicks, {traffic.clicks / max(traffic.interactions, 1):.2f} an interaction"
    yield f"{traffic.pairs:,}", "query-document pairs shown"
    if changes is not None:
        yield f"{changes:.1%}", "of pairs of impressions differ at rank 1"
    if health.coverage is not None:
        yield f"{health.coverage.never_shown_share:.0%}", "of candidates never shown"
    if health.effective is not None:
        yield f"{health.effective.by_clicks:,.0f}", "effective clicks"


def _by_rank(health: Health) -> tuple[list[str], list[list[str]]]:
    heading = ["rank", "shown", "clicks", "click rate", "relative", "harvested", "EM", "moved"]
    em = health.em
    columns = [
        [str(rank + 1) for rank in range(health.cutoff)],
        [f"{count:,}" for count in health.shown],
        [f"{count:,}" for count in health.clicked],
        [f"{rate:.2%}" if np.isfinite(rate) else "-" for rate in health.click_rate],
        [_decimal(rate / health.click_rate[0]) if health.click_rate[0] > 0 else "-" for rate in health.click_rate],
        _with_interval(health.harvested),
        ["not estimated"] * health.cutoff if em is None else _with_interval(em),
        [f"{count:,}" for count in health.harvested.interventions],
    ]
    if health.given is not None:
        heading.insert(5, "given")
        columns.insert(5, [_decimal(value) for value in health.given])
    return heading, [list(row) for row in zip(*columns, strict=True)]


def _with_interval(estimate: ExaminationEstimate) -> list[str]:
    ends = zip(estimate.curve, estimate.low, estimate.high, strict=True)
    return [
        _decimal(value) + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) and low < high else "")
        for value, low, high in ends
    ]


def _decimal(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "unknown"


def _numbers(health: Health) -> Iterable[tuple[str, str]]:
    traffic, varied, coverage, effective = health.traffic, health.randomness, health.coverage, health.effective
    yield "documents shown, each time counted", f"{traffic.shown:,}"
    yield "queries seen once", f"{traffic.queries_seen_once:,}"
    yield "interactions of queries with at least 10", f"{traffic.share_in_queries_of(10):.1%}"
    yield "interactions of queries with at least 100", f"{traffic.share_in_queries_of(100):.1%}"
    if varied.top_entropy is not None:
        yield "entropy of the document at rank 1, bits", f"{varied.top_entropy:.2f}"
    yield "different documents at rank 1 of a query, mean", f"{varied.documents_at_top:.2f}"
    yield "pairs shown more than once that stood at several ranks", f"{varied.moved:.1%}"
    if varied.rankings is not None:
        yield "different rankings of a query, mean", f"{varied.rankings:.2f}"
    if varied.most_common_ranking is not None:
        yield "interactions with their query's most common ranking", f"{varied.most_common_ranking:.1%}"
    if coverage is not None:
        yield "candidates of queries in the log", f"{coverage.candidates:,}"
        yield "candidates never shown", f"{coverage.never_shown:,}"
        yield "exposure of random rankings to candidates never shown", f"{coverage.never_shown_by_chance:.1%}"
        yield "queries of the log without features", f"{coverage.queries_without_features:,}"
        yield "interactions of such queries", f"{coverage.interactions_without_features:.1%}"
        yield "queries with features that the log lacks", f"{coverage.queries_without_log:,}"
        yield "shown pairs without features", f"{coverage.pairs_without_features:,}"
    odd = health.suspicious
    yield "interactions without a click", f"{odd.without_click:,}"
    yield "interactions without a click, if clicks were independent", f"{odd.without_click_expected:,.0f}"
    if odd.units is not None:
        yield "units (users or sessions)", f"{odd.units.units:,}"
        yield "interactions of the largest unit", f"{odd.units.largest:.1%}"
        yield "clicks of the hundredth of the units that clicks most", f"{odd.units.clicks_of_top:.1%}"
    if effective is not None:
        yield "effective clicks, half-way to random rankings", f"{effective.halfway_to_random:,.0f}"
        yield "effective clicks, sorted by clicks", f"{effective.by_clicks:,.0f}"
        if effective.provable_gain is not None:
            yield "gain in clicks that can be proven, sorted by clicks", f"{effective.provable_gain:.1%}"


def _tests(health: Health) -> Iterable[tuple[str, str, str, str]]:
    """Each test as a normal deviate (beyond about 4 it is not chance), with the size of what it found."""
    clicks, check, odd = health.position_based, health.check, health.suspicious
    for name, drift, what in (
        ("click-through of a document at a rank changes over time", health.demand, "documents at a rank"),
        ("the ranker changes over time", health.ranker, "ranks of a query"),
    ):
        yield name, f"{drift.z:+.1f}" if drift.cells else "unknown", f"{drift.size:.0%}", f"{drift.cells:,} {what}"
    for name, misfit, what in (
        ("clicks depend on what stands above", clicks.context, "rows"),
        ("clicks of an impression depend on each other", clicks.stop, "pairs of rows"),
        ("good and poor documents fall differently with rank", clicks.trust, "documents that moved"),
    ):
        known = np.isfinite(misfit.error)
        size = f"{misfit.size:+.0%}" if known else "-"
        yield name, f"{misfit.z:+.1f}" if known else "unknown", size, f"{misfit.rests_on:,} {what}"
    if health.given is not None:
        yield (
            "the examination given is not that of the log",
            f"{check.z:+.1f}",
            check.status,
            (f"{check.documents:,} documents that moved"),
        )
    if odd.all_clicked is not None:
        bots = odd.all_clicked
        yield (
            "everything is clicked",
            f"{bots.z:+.1f}",
            f"{max(bots.share, 0.0):.1%}",
            f"{bots.impressions:,} impressions",
        )


def _doubts(health: Health) -> Iterable[str]:
    estimates = [one for one in (health.harvested, health.em) if one is not None]
    warnings = [f"{one.method}: {text}" for one in estimates for text in one.warnings]
    if warnings:
        yield "<h2>Doubts about the examination estimates</h2>"
        yield items(warnings)
