"""When to stop, and which epoch to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass
class EarlyStopping:
    """Keeps the epoch with the highest validation value; stops after `patience` epochs without a higher one."""

    patience: int
    best_value: float = -math.inf
    best_epoch: int = 0
    best: dict[str, Any] = field(default_factory=dict)

    def update(self, epoch: int, value: float, parameters: dict[str, Any]) -> bool:
        """Note an epoch's validation value; return whether to stop."""
        if value > self.best_value:
            self.best_value, self.best_epoch = value, epoch
            self.best = {name: tensor.detach().clone() for name, tensor in parameters.items()}
        return epoch - self.best_epoch >= self.patience
