"""doctor.html: the health of a log on one page that needs no network and no script."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saferank import __version__
from saferank.reporting.doctor_charts import curve_chart, traffic_chart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from saferank.doctor.health import Finding, Health
    from saferank.propensity.examination_estimate import ExaminationEstimate

HEADLINES = {
    "good": "This log is fit to learn from.",
    "caution": "This log can be learned from, with care.",
    "bad": "This log is not yet fit to learn from.",
}

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5c6470; --page: #fff; --card: #f5f6f8; --line: #dfe2e7;
  --good: #1a8754; --caution: #b26a00; --bad: #c62f3b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #9aa3af; --page: #14171a; --card: #1e2226;
  --line: #353b42; --good: #4cc38a; --caution: #e5a13d; --bad: #ff6b74; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .7rem; }
.soft { color: var(--soft); } .source { margin: .2rem 0 1.4rem; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.4rem, 1fr)); gap: .7rem; margin: 1.4rem 0; }
.tile { background: var(--card); border-radius: .5rem; padding: .6rem .8rem; }
.tile b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: .85rem; }
.finding { border-left: .3rem solid var(--soft); background: var(--card); border-radius: .3rem; padding: .55rem .9rem;
  margin: .55rem 0; } .finding p { margin: 0; } .finding .remedy { color: var(--soft); margin-top: .2rem; }
.finding .level { font-weight: 600; text-transform: uppercase; font-size: .75rem; letter-spacing: .04em; }
.good { border-color: var(--good); } .good .level { color: var(--good); }
.caution { border-color: var(--caution); } .caution .level { color: var(--caution); }
.bad { border-color: var(--bad); } .bad .level { color: var(--bad); }
.charts { display: grid; grid-template-columns: 55fr 45fr; gap: 1.5rem; align-items: end; } figure { margin: 0; }
@media (max-width: 46rem) { .charts { grid-template-columns: 1fr; } }
figcaption { color: var(--soft); font-size: .85rem; min-height: 4.2em; } svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .25rem .8rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 500; color: var(--soft); } th:first-child, td:first-child { text-align: left; white-space: normal; }
"""


def doctor_page(health: Health) -> str:
    """Return the page."""
    period = f", {escape(health.period[0])} to {escape(health.period[1])}" if health.period else ""
    body = [
        f"<h1>{HEADLINES[health.level]}</h1>",
        f'<p class="soft source">{escape(health.source)}{period}. Top {health.cutoff} ranks.</p>',
        *(_finding(finding) for finding in health.findings),
        f'<div class="tiles">{"".join(_tile(value, name) for value, name in _tiles(health))}</div>',
        '<div class="charts">',
        _figure(
            curve_chart(health),
            "How often a rank is clicked, and how often it is looked at. Where the click rate falls faster, better "
            f"documents stand higher. Bands: {health.harvested.confidence:.0%} intervals.",
        ),
        _figure(traffic_chart(health), "Few interactions a query leave its exposure and its relevances a guess."),
        "</div>",
        "<h2>By rank</h2>",
        _table(*_by_rank(health)),
        "<h2>All numbers</h2>",
        _table(("", "value"), _numbers(health)),
        *_doubts(health),
        f'<p class="soft">Made by saferank {__version__}. Examination is relative to rank 1; harvested: from where '
        "documents were clicked that stood at several ranks; EM: by expectation maximisation with a relevance for "
        "each document; moved: documents shown at several ranks, and clicked.</p>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>saferank doctor</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def write_doctor_page(health: Health, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    path = Path(path)
    page = doctor_page(health)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_text(page, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _finding(finding: Finding) -> str:
    remedy = f'<p class="remedy">{escape(finding.remedy)}</p>' if finding.remedy else ""
    return (
        f'<div class="finding {finding.level}"><p><span class="level">{finding.level}</span> {escape(finding.text)}</p>'
        f"{remedy}</div>"
    )


def _tile(value: str, name: str) -> str:
    return f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


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
    columns = [
        [str(rank + 1) for rank in range(health.cutoff)],
        [f"{count:,}" for count in health.shown],
        [f"{count:,}" for count in health.clicked],
        [f"{rate:.2%}" if np.isfinite(rate) else "-" for rate in health.click_rate],
        [_decimal(rate / health.click_rate[0]) if health.click_rate[0] > 0 else "-" for rate in health.click_rate],
        _with_interval(health.harvested),
        _with_interval(health.em),
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
    if effective is not None:
        yield "effective clicks, half-way to random rankings", f"{effective.halfway_to_random:,.0f}"
        yield "effective clicks, sorted by clicks", f"{effective.by_clicks:,.0f}"
        if effective.provable_gain is not None:
            yield "gain in clicks that can be proven, sorted by clicks", f"{effective.provable_gain:.1%}"


def _doubts(health: Health) -> Iterable[str]:
    warnings = [f"{one.method}: {text}" for one in (health.harvested, health.em) for text in one.warnings]
    if warnings:
        yield "<h2>Doubts about the examination estimates</h2>"
        yield "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in warnings) + "</ul>"
