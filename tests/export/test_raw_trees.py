import numpy as np
import pytest

from saferank.engine.types.ranking_data import signed_log1p
from saferank.export.golden import largest_difference
from saferank.export.raw_trees import Split, raw_thresholds, raw_trees
from saferank.export.solr_json import SLACK, without_slack
from saferank.features.schema import FeatureSchema
from tests.policy.made import some_trees

RAW = FeatureSchema(("price", "stock"), scaling="none")
INFINITE = np.float32(np.inf)


def log1p(values: np.ndarray) -> np.ndarray:
    out = np.array(values, np.float32)
    signed_log1p(out, out=out)
    return out


def test_a_raw_threshold_is_the_largest_number_that_goes_left() -> None:
    threshold = np.concatenate(
        [np.random.default_rng(0).normal(scale=4, size=500), [0.0, 1e-35, -1e-35, 1e-20]]
    ).astype(np.float32)  # fmt: skip
    raw = raw_thresholds(threshold, RAW)
    assert (log1p(raw) <= threshold).all()
    assert (log1p(np.nextafter(raw, INFINITE)) > threshold).all()


def test_a_threshold_beyond_all_numbers() -> None:
    largest = np.finfo(np.float32).max
    assert raw_thresholds(np.array([200.0, -200.0], np.float32), RAW).tolist() == [largest, -largest]


def test_without_log1p_thresholds_stay() -> None:
    schema = FeatureSchema(("price", "stock"), scaling="none", log1p=False, missing=-1.0)
    root = raw_trees(some_trees(), schema)[0]
    assert isinstance(root, Split)
    assert (root.feature, root.threshold, root.missing_left) == (0, np.float32(0.25), True)
    assert root.above == np.nextafter(np.float32(0.25), INFINITE)
    assert isinstance(root.left, Split)
    assert (root.left.threshold, root.left.missing_left) == (np.float32(-0.5), True)


def test_scaled_features_cannot_be_moved_into_trees() -> None:
    with pytest.raises(ValueError, match="scaled"):
        raw_trees(some_trees(), FeatureSchema(("price", "stock")))


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 1e6])
def test_solr_adds_its_slack_back(scale: float) -> None:
    values = np.abs(np.random.default_rng(1).normal(scale=scale, size=300).astype(np.float32)) + np.float32(4e-6)
    for threshold in values:
        assert without_slack(threshold) + SLACK == threshold


def test_solr_meets_tiny_thresholds_from_below() -> None:
    for threshold in np.array([0.0, 1e-35, 1e-9, 3e-7, 3.747721e-06], np.float32):
        met = without_slack(threshold) + SLACK
        assert 0 <= threshold - met <= 3e-13


def test_the_largest_difference_is_relative_to_score_or_spread() -> None:
    ours = np.array([2.0, -2.0, 0.0])  # standard deviation sqrt(8/3)
    assert largest_difference(np.array([2.1, -2.0, 0.0]), ours) == pytest.approx(0.1 / 2)
    assert largest_difference(np.array([2.0, -2.0, 0.1]), ours) == pytest.approx(0.1 / np.sqrt(8 / 3))
    assert largest_difference(np.array([1.0, np.nan, 0.0]), ours) == np.inf
    assert largest_difference(np.array([3.0, 3.0]), np.array([0.0, 0.0])) == 3.0
