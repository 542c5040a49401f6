"""Public names that load their module on first use, so that `import saferank` stays quick."""

from collections.abc import Callable, Mapping
from importlib import import_module
from warnings import warn


def lazy_names(
    package: str, home: Mapping[str, str], *, deprecated: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`, given the submodule in which each name lives.

    `deprecated`: names that still work, but warn: the submodule of each, and what to use instead.
    """
    old = deprecated or {}

    def __getattr__(name: str) -> object:
        if name in old:
            module, instead = old[name]
            warn(f"{package}.{name} is deprecated; use {instead}.", DeprecationWarning, stacklevel=2)
        elif name in home:
            module = home[name]
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{package}.{module}"), name)
        except ModuleNotFoundError as error:
            install = (
                f"{error.name} is not installed; run `pip install saferank` (for serving alone, see docs/install.md)"
            )
            raise ModuleNotFoundError(f"{package}.{name}: {install}.", name=error.name) from error

    def __dir__() -> list[str]:
        return sorted(home)

    return __getattr__, __dir__
