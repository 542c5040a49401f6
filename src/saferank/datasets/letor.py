"""Reader of LETOR text (also called SVMlight or LibSVM with query ids): one document per line.

    2 qid:10 1:0.3 2:7 5:-1.25 # GX008-86-4444840

is label, query, features that are not 0, and a comment with the document's id.
"""

import bz2
import gzip
import lzma
import mmap
import os
import re
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.datasets.cache import Arrays, cached_arrays
from saferank.datasets.letor_line import parse_line
from saferank.datasets.letor_parser import count_documents, parse_lines
from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import offsets_of
from saferank.engine.types.ranking_data import RankingData

COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
Text = bytes | mmap.mmap

_FORMAT = 1  # of the cached arrays: raise it when what the parser makes of a file changes
_CHUNK = 1 << 20
_DOCUMENT = re.compile(rb"#[^\S\n]*(?:docid[^\S\n]*=[^\S\n]*)?(\S*)")


def read_letor(path: str | Path, *, features: int | None = None, cache: bool = True) -> RankingData:
    """Read a LETOR file, plain or compressed (.gz, .bz2, .xz).

    Features absent from a line are 0; `features` says how many there are, by default as many as the largest id in the
    file. Values are the float32 nearest to the double nearest to the text. Lines of one query must be adjacent. If no
    line has a `qid:`, `PATH.query` or `PATH.group` beside the file must say how many lines each query has (LightGBM's
    convention), and queries are then called 1, 2, ...

    The document id is the word after `docid =` in the comment, or else the comment's first word; a line without a
    comment gets an empty one, and `document_ids` is None if no line has any. With `cache`, a second read of the same
    content is a memory map (see `saferank.datasets.cache`).
    """
    path = Path(path)
    if features is not None and features < 1:
        raise UsageError(f"features={features}: a file has at least one feature; leave it out to count them.")
    if path.is_dir():
        raise DataError("is a folder; name a file in it, or use read_letor_folder.", file=path)
    if not path.is_file():
        raise DataError("there is no such file; check the path.", file=path)
    beside = [side for side in (Path(f"{path}.query"), Path(f"{path}.group")) if side.is_file()][:1]

    def make() -> Arrays:
        return _parse(path, beside[0] if beside else None, features)

    kind = f"letor-{_FORMAT}-{features or 'all'}"
    arrays = cached_arrays(kind, [path, *beside], make) if cache else make()
    return RankingData(
        **arrays,  # type: ignore[arg-type]
        feature_names=tuple(str(feature + 1) for feature in range(arrays["features"].shape[1])),
        source=str(path),
        check_finite=False,  # the parser lets nothing else through, and a check would read the whole map
    )


def _parse(path: Path, beside: Path | None, most: int | None) -> Arrays:
    """Parse in two passes over chunks of whole lines, on all cores: count, then fill arrays of that size."""
    text = _read_text(path)
    data, chunks = np.frombuffer(text, np.uint8), _chunks(text)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        counts = list(threads.map(lambda chunk: count_documents(data, *chunk), chunks))
        documents = offsets_of([count for count, _ in counts])
        if documents[-1] == 0:
            raise DataError("no line has data; expected lines such as '2 qid:1 1:0.3 2:7'.", file=path)
        features = np.zeros((documents[-1], most or max(largest for _, largest in counts)), np.float32)
        labels = np.empty(documents[-1], np.float32)
        places = np.empty((documents[-1], 3), np.int64)

        def fill(chunk: tuple[int, int], document: int) -> None:
            at, end = chunk
            while True:
                at, document = parse_lines(data, at, end, document, features, labels, places)
                if at == end:
                    return
                line_end = text.find(b"\n", at)
                try:
                    labels[document], place, values = parse_line(text[at:line_end], most)
                except ValueError as error:
                    raise DataError(str(error), file=path, line=_line_number(text, at)) from None
                features[document, [feature - 1 for feature in values]] = [*values.values()]
                places[document] = np.add(place, at)
                at, document = line_end + 1, document + 1

        list(threads.map(fill, chunks, documents[:-1].tolist()))
    if features.shape[1] == 0:
        raise DataError("no line has a feature; expected lines such as '2 qid:1 1:0.3 2:7'.", file=path)
    offsets, query_ids = _queries(text, places, path, beside)
    arrays: Arrays = {"features": features, "offsets": offsets, "labels": labels, "query_ids": query_ids}
    if (data[places[:, 2]] == ord("#")).any():
        comments = (_DOCUMENT.match(text, at) for at in places[:, 2].tolist())
        document_ids = [_decoded(comment[1]) if comment else "" for comment in comments]
        if any(document_ids):
            arrays["document_ids"] = np.array(document_ids)
    for array in arrays.values():
        array.flags.writeable = False  # as they will be when they come from the cache
    return arrays


def _read_text(path: Path) -> Text:
    """Return the file's text, with a newline at its end; a map of the file if it can be."""
    try:
        with COMPRESSED.get(path.suffix, open)(path, "rb") as file:
            mapped = path.suffix not in COMPRESSED and path.stat().st_size
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped else file.read()
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise DataError(f"cannot be read ({error}); fetch or compress it again.", file=path) from error
    if text[:3] == b"\xef\xbb\xbf":  # a byte order mark
        text = text[3:]
    return text if text[-1:] == b"\n" else text[:] + b"\n"


def _chunks(text: Text) -> list[tuple[int, int]]:
    """Return the bounds of chunks of about 1 MB that end where a line ends."""
    ends = [0]
    while ends[-1] < len(text):
        ends.append(text.find(b"\n", min(ends[-1] + _CHUNK, len(text)) - 1) + 1)
    return list(pairwise(ends))


def _queries(
    text: Text, places: NDArray[np.int64], path: Path, beside: Path | None
) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Return where each query begins, and its id."""
    absent = places[:, 0] == places[:, 1]
    if absent.all() and beside is not None:
        return _queries_beside(beside, len(places), path)
    if absent.any():
        remedy = "write it after the label, as in '2 qid:7 1:0.3'"
        if absent.all():
            remedy += f", or put the number of lines of each query into {path.name}.query"
        line = _line_number(text, places[np.argmax(absent), 0])
        raise DataError(f"has no query id; {remedy}.", file=path, line=line)
    data, (begin, end, _) = np.frombuffer(text, np.uint8), places.T
    same = np.diff(end - begin) == 0  # as the document before; then byte by byte
    for place in range(np.max(end - begin)):
        byte = data[np.minimum(begin + place, end - 1)]
        same &= byte[1:] == byte[:-1]
    starts = np.append(0, np.flatnonzero(~same) + 1)
    ids = np.array([_decoded(text[place[0] : place[1]]) for place in places[starts].tolist()])
    again = np.setdiff1d(np.arange(len(starts)), np.unique(ids, return_index=True)[1])
    if len(again):
        message = f"query {ids[again[0]]} appears again after another query; sort the lines by query."
        raise DataError(message, file=path, line=_line_number(text, begin[starts[again[0]]]))
    return np.append(starts, len(places)), ids


def _queries_beside(beside: Path, documents: int, path: Path) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Read the number of documents of each query, one per line, from a side file."""
    sizes = []
    for number, text in enumerate(beside.read_text().splitlines(), start=1):
        if text.strip():
            if not (text.strip().isdecimal() and int(text) > 0):
                message = f"got {text.strip()!r}, but expected how many lines a query has, 1 or more."
                raise DataError(message, file=beside, line=number)
            sizes.append(int(text))
    if sum(sizes) != documents:
        message = f"sizes add up to {sum(sizes)}, but {path.name} has {documents} documents; make them agree."
        raise DataError(message, file=beside)
    return offsets_of(sizes), np.array([str(query + 1) for query in range(len(sizes))])


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _line_number(text: Text, at: int) -> int:
    return text[:at].count(b"\n") + 1
