"""The compiled parser of LETOR text: it fills in the lines that are plain, and stops at any other.

A line is plain if it is well formed and the float32 nearest to each of its numbers is certain without
arithmetic on more than 64 bits. The rest, a malformed line or a number within a hair of the middle between
two float32, is for `letor_line`, which takes the time to be exact or to say what is wrong.

All functions take the bytes of a whole file, of which the last must be a newline: that spares every loop a
check for the end.
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

LINE, QUERY_START, QUERY_END, DOCUMENT_START, DOCUMENT_END = range(5)
"""Columns of `places`: where in the bytes a document's line, query id and document id are."""

_NEWLINE, _SPACE, _HASH, _COLON = 10, 32, 35, 58
_LARGEST_POWER = 300
_POWERS_OF_TEN = np.array([float(f"1e{power}") for power in range(-_LARGEST_POWER, _LARGEST_POWER + 1)])
_SLACK = 2.0**-50  # five roundings to double, each within 2**-53 of the truth


@jit
def _is_space(byte: int) -> bool:
    return byte == _SPACE or (9 <= byte <= 13 and byte != _NEWLINE)


@jit
def _ends_token(byte: int) -> bool:
    return 9 <= byte <= 13 or byte in (_SPACE, _HASH)


@jit
def _skip_spaces(data: NDArray[np.uint8], at: int) -> int:
    while _is_space(data[at]):
        at += 1
    return at


@jit
def _skip_token(data: NDArray[np.uint8], at: int) -> int:
    while not _ends_token(data[at]):
        at += 1
    return at


@jit
def _skip_line(data: NDArray[np.uint8], at: int) -> int:
    while data[at] != _NEWLINE:
        at += 1
    return at + 1


@jit
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@jit
def _number(data: NDArray[np.uint8], at: int) -> tuple[np.float32, int]:
    """Return the number that starts here, and where it ends; or -1 for that if it is not plain."""
    negative = data[at] == 45
    if negative or data[at] == 43:
        at += 1
    mantissa = np.int64(0)
    exponent = 0
    exact = True
    start = at
    while _is_digit(data[at]):
        if mantissa < 900_000_000_000_000_000:
            mantissa = mantissa * 10 + (data[at] - 48)
        else:
            exponent += 1
            exact = False
        at += 1
    digits = at - start
    if data[at] == 46:
        at += 1
        start = at
        while _is_digit(data[at]):
            if mantissa < 900_000_000_000_000_000:
                mantissa = mantissa * 10 + (data[at] - 48)
                exponent -= 1
            else:
                exact = False
            at += 1
        digits += at - start
    if digits == 0:
        return np.float32(0.0), -1
    if data[at] == 101 or data[at] == 69:
        at += 1
        minus = data[at] == 45
        if minus or data[at] == 43:
            at += 1
        start = at
        power = 0
        while _is_digit(data[at]) and power < 10_000:
            power = power * 10 + (data[at] - 48)
            at += 1
        if at == start:
            return np.float32(0.0), -1
        exponent += -power if minus else power
    if not _ends_token(data[at]):
        return np.float32(0.0), -1

    if exact and mantissa < 1 << 53 and -22 <= exponent <= 22:
        # Both operands are exact doubles, so the one operation rounds correctly.
        if exponent < 0:
            value = np.float32(mantissa / _POWERS_OF_TEN[_LARGEST_POWER - exponent])
        else:
            value = np.float32(mantissa * _POWERS_OF_TEN[_LARGEST_POWER + exponent])
    elif -_LARGEST_POWER <= exponent <= _LARGEST_POWER:
        # The correctly rounded double is within these bounds; mostly they round to one and the same float32.
        near = mantissa * _POWERS_OF_TEN[_LARGEST_POWER + exponent]
        value = np.float32(near * (1.0 - _SLACK))
        if value != np.float32(near * (1.0 + _SLACK)):
            return np.float32(0.0), -1
    else:
        return np.float32(0.0), -1
    if value == np.inf:
        return np.float32(0.0), -1
    return -value if negative else value, at


@jit
def document_place(data: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return where the document id is in what follows a line's features: `#docid = ID ...` or `#ID ...`."""
    if data[at] != _HASH:
        return at, at
    start = _skip_spaces(data, at + 1)
    word = True
    for offset, letter in enumerate(b"docid"):
        word = word and data[start + offset] == letter
        if not word:
            break
    if word:
        equals = _skip_spaces(data, start + 5)
        if data[equals] == 61:
            start = _skip_spaces(data, equals + 1)
    end = start
    while not _is_space(data[end]) and data[end] != _NEWLINE:
        end += 1
    return start, end


@jit
def count_documents(data: NDArray[np.uint8], start: int, end: int) -> tuple[int, int]:
    """Return how many of the lines in `data[start:end]` have data, and the largest feature id there."""
    documents = 0
    largest = 0
    at = start
    while at < end:
        at = _skip_spaces(data, at)
        if data[at] != _NEWLINE and data[at] != _HASH:
            documents += 1
        while data[at] != _NEWLINE and data[at] != _HASH:
            if data[at] == _COLON:
                feature = 0
                place = 1
                digit = at - 1
                while digit >= start and _is_digit(data[digit]) and place <= MOST_FEATURES:
                    feature += (data[digit] - 48) * place
                    place *= 10
                    digit -= 1
                if digit >= start and _is_space(data[digit]) and largest < feature <= MOST_FEATURES:
                    largest = feature
            at += 1
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
    seen: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill in the documents on the lines of `data[at:end]`; `document` is the row that the first one gets.

    Returns the position of the first line that is not plain, or `end`, and the next document.
    `seen[f]` is the last document that had feature f: a scratch array of this call, -1 at the start.
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
        query_start = query_end = at
        if data[at] == 113 and data[at + 1] == 105 and data[at + 2] == 100 and data[at + 3] == _COLON:
            query_start = at + 4
            query_end = at = _skip_token(data, query_start)
            if query_start == query_end:
                return line, document
        while True:
            at = _skip_spaces(data, at)
            if data[at] == _NEWLINE or data[at] == _HASH:
                break
            feature = 0
            while _is_digit(data[at]) and feature <= features.shape[1]:
                feature = feature * 10 + (data[at] - 48)
                at += 1
            if data[at] != _COLON or feature < 1 or feature > features.shape[1]:
                return line, document
            value, at = _number(data, at + 1)
            if at < 0 or seen[feature - 1] == document:
                return line, document
            seen[feature - 1] = document
            features[document, feature - 1] = value
        places[document, LINE] = line
        places[document, QUERY_START] = query_start
        places[document, QUERY_END] = query_end
        places[document, DOCUMENT_START], places[document, DOCUMENT_END] = document_place(data, at)
        document += 1
        at = _skip_line(data, at)
    return at, document


@jit
def first_documents(data: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of each document whether its query id differs from that of the document before it."""
    first = np.ones(len(places), dtype=np.bool_)
    for document in range(1, len(places)):
        here, end = places[document, QUERY_START], places[document, QUERY_END]
        before = places[document - 1, QUERY_START]
        if end - here == places[document - 1, QUERY_END] - before:
            first[document] = False
            for offset in range(end - here):
                if data[here + offset] != data[before + offset]:
                    first[document] = True
                    break
    return first
