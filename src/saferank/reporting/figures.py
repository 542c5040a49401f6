"""The paper's two figures from the table of results, as Altair charts: to PNG, SVG and offline HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from saferank.errors import UsageError
from saferank.experiments.significance import summarise
from saferank.experiments.summary import DELTA, LABELS, Curve, Metric, Source, plain_number, read_results

if TYPE_CHECKING:
    import altair as alt

    Figure: TypeAlias = alt.HConcatChart | alt.VConcatChart

LOW_DATA = 100_000
"""Up to this N goes the zoom."""
AXIS = {"ndcg": "NDCG@5, expected under the policy", "ndcg_by_score": "NDCG@5 of the ranking by score"}
# Okabe and Ito's colours, which the colour-blind can tell apart: IPS in blue, CRM in red and orange, exposure-based
# ones the darker. The dashes say the same again.
LOOKS: dict[str, tuple[str, list[int], float]] = {
    "naive": ("#8c8c8c", [2, 2], 1.6),
    "action-ips": ("#56b4e9", [6, 3], 1.6),
    "action-crm": ("#e69f00", [6, 3], 1.6),
    "exposure-ips": ("#0072b2", [1, 0], 2.0),
    "exposure-crm": ("#d55e00", [1, 0], 3.2),
    "exposure-crm-known": ("#009e73", [1, 0], 2.0),
}
"""Colour, dash and width of each method's line."""
RAMP = ["#fdbe85", "#fd8d3c", "#e6550d", "#a63603", "#5c1a02", "#2b0b00"]
"""Colours of delta, from the largest down."""


@dataclass(frozen=True)
class Point:
    """One mark of a line, with what its tooltip says."""

    line: str
    interactions: int
    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True)
class Look:
    """The lines of a figure, in the legend's order, and how each is drawn."""

    title: str
    lines: list[str]
    colours: list[str]
    dashes: list[list[int]]
    widths: list[float]


def main_figure(source: Source, metric: Metric = "ndcg", *, delta: float = DELTA) -> Figure:
    """NDCG@5 against N, a line a method with its 80% confidence band: all N, and the low-data zoom beside it.

    A row of two panels for each data set. The logging policy and the skyline are level lines.
    """
    import altair as alt

    results = read_results(source, metric)
    rows = []
    shown: list[str] = []
    for dataset in results.datasets:
        curves = {method: results.curve(dataset, method, delta) for method in LOOKS}
        shown += [method for method, curve in curves.items() if curve and method not in shown]
    if not shown:
        raise UsageError("the results hold no method that learns from clicks yet: nothing to draw.")
    look = Look(
        "",
        [LABELS[m] for m in LOOKS if m in shown],
        *([LOOKS[m][i] for m in LOOKS if m in shown] for i in range(3)),
    )
    for dataset in results.datasets:
        points = [p for m in LOOKS for p in _points(LABELS[m], results.curve(dataset, m, delta))]
        levels = {
            LABELS[m]: float(runs.mean()) for m in ("logging", "skyline") if len(runs := results.constant(dataset, m))
        }
        low = [p for p in points if p.interactions <= LOW_DATA]
        title = "" if len(results.datasets) == 1 else f"{dataset}: "
        panels = [_panel(points, levels, look, AXIS[metric], f"{title}all N", width=440)]
        if low and len(low) < len(points):
            near = {name: level for name, level in levels.items() if name == LABELS["logging"]}
            panels.append(_panel(low, near, look, None, f"{title}little data, N ≤ {plain_number(LOW_DATA)}", width=300))
        rows.append(alt.hconcat(*panels, spacing=28))
    return _styled(rows[0] if len(rows) == 1 else alt.vconcat(*rows))


def ablation_figure(source: Source, metric: Metric = "ndcg") -> Figure:
    """NDCG@5 against N for each delta: a panel for each CRM method, a row for each data set, with the logging policy."""
    import altair as alt

    results = read_results(source, metric)
    deltas = sorted({d for _, method, d in results.values if method.endswith("-crm")}, reverse=True)
    if not deltas:
        raise UsageError("the results hold neither action-crm nor exposure-crm: no delta to compare.")
    steps = [round(i * (len(RAMP) - 1) / max(len(deltas) - 1, 1)) for i in range(len(deltas))]
    colours = RAMP[: len(deltas)] if len(deltas) <= len(RAMP) else [RAMP[i] for i in steps]
    look = Look(
        "delta", [f"{d:g}" for d in deltas], colours, [[1, 0] for _ in deltas], [2.0 for _ in deltas]
    )
    rows = []
    for dataset in results.datasets:
        logging = results.constant(dataset, "logging")
        levels = {LABELS["logging"]: float(logging.mean())} if len(logging) else {}
        panels = []
        for method in ("action-crm", "exposure-crm"):
            points = [
                p
                for d in results.deltas(dataset, method)
                for p in _points(f"{d:g}", results.values[dataset, method, d])
            ]
            if points:
                title = LABELS[method] if len(results.datasets) == 1 else f"{dataset}: {LABELS[method]}"
                panels.append(_panel(points, levels, look, None if panels else AXIS[metric], title, width=370))
        rows.append(alt.hconcat(*panels, spacing=28))
    return _styled(rows[0] if len(rows) == 1 else alt.vconcat(*rows))


def save_figure(chart: Figure, folder: Path | str, name: str) -> dict[str, Path]:
    """Write name.png (at twice the size), name.svg and name.html, which needs no network; return format -> path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {kind: folder / f"{name}.{kind}" for kind in ("png", "svg", "html")}
    chart.save(paths["png"], scale_factor=2)
    chart.save(paths["svg"])
    chart.save(paths["html"], inline=True)
    return paths


def _points(line: str, curve: Curve) -> list[Point]:
    points = []
    for n, values in curve.items():
        if n > 0:
            s = summarise(values)
            spread = (s.deviation, s.low, s.high) if s.runs > 1 else (None, None, None)
            points.append(Point(line, n, s.mean, *spread, s.runs))
    return points


def _panel(
    points: list[Point], levels: dict[str, float], look: Look, axis: str | None, title: str, *, width: int
) -> alt.LayerChart:
    """One set of axes: bands, level lines with their names, lines, and points that carry the tooltips."""
    import altair as alt

    heights = [point.mean for point in points] + list(levels.values())
    pad = 0.06 * (max(heights) - min(heights)) or 0.01
    numbers = [point.interactions for point in points]
    first, last = min(numbers), max(numbers)
    powers = [10**k for k in range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)]
    x = alt.X("interactions:Q").scale(type="log", domain=[first, max(last, first + 1)], nice=False)
    x = x.axis(values=powers, labelExpr=_POWER_OF_TEN, title="Number of logged interactions, N", grid=False)
    y = alt.Y("mean:Q").scale(domain=[min(heights) - pad, max(heights) + pad], nice=False, zero=False)
    y = y.axis(title=axis, format=".2f" if max(heights) - min(heights) > 0.04 else ".3f", tickCount=7)
    colour = alt.Color("line:N", sort=look.lines).title(look.title or None).scale(domain=look.lines, range=look.colours)
    dash = alt.StrokeDash("line:N", sort=look.lines).title(look.title or None)
    dash = dash.scale(domain=look.lines, range=look.dashes)
    size = alt.StrokeWidth("line:N", sort=look.lines).title(look.title or None)
    size = size.scale(domain=look.lines, range=look.widths)
    data = alt.Data(values=[asdict(point) for point in points])
    base = alt.Chart(data).encode(x=x, color=colour)
    band = base.mark_area(clip=True, opacity=0.16).encode(y="low:Q", y2="high:Q")
    lines = base.mark_line(clip=True).encode(y=y, strokeDash=dash, strokeWidth=size)
    dots = base.mark_circle(clip=True, size=16, opacity=1.0).encode(y=y, tooltip=_tooltip(look))
    rules = alt.Data(values=[{"level": level, "name": name, "interactions": last} for name, level in levels.items()])
    rule = alt.Chart(rules).mark_rule(color="#222222", strokeWidth=1.3).encode(y="level:Q", tooltip=["name:N", "level:Q"])
    text = alt.Chart(rules).mark_text(align="right", baseline="bottom", dx=-3, dy=-2, fontSize=11, color="#222222")
    names = text.encode(x="interactions:Q", y="level:Q", text="name:N")
    return alt.layer(band, rule, lines, dots, names).properties(width=width, height=300, title=title)


_POWER_OF_TEN = "'10' + ['⁰','¹','²','³','⁴','⁵','⁶','⁷','⁸','⁹','¹⁰','¹¹','¹²'][round(log(datum.value) / LN10)]"


def _tooltip(look: Look) -> list[Any]:
    import altair as alt

    return [
        alt.Tooltip("line:N", title=look.title or "method"),
        alt.Tooltip("interactions:Q", title="N", format=",d"),
        alt.Tooltip("mean:Q", title="NDCG@5, mean", format=".4f"),
        alt.Tooltip("deviation:Q", title="standard deviation", format=".4f"),
        alt.Tooltip("low:Q", title="80% interval from", format=".4f"),
        alt.Tooltip("high:Q", title="to", format=".4f"),
        alt.Tooltip("runs:Q", title="runs"),
    ]


def _styled(chart: Figure) -> Figure:
    chart = chart.properties(background="white", padding=12)
    chart = chart.configure_view(stroke="#cccccc").configure_title(fontSize=14, anchor="start", color="#222222")
    chart = chart.configure_axis(
        labelFontSize=12, titleFontSize=13, titleFontWeight="normal", gridColor="#ececec", labelColor="#333333"
    )
    return chart.configure_legend(
        orient="bottom", columns=6, labelFontSize=12, labelLimit=300, symbolSize=300, symbolStrokeWidth=2.5, titleFontSize=12
    )
