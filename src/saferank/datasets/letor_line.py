"""One LETOR line in plain Python: exact to the last bit, and with a message for whatever is wrong."""

import re
from dataclasses import dataclass

import numpy as np

from saferank.datasets.letor_parser import MOST_FEATURES

_TOKEN = re.compile(rb"[^\s#]+")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class LetorLine:
    """What one line says; places are positions in the line."""

    label: float
    query: tuple[int, int]
    """Where the query id is; empty if there is none."""
    features: dict[int, float]
    end: int
    """Where the data ends: at the comment, or at the end of the line."""


def parse_line(line: bytes, features: int | None) -> LetorLine:
    """Read a line `label qid:1 1:0.3 ...` with ids up to `features`; a ValueError says what is wrong."""
    end = line.find(b"#") if b"#" in line else len(line)
    label, *tokens = _TOKEN.finditer(line, 0, end)
    value = _number(label[0], "label")
    query = (label.end(), label.end())
    if tokens and tokens[0][0].startswith(b"qid:"):
        query = (tokens[0].start() + 4, tokens[0].end())
        if query[0] == query[1]:
            raise ValueError("got 'qid:' with nothing after it; write the query id there, as in qid:7.")
        tokens = tokens[1:]
    values: dict[int, float] = {}
    for token in tokens:
        feature, number = _feature(token[0], features)
        if feature in values:
            raise ValueError(f"feature id {feature} appears twice; keep one of them.")
        values[feature] = number
    return LetorLine(value, query, values, end)


def _feature(token: bytes, features: int | None) -> tuple[int, float]:
    text = token.decode("utf-8", "backslashreplace")
    name, colon, number = token.partition(b":")
    if name == b"qid":
        raise ValueError(f"got {text!r} after the features; the query id belongs right after the label.")
    if not colon or not name or not number:
        raise ValueError(f"got {text!r} where id:value is expected, as in 3:0.25.")
    if not re.fullmatch(rb"\d+", name):
        raise ValueError(f"got {text!r}, but a feature id must be a whole number, as in 3:0.25.")
    feature = int(name) if len(name) < 20 else MOST_FEATURES + 1
    if feature == 0:
        raise ValueError(f"got {text!r}, but feature ids count from 1; add 1 to every feature id.")
    if features is not None and feature > features:
        raise ValueError(f"got {text!r}, but ids up to {features} were asked for; raise `features`, or drop it.")
    if feature > MOST_FEATURES:
        raise ValueError(f"got {text!r}, but ids may go up to {MOST_FEATURES}; number the features from 1 on.")
    return feature, _number(number, f"value of feature {feature}")


def _number(token: bytes, what: str) -> float:
    text = token.decode("utf-8", "backslashreplace")
    if _NOT_FINITE.fullmatch(token):
        raise ValueError(f"got {text!r} as {what}, but it must be finite; fill or drop it first.")
    if not _NUMBER.fullmatch(token):
        raise ValueError(f"got {text!r} as {what}, but it must be a number.")
    value = float(token)
    with np.errstate(over="ignore"):
        too_large = np.isinf(np.float32(value))
    if too_large:
        raise ValueError(f"got {text!r} as {what}, which is too large for float32; scale it down first.")
    return value
