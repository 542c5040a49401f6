import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saferank.datasets.dataset import Dataset
from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features import schema as feature_schema
from saferank.features.schema import FeatureSchema, listed
from saferank.lab.world import prepare
from tests.policy.made import NAMES, make_data


def with_value(data: RankingData, row: int, column: int, value: float) -> RankingData:
    features = data.features.copy()
    features[row, column] = value
    return RankingData(
        features,
        data.offsets,
        query_ids=data.query_ids,
        document_ids=data.document_ids,
        feature_names=data.feature_names,
        source=data.source,
        check_finite=False,
    )


def test_the_default_is_what_the_experiments_do() -> None:
    data = replace(make_data(), labels=np.ones(14, np.float32))
    expected = prepare(Dataset("by hand", data, data, data)).train.features
    np.testing.assert_array_equal(FeatureSchema.of(data).prepare(data).features, expected)


def test_scaling_by_hand() -> None:
    data = RankingData(np.array([[0.0, 3.0], [np.e - 1, 3.0], [1 - np.e, 3.0]]), np.array([0, 3]))
    whole = FeatureSchema(("a", "b")).prepare(data)
    np.testing.assert_allclose(whole.features, [[0.5, 0.0], [1.0, 0.0], [0.0, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(FeatureSchema(("a", "b"), log1p=False).prepare(data).features[:, 0], [0.5, 1, 0])
    four = float(np.log(4))
    tamed = FeatureSchema(("a", "b"), scaling="none").prepare(data)
    np.testing.assert_allclose(tamed.features, [[0.0, four], [1.0, four], [-1.0, four]], rtol=1e-6)
    raw = FeatureSchema(("a", "b"), log1p=False, scaling="none").prepare(data)
    np.testing.assert_array_equal(raw.features, data.features)


def test_features_are_found_by_name_in_whatever_order() -> None:
    data = make_data()
    shuffled = replace(data, features=data.features[:, [2, 0, 1]], feature_names=("age", "price", "stock"))
    schema = FeatureSchema(NAMES)
    prepared = schema.prepare(shuffled)
    np.testing.assert_array_equal(prepared.features, schema.prepare(data).features)
    assert prepared.feature_names == NAMES


def test_nameless_features_must_be_as_many() -> None:
    data = replace(make_data(), feature_names=None)
    assert FeatureSchema.of(data).names == ("1", "2", "3")
    np.testing.assert_array_equal(
        FeatureSchema(NAMES).prepare(data).features, FeatureSchema.of(data).prepare(data).features
    )
    with pytest.raises(
        DataError, match=r"^candidates.parquet: has 3 features, but the policy reads 2: price, stock\.$"
    ):
        FeatureSchema(NAMES[:2]).prepare(data)


def test_missing_and_unknown_features() -> None:
    data = make_data()
    message = "candidates.parquet, column 'size': there is no such feature, and the policy reads it; there are price, "
    with pytest.raises(DataError, match=re.escape(message)):
        FeatureSchema((*NAMES, "size")).prepare(data)
    schema = FeatureSchema(("age", "price"))
    message = "candidates.parquet, column 'stock': the policy does not know this feature; leave the column out"
    with pytest.raises(DataError, match=re.escape(message)):
        schema.prepare(data)
    fewer = replace(data, features=data.features[:, [2, 0]], feature_names=("age", "price"))
    np.testing.assert_array_equal(schema.prepare(data, ignore=["stock"]).features, schema.prepare(fewer).features)


@pytest.mark.parametrize("block", [1, 3, 1 << 16])
def test_nan_as_the_schema_says(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_schema, "BLOCK", block)
    data = make_data()
    holed = with_value(data, 6, 1, np.nan)
    message = "candidates.parquet, column 'stock': query q2, document d1: got nan; fill it in, or fit with a number"
    with pytest.raises(DataError, match=re.escape(message)):
        FeatureSchema(NAMES).prepare(holed)
    filled = FeatureSchema(NAMES, missing=-2).prepare(holed)
    np.testing.assert_array_equal(filled.features, FeatureSchema(NAMES).prepare(with_value(data, 6, 1, -2)).features)
    assert np.isnan(holed.features[6, 1])  # the caller's array is as it was
    nameless = replace(make_data(), query_ids=None)
    with pytest.raises(DataError, match=r"candidates.parquet, row 6, column 'stock': got nan"):
        FeatureSchema(NAMES).prepare(with_value(nameless, 6, 1, np.nan))


@pytest.mark.parametrize("missing", ["error", 0.0])
def test_infinite_features_are_errors(missing: Any) -> None:
    with pytest.raises(DataError, match=r"column 'age': query q0, document d3: got -inf; must be finite"):
        FeatureSchema(NAMES, missing=missing).prepare(with_value(make_data(), 3, 2, -np.inf))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"names": ()}, "a policy needs at least one feature"),
        ({"names": ("a", "b", "a")}, "feature 'a' is named twice"),
        ({"names": ("a",), "scaling": "standard"}, "scaling 'standard' is unknown; choose per-query or none"),
        ({"names": ("a",), "missing": float("nan")}, "missing=nan: must be 'error', or the number"),
        ({"names": ("a",), "missing": "zero"}, "missing='zero': must be 'error', or the number"),
    ],
)
def test_wrong_calls(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FeatureSchema(**wrong)


@pytest.mark.parametrize("schema", [FeatureSchema(NAMES), FeatureSchema(("x",), False, "none", -1.5)])
def test_json_and_back(schema: FeatureSchema) -> None:
    assert FeatureSchema.from_json(json.loads(json.dumps(schema.as_json()))) == schema


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"names": ["a"]},
        {"names": "abc", "log1p": True, "scaling": "none", "missing": "error"},
        {"names": ["a"], "log1p": 1, "scaling": "none", "missing": "error"},
        {"names": ["a"], "log1p": True, "scaling": "z", "missing": "error"},
    ],
)
def test_what_is_no_schema(values: Any) -> None:
    with pytest.raises(ValueError, match=r"must|unknown"):
        FeatureSchema.from_json(values)


def test_long_lists_are_cut() -> None:
    assert listed("abc") == "a, b, c"
    assert listed("abcdefghij") == "a, b, c, d, e, f, g, h, ... (10 in all)"
