"""The paper's two figures as Altair charts, saved as PNG, SVG and offline HTML."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import altair as alt

from saferank.engine.errors import UsageError
from saferank.files.json_format import finite
from saferank.lab.results import CONSTANT, DELTA, LABELS, METRICS, Curve, Results
from saferank.lab.significance import summarise
from saferank.report.chart_style import INK_ON_WHITE, inline, on_white

Figure: TypeAlias = alt.HConcatChart | alt.VConcatChart | alt.LayerChart

LOW_DATA = 100_000
"""The zoom ends at this N."""
ROUND_NUMBER = "replace(format(datum.value, '~s'), 'G', 'B')"
"""100, 1k, 10k .. 1B: superscripts are missing from many fonts."""


@dataclass(frozen=True)
class Line:
    """The name and style of one line of a figure."""

    name: str
    colour: str
    dash: tuple[int, int] = (1, 0)
    width: float = 2.0


# Okabe and Ito's colours, which colour-blind readers can distinguish: IPS in blue, CRM in red and orange, the
# exposure-based methods darker. The dashes repeat the distinction.
_LINES = {
    "naive": Line(LABELS["naive"], "#8c8c8c", (2, 2), 1.6),
    "action-ips": Line(LABELS["action-ips"], "#56b4e9", (6, 3), 1.6),
    "action-crm": Line(LABELS["action-crm"], "#e69f00", (6, 3), 1.6),
    "exposure-ips": Line(LABELS["exposure-ips"], "#0072b2"),
    "exposure-crm": Line(LABELS["exposure-crm"], "#d55e00", width=3.4),
    "auto": Line(LABELS["auto"], "#7b3294", width=3.4),
    "exposure-crm-known": Line(LABELS["exposure-crm-known"], "#009e73", width=1.8),
    "doubly-robust": Line(LABELS["doubly-robust"], "#117733", (4, 2), 1.6),
    "safe-doubly-robust": Line(LABELS["safe-doubly-robust"], "#44aa99", (4, 2), 1.6),
    "prpo": Line(LABELS["prpo"], "#332288", (4, 2), 1.6),
    "gain-bound": Line(LABELS["gain-bound"], "#882255", (4, 2), 1.6),
    "exposure-poem": Line(LABELS["exposure-poem"], "#999933", (4, 2), 1.6),
    "exposure-ips-sea": Line(LABELS["exposure-ips-sea"], "#0072b2", (1, 2), 1.6),
    "exposure-ips-genspec": Line(LABELS["exposure-ips-genspec"], "#0072b2", (1, 4), 1.6),
    "exposure-ips-last-rank": Line(LABELS["exposure-ips-last-rank"], "#0072b2", (8, 2), 1.6),
    "exposure-crm-last-rank": Line(LABELS["exposure-crm-last-rank"], "#d55e00", (8, 2), 1.6),
}
METHOD_LINES = {
    method: _LINES.get(method) or Line(label, "#cc79a7", (1, place))
    for place, (method, label) in enumerate(LABELS.items(), 1)
    if method not in CONSTANT
}
DELTA_COLOURS = ("#fdbe85", "#fd8d3c", "#e6550d", "#a63603", "#5c1a02")
"""From the largest delta down."""


def main_figure(results: Results, *, delta: float = DELTA) -> Figure:
    """NDCG@5 against N, one line per method with its 80% confidence band: all N, and the low-data zoom beside it.

    One row of two panels per data set. The logging policy and the skyline are level lines; the zoom has its own scale
    and no skyline.
    """
    present = {method for _, method, _ in results.values}
    lines = [line for method, line in METHOD_LINES.items() if method in present]
    if not lines:
        raise UsageError("the results contain no method that learns from clicks yet, so there is nothing to draw.")
    rows = []
    for dataset in results.datasets:
        curves = {line.name: results.curve(dataset, method, delta) for method, line in METHOD_LINES.items()}
        points = [point for name, curve in curves.items() for point in _points(name, curve)]
        levels = _levels(results, dataset, CONSTANT)
        prefix = "" if len(results.datasets) == 1 else f"{dataset}, "
        panels = [_panel(points, levels, lines, f"{prefix}all N", axis=METRICS[results.metric], width=440)]
        low = [point for point in points if point["interactions"] <= LOW_DATA]
        if low and len(low) < len(points):
            near = _levels(results, dataset, ["logging"])
            panels.append(_panel(low, near, lines, f"{prefix}little data: N ≤ {LOW_DATA:,}", axis=None, width=310))
        rows.append(panels)
    return _figure(rows)


def ablation_figure(results: Results) -> Figure:
    """NDCG@5 against N for each delta, with the logging policy: one panel per CRM method, one row per data set."""
    methods = ("action-crm", "exposure-crm")
    deltas = sorted({delta for _, method, delta in results.values if method in methods}, reverse=True)
    if not deltas:
        raise UsageError("the results contain neither action-crm nor exposure-crm, so there is no delta to compare.")
    step = max(1.0, (len(deltas) - 1) / (len(DELTA_COLOURS) - 1))
    lines = [Line(_decimal(delta), DELTA_COLOURS[math.floor(i / step)]) for i, delta in enumerate(deltas)]
    rows = []
    for dataset in results.datasets:
        levels = _levels(results, dataset, ["logging"])
        panels: list[alt.LayerChart] = []
        for method in methods:
            curves = {delta: results.values[dataset, method, delta] for delta in results.deltas(dataset, method)}
            points = [point for delta, curve in curves.items() for point in _points(_decimal(delta), curve)]
            if points:
                title = LABELS[method] if len(results.datasets) == 1 else f"{dataset}, {LABELS[method]}"
                axis = None if panels else METRICS[results.metric]
                panels.append(_panel(points, levels, lines, title, axis=axis, width=375, heading="delta"))
        rows.append(panels)
    return _figure(rows)


def save_figure(chart: Figure, folder: Path | str, name: str) -> None:
    """Write name.png (at twice the size), name.svg and name.html, which opens offline."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    chart.save(folder / f"{name}.png", scale_factor=2)
    chart.save(folder / f"{name}.svg")
    chart.save(folder / f"{name}.html", inline=True)


def _levels(results: Results, dataset: str, methods: Iterable[str]) -> dict[str, float]:
    """The mean of each method that learns from no clicks, as far as there are runs."""
    runs = {LABELS[method]: results.constant(dataset, method) for method in methods}
    return {name: float(of.mean()) for name, of in runs.items() if len(of)}


def _points(line: str, curve: Curve) -> list[dict[str, Any]]:
    """One row per N with the summary of its runs; one run has no deviation and no interval: None."""
    return [finite({"line": line, "interactions": n, **asdict(summarise(runs))}) for n, runs in curve.items()]


def _decimal(delta: float) -> str:
    return f"{delta:.12f}".rstrip("0")


def _panel(
    points: list[dict[str, Any]],
    levels: dict[str, float],
    lines: list[Line],
    title: str,
    *,
    axis: str | None,
    width: int,
    heading: str | None = None,
) -> alt.LayerChart:
    """One set of axes: bands, level lines with their names, lines, and points that carry the tooltips.

    The scale covers means and levels: a wide band is cut off. `heading` is the title of the legend.
    """
    heights = [point["mean"] for point in points] + list(levels.values())
    pad = 0.06 * (max(heights) - min(heights)) or 0.01
    first, last = (f(point["interactions"] for point in points) for f in (min, max))
    powers = [10**k for k in range(math.ceil(math.log10(first)), math.floor(math.log10(last)) + 1)]
    x = alt.X("interactions:Q").scale(type="log", domain=[first / 1.2, last * 1.2], nice=False)
    x = x.axis(values=powers, labelExpr=ROUND_NUMBER, title="Number of logged interactions, N", grid=False)
    y = alt.Y("mean:Q").scale(domain=[min(heights) - pad, max(heights) + pad], nice=False, zero=False)
    y = y.axis(title=axis, format=".2f" if pad > 0.003 else ".3f", tickCount=7)

    names = [line.name for line in lines]
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1.0)
    shared: dict[str, Any] = {"shorthand": "line:N", "sort": names, "title": heading, "legend": legend}
    colour = alt.Color(**shared).scale(domain=names, range=[line.colour for line in lines])
    dash = alt.StrokeDash(**shared).scale(domain=names, range=[list(line.dash) for line in lines])
    thick = alt.StrokeWidth(**shared).scale(type="ordinal", domain=names, range=[line.width for line in lines])

    base = alt.Chart(inline(points)).encode(x=x, color=colour)
    band = base.mark_area(clip=True, opacity=0.18).encode(y="low:Q", y2="high:Q")
    drawn = base.mark_line(clip=True).encode(y=y, strokeDash=dash, strokeWidth=thick)
    numbers = {"mean": "NDCG@5, mean", "deviation": "standard deviation", "low": "80% interval from", "high": "to"}
    tooltip = [
        alt.Tooltip("line:N", title=heading or "method"),
        alt.Tooltip("interactions:Q", title="N", format=",d"),
        *(alt.Tooltip(f"{name}:Q", title=title, format=".4f") for name, title in numbers.items()),
        alt.Tooltip("runs:Q", title="runs"),
    ]
    dots = base.mark_circle(clip=True, size=14, opacity=1.0).encode(y=y, tooltip=tooltip)
    level_rows = [{"level": level, "name": name, "interactions": first} for name, level in levels.items()]
    marked = alt.Chart(inline(level_rows)).encode(y="level:Q", tooltip=["name:N", "level:Q"])
    rule = marked.mark_rule(color=INK_ON_WHITE, strokeWidth=1.3)
    label = marked.mark_text(align="left", baseline="bottom", dx=0, dy=-3, fontSize=12, color=INK_ON_WHITE)
    names_shown = label.encode(x="interactions:Q", text="name:N")
    return alt.LayerChart(layer=[band, rule, drawn, dots, names_shown], title=title, width=width, height=300)


def _figure(rows: list[list[alt.LayerChart]]) -> Figure:
    """Panels side by side, rows below each other."""
    beside = [alt.hconcat(*panels, spacing=28) for panels in rows if panels]
    return on_white(beside[0] if len(beside) == 1 else alt.vconcat(*beside))
