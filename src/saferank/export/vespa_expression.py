"""Vespa: a ranking expression of trees, weighted sums and a column, over rank features or functions of their names.

Trees are written as Vespa's own import of XGBoost writes them: `if (x < c, left, right)`, and `if (!(x >= c), left,
right)` where a missing value (NaN, with which every comparison is false) goes left.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.export.common_refusals import refuse_scaling, refuse_without_trees
from saferank.export.inputs import Inputs, unique_names
from saferank.export.raw_trees import Node, Split, raw_trees
from saferank.features.schema import FeatureSchema
from saferank.policy.policy import Policy

FEATURE = re.compile(r'[A-Za-z_]\w*(\([\w.,"]*\))?(\.\w+)*')
"""A rank feature: price, attribute(price), fieldMatch(title).completeness."""
Values = NDArray[np.float64]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "if": lambda condition, yes, no: np.where(condition != 0, yes, no),
    "log": np.log,
    "isNan": lambda x: np.isnan(x).astype(np.float64),
}


def encode(policy: Policy) -> bytes:
    """Return the expression, for `expression: file:NAME.expression` in a rank profile."""
    to, schema, parts, inputs = "vespa", policy.schema, policy.parts, Inputs.of(policy.schema)
    refuse_scaling(to, schema)
    refuse_without_trees(
        to, parts, "as one expression a neural network is too long; Vespa reads it as ONNX (--to onnx)."
    )
    names = feature_names(inputs.names)
    terms: list[str] = []
    if parts.start == "column":
        terms.append(f"{_text(parts.column_scale)} * {names[-1]}")
    elif parts.start == "linear":
        columns = zip(parts.layers[0][0][0], inputs.source, inputs.indicator, strict=True)
        terms += [f"{_text(weight)} * {_prepared(names[place], schema, made)}" for weight, place, made in columns]
    terms += [_node(tree, names) for tree in raw_trees(parts.forest, schema)]
    return (" +\n".join(terms) + "\n").encode()


def feature_names(names: tuple[str, ...]) -> list[str]:
    """Return the features' names in the expression: those that Vespa could not read are made readable.

    >>> feature_names(("attribute(price)", "brand=Acme", "1"))
    ['attribute(price)', 'brand_Acme', 'f1']
    """
    found = []
    for name in names:
        plain = name if FEATURE.fullmatch(name) else re.sub(r"\W", "_", name)
        plain = plain if not plain[:1].isdigit() else f"f{plain}"
        found.append(f"{plain}_" if plain in FUNCTIONS else plain)
    return unique_names(found)


def scores(text: bytes, rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the value of the expression for each row, by Vespa's documentation; a missing value is NaN."""
    columns = dict(zip(feature_names(names), rows.T.astype(np.float64), strict=True))
    try:
        with np.errstate(invalid="ignore", divide="ignore"):  # both sides of an `if` are computed
            value = _Expression(text.decode(), columns).whole()
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise DataError(f"is not a ranking expression of these features ({error!r}); export it again.") from error
    return np.broadcast_to(value, len(rows)).astype(np.float64)


def _node(node: Node, names: list[str]) -> str:
    if not isinstance(node, Split):
        return _text(node.value)
    name, above = names[node.feature], _text(node.above)
    condition = f"!({name} >= {above})" if node.missing_left else f"{name} < {above}"
    return f"if ({condition}, {_node(node.left, names)}, {_node(node.right, names)})"


def _prepared(name: str, schema: FeatureSchema, is_indicator: bool) -> str:
    """Return what `FeatureSchema.prepare` does to a feature that is not scaled."""
    if is_indicator:
        return f"isNan({name}) * {_text(np.log1p(np.float32(1.0)))}" if schema.log1p else f"isNan({name})"
    if schema.log1p:
        value = f"if ({name} < 0.0, 0.0 - log(1.0 - {name}), log(1.0 + {name}))"
        fill = 0.0 if isinstance(schema.missing, str) else float(schema.missing)
        filled = _text(np.copysign(np.log1p(abs(fill)), fill))
    else:
        value, filled = name, _text(0.0 if isinstance(schema.missing, str) else schema.missing)
    return value if schema.missing == "error" else f"if (isNan({name}), {filled}, {value})"


def _text(value: Any) -> str:
    number = repr(float(value))
    return f"({number})" if number.startswith("-") else number


class _Expression:
    """A ranking expression, evaluated for all rows at once by recursive descent."""

    TOKEN = re.compile(r"\s*(\d+\.?\d*(?:[eE][-+]?\d+)?|>=|[-+*<!(),]|[A-Za-z_]\w*)\s*")

    def __init__(self, text: str, columns: dict[str, Values]) -> None:
        self.text, self.columns, self.at = text, columns, 0

    def whole(self) -> Values:
        value = self.comparison()
        if self.at != len(self.text):
            raise ValueError(f"unexpected {self.text[self.at : self.at + 20]!r}")
        return value

    def peek(self) -> str:
        found = self.TOKEN.match(self.text, self.at)
        return "" if found is None else found[1]

    def take(self, wanted: str = "") -> str:
        found = self.TOKEN.match(self.text, self.at)
        if found is None or wanted not in ("", found[1]):
            raise ValueError(f"expected {wanted!r} before {self.text[self.at : self.at + 20]!r}")
        self.at = found.end()
        return found[1]

    def comparison(self) -> Values:
        left = self.sum()
        if self.peek() not in ("<", ">="):
            return left
        less, right = self.take() == "<", self.sum()
        return np.asarray(left < right if less else left >= right, np.float64)

    def sum(self) -> Values:
        value = self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> Values:
        value = self.one()
        while self.peek() == "*":
            self.take()
            value = value * self.one()
        return value

    def one(self) -> Values:
        token = self.peek()
        if token == "!":
            self.take()
            return np.asarray(self.one() == 0, np.float64)
        if token == "-":
            self.take()
            return -self.one()
        if token == "(":
            self.take()
            value = self.comparison()
            self.take(")")
            return value
        if token in FUNCTIONS:
            self.take()
            self.take("(")
            arguments = [self.comparison()]
            while self.peek() == ",":
                self.take()
                arguments.append(self.comparison())
            self.take(")")
            return np.asarray(FUNCTIONS[token](*arguments), np.float64)
        if token[:1].isdigit():
            return np.array(float(self.take()))
        feature = FEATURE.match(self.text, self.at)
        if feature is None:
            raise ValueError(f"unexpected {self.text[self.at : self.at + 20]!r}")
        self.at = feature.end()
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.columns[feature[0]]
