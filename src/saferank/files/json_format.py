"""JSON files of ours: each tells its format and version, so that no other is taken for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from saferank.engine.errors import DataError

Kind = TypeVar("Kind")


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
            told = f"has version {values.get('version')}, but this saferank reads {self.version}; {self.again}."
            raise DataError(told, file=file)
        return values

    def read_as(self, file: Path, kind: type[Kind]) -> Kind:
        """Return the file as this dataclass; a `DataError` if a field is missing or of another type."""
        from pydantic import TypeAdapter, ValidationError

        values = self.read(file)
        try:
            return TypeAdapter(kind).validate_python(values)
        except ValidationError as error:
            wrong = error.errors()[0]
            field = ".".join(str(place) for place in wrong["loc"])
            raise DataError(f"field {field}: {wrong['msg']}; {self.again}.", file=file) from error
