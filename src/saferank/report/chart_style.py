"""The look that all charts share: on a page in the colour of its text, or as a figure on white."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import altair as alt
import vl_convert
from markupsafe import Markup, escape

Drawn = TypeVar("Drawn", bound=alt.LayerChart | alt.HConcatChart | alt.VConcatChart)

INK = "currentColor"
BLUE, ORANGE, GREEN, GREY, RED = "#2f8fd8", "#e08214", "#23a36b", "#8a8f98", "#d9534f"
"""Mid-tones that can be read on white and on black."""
INK_ON_WHITE = "#222222"
WIDTH, HEIGHT = 350, 190
"""Of a chart on a page: it fits a phone."""
FONT = "system-ui, sans-serif"


def inline(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as the data of a chart."""
    return alt.InlineData(values=[dict(row) for row in rows])


def colour_by(field: str, colours: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> alt.Color:
    """Colour by a field of the rows; only the values that occur have a place in the legend."""
    found = {row[field] for row in rows}
    present = {name: colour for name, colour in colours.items() if name in found}
    encoded = alt.Color(f"{field}:N", title=None, sort=list(present))
    return encoded.scale(domain=list(present), range=list(present.values()))


def chart_svg(drawn: list[alt.Chart] | alt.Chart | alt.LayerChart, name: str, label: str, **properties: Any) -> Markup:
    """A chart, or the layers of one, as SVG without script in the ink of the page. Its ids begin with `name`."""
    chart = alt.LayerChart(layer=drawn) if isinstance(drawn, list) else drawn
    styled = (
        chart.properties(**{"width": WIDTH, "height": HEIGHT, "background": "transparent", **properties})
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK, titleColor=INK, domainColor=INK, tickColor=INK, gridColor=INK, gridOpacity=0.13,
            labelFontSize=12, titleFontSize=12, titleFontWeight="normal", titlePadding=8,
            labelFont=FONT, titleFont=FONT,
        )
        .configure_title(color=INK, font=FONT, fontSize=13, anchor="start")
        .configure_text(font=FONT)
        .configure_legend(
            labelColor=INK, labelFontSize=12, labelFont=FONT, labelLimit=220, orient="top", columns=2, columnPadding=16,
            titleColor=INK, titleFont=FONT, titleFontWeight="normal", symbolType="square", symbolOpacity=1,
        )
    )  # fmt: skip
    svg: str = vl_convert.vegalite_to_svg(styled.to_dict())
    # vl-convert numbers ids on from chart to chart; the same chart is to give the same bytes.
    for place, used in enumerate(dict.fromkeys(re.findall(r'id="([^"]+)"', svg))):
        svg = re.sub(rf'(id="|#){re.escape(used)}(?=[")])', rf"\g<1>{name}-{place}", svg)
    return Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1))


def on_white(figure: Drawn) -> Drawn:
    """The figure with a white ground and one legend at the bottom, to be saved by itself."""
    figure.background, figure.padding = "white", 12
    figure.config = alt.Config(
        view=alt.ViewConfig(stroke="#cccccc"),
        title=alt.TitleConfig(fontSize=14, anchor="start", color=INK_ON_WHITE),
        axis=alt.AxisConfig(
            gridColor="#ececec", labelColor="#333333", labelFontSize=12, titleFontSize=13, titleFontWeight="normal"
        ),
        legend=alt.LegendConfig(
            orient="bottom", columns=6, labelFontSize=12, labelLimit=300, symbolSize=300, titleOrient="left"
        ),
    )
    return figure
