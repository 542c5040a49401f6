import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saferank.datasets.dataset import Dataset
from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features import schema as feature_schema
from saferank.features.schema import FeatureSchema, listed, with_indicators
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
    data = RankingData(np.array([[0.0, 3.0], [math.e - 1, 3.0], [1 - math.e, 3.0]]), np.array([0, 3]))
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
    with pytest.raises(DataError) as error:
        FeatureSchema(NAMES[:2]).prepare(data)
    assert error.value.file == "candidates.parquet"


def test_missing_and_unknown_features() -> None:
    data = make_data()
    schema = FeatureSchema(("age", "price"))
    for wrong, column in ((FeatureSchema((*NAMES, "size")), "size"), (schema, "stock")):
        with pytest.raises(DataError) as error:
            wrong.prepare(data)
        assert (error.value.file, error.value.column) == ("candidates.parquet", column)
    fewer = replace(data, features=data.features[:, [2, 0]], feature_names=("age", "price"))
    np.testing.assert_array_equal(schema.prepare(data, ignore=["stock"]).features, schema.prepare(fewer).features)


@pytest.mark.parametrize("block", [1, 3, 1 << 16])
def test_nan_as_the_schema_says(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_schema, "BLOCK", block)
    data = make_data()
    gap = with_value(data, 6, 1, np.nan)
    with pytest.raises(DataError, match="query q2, document d1: got nan") as error:
        FeatureSchema(NAMES).prepare(gap)
    assert (error.value.row, error.value.column) == (None, "stock")
    filled = FeatureSchema(NAMES, missing=-2).prepare(gap)
    np.testing.assert_array_equal(filled.features, FeatureSchema(NAMES).prepare(with_value(data, 6, 1, -2)).features)
    assert np.isnan(gap.features[6, 1])  # the caller's array is as it was
    with pytest.raises(DataError) as error:
        FeatureSchema(NAMES).prepare(with_value(replace(data, query_ids=None), 6, 1, np.nan))
    assert (error.value.row, error.value.column) == (6, "stock")
    for missing in ("error", 0.0):
        with pytest.raises(DataError, match="query q0, document d3: got -inf") as error:
            FeatureSchema(NAMES, missing=missing).prepare(with_value(data, 3, 2, -np.inf))
        assert error.value.column == "age"


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": ()},
        {"names": ("a", "b", "a")},
        {"names": ("a",), "scaling": "standard"},
        {"names": ("a",), "missing": float("nan")},
        {"names": ("a",), "missing": "zero"},
        {"names": ("a", "b"), "base": "b"},
    ],
)
def test_wrong_calls(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        FeatureSchema(**wrong)


@pytest.mark.parametrize("log1p", [True, False])
@pytest.mark.parametrize("scaling", ["per-query", "none"])
def test_the_base_column_is_read_as_it_is_and_last(log1p: bool, scaling: Any) -> None:
    data = make_data()
    schema = FeatureSchema(("age", "stock"), log1p, scaling, base="price")
    assert schema.columns == ("age", "stock", "price")
    prepared = schema.prepare(data)
    assert prepared.feature_names == schema.columns
    np.testing.assert_array_equal(prepared.features[:, 2], data.features[:, 0])
    without = replace(data, features=data.features[:, [2, 1]], feature_names=("age", "stock"))
    plain = FeatureSchema(("age", "stock"), log1p, scaling).prepare(without)
    np.testing.assert_array_equal(prepared.features[:, :2], plain.features)
    nameless = replace(data, features=data.features[:, [2, 1, 0]], feature_names=None)
    np.testing.assert_array_equal(schema.prepare(nameless).features, prepared.features)


@pytest.mark.parametrize("missing", ["error", 0.0])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_missing_score_is_never_filled(missing: Any, value: float) -> None:
    gap = with_value(make_data(), 6, 0, value)
    with pytest.raises(DataError, match="query q2, document d1: got") as error:
        FeatureSchema(("stock", "age"), missing=missing, base="price").prepare(gap)
    assert error.value.column == "price"
    if value != value:
        assert "`missing`" not in str(error.value)  # which would not help
    filled = FeatureSchema(("stock", "age"), missing=-2, base="price").prepare(with_value(make_data(), 6, 1, np.nan))
    by_hand = FeatureSchema(("stock", "age"), base="price").prepare(with_value(make_data(), 6, 1, -2))
    np.testing.assert_array_equal(filled.features, by_hand.features)


def test_without_the_base_column_nothing_is_prepared() -> None:
    data = make_data()
    fewer = replace(data, features=data.features[:, 1:], feature_names=NAMES[1:])
    with pytest.raises(DataError) as error:
        FeatureSchema(("stock", "age"), base="price").prepare(fewer)
    assert (error.value.file, error.value.column) == ("candidates.parquet", "price")
    with pytest.raises(DataError):
        FeatureSchema(("stock", "age"), base="price").prepare(replace(fewer, feature_names=None))


def test_a_schema_from_before_there_was_a_base_column() -> None:
    old = {"names": ["a", "b"], "log1p": True, "scaling": "none", "missing": "error"}
    assert FeatureSchema.from_json(old) == FeatureSchema(("a", "b"), scaling="none")
    assert FeatureSchema.from_json(old | {"base": "s"}) == FeatureSchema(("a", "b"), scaling="none", base="s")
    for wrong in ({"base": 1}, {"base": "a"}, {"basis": "s"}):
        with pytest.raises(ValueError, match=r"."):
            FeatureSchema.from_json(old | wrong)


@pytest.mark.parametrize(
    "schema", [FeatureSchema(NAMES), FeatureSchema(("x",), False, "none", -1.5), FeatureSchema(("x",), base="y")]
)
def test_json_and_back(schema: FeatureSchema) -> None:
    assert FeatureSchema.from_json(json.loads(json.dumps(schema.as_json()))) == schema


AS_JSON = json.loads(json.dumps(FeatureSchema(NAMES).as_json()))


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"names": ["a"]},
        {"names": "abc", "log1p": True, "scaling": "none", "missing": "error"},
        {"names": ["a"], "log1p": 1, "scaling": "none", "missing": "error"},
        {"names": ["a"], "log1p": True, "scaling": "z", "missing": "error"},
        {"names": ["a"], "log1p": True, "scaling": "none", "missing": None},
        AS_JSON | {"names": [1, 2]},
        AS_JSON | {"categories": []},
        AS_JSON | {"categories": {"brand": "Acme"}},
        AS_JSON | {"indicators": [1]},
    ],
)
def test_what_is_no_schema(values: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        FeatureSchema.from_json(values)


def test_long_lists_are_cut() -> None:
    assert listed("abc") == "a, b, c"
    assert listed("abcdefghij") == "a, b, c, d, e, f, g, h, ... (10 in all)"


NAN = float("nan")


def test_a_missing_value_with_an_indicator_by_hand() -> None:
    """It does not move the other values of its query, is 0 after scaling, and the indicator tells it from the least."""
    raw = np.array([[100.0, 1.0], [NAN, 2.0], [300.0, 3.0], [NAN, 5.0], [NAN, 7.0]], np.float32)
    data = RankingData(raw, np.array([0, 3, 5]), feature_names=("price", "stock"), check_finite=False)
    seen, lacking = with_indicators(data)
    assert lacking == ("price",)
    assert seen.feature_names == ("price", "stock", "price is missing")
    assert seen.features[:, 2].tolist() == [0, 1, 0, 1, 1]
    schema = FeatureSchema(seen.feature_names, log1p=False, missing="indicator", indicators=lacking)
    expected = [[0, 0, 0], [0, 0.5, 1], [1, 1, 0], [0, 0, 0], [0, 1, 0]]  # an indicator is scaled like any feature
    np.testing.assert_array_equal(schema.prepare(seen).features, expected)
    np.testing.assert_array_equal(schema.prepare(data).features, expected)
    plain = replace(schema, scaling="none")
    np.testing.assert_array_equal(
        plain.prepare(data).features, [[100, 1, 0], [0, 2, 1], [300, 3, 0], [0, 5, 1], [0, 7, 1]]
    )
    assert schema.numbers == ("price", "stock")
    with pytest.raises(DataError) as error:
        schema.prepare(replace(data, features=np.full((5, 2), np.inf, np.float32), check_finite=False))
    assert error.value.column == "price"


def test_no_indicator_without_a_missing_value_and_none_of_the_scores() -> None:
    data = make_data()
    assert with_indicators(data) == (data, ())
    assert with_indicators(with_value(data, 3, 1, NAN), but=("stock",))[1] == ()


def test_values_of_text_that_the_data_lacks_are_zero_and_others_are_left_out() -> None:
    schema = FeatureSchema(
        ("price", "brand=a", "brand=b"), scaling="none", log1p=False, categories={"brand": ("a", "b")}
    )
    assert schema.numbers == ("price",)
    data = RankingData(
        np.array([[5.0, 1.0, 0.0], [6.0, 0.0, 1.0]]),
        np.array([0, 2]),
        feature_names=("price", "brand=b", "brand=c"),
        categories={"brand": ("b", "c")},
    )
    np.testing.assert_array_equal(schema.prepare(data).features, [[5, 0, 1], [6, 0, 0]])
    with pytest.raises(DataError) as error:
        schema.prepare(replace(data, categories={}))
    assert error.value.column == "brand=a"


def test_a_schema_with_values_of_text_and_indicators_comes_back_from_json() -> None:
    schema = FeatureSchema(
        ("price", "brand=a", "price is missing"),
        missing="indicator",
        categories={"brand": ("a",)},
        indicators=("price",),
    )
    assert FeatureSchema.from_json(json.loads(json.dumps(schema.as_json()))) == schema
    assert set(FeatureSchema(("price",)).as_json()) == {"names", "log1p", "scaling", "missing", "base"}
