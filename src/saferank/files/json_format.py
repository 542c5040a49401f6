"""JSON files of ours: each states its format and version, so that no other is taken for it, and old ones are read."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from saferank import __version__
from saferank.engine.errors import DataError

T = TypeVar("T")


class NewerVersion(DataError):
    """A file of a later version of its format than this saferank reads."""


@dataclass(frozen=True)
class FileFormat:
    """A kind of JSON file, by the command that writes it.

    The version rises when an older saferank would misread the file, with a step that upgrades what was written before.
    A field that readers may ignore, or that has a default, needs neither.
    """

    name: str
    version: int
    command: str
    """After `saferank`."""
    again: str
    """What to do about a broken one."""
    upgrades: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = ()
    """From version 1 to 2, from 2 to 3, ...: what the file would hold if it had been written in the next version."""

    def __post_init__(self) -> None:
        if len(self.upgrades) != self.version - 1:
            raise ValueError(f"{self.name}: version {self.version} has {len(self.upgrades)} steps of upgrade.")

    def marked(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return what is to be written, with the format and version before it."""
        return {"format": self.name, "version": self.version} | values

    def is_of(self, file: Path) -> bool:
        """Whether the file has this format, in any version."""
        try:
            values = json.loads(file.read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(values, dict) and values.get("format") == self.name

    def read(self, file: Path) -> dict[str, Any]:
        """Return the content of the file, upgraded from earlier versions; raise a `DataError` if it is not ours."""
        try:
            values = json.loads(file.read_bytes())
        except FileNotFoundError as error:
            message = f"there is no such file; check the path. `saferank {self.command}` writes one."
            raise DataError(message, file=file) from error
        except ValueError as error:
            raise DataError(f"is not JSON ({error}); {self.again}.", file=file) from error
        if not isinstance(values, dict) or values.get("format") != self.name:
            raise DataError(f"was not written by `saferank {self.command}`; check the path.", file=file)
        version = values.get("version")
        if not isinstance(version, int) or not 1 <= version <= self.version:
            if isinstance(version, int) and version > self.version:
                newer = f"saferank {values['saferank']}" if "saferank" in values else "a newer saferank"
                have = f"this is {__version__}, which reads up to version {self.version}"
                message = f"has version {version} and needs {newer} or newer; {have}. Run `pip install -U saferank`."
                raise NewerVersion(message, file=file)
            raise DataError(f"has version {version}, which does not exist; {self.again}.", file=file)
        for upgrade in self.upgrades[version - 1 :]:
            try:
                values = upgrade(values)
            except (KeyError, TypeError) as error:
                message = f"has version {version}, but not the fields of that version ({error!r}); {self.again}."
                raise DataError(message, file=file) from error
        values["version"] = self.version
        return dict(values)

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
