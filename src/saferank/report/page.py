"""Pages from the templates beside this file: text is escaped, and a page is one file without script or network."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from saferank import __version__
from saferank.doctor.health import NO_VERDICT
from saferank.files.atomic_write import whole_file


def render(template: str, **values: Any) -> str:
    """The page that a template makes of the values."""
    return _environment().get_template(template).render(**values)


def write_page(text: str, path: str | Path) -> None:
    """Write the page atomically."""
    with whole_file(Path(path)) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def formatted(value: float | None, spec: str) -> str:
    """The number by a format specification of Python; None, NaN and infinity are unknown."""
    return "unknown" if value is None or not math.isfinite(value) else format(value, spec)


def signed(value: float | None) -> str:
    """A difference in clicks per interaction."""
    return formatted(value, "+.5f")


def code(text: str) -> Markup:
    """The text escaped, with what stands between backticks as code."""
    pieces = (escape(piece) for piece in text.split("`"))
    return Markup().join(Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(pieces))


def capitalised(text: str) -> str:
    """The text with its first letter in upper case and the rest as it is."""
    return text[:1].upper() + text[1:]


def indented(value: Any) -> str:
    """The value as JSON that can be read."""
    return json.dumps(value, indent=2)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("saferank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    environment.filters |= {
        function.__name__: function for function in (formatted, signed, code, capitalised, indented)
    }
    environment.globals |= {"version": __version__, "no_verdict": NO_VERDICT}
    return environment
