"""The demo's figure: each method with few and with many clicks."""

import altair as alt

from saferank.report.chart_style import INK_ON_WHITE, inline, on_white
from saferank.report.figures import METHOD_LINES


def demo_figure(production: float, results: dict[tuple[str, int], float]) -> alt.LayerChart:
    """NDCG@5 of each (method, interactions), compared with the current ranker."""
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
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("log:N", sort=list(sizes.values()), title=None, axis=alt.Axis(labelAngle=0, labelFontSize=13)),
        xOffset=alt.XOffset("method:N", sort=methods),
        y=alt.Y("ndcg:Q", scale=scale, title="NDCG@5 on unseen queries"),
    )
    color = alt.Color("method:N", scale=alt.Scale(domain=methods, range=colours), title=None, sort=methods)
    color = color.legend(symbolSize=120)
    stems = base.mark_rule(strokeWidth=5).encode(color=color, y2=alt.datum(production))
    points = base.mark_point(filled=True, size=220, opacity=1).encode(color=color)
    labels = base.mark_text(align="left", dx=12, fontSize=13, color=INK_ON_WHITE).encode(text="change:N")
    line = alt.Chart(inline([{"ndcg": production}])).encode(y=alt.Y("ndcg:Q", scale=scale))
    rule = line.mark_rule(color=INK_ON_WHITE, strokeDash=[5, 4])
    name = line.mark_text(align="left", dx=4, dy=-8, fontSize=13, color=INK_ON_WHITE).encode(
        x=alt.value(0), text=alt.value("current ranker")
    )
    return on_white(alt.LayerChart(layer=[stems, rule, points, labels, name], width=560, height=320))
