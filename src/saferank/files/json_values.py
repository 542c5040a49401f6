"""What JSON does not have."""

import math
from typing import Any


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
