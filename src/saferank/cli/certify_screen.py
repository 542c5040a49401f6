"""The screen of `saferank certify`: the verdict, its meaning, the numbers, other bounds and curves, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from saferank.cli.screen import number_table, tell

if TYPE_CHECKING:
    from saferank.verdict.certificate import Certificate, SegmentRow

COLOURS = {"DEPLOY": "bold green", "KEEP": "bold red", "MORE DATA": "bold yellow"}


def show_certificate(certificate: Certificate, console: Console, out: Path, ledger: Path, flatter: Path | None) -> None:
    """Print one screen: the verdict, its meaning, the numbers, the other bounds, the assumptions."""
    from saferank.engine.bounds.registry import BOUNDS
    from saferank.logs.earlier_logs import in_words
    from saferank.verdict.certificate import confidence, meaning
    from saferank.verdict.log_doubts import LIMITS
    from saferank.verdict.words import NOT_IN_A_LOG

    verdict = certificate.verdict.value
    word = {
        "stated": "made without the held-out part of this log",
        "trained-until": f"made without any data after {certificate.trained_until}",
    }
    relies_on = ["a given examination curve that the log cannot confirm"] if certificate.unchecked else []
    if any(doubt.code == "no-timestamps" for doubt in certificate.doubts):
        relies_on.append("your statement that ranker and demand did not change")
    if any(doubt.code in LIMITS for doubt in certificate.doubts):
        relies_on.append("your statement that any candidate could be shown in every impression")
    if certificate.independence in word:
        relies_on.append(f"your statement that the ranker was {word[certificate.independence]}")
    for what in relies_on:
        console.print(Text(f"This relies on {what}.", style="bold yellow"))
    console.print(Text.assemble((f" {verdict} ", COLOURS[verdict] + " reverse"), f"  {meaning(certificate)}\n"))
    unit = "clicks" if certificate.reward is None else certificate.reward
    share, low, high = (f"{value:+.1%}" for value in certificate.relative)
    curve = ", ".join(f"{value:.2g}" for value in certificate.examination["curve"])
    left = certificate.delta / (certificate.look + 1)  # 1 minus the sum of 1 / (j (j + 1)) up to this look
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    earlier = certificate.inputs.get("earlier")
    for name, value in {
        "improvement": f"{certificate.improvement:+.5f} {unit} per interaction ({share})",
        f"bounds, {confidence(certificate.spent)} each": f"{certificate.lower:+.5f} to {certificate.upper:+.5f} "
        f"({low} to {high})",
        "current ranker": f"{certificate.click_rate:.5f} {unit} per interaction",
        "held out": f"{certificate.interactions:,} interactions, worth {certificate.effective_clicks:,.0f} clicks",
        "covers": certificate.covers,
        "served": "by score" if certificate.serve_as == "deterministic" else "drawn at random from the policy",
        "logging exposure": f"{certificate.logging_exposure}, by {certificate.strata}",
        "examination": f"{certificate.examination['kind']}: {curve}",
        **({"also read": in_words(earlier)} if earlier else {}),
        **({"to explore": _exploration(certificate, flatter)} if flatter and verdict == "DEPLOY" else {}),
        "look": f"number {certificate.look} at this data: it uses {certificate.spent:.4g} of delta "
        f"{certificate.delta:g}, {left:.4g} is left for further looks",
    }.items():
        table.add_row(name, value)
    console.print(table)
    console.print()
    console.print(_bounds_table(certificate))
    if any(BOUNDS[row.name].any_time and not row.any_time for row in certificate.bounds):
        when = "* At every look if the weights are fixed, that is with --logging-scores and --examination."
        console.print(when, style="dim", highlight=False)
    console.print(_curves_table(certificate))
    if certificate.segments:
        console.print(
            _segments_table(certificate.segments, "By segment (valid if all segments are shown the same rankings)")
        )
    if certificate.traffic:
        console.print(_segments_table(certificate.traffic, "Queries seen in training, and new ones"))
    for warning in certificate.warnings:
        console.print(Text.assemble(("Warning: ", "yellow"), f"{warning[0].upper()}{warning[1:]}"))
    for doubt in certificate.doubts:
        console.print(Text.assemble(("Caution: ", "yellow"), f"{doubt.text} ", (doubt.remedy, "italic dim")))
    assumed = [text for text in NOT_IN_A_LOG if text in certificate.assumptions]
    if assumed:
        console.print(f"Assumed, because a log shows it only in part: {'; '.join(assumed)}.", style="dim")
    tell(f"Certificate with all details: {out}. Record of looks: {ledger}.", console)


def _exploration(certificate: Certificate, flatter: Path) -> str:
    if not certificate.exploration:
        return f"no flatter policy is proven, so {flatter} is the unchanged model"
    row = certificate.exploration[-1]
    improvement, low = (f"{value / (certificate.click_rate or 1.0):+.1%}" for value in (row.improvement, row.lower))
    return f"{flatter}, with all scores divided by {row.temperature:g}: {improvement}, at least {low}"


def _bounds_table(certificate: Certificate) -> Table:
    from saferank.engine.bounds.registry import BOUNDS

    columns = ("bound", "lower", "upper", "holds")
    table = number_table("The same data under other bounds", columns, left=["bound", "holds"])
    for row in certificate.bounds:
        star = "*" if BOUNDS[row.name].any_time else ""
        holds = "at every look" if row.any_time else f"at one look{star}" if row.guarantee else "no guarantee"
        chosen = "bold" if row.name == certificate.bound else ""
        table.add_row(row.name, f"{row.lower:+.5f}", f"{row.upper:+.5f}", holds, style=chosen)
    return table


def _curves_table(certificate: Certificate) -> Table:
    columns = ("curve", "last rank", "improvement", "lower", "verdict")
    table = number_table("If the examination curve were different", columns, left=["curve", "verdict"])
    for row in certificate.other_curves:
        cells = (f"{row.last:.2f}", f"{row.improvement:+.5f}", f"{row.lower:+.5f}", row.verdict)
        table.add_row(row.curve, *cells, style="bold" if row.curve == "as used" else "")
    return table


def _segments_table(rows: tuple[SegmentRow, ...], title: str) -> Table:
    table = number_table(title, ("segment", "interactions", "improvement", "lower", "upper"), left=["segment"])
    for row in rows:
        colour = "red" if row.upper < 0 else "green" if row.lower > 0 else ""
        numbers = (f"{value:+.5f}" for value in (row.improvement, row.lower, row.upper))
        table.add_row(row.segment or "(none)", f"{row.interactions:,}", *numbers, style=colour)
    return table
