"""A chart as SVG to stand in a page: no script, and ink in the colour of the text around it."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt

INK = "currentColor"
BLUE, ORANGE, GREEN, GREY, RED = "#2f8fd8", "#e08214", "#23a36b", "#8a8f98", "#d9534f"
"""Mid-tones that can be read on white and on black."""


def chart_svg(chart: alt.Chart | alt.LayerChart, name: str, label: str = "") -> str:
    """Draw the chart. `name` begins its ids, and must be its own in the page; `label` is for those who cannot see."""
    import vl_convert

    font = "system-ui, sans-serif"
    styled = (
        chart.properties(background="transparent")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK, titleColor=INK, domainColor=INK, tickColor=INK, gridColor=INK, gridOpacity=0.13,
            labelFontSize=12, titleFontSize=12, titleFontWeight="normal", titlePadding=8,
            labelFont=font, titleFont=font,
        )
        .configure_title(color=INK, font=font, fontSize=13, anchor="start")
        .configure_text(font=font)
        .configure_legend(
            labelColor=INK, labelFontSize=12, labelFont=font, labelLimit=220, orient="top", columns=2, columnPadding=16,
            titleColor=INK, titleFont=font, titleFontWeight="normal", symbolType="square", symbolOpacity=1,
        )
    )  # fmt: skip
    svg: str = vl_convert.vegalite_to_svg(styled.to_dict())
    # Ids are the page's, and vl-convert numbers them on from chart to chart: the same chart is to give the same bytes.
    for place, used in enumerate(dict.fromkeys(re.findall(r'id="([^"]+)"', svg))):
        svg = re.sub(rf'(id="|#){re.escape(used)}(?=[")])', rf"\g<1>{name}-{place}", svg)
    described = f' aria-label="{escape(label)}"' if label else ""
    return svg.replace("<svg ", f'<svg role="img"{described} ', 1)
