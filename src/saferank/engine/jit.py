"""The one way in which this package compiles loops: Numba, without the GIL, cached on disk."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., Any])

# Sums may be reordered (so that they vectorise), but NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "arcp", "nsz"}

jit = cast(Callable[[_F], _F], numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy"))
"""Compile to machine code on first call; releases the GIL, so that a thread pool runs it in parallel."""
