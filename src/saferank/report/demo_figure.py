"""The demo's one picture: what few and what many clicks do to each method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saferank.report.figures import INK, METHOD_LINES

if TYPE_CHECKING:
    import altair as alt


def demo_figure(production: float, results: dict[tuple[str, int], float]) -> alt.LayerChart:
    """Draw the NDCG@5 of each (method, interactions) beside the line of the production ranker."""
    import altair as alt

    sizes = {size: f"{size:,} interactions" for _, size in results}
    rows = [
        {"method": METHOD_LINES[method].name, "log": sizes[size], "ndcg": value, "change": f"{value - production:+.3f}"}
        for (method, size), value in results.items()
    ]
    methods = list(dict.fromkeys(str(row["method"]) for row in rows))
    colours = [METHOD_LINES[method].colour for method in dict.fromkeys(method for method, _ in results)]
    low = min(production, *results.values()) - 0.02
    high = max(production, *results.values()) + 0.02
    scale = alt.Scale(domain=[low, high], zero=False)
    base = alt.Chart({"values": rows}).encode(
        x=alt.X("log:N", sort=list(sizes.values()), title=None, axis=alt.Axis(labelAngle=0, labelFontSize=13)),
        xOffset=alt.XOffset("method:N", sort=methods),
        y=alt.Y("ndcg:Q", scale=scale, title="NDCG@5 on unseen queries"),
    )
    color = alt.Color("method:N", scale=alt.Scale(domain=methods, range=colours), title=None, sort=methods)
    stems = base.mark_rule(strokeWidth=5).encode(color=color, y2=alt.datum(production))
    points = base.mark_point(filled=True, size=220, opacity=1).encode(color=color)
    labels = base.mark_text(align="left", dx=12, fontSize=13, color=INK).encode(text="change:N")
    line = alt.Chart({"values": [{"ndcg": production}]}).encode(y=alt.Y("ndcg:Q", scale=scale))
    rule = line.mark_rule(color=INK, strokeDash=[5, 4])
    name = line.mark_text(align="left", dx=4, dy=-8, fontSize=13, color=INK).encode(
        x=alt.value(0), text=alt.value("production ranker")
    )
    chart: alt.LayerChart = (
        alt.layer(stems, rule, points, labels, name)
        .properties(width=560, height=320, background="white", padding=12)
        .configure_legend(labelFontSize=13, orient="top")
        .configure_view(stroke=None)
    )
    return chart
