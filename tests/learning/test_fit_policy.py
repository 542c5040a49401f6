import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.exposure_crm import FLOOR
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.objectives.risk import Risk
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData, content_hash
from saferank.features.load_features import load_features
from saferank.features.schema import FeatureSchema
from saferank.files import large_table
from saferank.files.large_table import is_mapped
from saferank.learning.compare_policies import compare
from saferank.learning.fit_policy import FittedPolicy, Step, fit_policy
from saferank.learning.learn import learn
from saferank.learning.logged_parts import logged_parts
from saferank.learning.methods import FROM_COUNTS, METHODS
from saferank.learning.settings import FitSettings
from saferank.learning.start import logging_model
from saferank.learning.training_loop import FitResult
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees
from tests.learning.aggregated import aggregated_log
from tests.learning.problem import EXAMINATION, parameters
from tests.learning.small_log import DATA, LOG, LOGS, NAMES, PART, QUICK
from tests.policy.made import write_features

pytestmark = pytest.mark.usefixtures("short_trainings")  # the same on both sides of each comparison
CRM = FitSettings(method="exposure-crm", scorer="linear", training=QUICK, logging_policy="counted")
EVER_SHOWN = LOGS["train"].times_shown + LOGS["validation"].times_shown > 0


@pytest.fixture(scope="module")
def by_crm() -> FittedPolicy:
    """For tests that only read it."""
    return fit_policy(LOG, DATA, EXAMINATION, CRM)


def test_it_is_learning_from_the_two_parts_on_prepared_features(by_crm: FittedPolicy) -> None:
    fitted = by_crm
    parts = logged_parts(DATA.log1p().scaled_per_query(), LOGS["train"], LOGS["validation"], EXAMINATION)
    scorer = logging_model("linear", *parts, seed=4)
    result = learn(scorer, METHODS["exposure-crm"], *parts, training=QUICK, keep_start=True)
    policy = fitted.policy
    assert parameters(policy.scorer) == parameters(scorer)
    assert policy.schema == FeatureSchema(NAMES)
    np.testing.assert_array_equal(policy.examination, EXAMINATION)
    assert policy.manifest["training"]["best_epoch"] == result.best_epoch
    assert [epoch["estimate"] for epoch in policy.manifest["training"]["history"]] == [
        epoch.estimate for epoch in result.history
    ]
    logging, learned = fitted.comparison
    assert logging == compare("current ranker", parts[1].logging_exposure, parts[1], EVER_SHOWN)
    exposed = exposure(score(scorer, parts[0].data.features), DATA.offsets, EXAMINATION).astype(np.float64)
    assert learned == compare("exposure-crm", exposed, parts[1], EVER_SHOWN)
    np.testing.assert_allclose(policy.exposure(DATA), exposed, rtol=1e-5)


def test_the_certify_part_is_not_looked_at(by_crm: FittedPolicy) -> None:
    other = aggregated_log(DATA, {part: LOGS[part] for part in ("train", "validation")})
    one, two = by_crm, fit_policy(other, DATA, EXAMINATION, CRM)
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
    assert (settings["method"], settings["delta"], settings["constant"]) == ("exposure-crm", 0.05, "proven")
    assert settings["training"]["seed"] == 4
    assert (settings["clip"], settings["floor"]) == (training_clip(6_000), FLOOR)
    assert settings["logging_exposure"] == "counted"
    assert "not a certificate" in manifest["comparison"]["note"]
    assert [row["name"] for row in manifest["comparison"]["policies"]] == ["current ranker", "exposure-crm"]
    assert manifest["libraries"]["torch"] == version("torch")  # without +cpu or +cu130


def test_baselines_are_learned_after_the_method_and_change_nothing(by_crm: FittedPolicy) -> None:
    steps: list[Step] = []
    with_them = replace(CRM, baselines=True)
    fitted = fit_policy(LOG, DATA, EXAMINATION, with_them, progress=steps.append)
    alone = by_crm
    assert parameters(fitted.policy.scorer) == parameters(alone.policy.scorer)
    by_gradient = [name for name in FROM_COUNTS if METHODS[name].objective is not None]
    assert [row.name for row in fitted.comparison] == ["current ranker", *by_gradient]
    rows = {row.name: row for row in fitted.comparison}
    assert rows["exposure-crm"] == alone.comparison[1]
    others = [name for name in by_gradient if name != "exposure-crm"]
    assert list(dict.fromkeys(step.method for step in steps)) == ["exposure-crm", *others]
    assert [step.epoch.epoch for step in steps if step.method == "naive"] == [1, 2, 3, 4]
    assert {step.click_rate for step in steps} == {LOGS["train"].clicks.sum() / 6_000}
    naive = fit_policy(LOG, DATA, EXAMINATION, replace(CRM, method="naive"))
    assert naive.comparison[1] == rows["naive"]


def test_known_logging_scores_are_used() -> None:
    scores = PART.logging_scores.astype(np.float32)
    known = fit_policy(LOG, DATA, EXAMINATION, replace(CRM, logging_policy="auto"), logging_scores=scores)
    _, part = logged_parts(DATA, LOGS["train"], LOGS["validation"], EXAMINATION, Risk(), scores)
    assert known.comparison[0] == compare("current ranker", part.logging_exposure, part, EVER_SHOWN)
    assert known.policy.manifest["settings"]["logging_exposure"] == "known"


def test_a_start_is_where_training_begins(by_crm: FittedPolicy) -> None:
    first = by_crm.policy
    none = replace(CRM, training=replace(QUICK, epochs=0))
    assert parameters(fit_policy(LOG, DATA, EXAMINATION, none, start=first).policy.scorer) == parameters(first.scorer)
    assert parameters(fit_policy(LOG, DATA, EXAMINATION, none).policy.scorer) != parameters(first.scorer)


WIDER = replace(
    DATA,
    features=np.column_stack([DATA.features, PART.logging_scores]).astype(np.float32),
    feature_names=(*NAMES, "production"),
)
AUTO = FitSettings(training=QUICK)


@pytest.fixture(scope="module")
def by_trees() -> FittedPolicy:
    """Trees on a column of scores, for tests that only read them."""
    return fit_policy(LOG, WIDER, EXAMINATION, AUTO, logging_scores="production")


def test_trees_begin_with_the_column_of_the_logging_scores(by_trees: FittedPolicy) -> None:
    fitted = by_trees
    policy = fitted.policy
    assert (policy.schema.names, policy.schema.base) == (NAMES, "production")
    assert isinstance(policy.scorer, Trees)
    prepared = policy.schema.prepare(WIDER)
    parts = logged_parts(prepared, LOGS["train"], LOGS["validation"], EXAMINATION, Risk(), prepared.features[:, -1])
    scorer = Trees(5, "column")
    result = learn(scorer, METHODS["auto"], *parts, training=QUICK)
    assert parameters(policy.scorer) == parameters(scorer)
    assert policy.kind == ScorerKind("gbdt", scorer.settings)
    manifest = policy.manifest
    assert [one["name"] for one in manifest["training"]["path"]] == [one.name for one in result.path]
    assert result.chosen is not None
    assert manifest["training"]["chosen"]["gain"] == result.chosen.gain
    logging, learned = fitted.comparison
    assert result.saw_validation  # so the table has what is foreseen
    assert learned.estimate == pytest.approx(logging.estimate + result.chosen.improvement)
    shown = exposure(score(scorer, prepared.features), DATA.offsets, EXAMINATION).astype(np.float64)
    seen = compare("auto", shown, parts[1], EVER_SHOWN)
    assert seen.estimate - seen.lower_bound == pytest.approx(learned.estimate - learned.lower_bound)


def test_without_a_path_of_trees_the_table_has_what_clicks_on_other_queries_taught() -> None:
    fitted = fit_policy(LOG, WIDER, EXAMINATION, replace(AUTO, method="correction"), logging_scores="production")
    prepared = fitted.policy.schema.prepare(WIDER)
    parts = logged_parts(prepared, LOGS["train"], LOGS["validation"], EXAMINATION, Risk(), prepared.features[:, -1])
    result = learn(Trees(5, "column"), METHODS["correction"], *parts, training=QUICK)
    assert result.held_out_scores is not None
    shown = exposure(result.held_out_scores, DATA.offsets, EXAMINATION).astype(np.float64)
    assert fitted.comparison[1] == compare("correction", shown, parts[1], EVER_SHOWN)


def test_a_start_that_corrects_a_column_keeps_it(by_trees: FittedPolicy) -> None:
    """The trees of the first policy are those that the second begins with, on the same column."""
    first = by_trees.policy
    scores = first.scores(WIDER)
    second = fit_policy(LOG, WIDER, EXAMINATION, AUTO, logging_scores=scores, start=first).policy
    assert second.schema == first.schema
    assert isinstance(first.scorer, Trees)
    assert isinstance(second.scorer, Trees)
    assert second.scorer.start_kind == "column"
    kept = len(first.scorer.forest.value)
    np.testing.assert_array_equal(second.scorer.forest.value[:kept], first.scorer.forest.value)
    with pytest.raises(DataError) as raised:
        fit_policy(LOG, DATA, EXAMINATION, AUTO, logging_scores=scores, start=first)
    assert raised.value.column == "production"


def test_without_known_scores_trees_begin_with_a_model_of_the_logging_policy() -> None:
    fitted = fit_policy(LOG, DATA, EXAMINATION, AUTO).policy
    assert fitted.schema.base is None
    assert isinstance(fitted.scorer, Trees)
    parts = logged_parts(DATA.log1p().scaled_per_query(), LOGS["train"], LOGS["validation"], EXAMINATION)
    scorer = logging_model("gbdt", *parts, seed=4)
    learn(scorer, METHODS["auto"], *parts, training=QUICK)
    assert parameters(fitted.scorer) == parameters(scorer)


def test_shown_documents_without_features() -> None:
    fewer = DATA.subset(np.arange(1, DATA.queries))
    learned_from = aggregated_log(DATA, {part: LOGS[part] for part in ("train", "validation")})
    missing = learned_from.missing_pairs(fewer).sort_by([("shown_sum", "descending")]).to_pylist()
    first = missing[0]
    message = (
        f"features.parquet: lacks {len(missing)} of the pairs that log.parquet shows, such as query q0, document "
        f"{first['document_id']} (shown {first['shown_sum']:,} times); add their features, "
        "or leave them out (`on_bad_rows` drop, or without_features='drop' of SafeRanker)."
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
        "query_ids": np.char.add("x", DATA.query_ids.astype(str)),
        "document_ids": np.char.add("x", DATA.document_ids.astype(str)),
        "feature_names": NAMES[::-1],
        "offsets": np.concatenate([[0], [1], DATA.offsets[2:]]),
    }
    assert content_hash(replace(DATA, **{change: changed[change]})) != content_hash(DATA)


def test_delta_and_learning_rate_are_checked() -> None:
    with pytest.raises(UsageError, match=r"got 1\.5"):
        fit_policy(LOG, DATA, EXAMINATION, replace(CRM, delta=1.5))
    with pytest.raises(UsageError, match=r"learning rate 1e\+20"):
        replace(CRM, training=replace(QUICK, learning_rate=1e20))


def test_weights_that_are_not_finite_are_no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(scorer: torch.nn.Module, *_: object, **__: object) -> FitResult:
        scorer.load_state_dict({"layer.weight": torch.full((1, 4), torch.nan)})
        return FitResult(1, ())

    monkeypatch.setattr("saferank.learning.fit_policy.learn", lost)
    with pytest.raises(UsageError, match="exposure-crm went out of bounds in training; choose a lower learning rate"):
        fit_policy(LOG, DATA, EXAMINATION, CRM)


@pytest.mark.parametrize("scorer", ["gbdt", "linear"])
def test_features_in_a_mapped_file_give_the_same_policy(
    scorer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_features(tmp_path / "features.parquet", DATA, production=PART.logging_scores)
    settings = FitSettings(scorer=scorer, training=QUICK)
    policies = []
    for mapped_from in (1 << 28, 1):
        monkeypatch.setattr(large_table, "MAPPED_FROM", mapped_from)
        data = load_features(tmp_path / "features.parquet")
        assert is_mapped(data.features) == (mapped_from == 1)
        policies.append(fit_policy(LOG, data, EXAMINATION, settings, logging_scores="production").policy)
    assert parameters(policies[0].scorer) == parameters(policies[1].scorer)
    assert policies[0].manifest == policies[1].manifest
