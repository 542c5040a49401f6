"""What an exported model is given: raw features, one column per number that it reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from saferank.engine.types.ranking_data import RankingData, signed_log1p
from saferank.features.schema import FeatureSchema, indicator_name
from saferank.policy.policy import Policy

LOGARITHM = "log1p_"
"""In front of the name of a feature: sign(x) log(1 + |x|) of it."""


@dataclass(frozen=True)
class Inputs:
    """The columns of an exported model, and which of them each column of the schema is made from.

    They are those of the schema, in order, without indicators: a missing value is NaN, and the model makes the
    indicator of it. A feature that stands for a value of a column of text is a column of 0 and 1.
    """

    names: tuple[str, ...]
    source: tuple[int, ...]
    """For each column of the schema, the place of its input; for an indicator, that of the feature it belongs to."""
    indicator: tuple[bool, ...]
    """For each column of the schema, whether it is an indicator."""

    @classmethod
    def of(cls, schema: FeatureSchema) -> Self:
        """Return the inputs of a policy with this schema."""
        made_from = {indicator_name(name): name for name in schema.indicators}
        names = tuple(name for name in schema.columns if name not in made_from)
        places = {name: place for place, name in enumerate(names)}
        return cls(
            names,
            tuple(places[made_from.get(name, name)] for name in schema.columns),
            tuple(name in made_from for name in schema.columns),
        )


def scores_of(policy: Policy, rows: NDArray[np.float32], offsets: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the scores that saferank gives to raw rows of the policy's inputs; queries begin at `offsets`."""
    names = Inputs.of(policy.schema).names
    data = RankingData(rows, offsets, feature_names=names, check_finite=False)
    return policy.scores(data)


def logarithm_names(names: Iterable[str], schema: FeatureSchema) -> list[str]:
    """Return the names of the features that a weighted sum or a network reads in a format without logarithms.

    With `log1p`, the server computes sign(x) log(1 + |x|) of a feature x as a feature of its own, called log1p_x.
    """
    return [f"{LOGARITHM}{name}" if schema.log1p else name for name in names]


def column(name: str, rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float32]:
    """Return the column of this name, or the logarithm of one; a `ValueError` if there is none."""
    if name in names or not name.startswith(LOGARITHM):
        return rows[:, names.index(name)]
    out = rows[:, names.index(name.removeprefix(LOGARITHM))].copy()
    signed_log1p(out, out=out)
    return out


def unique_names(names: Iterable[str]) -> list[str]:
    """Return the names, with a number behind those that are there already.

    >>> unique_names(["list_price", "stock", "list_price"])
    ['list_price', 'stock', 'list_price_2']
    """
    out: list[str] = []
    for name in names:
        other, number = name, 1
        while other in out:
            number += 1
            other = f"{name}_{number}"
        out.append(other)
    return out
