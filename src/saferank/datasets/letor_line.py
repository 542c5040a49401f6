"""One LETOR line in plain Python: exact to the last bit, and with a message for whatever is wrong."""

import re

import numpy as np

from saferank.datasets.letor_parser import MOST_FEATURES

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def parse_line(line: bytes, most: int | None) -> tuple[float, tuple[int, int, int], dict[int, float]]:
    """Read a line `label qid:1 1:0.3 ...` with feature ids up to `most`; a ValueError says what is wrong.

    Returns the label, where in the line the query id begins and ends (alike if there is none) and the features end,
    and the features.
    """
    end = line.find(b"#") if b"#" in line else len(line)
    label, *tokens = re.finditer(rb"\S+", line[:end])
    value, query = _number(label[0], "label"), (label.end(), label.end())
    if tokens and tokens[0][0].startswith(b"qid:"):
        query = (tokens[0].start() + 4, tokens[0].end())
        if query[0] == query[1]:
            raise ValueError("got 'qid:' with nothing after it; write the query id there, as in qid:7.")
        tokens = tokens[1:]
    features: dict[int, float] = {}
    for token in tokens:
        feature, number = _feature(token[0], most)
        if feature in features:
            raise ValueError(f"feature id {feature} appears twice; keep one of them.")
        features[feature] = number
    return value, (*query, end), features


def _feature(token: bytes, most: int | None) -> tuple[int, float]:
    got = f"got {_text(token)!r}"
    name, _, number = token.partition(b":")
    if name == b"qid":
        raise ValueError(f"{got} after the features; the query id belongs right after the label.")
    if not name or not number:
        raise ValueError(f"{got} where id:value is expected, as in 3:0.25.")
    if not re.fullmatch(rb"\d+", name):
        raise ValueError(f"{got}, but a feature id must be a whole number, as in 3:0.25.")
    feature = int(name) if len(name) < 20 else MOST_FEATURES + 1
    if feature == 0:
        raise ValueError(f"{got}, but feature ids count from 1; add 1 to every feature id.")
    if most is not None and feature > most:
        raise ValueError(f"{got}, but ids up to {most} were asked for; raise `features`, or drop it.")
    if feature > MOST_FEATURES:
        raise ValueError(f"{got}, but ids may go up to {MOST_FEATURES}; number the features from 1 on.")
    return feature, _number(number, f"value of feature {feature}")


def _number(token: bytes, what: str) -> float:
    got = f"got {_text(token)!r} as {what}"
    if _NOT_FINITE.fullmatch(token):
        raise ValueError(f"{got}, but it must be finite; fill or drop it first.")
    if not _NUMBER.fullmatch(token):
        raise ValueError(f"{got}, but it must be a number.")
    with np.errstate(over="ignore"):
        if np.isinf(np.float32(float(token))):
            raise ValueError(f"{got}, which is too large for float32; scale it down first.")
    return float(token)


def _text(token: bytes) -> str:
    return token.decode("utf-8", "backslashreplace")
