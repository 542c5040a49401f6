"""Golden vectors: rows of raw features with the scores that saferank gives them, kept beside an exported model."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.export.inputs import Inputs, scores_of
from saferank.export.raw_trees import raw_thresholds
from saferank.files.json_format import FileFormat
from saferank.policy.policy import Policy

FORMAT = FileFormat("saferank-golden-vectors", 1, "export", "export the model again")
QUERIES, CANDIDATES = 6, 10
SMALLEST = 1e-5
"""Size of the smallest value other than 0: below it, Solr's thresholds are not exact (see `solr_json.py`)."""


@dataclass(frozen=True, eq=False)
class GoldenVectors:
    """Rows of raw features by query, and their scores."""

    to: str
    sha256: str
    """Of the exported model."""
    features: tuple[str, ...]
    queries: tuple[tuple[tuple[float | None, ...], ...], ...]
    """For each query, its rows; null where a value is missing."""
    scores: tuple[tuple[float, ...], ...]

    def as_json(self) -> bytes:
        """Return what `read_golden` reads."""
        values: dict[str, Any] = {"to": self.to, "sha256": self.sha256, "features": self.features}
        values |= {"queries": self.queries, "scores": self.scores}
        return (json.dumps(FORMAT.marked(values), allow_nan=False) + "\n").encode()


def golden_file(exported: Path) -> Path:
    """Return where the golden vectors of an exported model are."""
    return exported.with_name(f"{exported.name}.golden.json")


def golden_vectors(policy: Policy, to: str, text: bytes) -> GoldenVectors:
    """Return golden vectors of a policy that was exported as this text."""
    rng = np.random.default_rng(0)
    offsets = np.arange(0, QUERIES * CANDIDATES + 1, CANDIDATES)
    rows = random_rows(policy, len(offsets) * CANDIDATES - CANDIDATES, rng)
    found = scores_of(policy, rows, offsets)
    listed = [[None if np.isnan(value) else float(str(value)) for value in row] for row in rows]
    return GoldenVectors(
        to,
        hashlib.sha256(text).hexdigest(),
        Inputs.of(policy.schema).names,
        tuple(tuple(map(tuple, listed[first : first + CANDIDATES])) for first in offsets[:-1]),
        tuple(tuple(map(float, found[first : first + CANDIDATES])) for first in offsets[:-1]),
    )


def read_golden(exported: Path) -> GoldenVectors:
    """Return the golden vectors of an exported model, or raise if it is not the file that they belong to."""
    golden = FORMAT.read_as(golden_file(exported), GoldenVectors)
    if hashlib.sha256(exported.read_bytes()).hexdigest() != golden.sha256:
        raise DataError("is not the model that its golden vectors were made for; export it again.", file=exported)
    return golden


def random_rows(policy: Policy, rows: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return raw rows for the inputs of a policy: many sizes, both signs, repeated values, some missing.

    Where trees read features that are not scaled, half of the values are thresholds of the trees or next to one.
    """
    schema, inputs = policy.schema, Inputs.of(policy.schema)
    shape = rows, len(inputs.names)
    values = (rng.normal(size=shape) * 10.0 ** rng.uniform(-2, 3, size=shape)).astype(np.float32)
    values[rng.random(shape) < 0.1] = 0.0
    if schema.base is not None:  # scores of another ranker, about as large as the corrections
        values[:, -1] = rng.normal(size=rows)
    forest = policy.parts.forest
    if forest.trees and schema.scaling == "none":
        threshold = raw_thresholds(forest.threshold, schema)
        source = np.array(inputs.source)[forest.feature]
        for place in range(len(inputs.names)):
            mine = threshold[(source == place) & ~np.array(inputs.indicator)[forest.feature]]
            if len(mine):
                near = rng.choice(mine, rows)
                step = rng.integers(-1, 2, rows)
                near = np.where(step > 0, np.nextafter(near, np.float32(np.inf)), near)
                near = np.where(step < 0, np.nextafter(near, np.float32(-np.inf)), near)
                values[:, place] = np.where(rng.random(rows) < 0.5, near, values[:, place])
    values[np.abs(values) < SMALLEST] = 0.0
    if schema.missing != "error":
        fillable = len(inputs.names) - (schema.base is not None)
        values[:, :fillable][rng.random((rows, fillable)) < 0.1] = np.nan
    return values


def largest_difference(theirs: NDArray[np.float64], ours: NDArray[np.floating[Any]]) -> float:
    """Return the largest relative difference of two scores of a document.

        max over d of |theirs(d) - ours(d)| / max(|ours(d)|, standard deviation of ours)

    A score near 0 is a small difference of large numbers; what counts there is the spread of the scores, by which
    documents are ranked. Infinite where one is not finite and the other is.
    """
    ours = ours.astype(np.float64)
    if not len(ours):
        return 0.0
    unit = np.maximum(np.abs(ours), ours.std())
    difference = np.abs(theirs - ours)
    relative = np.divide(difference, unit, out=difference.copy(), where=unit > 0)
    return float(np.inf if np.isnan(relative).any() else relative.max())
