"""Errors that a caller can catch and a user can act on."""

import re

OPTION = re.compile(r"`[^`]*`|(?<![^\s(])--([a-z][a-z0-9-]*)(?: (\w+)=(\w+))?")
"""An option in a message, with a name if it has one; or a command, which stays as it is."""


def in_python(message: str) -> str:
    """Return a message with keywords of Python (`on_bad_rows`) in place of options (--on-bad-rows)."""

    def keyword(option: re.Match[str]) -> str:
        if option[1] == "column":
            return f"`columns={{'{option[2]}': '{option[3]}'}}`" if option[2] else "`columns`"
        return f"`{option[1].replace('-', '_')}`" if option[1] else option[0]

    return OPTION.sub(keyword, message).replace("'}` `columns={'", "', '")


class SaferankError(Exception):
    """Base of every error that saferank raises on purpose; the command line ends with `exit_code`.

    Where a remedy is an option, `args[0]` names the option (--on-bad-rows), and `str` the keyword (`on_bad_rows`).
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
