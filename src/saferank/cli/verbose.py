"""--verbose: the steps that the library logs, with their times. Nothing else configures logging."""

import logging
import sys

NAME = "saferank"


class _Stderr(logging.Handler):
    """Writes to the current standard error, which a progress bar replaces so that lines do not break it."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


def show_steps() -> logging.Handler:
    """Show what is logged as `saferank` on standard error; return the handler that does."""
    handler, logger = _Stderr(), logging.getLogger(NAME)
    handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    return handler


def hide_steps(handler: logging.Handler) -> None:
    """Undo `show_steps`."""
    logger = logging.getLogger(NAME)
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
