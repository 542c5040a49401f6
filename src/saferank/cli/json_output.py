"""--json, alike in all commands: one object on standard output, and nothing else there."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from saferank.files.json_format import finite

AsJson = Annotated[bool, typer.Option("--json", help="Print only the result, as JSON.")]


def print_json(values: Mapping[str, Any]) -> None:
    """Print an object as strict JSON: what is not finite is null."""
    typer.echo(json_text(values))


def json_text(values: Mapping[str, Any]) -> str:
    """Return an object as strict JSON; dataclasses in it become objects, arrays lists, paths text.

    >>> print(json_text({"out": Path("model"), "bound": float("-inf")}))
    {
      "out": "model",
      "bound": null
    }
    """
    return json.dumps(finite(_plain(values)), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(of) for name, of in value.items()}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else value  # of NumPy: an array or a number
