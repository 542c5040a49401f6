"""JSON files of ours: each states its format and version, so that no other is taken for it."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from saferank.engine.errors import DataError

T = TypeVar("T")


@dataclass(frozen=True)
class FileFormat:
    """A kind of JSON file, by the command that writes it."""

    name: str
    version: int
    command: str
    """After `saferank`."""
    again: str
    """What to do about a broken one."""

    def marked(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return what is to be written, with the format and version before it."""
        return {"format": self.name, "version": self.version} | values

    def is_of(self, file: Path) -> bool:
        """Whether the file is of this format, of whatever version."""
        try:
            values = json.loads(file.read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(values, dict) and values.get("format") == self.name

    def read(self, file: Path) -> dict[str, Any]:
        """Return all that the file holds; a `DataError` if it is not of this format and version."""
        try:
            values = json.loads(file.read_bytes())
        except FileNotFoundError as error:
            message = f"there is no such file, and `saferank {self.command}` writes one; check the path."
            raise DataError(message, file=file) from error
        except ValueError as error:
            raise DataError(f"is not JSON ({error}); {self.again}.", file=file) from error
        if not isinstance(values, dict) or values.get("format") != self.name:
            raise DataError(f"was not written by `saferank {self.command}`; check the path.", file=file)
        if values.get("version") != self.version:
            message = f"has version {values.get('version')}, but this saferank reads {self.version}; {self.again}."
            raise DataError(message, file=file)
        return values

    def read_as(self, file: Path, kind: type[T]) -> T:
        """Return what the file holds as a `kind`, a dataclass whose annotations are checked.

        Further fields are ignored. A `DataError` names the field that is missing or wrong as its `column`.
        """
        values = self.read(file)
        try:
            return checked_json(kind, json.dumps(values))
        except FieldError as error:
            raise DataError(f"{error.reason}; {self.again}.", file=file, column=error.field) from error


class FieldError(ValueError):
    """A field of JSON, named with dots if it is nested, that is missing or has a value of another type."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


def checked_json(kind: type[T], text: str) -> T:
    """Return JSON as a `kind`, with tuples for lists where it has tuples; a wrong field is a `FieldError`."""
    from pydantic import TypeAdapter, ValidationError  # a fifth of a second, so only where it is needed

    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise FieldError(".".join(str(place) for place in first["loc"]), first["msg"]) from error


def finite(values: Any) -> Any:
    """Return the same with null for numbers that JSON does not have: NaN and infinities, at any depth.

    >>> finite({"bound": float("-inf"), "rows": (1.5, float("nan"))})
    {'bound': None, 'rows': [1.5, None]}
    """
    if isinstance(values, dict):
        return {name: finite(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
