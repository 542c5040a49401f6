"""The ranker among scikit-learn's tools: its checks of estimators, clones, a pipeline, a grid search."""

from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

from saferank import Refused, SafeRanker, UsageError
from saferank.learning import start
from tests.learning.problem import parameters
from tests.learning.small_log import QUICK
from tests.shops import noisy_world

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("short_trainings")

SETTINGS: Any = {"method": "exposure-crm", "scorer": "linear", "training": QUICK, "cutoff": 3, "scaling": "none"}
SETTINGS |= {"log1p": False, "examination": "inverse-rank:1"}


class PairRanker(SafeRanker):
    """For the checks, which call `fit(X, y)`: every two rows are an impression of a query of their own.

    Their numbers stand for clicks: what is above the smallest is clicked.
    """

    def fit(self, X: Any, y: Any, **_: Any) -> Self:  # type: ignore[override]
        clicks = y
        if y is not None and len(np.shape(y)) == 1 and len(y):
            with suppress(TypeError, ValueError):
                clicks = (np.asarray(y) != np.min(np.asarray(y, np.float64))).astype(np.int64)
        return super().fit(X, clicks, qid=np.arange(X.shape[0]) // 2)


OWN_ATTRIBUTES = "what a fit found out is called `warnings` or `comparison`, without an underscore"
NOT_NUMBERED = "features are known by name, and a count of them is not kept"
DATA_ERROR = "is a DataError or UsageError in words of our own"
NOT_APPLICABLE = {
    "check_no_attributes_set_in_init": OWN_ATTRIBUTES,
    "check_dont_overwrite_parameters": OWN_ATTRIBUTES,
    "check_do_not_raise_errors_in_init_or_set_params": "a mistake is told where it is made, not after the log was read",
    "check_parameters_default_constructible": "`training` is a dataclass of settings",
    "check_n_features_in": NOT_NUMBERED,
    "check_n_features_in_after_fitting": NOT_NUMBERED,
    "check_estimators_unfitted": f"{DATA_ERROR}; scikit-learn need not be installed",
    "check_complex_data": "Arrow has no complex numbers",
    "check_estimators_empty_data_messages": DATA_ERROR,
    "check_fit2d_1sample": DATA_ERROR,
    "check_fit2d_predict1d": DATA_ERROR,
    "check_requires_y_none": DATA_ERROR,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # it is no subclass of theirs
def test_the_checks_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that apply to an estimator of clicks pass; the others are named with the reason.

    How long it learns is not asked: a step is enough.
    """
    monkeypatch.setattr(start, "LINEAR", replace(start.LINEAR, epochs=1, least_steps=50))
    step = replace(QUICK, epochs=1, least_steps=1, batch=1_000)
    ranker = PairRanker(**SETTINGS | {"training": step}, missing="indicator")
    done = check_estimator(ranker, expected_failed_checks=NOT_APPLICABLE, on_skip=None, on_fail=None)
    assert [f"{one['check_name']}: {one['exception']}" for one in done if one["status"] == "failed"] == []
    assert {one["check_name"] for one in done if one["status"] == "xfail"} == {*NOT_APPLICABLE}
    assert sum(one["status"] == "passed" for one in done) > 20


@pytest.fixture(scope="module")
def rows() -> Any:
    """A log of a shop as a DataFrame, with the features `a` and `b` of each row's document."""
    rng = np.random.default_rng(1)
    world = noisy_world(seed=rng)
    log = world.draw(2_000, rng).table().to_pandas()
    data = world.shop.features(rng, columns=2)
    assert data.query_ids is not None
    ids = {"query_id": data.query_ids[data.query_of_document], "document_id": data.document_ids}
    features = pd.DataFrame({**ids, "a": data.features[:, 0], "b": data.features[:, 1]})
    return log.merge(features, on=["query_id", "document_id"]).sort_values(["impression_id", "position"])


def test_rows_teach_as_the_log_does(rows: Any) -> None:
    features = rows.drop_duplicates(["query_id", "document_id"], keep="last")[["query_id", "document_id", "a", "b"]]
    log = rows.drop(columns=["a", "b"])
    expected = SafeRanker(**SETTINGS).fit(log, features)
    ids: Any = {"impression": "impression_id", "document": "document_id", "timestamp": "timestamp"}
    x = rows[["impression_id", "query_id", "document_id", "position", "timestamp", "a", "b"]]
    ranker = SafeRanker(**SETTINGS).fit(x, rows["click"], qid="query_id", position="position", **ids)
    assert ranker.policy.schema == expected.policy.schema
    assert parameters(ranker.policy.scorer) == parameters(expected.policy.scorer)
    verdicts = [
        one.certify(log, features, trust_stability=True, details=False).improvement for one in (ranker, expected)
    ]
    assert verdicts[0] == verdicts[1]


def test_arrays_in_the_spelling_of_lightgbm(rows: Any) -> None:
    """Without ids of impressions it learns and predicts, but nobody knows what was held out."""
    x, clicks = rows[["a", "b"]].to_numpy(), rows["click"].to_numpy()
    group = rows.groupby("impression_id", sort=False).size().to_numpy()
    ranker = SafeRanker(**SETTINGS).fit(x, clicks, qid=rows["query_id"].to_numpy(), group=group)
    assert ranker.predict(x[:6]).shape == (6,)
    features = rows[["query_id", "document_id", "a", "b"]].drop_duplicates().rename(columns={"a": "1", "b": "2"})
    with pytest.raises(Refused) as refused:
        ranker.certify(rows.drop(columns=["a", "b"]), features)
    assert refused.value.code == "impressions-without-ids"
    with pytest.raises(UsageError):
        SafeRanker(**SETTINGS).fit("log.parquet", "features.parquet", position=[1, 2])
    with pytest.raises(UsageError, match="qid or group"):
        SafeRanker(**SETTINGS).fit(x, clicks)


def test_parameters_and_clones(rows: Any) -> None:
    ranker = SafeRanker(**SETTINGS, categorical=["brand"], seed=3)
    given = ranker.get_params()
    assert given["categorical"] == ["brand"]
    assert {name: given[name] for name in SETTINGS} == SETTINGS
    copied = clone(ranker)
    assert copied.get_params() == given
    assert copied.settings == ranker.settings
    assert copied.set_params(delta=0.2, seed=4) is copied
    assert (copied.settings.delta, copied.settings.training.seed) == (0.2, 4)
    assert ranker.settings.training.seed == 3
    with pytest.raises(UsageError):
        ranker.set_params(nothing=1)
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(ranker)
    fitted = SafeRanker(**SETTINGS).fit(
        rows[["a", "b"]], rows["click"], qid=rows["query_id"], position=rows["position"]
    )
    check_is_fitted(fitted)
    policy = fitted.policy
    assert fitted.set_params(delta=0.3).policy is policy


def test_the_last_step_of_a_pipeline(rows: Any) -> None:
    x, of_rows = (
        rows[["a", "b"]].to_numpy(),
        {"qid": rows["query_id"].to_numpy(), "position": rows["position"].to_numpy()},
    )
    pipeline = make_pipeline(StandardScaler(), SafeRanker(**SETTINGS))
    pipeline.fit(x, rows["click"].to_numpy(), **{f"saferanker__{name}": value for name, value in of_rows.items()})
    by_hand = SafeRanker(**SETTINGS).fit(StandardScaler().fit_transform(x), rows["click"].to_numpy(), **of_rows)
    expected = by_hand.predict(StandardScaler().fit(x).transform(x[:12]))
    np.testing.assert_allclose(pipeline.predict(x[:12]), expected, rtol=1e-6)


def clicks_on_top(ranker: SafeRanker, x: Any, clicks: Any) -> float:
    """Share of the clicks on what the ranker puts first: for a choice, and not a verdict."""
    scores: NDArray[np.float32] = ranker.predict(x)
    best = pd.DataFrame({"query": x["query_id"].to_numpy(), "score": scores}).groupby("query")["score"].transform("max")
    return float(np.asarray(clicks)[scores == best.to_numpy()].mean())


def test_a_grid_search_over_whole_queries(rows: Any) -> None:
    shown = rows.sort_values(["query_id", "impression_id", "position"])
    search = GridSearchCV(
        SafeRanker(**SETTINGS),
        {"method": ["naive", "exposure-ips"]},
        scoring=clicks_on_top,
        cv=GroupKFold(2),
    )
    x = shown[["query_id", "position", "a", "b"]]
    search.fit(x, shown["click"], groups=shown["query_id"], qid="query_id", position="position")
    assert len(search.cv_results_["params"]) == 2
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.get_params()["method"] == search.best_params_["method"]
    assert search.predict(x[:6]).shape == (6,)
