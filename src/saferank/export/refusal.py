"""What a format cannot hold."""

from typing import Literal

from saferank.engine.errors import UsageError

Reason = Literal["scaling", "log1p", "missing", "indicators", "start", "scorer", "no trees"]


class CannotExport(UsageError):
    """A policy that a format cannot hold: scores would differ. Says why, and what to do instead."""

    def __init__(self, to: str, reason: Reason, message: str) -> None:
        self.to = to
        self.reason = reason
        super().__init__(f"--to {to}: {message}")
