"""What the report tells of a log: examination, what the new policy changes, the log's health."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from saferank.doctor.health import Health
from saferank.report.doctor_charts import curve_chart, traffic_chart
from saferank.report.doctor_page import HEADLINES, blocked
from saferank.report.page import beside, charts, figure, finding, paragraph, section, table, tiles
from saferank.report.report_charts import examination_chart, moved_chart, moves_chart
from saferank.verdict.exposure_shift import Changes, DocumentChange


def examination_section(examination: Sequence[float], origin: str | None, health: Health | None) -> str:
    """How much each rank is looked at: by the model, and by the log if there is one."""
    said = f" It is {origin}." if origin else ""
    if health is None:
        drawn, caption = (
            examination_chart(examination),
            f"The chance that a rank is looked at, as the model has it.{said}",
        )
    else:
        drawn = curve_chart(health)
        caption = (
            f"Relative to rank 1; given: as the model has it.{said} Harvested and EM: as this log has it, with "
            f"{health.harvested.confidence:.0%} intervals. If they contradict it, the verdict is in doubt."
        )
    values = table(("rank", "examination"), [(str(rank), f"{value:.4f}") for rank, value in enumerate(examination, 1)])
    return section("examination", "How much each rank is looked at", beside(figure(drawn, caption), values))


def changes_sections(changes: Changes) -> Iterator[str]:
    """Exposure moved from where to where, and where most."""
    known = " Exposure in the log is exact, by its scores: what it never showed has some too."
    yield section(
        "exposure",
        "Exposure moved from where to where",
        paragraph(
            f"{changes.moved:.1%} of all exposure goes to other documents. What stood at rank 1 of an impression in "
            f"the log stands there under the new policy in {changes.top_stays:.1%} of cases, and in another impression "
            f"of the log in {changes.top_stays_in_log:.1%}.{known if changes.logging == 'known' else ''}"
        ),
        charts(
            figure(
                moves_chart(changes),
                "A row is a rank in the log: where what stood there stands under the new policy. Gone: no longer "
                "shown. New: documents that the log did not show, for each hundred impressions.",
            ),
            figure(moved_chart(changes), "Interactions by how much of their query's exposure changes hands."),
        ),
        table(
            ("shown in the log", "query-document pairs", "exposure in the log", "exposure now"),
            [(band.name, f"{band.pairs:,}", f"{band.logging:.2%}", f"{band.new:.2%}") for band in changes.bands],
        ),
    )
    if changes.queries:
        yield section(
            "most",
            "What changes most",
            paragraph("By exposure in all: the change in one interaction, times the interactions in the log."),
            "<h3>Queries</h3>",
            table(
                ("query", "interactions", "exposure moved", "top document in the log", "top document now"),
                [
                    (row.query, f"{row.interactions:,}", f"{row.moved:.0%}", row.top_before, row.top_after)
                    for row in changes.queries
                ],
            ),
            "<h3>Documents that gain</h3>",
            _documents(changes.gained),
            "<h3>Documents that lose</h3>",
            _documents(changes.lost),
        )


def _documents(rows: Sequence[DocumentChange]) -> str:
    return table(
        ("query", "document", "interactions", "exposure in the log", "exposure now"),
        [(row.query, row.document, f"{row.interactions:,}", f"{row.logging:.3f}", f"{row.new:.3f}") for row in rows],
    )


def health_section(health: Health) -> str:
    """What the doctor finds."""
    traffic = health.traffic
    return section(
        "health",
        "Health of the log",
        paragraph(f"{HEADLINES[health.level]} `saferank doctor` tells more."),
        *blocked(health),
        *(finding(one.level, one.text, one.remedy) for one in health.findings),
        beside(
            figure(traffic_chart(health), "Few interactions a query leave its exposure and its relevances a guess."),
            tiles(
                [
                    (f"{traffic.interactions:,}", "interactions"),
                    (f"{traffic.queries:,}", "queries"),
                    (f"{traffic.clicks:,}", "clicks"),
                    (f"{traffic.pairs:,}", "query-document pairs shown"),
                ]
            ),
        ),
    )
