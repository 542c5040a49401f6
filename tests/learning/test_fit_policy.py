import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.exposure_crm import FLOOR
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData, content_hash
from saferank.features.load_features import with_ids
from saferank.features.schema import FeatureSchema
from saferank.lab.simulate import simulate
from saferank.learning.comparison import compare
from saferank.learning.fit_policy import PolicySettings, Step, fit_policy
from saferank.learning.learn_from_log import METHODS, LearningSettings, LoggedParts, learn_from_log
from saferank.learning.training_loop import FitResult
from saferank.policy.policy import Policy, ScorerKind
from tests.learning.aggregated import aggregated_log
from tests.learning.problem import EXAMINATION, SETTINGS, make_part, parameters

NAMES = ("a", "b", "c", "d")
QUICK = replace(SETTINGS, seed=4)
CRM = PolicySettings(LearningSettings(training=QUICK), ScorerKind("linear"), baselines=False)
PART = make_part(1)
DATA = with_ids(replace(PART.data, feature_names=NAMES, source="features.parquet"))
LOGS = {
    part: simulate(
        PART.logging_scores, DATA.offsets, PART.relevance, EXAMINATION, size, np.random.default_rng([6, size])
    )
    for part, size in (("train", 6_000), ("validation", 2_000), ("certify", 2_001))
}
LOG = aggregated_log(DATA, LOGS)


def test_it_is_learning_from_the_two_parts_on_prepared_features() -> None:
    fitted = fit_policy(LOG, DATA, EXAMINATION, CRM)
    scorer = ScorerKind("linear").make(4, seed=4)
    parts = LoggedParts.of(LOGS["train"], LOGS["validation"], EXAMINATION)
    prepared = DATA.log1p().scaled_per_query()
    result = learn_from_log(scorer, prepared, parts, CRM.learning)
    policy = fitted.policy
    assert parameters(policy.scorer) == parameters(scorer)
    assert policy.schema == FeatureSchema(NAMES)
    np.testing.assert_array_equal(policy.examination, EXAMINATION)
    assert policy.manifest["training"]["best_epoch"] == result.best_epoch
    assert [epoch["estimate"] for epoch in policy.manifest["training"]["history"]] == [
        epoch.estimate for epoch in result.history
    ]
    logging, learned = fitted.comparison
    assert logging == compare("logging policy", parts.logging_exposure, parts, delta=0.05, bound="proven")
    assert learned == compare("exposure-crm", policy.exposure(DATA), parts, delta=0.05, bound="proven")


def test_the_certify_part_is_not_looked_at() -> None:
    other = aggregated_log(DATA, {part: LOGS[part] for part in ("train", "validation")})
    one, two = (fit_policy(log, DATA, EXAMINATION, CRM) for log in (LOG, other))
    assert parameters(one.policy.scorer) == parameters(two.policy.scorer)
    assert one.comparison == two.comparison
    assert one.policy.manifest["used_parts"] == ["train", "validation"]


def test_the_manifest_tells_all_and_survives_a_folder(tmp_path: Path) -> None:
    fitted = fit_policy(LOG, DATA, EXAMINATION, CRM, origin={"examination": "given: by hand"})
    fitted.policy.save(tmp_path / "model")
    manifest = Policy.load(tmp_path / "model").manifest
    assert manifest["inputs"]["log"] == LOG.manifest
    assert manifest["inputs"]["features"] == {
        "source": "features.parquet",
        "sha256": content_hash(DATA),
        "queries": DATA.queries,
        "documents": DATA.documents,
    }
    assert manifest["inputs"]["examination"] == "given: by hand"
    settings = manifest["settings"]
    assert (settings["method"], settings["delta"], settings["bound"]) == ("exposure-crm", 0.05, "proven")
    assert settings["training"]["seed"] == 4
    assert (settings["clip"], settings["floor"]) == (training_clip(6_000), FLOOR)
    assert settings["logging_exposure"] == "counted"
    assert "not a certificate" in manifest["comparison"]["note"]
    assert [row["name"] for row in manifest["comparison"]["policies"]] == ["logging policy", "exposure-crm"]
    assert manifest["libraries"]["torch"] == torch.__version__


def test_baselines_are_learned_after_the_method_and_change_nothing() -> None:
    steps: list[Step] = []
    with_them = replace(CRM, baselines=True)
    fitted = fit_policy(LOG, DATA, EXAMINATION, with_them, progress=steps.append)
    alone = fit_policy(LOG, DATA, EXAMINATION, CRM)
    assert parameters(fitted.policy.scorer) == parameters(alone.policy.scorer)
    assert [row.name for row in fitted.comparison] == ["logging policy", *METHODS]
    assert fitted.comparison[3] == alone.comparison[1]
    assert list(dict.fromkeys(step.method for step in steps)) == ["exposure-crm", "naive", "exposure-ips"]
    assert [step.epoch.epoch for step in steps if step.method == "naive"] == [1, 2, 3, 4]
    assert {step.click_rate for step in steps} == {LOGS["train"].clicks.sum() / 6_000}
    naive = fit_policy(LOG, DATA, EXAMINATION, replace(CRM, learning=replace(CRM.learning, method="naive")))
    assert naive.comparison[1] == fitted.comparison[1]


def test_known_logging_scores_are_used() -> None:
    scores = PART.logging_scores.astype(np.float32)
    known = fit_policy(LOG, DATA, EXAMINATION, CRM, logging_scores=scores)
    parts = LoggedParts.of(LOGS["train"], LOGS["validation"], EXAMINATION, logging_scores=scores)
    assert known.comparison[0] == compare("logging policy", parts.logging_exposure, parts, delta=0.05, bound="proven")
    assert known.policy.manifest["settings"]["logging_exposure"] == "known"


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    def stop(step: Step) -> None:
        if step.epoch.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_policy(LOG, DATA, EXAMINATION, CRM, checkpoint=tmp_path, progress=stop)
    later: list[Step] = []
    resumed = fit_policy(LOG, DATA, EXAMINATION, CRM, checkpoint=tmp_path, progress=later.append)
    assert [step.epoch.epoch for step in later] == [3, 4]
    whole = fit_policy(LOG, DATA, EXAMINATION, CRM)
    assert parameters(resumed.policy.scorer) == parameters(whole.policy.scorer)
    other = replace(DATA, features=DATA.features * np.float32(2))
    later.clear()
    fit_policy(LOG, other, EXAMINATION, CRM, checkpoint=tmp_path, progress=later.append)
    assert [step.epoch.epoch for step in later] == [1, 2, 3, 4]  # other features: not the same run


def test_shown_documents_without_features() -> None:
    fewer = DATA.subset(np.arange(1, DATA.queries))
    learned_from = aggregated_log(DATA, {part: LOGS[part] for part in ("train", "validation")})
    missing = learned_from.missing_pairs(fewer).sort_by([("shown_sum", "descending")]).to_pylist()
    first = missing[0]
    message = (
        f"features.parquet: lacks {len(missing)} of the pairs that log.parquet shows, such as query q0, document "
        f"{first['document_id']} (shown {first['shown_sum']:,} times); add their features, "
        "or leave them out (--on-bad-rows drop)."
    )
    with pytest.raises(DataError, match=re.escape(message)):
        fit_policy(LOG, fewer, EXAMINATION, CRM)
    fitted = fit_policy(LOG, fewer, EXAMINATION, replace(CRM, without_features="drop"))
    assert fitted.left_out == len(missing)
    assert fitted.policy.manifest["inputs"]["shown_pairs_without_features"] == len(missing)

    def rest(part: str) -> LogStatistics:
        return LOGS[part].subset(np.arange(1, DATA.queries))

    alone = fit_policy(aggregated_log(fewer, {part: rest(part) for part in LOGS}), fewer, EXAMINATION, CRM)
    assert parameters(fitted.policy.scorer) == parameters(alone.policy.scorer)


@pytest.mark.parametrize("change", ["features", "query_ids", "document_ids", "feature_names", "offsets"])
def test_the_hash_is_of_the_content(change: str) -> None:
    same = RankingData(
        np.asfortranarray(DATA.features),
        DATA.offsets,
        query_ids=DATA.query_ids,
        document_ids=DATA.document_ids,
        feature_names=NAMES,
        source="elsewhere",
    )
    assert content_hash(same) == content_hash(DATA)
    assert DATA.query_ids is not None
    assert DATA.document_ids is not None
    changed: dict[str, Any] = {
        "features": DATA.features + (np.arange(DATA.documents) == 5)[:, None].astype(np.float32),
        "query_ids": np.char.add("x", DATA.query_ids),
        "document_ids": np.char.add("x", DATA.document_ids),
        "feature_names": NAMES[::-1],
        "offsets": np.concatenate([[0], [1], DATA.offsets[2:]]),
    }
    assert content_hash(replace(DATA, **{change: changed[change]})) != content_hash(DATA)


def test_delta_and_learning_rate_are_checked() -> None:
    with pytest.raises(UsageError):
        fit_policy(LOG, DATA, EXAMINATION, replace(CRM, learning=replace(CRM.learning, delta=1.5)))
    fast = replace(CRM.learning, training=replace(QUICK, learning_rate=1e20))
    with pytest.raises(UsageError, match=r"learning rate 1e\+20: must be above 0, and at most 10"):
        fit_policy(LOG, DATA, EXAMINATION, replace(CRM, learning=fast))


def test_weights_that_are_not_finite_are_no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(scorer: torch.nn.Module, *_: object, **__: object) -> FitResult:
        scorer.load_state_dict({"layer.weight": torch.full((1, 4), torch.nan)})
        return FitResult(1, ())

    monkeypatch.setattr("saferank.learning.fit_policy.learn_from_log", lost)
    with pytest.raises(UsageError, match="exposure-crm went out of bounds in training; choose a lower learning rate"):
        fit_policy(LOG, DATA, EXAMINATION, CRM)
