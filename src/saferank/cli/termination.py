"""Clean-up on SIGTERM, which schedulers and containers send, as on Ctrl-C: files are complete or unchanged."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit codes after Ctrl-C and after SIGTERM, as shells have them."""
USUAL: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


@contextmanager
def end_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the block by an exception, so that every clean-up runs, and with their exit codes.

    By default SIGTERM stops a process without any clean-up; and a database that is interrupted in a query raises an
    error of its own, which would pass for one of the data. A signal that is ignored or has a handler already is left
    alone, and so are all of them outside the main thread.
    """
    received: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        received.append(128 + number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not end the clean-up
        sys.exit(TERMINATED)

    here = threading.current_thread() is threading.main_thread()
    ours = [number for number, usual in USUAL.items() if here and signal.getsignal(number) == usual]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    except Exception:
        if received:
            sys.exit(received[0])
        raise
    finally:
        for number in ours:
            signal.signal(number, USUAL[number])
