"""--json, alike in all commands: one object on standard output, a result or an error, and nothing else there."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from saferank.engine.errors import SaferankError
from saferank.files.json_format import finite

JSON = "saferank.json"
"""Key in Click's `meta`: whether the result is to be printed as JSON, and so an error too."""
AsJson = Annotated[bool, typer.Option("--json", help="Print only the result, as JSON.")]


def print_json(values: Mapping[str, Any]) -> None:
    """Print an object as strict JSON: what is not finite is null."""
    typer.echo(json_text(values))


def error_values(error: Exception) -> dict[str, Any]:
    """Return an error as values: its kind, message and exit code, and its attributes, such as file, row and column."""
    found = vars(error) if isinstance(error, SaferankError) else {"file": getattr(error, "filename", None)}
    values = {"kind": type(error).__name__, "message": message_of(error), "exit_code": getattr(error, "exit_code", 1)}
    named = {name: one if isinstance(one, int) else str(one) for name, one in found.items() if one is not None}
    return {"error": values | named}


def message_of(error: Exception) -> str:
    """Return what to tell the user."""
    if isinstance(error, OSError):  # a file that cannot be read or written
        return f"{error.filename or 'a file'}: {error.strerror or error}."
    if isinstance(error, SaferankError):
        return str(error.args[0])  # with options, where `str` of the error has keywords of Python
    text: str = getattr(error, "format_message", error.__str__)()  # Click's errors have their own
    return text


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
