"""Columns of the features that `fit` stops at, leaves out, or cannot use."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saferank.engine.types.ranking_data import RankingData
from saferank.features.schema import BLOCK, feature_names


@dataclass(frozen=True)
class FeatureColumns:
    """What is the matter with which columns."""

    rows: int
    features: int
    missing: dict[str, int]
    """Features with missing values -> in how many rows."""
    constant: tuple[str, ...]
    """Features with one value in all rows, or none."""
    text: tuple[str, ...]
    """Columns, besides the ids, that hold no numbers."""


def feature_columns(data: RankingData, text: Sequence[str] = ()) -> FeatureColumns:
    """Return what is the matter with the features; `text` are the columns that were not read."""
    names, first = feature_names(data), data.features[:1]
    missing, varies = np.zeros(len(names), np.int64), np.zeros(len(names), np.bool_)
    for start in range(0, data.documents, BLOCK):
        values = data.features[start : start + BLOCK]
        missing += np.isnan(values).sum(axis=0)
        varies |= ((values != first) & ~(np.isnan(values) & np.isnan(first))).any(axis=0)
    return FeatureColumns(
        rows=data.documents,
        features=len(names),
        missing={name: int(rows) for name, rows in zip(names, missing, strict=True) if rows},
        constant=tuple(name for name, differs in zip(names, varies, strict=True) if not differs),
        text=tuple(text),
    )
