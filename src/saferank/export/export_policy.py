"""A policy in the format of another server, written with golden vectors, and replayed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.export import lightgbm_text, ltr_plugin, onnx_graph, solr_json, vespa_expression
from saferank.export.golden import golden_file, golden_vectors, largest_difference, read_golden
from saferank.files.atomic_write import whole_file
from saferank.policy.policy import Policy

TOLERATED = 1e-5
"""Largest relative difference of scores."""


@dataclass(frozen=True)
class Format:
    """How a policy is written for one server, and how that server scores the raw rows of one query."""

    encode: Callable[[Policy, str], bytes]
    """From a policy and the name of the model."""
    scores: Callable[[bytes, NDArray[np.float32], tuple[str, ...]], NDArray[np.float64]]
    """From what `encode` returned, rows and the names of their columns."""


FORMATS = {
    "onnx": Format(onnx_graph.encode, onnx_graph.scores),
    "lightgbm": Format(lambda policy, _: lightgbm_text.encode(policy), lightgbm_text.scores),
    "opensearch": Format(partial(ltr_plugin.encode, to="opensearch"), ltr_plugin.scores),
    "elasticsearch": Format(partial(ltr_plugin.encode, to="elasticsearch"), ltr_plugin.scores),
    "solr": Format(solr_json.encode, solr_json.scores),
    "vespa": Format(lambda policy, _: vespa_expression.encode(policy), vespa_expression.scores),
}


@dataclass(frozen=True)
class Replayed:
    """What replaying golden vectors showed."""

    to: str
    documents: int
    difference: float
    """The largest relative difference, as `largest_difference` measures it."""

    @property
    def same(self) -> bool:
        """Whether the exported model scores as saferank does."""
        return self.difference <= TOLERATED


def export_policy(policy: Policy, to: str, out: Path) -> Replayed:
    """Write a policy in a format, with golden vectors beside it, and replay them; `CannotExport` where it cannot hold.

    Nothing is written if the scores differ.
    """
    if to not in FORMATS:
        raise UsageError(f"--to {to} is unknown; choose one of: {', '.join(FORMATS)}.")
    text = FORMATS[to].encode(policy, out.name.split(".")[0])
    golden = golden_vectors(policy, to, text)
    replayed = _replay(golden.queries, golden.scores, text, to, golden.features)
    if not replayed.same:
        message = f"scores differ by {replayed.difference:.1e} of their size after export to {to}; report this model."
        raise DataError(message, file=out)
    with whole_file(golden_file(out)) as unfinished_golden, whole_file(out) as unfinished:
        unfinished_golden.write_bytes(golden.as_json())
        unfinished.write_bytes(text)
    return replayed


def verify_export(exported: Path) -> Replayed:
    """Replay the golden vectors of an exported model."""
    golden = read_golden(exported)
    if golden.to not in FORMATS:
        raise DataError(f"has format '{golden.to}', which is unknown; export the model again.", file=exported)
    try:
        return _replay(golden.queries, golden.scores, exported.read_bytes(), golden.to, golden.features)
    except DataError as error:
        raise DataError(error.args[0], file=exported) from error


def _replay(
    queries: tuple[tuple[tuple[float | None, ...], ...], ...],
    scores: tuple[tuple[float, ...], ...],
    text: bytes,
    to: str,
    features: tuple[str, ...],
) -> Replayed:
    theirs = [FORMATS[to].scores(text, np.array(rows, np.float32), features) for rows in queries]
    ours = np.array([score for query in scores for score in query])
    return Replayed(to, len(ours), largest_difference(np.concatenate(theirs), ours))
