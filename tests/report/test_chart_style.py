import altair as alt

from saferank.report.chart_style import chart_svg, inline


def test_the_same_chart_gives_the_same_text_with_ids_that_begin_with_its_name() -> None:
    """Ids are those of what is cut off at the edges; vl-convert numbers them on from chart to chart."""
    chart = alt.Chart(inline([{"x": 1, "y": 2}, {"x": 2, "y": 3}])).mark_line(clip=True).encode(x="x:Q", y="y:Q")
    first, second = (chart_svg(chart, "rise", "a rise") for _ in range(2))
    assert first == second
    assert 'id="rise-0"' in first
