"""The compiled parser of LETOR text: it fills in the lines that are plain, and stops at any other.

A line is plain if it is well formed, its feature ids ascend, and the float32 nearest to each of its numbers is certain
without arithmetic on more than 64 bits. The rest, a malformed line or a number within a hair of the middle between two
float32, is for `letor_line`, which takes the time to be exact or to say what is wrong.

All functions take the bytes of a whole file, of which the last must be a newline: that spares every loop a check for
the end.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

_F = TypeVar("_F", bound=Callable[..., Any])

jit = cast(Callable[[_F], _F], numba.njit(cache=True, nogil=True, error_model="numpy"))
"""Not `saferank.engine.jit`: that lets a division become a product with the reciprocal, which rounds otherwise."""

MOST_FEATURES = 1 << 20
"""Feature ids above this are taken for a mistake: the table of features is dense."""

_NEWLINE, _HASH, _PLUS, _MINUS, _POINT, _COLON = b"\n#+-.:"
_LARGEST_POWER = 300
_POWERS_OF_TEN = np.array([float(f"1e{power}") for power in range(-_LARGEST_POWER, _LARGEST_POWER + 1)])
_SLACK = 2.0**-50  # five roundings to double, each within 2**-53 of the truth


@jit
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@jit
def _ends_token(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13 or byte == _HASH


@jit
def _skip_spaces(data: NDArray[np.uint8], at: int) -> int:
    while data[at] == 32 or (9 <= data[at] <= 13 and data[at] != _NEWLINE):
        at += 1
    return at


@jit
def _skip_line(data: NDArray[np.uint8], at: int) -> int:
    while data[at] != _NEWLINE:
        at += 1
    return at + 1


@jit
def _number(data: NDArray[np.uint8], at: int) -> tuple[np.float32, int]:
    """Return the number that starts here, and where it ends; or -1 for that if it is not plain."""
    not_plain = np.float32(0.0), -1
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    mantissa, exponent, digits, decimals = np.int64(0), 0, 0, 0
    while _is_digit(data[at]) or (data[at] == _POINT and not decimals):
        if data[at] == _POINT:
            decimals = 1
        elif mantissa < 900_000_000_000_000_000:
            mantissa = mantissa * 10 + (data[at] - 48)
            exponent -= decimals
            digits += 1
        else:  # further digits matter less than the slack
            exponent += 1 - decimals
        at += 1
    if data[at] == 101 or data[at] == 69:  # e, E
        at += 1
        minus = data[at] == _MINUS
        if minus or data[at] == _PLUS:
            at += 1
        start, power = at, 0
        while _is_digit(data[at]) and power < 10_000:
            power = power * 10 + (data[at] - 48)
            at += 1
        if at == start:
            return not_plain
        exponent += -power if minus else power
    if not digits or not _ends_token(data[at]) or not -_LARGEST_POWER <= exponent <= _LARGEST_POWER:
        return not_plain
    if mantissa < 1 << 53 and -22 <= exponent < 0:  # both operands are exact doubles, so the one operation is rounded
        value = np.float32(mantissa / _POWERS_OF_TEN[_LARGEST_POWER - exponent])
    elif mantissa < 1 << 53 and 0 <= exponent <= 22:
        value = np.float32(mantissa * _POWERS_OF_TEN[_LARGEST_POWER + exponent])
    else:  # the correctly rounded double is within these bounds; mostly they round to one and the same float32
        near = mantissa * _POWERS_OF_TEN[_LARGEST_POWER + exponent]
        value = np.float32(near * (1.0 - _SLACK))
        if value != np.float32(near * (1.0 + _SLACK)):
            return not_plain
    return (-value if negative else value, at) if value < np.inf else not_plain


@jit
def count_documents(data: NDArray[np.uint8], start: int, end: int) -> tuple[int, int]:
    """Return how many of the lines in `data[start:end]` have data, and the largest feature id there."""
    documents, largest, at = 0, 0, start
    while at < end:
        at = _skip_spaces(data, at)
        documents += data[at] != _NEWLINE and data[at] != _HASH
        while data[at] != _NEWLINE and data[at] != _HASH:
            feature = 0
            while _is_digit(data[at]) and feature <= MOST_FEATURES:
                feature = feature * 10 + (data[at] - 48)
                at += 1
            if data[at] == _COLON and largest < feature <= MOST_FEATURES:
                largest = feature
            while not _ends_token(data[at]):
                at += 1
            at = _skip_spaces(data, at)
        at = _skip_line(data, at)
    return documents, largest


@jit
def parse_lines(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    document: int,
    features: NDArray[np.float32],
    labels: NDArray[np.float32],
    places: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill in the documents on the lines of `data[at:end]`; `document` is the row that the first one gets.

    `places` are where the query id begins and ends, and where the features end. Returns the position of the first line
    that is not plain, or `end`, and the next document.
    """
    while at < end:
        line = at
        at = _skip_spaces(data, at)
        if data[at] == _NEWLINE or data[at] == _HASH:
            at = _skip_line(data, at)
            continue
        labels[document], at = _number(data, at)
        if at < 0:
            return line, document
        at = _skip_spaces(data, at)
        query = at
        if data[at] == 113 and data[at + 1] == 105 and data[at + 2] == 100 and data[at + 3] == _COLON:  # qid:
            query = at = at + 4
            while not _ends_token(data[at]):
                at += 1
            if at == query:
                return line, document
        places[document, 0], places[document, 1] = query, at
        at = _skip_spaces(data, at)
        previous = 0
        while data[at] != _NEWLINE and data[at] != _HASH:
            feature = 0
            while _is_digit(data[at]) and feature <= features.shape[1]:
                feature = feature * 10 + (data[at] - 48)
                at += 1
            if data[at] != _COLON or not previous < feature <= features.shape[1]:
                return line, document
            features[document, feature - 1], at = _number(data, at + 1)
            if at < 0:
                return line, document
            at = _skip_spaces(data, at)
            previous = feature
        places[document, 2] = at
        document += 1
        at = _skip_line(data, at)
    return at, document
