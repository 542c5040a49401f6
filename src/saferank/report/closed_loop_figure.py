"""The closed loop as a figure: the true utility of the deployed policy, round by round."""

from collections.abc import Mapping

import altair as alt

from saferank.report.chart_style import inline, on_white

CERTIFIED = "defaults, certified"
COLOURS = {
    CERTIFIED: "#d55e00",
    "IPS, blindly": "#0072b2",
    "DR, blindly": "#009e73",
    "IPS (neural network), blindly": "#999999",
}


def closed_loop_figure(history: Mapping[tuple[str, int, int], list[float]]) -> alt.HConcatChart:
    """One panel per number of interactions per round, one line per run; history: (way, interactions, run)."""
    rounds = max(map(len, history.values()))
    ways = [way for way in COLOURS if any(key[0] == way for key in history)]
    panels = []
    for interactions in sorted({key[1] for key in history}):
        rows = [
            {"way": way, "run": run, "round": number, "utility": utility}
            for (way, n, run), utilities in history.items()
            if n == interactions
            for number, utility in enumerate(utilities)
        ]
        chart = (
            alt.Chart(inline(rows))
            .mark_line(point=alt.OverlayMarkDef(size=18), strokeWidth=1.6)
            .encode(
                x=alt.X("round:Q").axis(title="round", values=list(range(rounds)), format="d", grid=False),
                y=alt.Y("utility:Q").scale(zero=False).axis(title="true clicks per interaction", format=".3f"),
                color=alt.Color("way:N", title=None)
                .scale(domain=ways, range=[COLOURS[way] for way in ways])
                .legend(symbolSize=120),
                detail="run:N",
                tooltip=["way:N", "run:N", "round:Q", alt.Tooltip("utility:Q", format=".5f")],
            )
        )
        panels.append(chart.properties(width=330, height=260, title=f"{interactions:,} interactions per round"))
    return on_white(alt.hconcat(*panels, spacing=28))
