"""Errors that a caller can catch and a user can act on."""

import re

OPTION = re.compile(
    r"(?<![\w-])--(?P<name>[a-z][a-z0-9-]*)(?:=(?P<given>\S*\w)| (?P<value>\d[\d.]*\b|[A-Z]+\b|\S+=THEIRS|\S+:ACTION|"
    r"\S+(?=: )|\S*[./]\w\S*|(?:auto|drop|hash|indicator|none|time)\b))?"
)
"""An option in a message, with its value if it has one: after `=`, or a word that cannot be part of the sentence."""
FLAGS = ("trust_", "trained_without_", "random_", "rankings")


def in_python(message: str) -> str:
    """Return a message with keywords of Python (`unit=`) in place of options of the command line (`--unit`)."""

    def keyword(option: re.Match[str]) -> str:
        name, value = option["name"].replace("-", "_"), option["given"] or option["value"]
        if name == "column" and value is not None:
            return "columns={'" + value.replace("=", "': '") + "'}"
        if value is None or value.isupper() or value[0].isdigit():
            return f"{name}={value or ('True' if name.startswith(FLAGS) else '')}"
        return f"{name}='{value}'"

    return OPTION.sub(keyword, message).replace("} columns={", ", ")


class SaferankError(Exception):
    """Base of every error that saferank raises on purpose; the command line ends with `exit_code`.

    Where a remedy is an option, `str` names the keyword of Python (`unit=`), and `args[0]` the option (`--unit`).
    """

    exit_code = 1

    def __str__(self) -> str:
        return in_python(super().__str__())


class DataError(SaferankError):
    """Input data that cannot be used. Says where (file, row, column), what is wrong, and the remedy.

    >>> str(DataError("got 0, but positions count from 1.", file="clicks.parquet", row=4, column="position"))
    "clicks.parquet, row 4, column 'position': got 0, but positions count from 1."
    """

    def __init__(
        self,
        message: str,
        *,
        file: object = None,
        row: int | None = None,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        self.file, self.row, self.line, self.column = file, row, line, column
        place = [str(file)] if file is not None else []
        place += [f"{name} {number}" for name, number in (("row", row), ("line", line)) if number is not None]
        place += [f"column '{column}'"] if column is not None else []
        super().__init__(f"{', '.join(place)}: {message}" if place else message)


class UsageError(SaferankError, ValueError):
    """A call that cannot mean anything: an unknown preset, an impossible combination of options."""

    exit_code = 2
