"""doctor.html: the health of a log."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from saferank.doctor.health import Health
from saferank.engine.propensity.examination_estimate import ExaminationEstimate
from saferank.report.doctor_charts import curve_chart, traffic_chart
from saferank.report.page import formatted, render


def doctor_page(health: Health) -> str:
    """The page as HTML."""
    estimates = [one for one in (health.harvested, health.em) if one is not None]
    return render(
        "doctor.html",
        inf=math.inf,
        health=health,
        curve_chart=curve_chart(health),
        traffic_chart=traffic_chart(health),
        by_rank=_by_rank(health),
        numbers=_numbers(health),
        warnings=[f"{one.method}: {text}" for one in estimates for text in one.warnings],
    )


def _by_rank(health: Health) -> tuple[list[str], list[tuple[str, ...]]]:
    """Heading and rows of the table by rank."""
    first = health.click_rate[0] if health.click_rate[0] > 0 else np.nan
    columns = {
        "rank": [str(rank + 1) for rank in range(health.cutoff)],
        "shown": [f"{count:,}" for count in health.shown],
        "clicks": [f"{count:,}" for count in health.clicked],
        "click-through": [formatted(rate, ".2%") for rate in health.click_rate],
        "relative": [formatted(rate / first, ".3f") for rate in health.click_rate],
        "given": [] if health.given is None else [formatted(value, ".3f") for value in health.given],
        "harvested": _with_interval(health.harvested),
        "EM": ["not estimated"] * health.cutoff if health.em is None else _with_interval(health.em),
        "moved": [f"{count:,}" for count in health.harvested.interventions],
    }
    present = {name: column for name, column in columns.items() if column}
    return list(present), list(zip(*present.values(), strict=True))


def _with_interval(estimate: ExaminationEstimate) -> list[str]:
    return [
        formatted(value, ".3f") + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) and low < high else "")
        for value, low, high in zip(estimate.curve, estimate.low, estimate.high, strict=True)
    ]


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
