"""Charts on the pages of commands: the same marks, data and words are drawn once."""

from collections.abc import Callable
from typing import Any

import altair as alt
from markupsafe import Markup

from saferank.report.chart_style import chart_svg

PAGES = ("doctor_page", "plan_page", "report_charts", "reproduction_page")
"""The modules of `saferank.report` that draw."""


def drawn_once() -> Callable[..., Markup]:
    """Return what does what `chart_svg` does, and remembers it by all that the chart is made of."""
    known: dict[str, Markup] = {}

    def drawn(chart: Any, name: str, label: str, **properties: Any) -> Markup:
        key = repr(_made_of([chart, name, label, properties]))
        if key not in known:
            known[key] = chart_svg(chart, name, label, **properties)
        return known[key]

    return drawn


def _made_of(one: Any) -> Any:
    """Values in lists in place of Altair's objects, whose own text leaves their values out."""
    if isinstance(one, alt.SchemaBase):
        return [type(one).__name__, _made_of(one._args), _made_of(one._kwds)]
    if isinstance(one, dict):
        return [[name, _made_of(value)] for name, value in one.items()]
    if isinstance(one, list | tuple):
        return [_made_of(value) for value in one]
    assert one is None or one is alt.Undefined or isinstance(one, str | int | float), f"{type(one)} may hide its values"
    return one
