"""The whole way: a simulated log as a Parquet file, features as another, a policy in a folder, its rankings."""

import doctest
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import saferank
from saferank.datasets.dataset import Dataset
from saferank.datasets.letor import read_letor
from saferank.datasets.synthetic import synthetic_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.errors import DataError, UsageError
from saferank.engine.metrics import expected_ndcg
from saferank.engine.objectives.risk import Risk
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import with_ids
from saferank.features.reader import read_features
from saferank.features.schema import FeatureSchema
from saferank.lab.paper_methods import evaluate
from saferank.lab.raw_log import write_raw_log
from saferank.lab.simulate import simulate
from saferank.lab.world import World, make_world, prepare
from saferank.learning.compare_policies import compare
from saferank.learning.learn import learn
from saferank.learning.logged_parts import logged_parts
from saferank.learning.methods import METHODS
from saferank.learning.settings import TrainingSettings
from saferank.learning.start import LINEAR, logging_model
from saferank.learning.training_loop import one_thread
from saferank.logs.load_log import load_log
from saferank.policy.scorers.trees import Trees
from saferank.policy.serve import serve
from saferank.ranker import SafeRanker
from saferank.verdict.certificate import Certificate
from tests.cli.running import run_here
from tests.learning.aggregated import aggregated_log
from tests.learning.problem import EXAMINATION, parameters
from tests.learning.small_log import DATA, LOG, LOGS, PART, QUICK
from tests.policy.made import write_features
from tests.shops import feature_table, noisy_world

CLICKS = PositionBasedModel(relevance_slope=0.2, relevance_noise=0.1)
INTERACTIONS = 15_000
LINEAR_CRM: Any = {"method": "exposure-crm", "scorer": "linear"}


@dataclass(frozen=True)
class Written:
    """What a user has, and what only the simulator knows."""

    log: Path
    features: Path
    simulated: LogStatistics
    world: World


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """Of a quarter of `synthetic:small`."""
    folder, small = tmp_path_factory.mktemp("whole"), synthetic_dataset("small")
    train = small.train.subset(np.arange(small.train.queries // 4))
    rng = np.random.default_rng(0)
    with one_thread():
        world = make_world(prepare(replace(small, train=train)), seed=1, fraction=0.1)
        drawn = world.train, world.logging_scores["train"], CLICKS, INTERACTIONS, rng
        log = write_raw_log(folder / "log.parquet", *drawn)
        write_features(folder / "features.parquet", with_ids(train))
        yield Written(folder / "log.parquet", folder / "features.parquet", log, world)


def part_of(impression: int) -> str:
    """By the digest of `0:impression`, as a number from 0 to 1."""
    place = int(hashlib.md5(f"0:{impression}".encode()).hexdigest()[:13], 16) / 16**13
    return "train" if place < 0.6 else "validation" if place < 0.8 else "certify"


def counted(log: Path, data: RankingData) -> dict[str, LogStatistics]:
    """The counts of each part, row by row in plain Python."""
    assert data.query_ids is not None
    row_of = {query_id: data.offsets[query] for query, query_id in enumerate(data.query_ids)}
    query_of = {query_id: query for query, query_id in enumerate(data.query_ids)}
    shape = data.documents, CLICKS.cutoff
    counts = {
        part: (np.zeros(data.queries, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
        for part in ("train", "validation", "certify")
    }
    columns = ("impression_id", "query_id", "document_id", "position", "click")
    table = pq.read_table(log, columns=list(columns))
    for impression, query, document, position, click in zip(
        *(table[name].to_pylist() for name in columns), strict=True
    ):
        interactions, shown, clicked = counts[part_of(impression)]
        place = row_of[query] + int(document[1:]), position - 1
        interactions[query_of[query]] += position == 1
        shown[place] += 1
        clicked[place] += click
    return {part: LogStatistics(data.offsets, *tables) for part, tables in counts.items()}


def test_from_log_to_ranking(written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is the one fitted on the simulator's counts, and on labels better than the logging policy."""
    monkeypatch.setattr("saferank.learning.start.MOST_QUERIES", 100)
    monkeypatch.setattr("saferank.learning.climb.STOPS", (1, 5, 27))
    monkeypatch.setattr("saferank.learning.relevance.MOST_TREES", 40)
    monkeypatch.setattr("saferank.learning.start.LINEAR", replace(LINEAR, epochs=3))
    world = written.world
    ranker = SafeRanker(examination="inverse-rank:2", seed=5).fit(written.log, written.features)

    parts = counted(written.log, world.train)
    whole = parts["train"].merge(parts["validation"]).merge(parts["certify"])
    for name in ("interactions", "shown", "clicked"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(written.simulated, name))
    logged = logged_parts(world.train, parts["train"], parts["validation"], CLICKS.examination)
    scorer = logging_model("gbdt", *logged, seed=5)
    learn(scorer, METHODS["auto"], *logged, training=TrainingSettings(seed=5))
    assert parameters(ranker.policy.scorer) == parameters(scorer)

    test = synthetic_dataset("small").test.with_relevant_document()
    scores = ranker.predict(test.features, test.offsets)
    learned = float(expected_ndcg(scores, test.require_labels(), test.offsets, 5).mean())
    logging, _ = evaluate(world.logging_scorer, world.test)
    assert learned > logging + 0.005  # 0.034 here
    np.testing.assert_allclose(evaluate(ranker.policy.scorer, world.test)[0], learned, rtol=1e-5)

    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(SafeRanker.load(tmp_path / "model").predict(test.features, test.offsets), scores)


def fit(**options: object) -> SafeRanker:
    chosen = {**LINEAR_CRM, "examination": EXAMINATION, "training": QUICK, "seed": 4, **options}
    return SafeRanker(**chosen).fit(LOG, DATA)


@pytest.fixture(scope="module")
def fitted() -> SafeRanker:
    """For tests that change nothing in it."""
    return fit()


def test_predict_and_rank_take_raw_features(fitted: SafeRanker) -> None:
    ranker = fitted
    scores = ranker.predict(DATA.features, DATA.offsets)
    np.testing.assert_array_equal(scores, ranker.policy.scores(DATA))
    np.testing.assert_array_equal(scores, ranker.predict(DATA))
    first = DATA.features[: DATA.offsets[1]]
    np.testing.assert_allclose(ranker.predict(first), scores[: DATA.offsets[1]], rtol=1e-6)
    by_score = ranker.rank(DATA.features, DATA.offsets, cutoff=2)
    expected = serve(scores, DATA.offsets, EXAMINATION[:2])
    np.testing.assert_array_equal(by_score.rank, expected.rank)
    np.testing.assert_array_equal(by_score.exposure, expected.exposure)
    drawn = ranker.rank(DATA, serve_as="sampled", seed=3)
    expected = serve(scores, DATA.offsets, EXAMINATION, serve_as="sampled", rng=np.random.default_rng(3))
    np.testing.assert_array_equal(drawn.rank, expected.rank)
    np.testing.assert_array_equal(drawn.log_probability, expected.log_probability)


def table_of(data: RankingData, names: list[str]) -> pa.Table:
    """The features by these names, in this order, between columns that are none."""
    assert data.feature_names is not None
    columns = dict(zip(data.feature_names, data.features.T, strict=True))
    query = pa.array([f"query {place}" for place in data.query_of_document])
    return pa.table({"query_id": query} | {name: columns[name] for name in names} | {"label": query})


def test_where_queries_begin_may_be_said_in_three_ways(fitted: SafeRanker) -> None:
    ranker = fitted
    rows, offsets = DATA.features[DATA.offsets[0] : DATA.offsets[3]], DATA.offsets[:4]
    sizes = np.diff(offsets)
    expected = ranker.predict(rows, offsets)
    np.testing.assert_array_equal(ranker.predict(rows, group=sizes), expected)
    np.testing.assert_array_equal(ranker.predict(rows, qid=np.repeat(["c", "a", "b"], sizes)), expected)
    assert not np.array_equal(ranker.predict(rows), expected)  # as one query, scaled as such
    with pytest.raises(UsageError):
        ranker.predict(rows, offsets, group=sizes)
    with pytest.raises(DataError):
        ranker.predict(rows, qid=np.resize(["a", "b"], len(rows)))


@pytest.mark.parametrize("kind", ["pyarrow", "pandas"])
def test_reordered_columns_of_a_table_are_scored_by_name(kind: str, fitted: SafeRanker) -> None:
    ranker, table = fitted, table_of(DATA, list("dbca"))
    frame, only = table, table.select(list("dbca"))
    if kind == "pandas":
        frame, only = frame.to_pandas(), only.to_pandas()
    scores = ranker.policy.scores(DATA)
    np.testing.assert_array_equal(ranker.predict(only, DATA.offsets), scores)
    np.testing.assert_array_equal(ranker.predict(frame), scores)
    np.testing.assert_array_equal(ranker.rank(frame).rank, serve(scores, DATA.offsets, EXAMINATION).rank)
    np.testing.assert_array_equal(ranker.predict(frame, [0, len(scores)]), ranker.predict(DATA.features))
    wider = replace(DATA, features=np.column_stack([scores, DATA.features]), feature_names=("old", *"abcd"))
    np.testing.assert_array_equal(ranker.predict(wider), scores)
    with pytest.raises(DataError) as raised:
        ranker.predict(table_of(DATA, list("dba")))
    assert raised.value.column == "c"


def test_an_array_of_other_width_names_the_features(fitted: SafeRanker) -> None:
    with pytest.raises(DataError, match="a, b, c, d"):
        fitted.predict(DATA.features[:, :3])


def test_every_call_draws_afresh_unless_a_seed_is_given(fitted: SafeRanker) -> None:
    ranker = fitted
    drawn = [ranker.rank(DATA, serve_as="sampled").rank.tolist() for _ in range(5)]
    assert any(rank != drawn[0] for rank in drawn)
    seeded = [ranker.rank(DATA, serve_as="sampled", seed=1).rank.tolist() for _ in range(2)]
    assert seeded[0] == seeded[1]


def test_loading_restores_what_is_known_of_log_and_features(tmp_path: Path) -> None:
    wider = replace(
        DATA,
        features=np.column_stack([DATA.features, PART.logging_scores]).astype(np.float32),
        feature_names=(*"abcd", "production"),
    )
    chosen = {"examination": EXAMINATION, "logging_scores": "production", "missing": 0.5, "log1p": False}
    ranker = SafeRanker(**LINEAR_CRM, scaling="none", training=QUICK, **chosen)  # type: ignore[arg-type]
    ranker.fit(LOG, wider).save(tmp_path / "model")
    loaded = SafeRanker.load(tmp_path / "model")
    assert loaded.logging_scores == "production"
    for name in ("missing", "log1p", "scaling", "scorer"):
        assert getattr(loaded.settings, name) == getattr(ranker.settings, name)
    np.testing.assert_array_equal(np.asarray(loaded.examination), EXAMINATION)
    holed = table_of(wider, list("abcd")).set_column(1, "a", pa.nulls(DATA.documents))
    filled = replace(DATA, features=np.column_stack([np.full(DATA.documents, 0.5), DATA.features[:, 1:]]))
    np.testing.assert_array_equal(loaded.predict(holed), ranker.predict(filled))


def test_logging_scores_are_a_column_and_then_not_a_feature(fitted: SafeRanker) -> None:
    scores = PART.logging_scores.astype(np.float32)
    wider = replace(DATA, features=np.column_stack([DATA.features, scores]), feature_names=(*"abcd", "production"))
    ranker = SafeRanker(**LINEAR_CRM, examination=EXAMINATION, training=QUICK, logging_scores="production")
    ranker.fit(LOG, wider)
    assert ranker.policy.schema.names == ("a", "b", "c", "d")
    _, part = logged_parts(DATA, LOGS["train"], LOGS["validation"], EXAMINATION, Risk(), scores)
    ever_shown = LOGS["train"].times_shown + LOGS["validation"].times_shown > 0
    assert ranker.comparison[0] == compare("current ranker", part.logging_exposure, part, ever_shown)
    assert ranker.comparison[0] != fitted.comparison[0]
    assert ranker.policy.manifest["inputs"]["logging_scores"] == "production"


def test_examination_is_estimated_from_the_parts_that_are_learned_from(tmp_path: Path) -> None:
    many = aggregated_log(DATA, {part: make_log(part, 300_000) for part in ("train", "validation")})
    ranker = SafeRanker(**LINEAR_CRM, training=QUICK).fit(many, DATA)
    np.testing.assert_allclose(ranker.policy.examination, EXAMINATION, rtol=0.1)
    assert ranker.policy.manifest["inputs"]["examination"] == "estimated by harvesting"
    few = aggregated_log(DATA, {part: make_log(part, 60) for part in ("train", "validation")})
    doubtful = SafeRanker(**LINEAR_CRM, training=QUICK).fit(few, DATA)
    assert doubtful.warnings
    doubtful.save(tmp_path / "model")
    loaded = SafeRanker.load(tmp_path / "model")
    assert (loaded.examination, loaded.warnings) == (None, doubtful.warnings)


def make_log(part: str, interactions: int) -> LogStatistics:
    rng = np.random.default_rng([9, len(part)])
    return simulate(PART.logging_scores, DATA.offsets, PART.relevance, EXAMINATION, interactions, rng)


@pytest.mark.parametrize(
    ("examination", "cutoff", "wanted"),
    [
        (None, None, None),
        (None, 4, 4),
        ("inverse-rank:1", None, None),
        ("inverse-rank:1", 7, 7),
        ("1,0.5", None, 2),
        ([1.0, 0.5, 0.2], None, 3),
        (np.array([1.0, 0.5, 0.2]), None, 3),
    ],
)
def test_how_many_ranks_of_a_log_are_counted(examination: object, cutoff: int | None, wanted: int | None) -> None:
    assert SafeRanker(examination=examination, cutoff=cutoff).wanted_cutoff == wanted  # type: ignore[arg-type]


def test_examination_as_text_and_as_numbers() -> None:
    one, two = fit(examination="1,0.5,0.25"), fit(examination=[1, 0.5, 0.25])
    assert parameters(one.policy.scorer) == parameters(two.policy.scorer)
    np.testing.assert_allclose(fit(examination="inverse-rank:1").policy.examination, [1, 1 / 2, 1 / 3])


@pytest.mark.parametrize(
    "wrong",
    [
        {"examination": [1, 0.5]},
        {"examination": "1,0.5"},
        {"examination": None, "cutoff": 2},
        {"examination": "1,0.5", "cutoff": 3},
        {"examination": "inverse-rank"},
        {"method": "magic"},
    ],
)
def test_wrong_calls(wrong: dict[str, object]) -> None:
    """The log is counted for three ranks."""
    with pytest.raises(UsageError):
        fit(**wrong)


def test_calls_without_a_policy_or_with_offsets_twice(fitted: SafeRanker) -> None:
    with pytest.raises(UsageError):
        SafeRanker().predict([[1.0]])
    with pytest.raises(UsageError):
        fitted.predict(DATA, DATA.offsets)


def test_the_former_name_of_the_constant_still_works() -> None:
    with pytest.warns(DeprecationWarning, match="constant="):
        assert SafeRanker(bound="paper").settings == SafeRanker(constant="paper").settings


def test_the_same_seed_gives_the_same_policy_and_another_another() -> None:
    one, two, other = fit(), fit(), fit(seed=5)
    assert parameters(one.policy.scorer) == parameters(two.policy.scorer)
    assert parameters(one.policy.scorer) != parameters(other.policy.scorer)


@pytest.mark.usefixtures("short_training")
def test_the_example_of_the_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    labels = PART.relevance.astype(np.float32)
    data = replace(DATA, features=DATA.features[:, :2], feature_names=("bm25", "clicks"), labels=labels)
    model = PositionBasedModel(relevance_slope=1.0, relevance_noise=0.0)
    write_raw_log("log.parquet", data, PART.logging_scores, model, 2_000, np.random.default_rng(0))
    write_features(tmp_path / "features.parquet", data)
    results = [
        doctest.DocTestRunner().run(example)
        for example in doctest.DocTestFinder(recurse=False).find(SafeRanker, "SafeRanker")
    ]
    assert [(result.failed, result.attempted) for result in results] == [(0, 5)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("Dataset", Dataset), ("RankingData", RankingData), ("read_features", read_features), ("read_letor", read_letor)],
)
def test_former_public_names_still_work(name: str, value: object) -> None:
    with pytest.warns(DeprecationWarning, match=f"saferank.{name} is deprecated"):
        assert getattr(saferank, name) is value


# The verdict from Python is that of the command.


def holed_features(table: pa.Table) -> pa.Table:
    """Every seventh value of the first feature is missing."""
    place = table.column_names.index("a")
    values = [None if row % 7 == 0 else value for row, value in enumerate(table["a"].to_pylist())]
    return table.set_column(place, "a", pa.array(values, pa.float32()))


@pytest.mark.usefixtures("short_training")
@pytest.mark.parametrize("known", [False, True])
def test_certify_is_what_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    """A model of features with missing values, and of a log whose scores are known or not."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    world = noisy_world(seed=rng)
    pq.write_table(world.draw(4_000, rng).table(), "log.parquet")
    data = world.shop.features(rng, columns=2)
    table = feature_table(replace(data, feature_names=("a", "b"))).append_column("old", pa.array(world.logging.flat))
    pq.write_table(holed_features(table if known else table.drop_columns("old")), "features.parquet")
    ranker = SafeRanker(**LINEAR_CRM, missing=0.0, cutoff=3, training=QUICK, logging_scores="old" if known else None)
    ranker.fit("log.parquet", "features.parquet").save("model")

    call = ["certify", "model", "log.parquet", "--features", "features.parquet", "--ledger", "command.json"]
    ran = run_here(call, monkeypatch, capsys)
    assert ran.exit_code in (0, 3, 4), ran.err
    command = Certificate.read("certificate.json")
    assert command.logging_exposure == ("known" if known else "counted")
    for name, one in (("fitted", ranker), ("loaded", SafeRanker.load("model"))):
        found = one.certify("log.parquet", "features.parquet", ledger=f"{name}.json")
        for name in ("verdict", "improvement", "lower", "upper", "interactions", "spent", "look", "needed", "bounds"):
            assert getattr(found, name) == getattr(command, name), name
    assert not Path("log.parquet.ledger.json").exists()


@pytest.mark.usefixtures("short_training")
def test_trees_correct_the_scores_in_a_column_and_then_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In every command, and from Python; the column is added to the trees as it is."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    world = noisy_world(seed=rng)
    shop = world.shop
    pq.write_table(world.draw(12_000, rng).table(), "log.parquet")
    plain = feature_table(replace(shop.features(rng, columns=2), feature_names=("a", "b")))
    old = world.logging.flat
    table = plain.append_column("old", pa.array(old))
    pq.write_table(table, "features.parquet")
    pq.write_table(plain, "without.parquet")
    pq.write_table(table.set_column(4, "old", pa.array(old + np.float32(1.5))), "higher.parquet")
    call = ["fit", "log.parquet", "--features", "features.parquet", "--out", "model", "--logging-scores", "old"]
    ran = run_here([*call, "--cutoff", "3", "--no-compare"], monkeypatch, capsys)
    assert ran.exit_code == 0, ran.err
    ranker = SafeRanker(cutoff=3, logging_scores="old").fit("log.parquet", "features.parquet")
    loaded = SafeRanker.load("model")
    assert (loaded.policy.schema.names, loaded.policy.schema.base) == (("a", "b"), "old")
    assert parameters(loaded.policy.scorer) == parameters(ranker.policy.scorer)

    scores = ranker.predict(table)
    trees = ranker.policy.scorer
    assert isinstance(trees, Trees)
    assert trees.forest.trees > 0
    prepared = FeatureSchema(("a", "b")).prepare(
        replace(shop.data(np.column_stack([plain["a"], plain["b"]])), feature_names=("a", "b"))
    )
    np.testing.assert_allclose(scores, old + trees.forest.scores(prepared.features), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ranker.predict(pq.read_table("higher.parquet")), scores + 1.5, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(loaded.predict(table), scores)
    np.testing.assert_array_equal(ranker.rank(table).rank, serve(scores, shop.data().offsets, np.ones(3)).rank)
    for use in (ranker.predict, ranker.rank):
        with pytest.raises(DataError) as raised:
            use(plain)
        assert raised.value.column == "old"

    ran = run_here(["rank", "model", "features.parquet", "--out", "ranked.parquet"], monkeypatch, capsys)
    assert ran.exit_code == 0, ran.err
    np.testing.assert_array_equal(pq.read_table("ranked.parquet")["score"].to_numpy(), scores)
    ran = run_here(["rank", "model", "without.parquet", "--out", "no.parquet"], monkeypatch, capsys)
    assert ran.exit_code == 1
    assert "'old'" in ran.err

    judge = ["certify", "model", "log.parquet", "--ledger", "command.json", "--features"]
    ran = run_here([*judge, "features.parquet"], monkeypatch, capsys)
    assert ran.exit_code in (0, 3, 4), ran.err
    command = Certificate.read("certificate.json")
    assert command.logging_exposure == "known"
    found = ranker.certify("log.parquet", "features.parquet", ledger="python.json", details=False)
    assert (found.verdict, found.improvement, found.lower) == (command.verdict, command.improvement, command.lower)
    ran = run_here([*judge, "without.parquet"], monkeypatch, capsys)
    assert ran.exit_code == 1
    assert "'old'" in ran.err
    with pytest.raises(DataError) as raised:
        ranker.certify("log.parquet", "without.parquet", ledger="python.json")
    assert raised.value.column == "old"


@pytest.mark.usefixtures("short_training")
def test_certify_keeps_a_ledger_beside_the_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    world = noisy_world(20, seed=rng)
    pq.write_table(world.draw(3_000, rng).table(), tmp_path / "log.parquet")
    data = world.shop.features(rng, columns=2)
    loaded = load_log(tmp_path / "log.parquet", cutoff=3)
    rankers = [SafeRanker(**LINEAR_CRM, cutoff=3, training=QUICK, seed=seed).fit(loaded, data) for seed in range(2)]
    spent = [ranker.certify(tmp_path / "log.parquet", data, details=False).spent for ranker in rankers]
    assert spent == pytest.approx([0.05 / 2, 0.05 / 6])
    assert (tmp_path / "log.parquet.ledger.json").exists()
    assert rankers[1].certify(loaded, data, details=False).spent == 0.05  # no ledger unless it is named
    with pytest.raises(UsageError):
        rankers[0].certify(tmp_path / "log.parquet", data, spent=0.5)
    with pytest.raises(UsageError):
        rankers[0].certify(loaded, data, bound="hope")


@pytest.mark.usefixtures("short_training")
def test_users_are_named_in_python_as_on_the_command_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    world = noisy_world(20, seed=rng)
    pq.write_table(world.draw(1_000, rng).table(), tmp_path / "log.parquet")
    data, ranker = world.shop.features(rng, columns=2), SafeRanker(**LINEAR_CRM, cutoff=3, training=QUICK)
    ranker.fit(tmp_path / "log.parquet", data, unit="user_id")
    assert ranker.policy.inputs["log"]["unit"] == "user_id"
    loaded = load_log(tmp_path / "log.parquet", cutoff=3)
    with pytest.raises(UsageError):
        ranker.fit(loaded, data, unit="user_id")


@pytest.mark.usefixtures("short_training")
def test_a_model_is_the_same_look_before_and_after_it_is_saved(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    world = noisy_world(20, seed=rng)
    log = world.draw(3_000, rng).aggregated(rng)
    data = world.shop.features(rng, columns=2)
    ranker = SafeRanker(**LINEAR_CRM, training=QUICK).fit(log, data)
    ranker.save(tmp_path / "model")
    looks = [
        one.certify(log, data, ledger=tmp_path / "looks.json", details=False).look
        for one in (ranker, SafeRanker.load(tmp_path / "model"))
    ]
    assert looks == [1, 1]


def test_fit_warns_that_certify_will_refuse_a_log_with_clicks_below_the_cutoff() -> None:
    rankers = []
    for below in (0, 40):
        sizes = {"parts": {"train": {"clicks": 40}}, "clicks_below_cutoff": below}
        log = replace(LOG, manifest=LOG.manifest | sizes)
        rankers.append(SafeRanker(examination=EXAMINATION, **LINEAR_CRM, epochs=1).fit(log, DATA))
    assert len(rankers[1].refused_for) == len(rankers[0].refused_for) + 1
    assert "50%" in rankers[1].refused_for[-1]
    assert "`cutoff`" in rankers[1].refused_for[-1] == rankers[1].warnings[-1]
    assert "--cutoff" in rankers[1].policy.inputs["warnings"][-1]  # for the command line
    assert len(repr(rankers[0].policy)) < 200


def test_fit_warns_that_certify_will_refuse_a_log_whose_clicks_lack_features() -> None:
    """Of the whole log first, and then without the features of every second query."""
    whole = SafeRanker(examination=EXAMINATION, **LINEAR_CRM, epochs=1).fit(LOG, DATA)
    some = DATA.subset(np.arange(0, DATA.queries, 2))
    dropped = SafeRanker(examination=EXAMINATION, **LINEAR_CRM, epochs=1, without_features="drop").fit(LOG, some)
    assert len(dropped.warnings) == len(whole.warnings) + 1
    assert "features" in dropped.warnings[-1]
