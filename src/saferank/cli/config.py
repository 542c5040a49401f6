"""`saferank.toml`: columns, paths and settings, stated once for all commands.

A table per command has its options by their long names, and its arguments in lower case (`[fit] out = "model"`).
`[common]` holds for every command that has such an option, and `[columns]` is what --column says. The command line
wins.
"""

from __future__ import annotations

import difflib
import glob
import inspect
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from saferank.engine.errors import UsageError

FILE, VARIABLE = "saferank.toml", "SAFERANK_CONFIG"
COLUMNS, COMMON = "columns", "common"
OWN = ("json", "out")
"""Options that mean another thing for each command, so not one for all of them."""
PATHS = ("candidate", "candidates", "data", "earlier", "features", "log", "model")
"""Options that are text, because not all they take is a path, but whose paths are relative to the file too."""
LISTS = ("categorical", "examination", "feature-columns", "ignore", "methods")
"""Options that take a list separated by commas, which may be a list in the file."""
NUMBERS = ("interactions", "missing", "most-cost")
"""Options that are text, because not all they take is a number."""
KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    list: "a list of texts",
}


class ConfigError(UsageError):
    """A configuration that cannot be used. Names the file and the key, as `table.key`, and the nearest known one."""

    def __init__(self, message: str, *, file: Path, key: str | None = None, nearest: str | None = None) -> None:
        self.file, self.key, self.nearest = file, key, nearest
        meant = "" if nearest is None else f" Did you mean {nearest}?"
        super().__init__(f"{file}{'' if key is None else f', {key}'}: {message}{meant}")


@dataclass(frozen=True)
class Option:
    """An option or an argument of a command."""

    parameter: str
    """Its name in Python."""
    names: tuple[str, ...]
    """Its long names, the usual one first."""
    kind: type
    """One of KINDS."""
    choices: tuple[str, ...] = ()
    is_path: bool = False

    @property
    def name(self) -> str:
        """The usual name."""
        return self.names[0]


@dataclass(frozen=True)
class Config:
    """What a file says."""

    file: Path | None = None
    columns: dict[str, str] = field(default_factory=dict)
    """Our name -> theirs."""
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Command -> parameter -> value: what Click knows as a default map."""
    common: dict[str, frozenset[str]] = field(default_factory=dict)
    """Command -> the parameters whose values are from `[common]`."""


def find_config(given: Path | None) -> Path | None:
    """Return the file that was named, else `saferank.toml` of the working folder if there is one."""
    usual = Path(FILE)
    return given if given is not None else usual if usual.is_file() else None


def command_options(command: Any) -> tuple[Option, ...]:
    """Return the options and arguments of a Click command, in its order."""
    hints = get_type_hints(inspect.unwrap(command.callback))
    return tuple(_option(one, hints[one.name]) for one in command.params if one.name in hints)


def read_config(file: Path, commands: Mapping[str, Any]) -> Config:
    """Return what the file says, checked against the options of all commands, which are Click's, by name."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError("there is no such file; check the path.", file=file) from error
    except ValueError as error:  # not TOML, or not text
        raise ConfigError(f"is not TOML ({error}).", file=file) from error
    options = {name: command_options(command) for name, command in commands.items()}
    columns: dict[str, str] = {}
    values: dict[str, dict[str, Any]] = {name: {} for name in commands}
    common: dict[str, set[str]] = {name: set() for name in commands}
    for table in sorted(tables, key=lambda name: name != COMMON):  # a command's own table wins
        content = tables[table]
        if not isinstance(content, dict):
            raise ConfigError(f"is not in a table; write it below [{COMMON}] or a command.", file=file, key=table)
        if table == COLUMNS:
            for ours, theirs in content.items():
                columns[ours] = _checked(theirs, Option(ours, (ours,), str), file, f"{table}.{ours}")
            continue
        if table not in (COMMON, *commands):
            raise _unknown("is not a table that saferank knows.", table, (COLUMNS, COMMON, *commands), file=file)
        for key, value in content.items():
            name = key.replace("_", "-")
            found = _find(options, table, name)
            if not found:
                known = _common_names(options) if table == COMMON else [one for o in options[table] for one in o.names]
                why = "is not an option that commands share." if table == COMMON else f"is not an option of {table}."
                if table == COMMON and name in OWN:
                    why = "differs between commands; write it below the command."
                    known = []
                raise _unknown(why, name, known, file=file, prefix=f"{table}.", key=f"{table}.{key}")
            for command, option in found.items():
                values[command][option.parameter] = _checked(value, option, file, f"{table}.{key}")
                (common[command].add if table == COMMON else common[command].discard)(option.parameter)
    return Config(file, columns, values, {name: frozenset(of) for name, of in common.items()})


def use_config(context: typer.Context, given: Path | None) -> None:
    """Let the commands below this context take from the file what the command line does not say."""
    file = find_config(given)
    if file is not None:
        context.obj = config = read_config(file, context.command.commands)  # type: ignore[attr-defined]
        context.default_map = config.values


def unless_common(context: typer.Context, **values: Any) -> list[Any]:
    """Return the values in their order, None for those of `[common]`, which are left out where they do not apply."""
    common = context.obj.common.get(context.info_name or "", ()) if isinstance(context.obj, Config) else ()
    left_out = [name for name in values if name in common and not on_command_line(context, name)]
    return [None if name in left_out else value for name, value in values.items()]


def on_command_line(context: typer.Context, parameter: str) -> bool:
    """Whether the value was given on the command line."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def with_columns(context: typer.Context, pairs: list[str] | None) -> list[str] | None:
    """Return what --column says after what `[columns]` says of other columns."""
    config = context.obj
    if not isinstance(config, Config) or not config.columns:
        return pairs
    said = {pair.partition("=")[0].strip() for pair in pairs or ()}
    return [f"{ours}={theirs}" for ours, theirs in config.columns.items() if ours not in said] + list(pairs or ())


def _option(parameter: Any, annotation: Any) -> Option:
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    if parameter.param_type_name == "argument":
        names = [(parameter.metavar or parameter.name).lower().partition("_or_")[0]]
    else:
        names = [word.removeprefix("--") for word in parameter.opts]
    origin = get_origin(annotation)
    if origin is Literal:
        return Option(parameter.name, tuple(names), str, get_args(annotation))
    kind = list if origin is list else str if annotation is Path else annotation
    return Option(parameter.name, tuple(names), kind, is_path=annotation is Path or names[0] in PATHS)


def _common_names(options: Mapping[str, Iterable[Option]]) -> list[str]:
    return sorted({option.name for those in options.values() for option in those} - set(OWN))


def _find(options: Mapping[str, Iterable[Option]], table: str, name: str) -> dict[str, Option]:
    """Return command -> the option of this name; in `[common]`, by the usual name only."""
    if table == COMMON:
        every = [] if name in OWN else options.items()
        return {command: one for command, those in every for one in those if one.name == name}
    own = next((one for one in options[table] if name in one.names), None)
    return {} if own is None else {table: own}


def _unknown(
    why: str, name: str, known: Iterable[str], *, file: Path, prefix: str = "", key: str | None = None
) -> ConfigError:
    nearest = next(iter(difflib.get_close_matches(name, list(known), 1)), None)
    return ConfigError(why, file=file, key=key or name, nearest=None if nearest is None else prefix + nearest)


def _checked(value: Any, option: Option, file: Path, key: str) -> Any:
    """Return the value as Click takes it; one of another type is an error."""
    if option.kind is str and option.name in LISTS and isinstance(value, list):
        value = ",".join(str(one) for one in value)
    if option.kind is str and option.name in NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if option.kind is list and isinstance(value, str):
        value = [value]
    allowed = (int, float) if option.kind is float else option.kind
    right = isinstance(value, allowed) and (option.kind is bool or not isinstance(value, bool))
    if not right or (isinstance(value, list) and not all(isinstance(one, str) for one in value)):
        raise ConfigError(f"is {value!r}, but must be {KINDS[option.kind]}.", file=file, key=key)
    if option.choices and value not in option.choices:
        raise _not_a_choice(value, option, file, key)
    if not option.is_path:
        return value
    return [_beside(one, file) for one in value] if isinstance(value, list) else _beside(value, file)


def _not_a_choice(value: str, option: Option, file: Path, key: str) -> ConfigError:
    nearest = next(iter(difflib.get_close_matches(value, option.choices, 1)), None)
    return ConfigError(
        f"is {value!r}, but must be one of {', '.join(option.choices)}.", file=file, key=key, nearest=nearest
    )


def _beside(path: str, file: Path) -> str:
    """Return a path, relative to the file, as one from here; the name of a data set or a server stays as it is."""
    scheme, found, rest = path.rpartition("duckdb://")
    folder = file.parent
    if folder == Path() or rest.startswith("synthetic:") or "://" in rest or rest == "-":
        return path
    base = glob.escape(str(folder)) if glob.has_magic(rest) else str(folder)
    return scheme + found + str(Path(base) / rest)
