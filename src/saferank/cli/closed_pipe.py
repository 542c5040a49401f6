"""Output that outlives its reader: `saferank certify ... | head` ends with the exit code of the verdict."""

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, TypeGuard


class _Pipe(io.FileIO):
    """A pipe that drops what is written to it once nobody reads it any more."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


@contextmanager
def tolerate_closed_pipes() -> Iterator[None]:
    """Let a command run to its end, and compute its exit code, after the reader of its output has gone.

    By default Python, Click and Rich end with code 1 or 120 then, whatever the command found.
    """
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if _is_pipe(stream):
                stream.flush()
                text = io.TextIOWrapper(
                    io.BufferedWriter(_Pipe(stream.fileno(), "wb", closefd=False)),
                    encoding=stream.encoding,
                    errors=stream.errors,
                    line_buffering=stream.line_buffering or stream.write_through,
                )
                stack.enter_context(redirect(text))
                stack.callback(text.flush)
        yield


def _is_pipe(stream: TextIO | None) -> TypeGuard[io.TextIOWrapper]:
    if not isinstance(stream, io.TextIOWrapper):
        return False
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except OSError:  # a stream that a caller made, in memory
        return False
