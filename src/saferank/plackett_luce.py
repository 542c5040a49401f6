"""Plackett-Luce policies: the engine's functions of scores, under their public name."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saferank.engine.plackett_luce import *  # noqa: F403
else:
    from saferank.engine.plackett_luce import __all__, __dir__, __getattr__  # noqa: F401
