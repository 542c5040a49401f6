"""--json, alike in all commands: one object on standard output, and nothing else there."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from saferank.files.json_format import finite

AsJson = Annotated[bool, typer.Option("--json", help="Print only the result, as JSON.")]


def print_json(values: Mapping[str, Any]) -> None:
    """Print an object as strict JSON: what is not finite is null."""
    typer.echo(json_text(values))


def json_text(values: Mapping[str, Any]) -> str:
    """Return an object as strict JSON; dataclasses in it become objects, arrays lists, paths text.

    >>> from pathlib import Path
    >>> print(json_text({"out": Path("model"), "bound": float("-inf")}))
    {
      "out": "model",
      "bound": null
    }
    """
    from pydantic_core import to_jsonable_python

    plain = to_jsonable_python(values, fallback=lambda value: value.tolist())  # of NumPy: an array or a number
    return json.dumps(finite(plain), indent=2, allow_nan=False)
