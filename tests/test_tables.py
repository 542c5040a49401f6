"""Tables in memory, of whatever library and with the user's own names: the same as files, from fit to verdict."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank import (
    DataError,
    SafeRanker,
    UsageError,
    certify,
    diagnose,
    load_features,
    load_log,
    make_plan,
    split_log,
)
from saferank.doctor.health import Health
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.run_query import connect, quietly
from saferank.logs.training_rows import TrainingRows
from saferank.verdict.certificate import Certificate
from saferank.verdict.settings import CertifySettings
from tests.learning.problem import parameters
from tests.learning.small_log import QUICK
from tests.shops import feature_table, noisy_world

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytestmark = pytest.mark.usefixtures("short_trainings")

NAMED = {"impression_id": "search", "query_id": "text", "document_id": "sku", "position": "rank", "click": "clicked"}
SETTINGS: Any = {"method": "exposure-crm", "scorer": "linear", "training": QUICK, "cutoff": 3}
MADE_OF: Any = {"missing": "indicator", "categorical": ["brand"]}
KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "pyarrow": lambda table: table,
    "ibis": lambda table: connect().create_table("made_up", ibis.memtable(table), temp=True),
    "batch": lambda table: table.combine_chunks().to_batches()[0],
}


@pytest.fixture(scope="module")
def tables() -> tuple[pa.Table, pa.Table]:
    """A log with true and false, and features with a column of text and missing values, by the user's names."""
    rng = np.random.default_rng(1)
    world = noisy_world(seed=rng)
    log = world.draw(4_000, rng).table()
    log = log.set_column(log.column_names.index("click"), "click", log["click"].cast(pa.bool_()))
    features = feature_table(replace(world.shop.features(rng, columns=2), feature_names=("a", "b")))
    holes = [None if row % 7 == 0 else value for row, value in enumerate(features["a"].to_pylist())]
    brands = pa.array(["x", "y", "z"] * (len(features) // 3)).dictionary_encode()
    features = features.set_column(features.column_names.index("a"), "a", pa.array(holes, pa.float32()))
    features = features.append_column("brand", brands).append_column("title", pa.array(["t"] * len(features)))
    return tuple(
        table.rename_columns([NAMED.get(name, name) for name in table.column_names]) for table in (log, features)
    )


@pytest.fixture(scope="module")
def files(tables: tuple[pa.Table, pa.Table], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("files")
    for table, name in zip(tables, ("log", "features"), strict=True):
        pq.write_table(table, folder / f"{name}.parquet")
    return folder / "log.parquet", folder / "features.parquet"


@pytest.fixture(scope="module")
def fitted(files: tuple[Path, Path]) -> SafeRanker:
    return SafeRanker(**SETTINGS, **MADE_OF).fit(*files, columns=NAMED)


@pytest.fixture(scope="module")
def of_files(files: tuple[Path, Path], fitted: SafeRanker) -> tuple[AggregatedLog, RankingData, Certificate]:
    """The log, the features and the verdict."""
    log = load_log(files[0], columns=NAMED)
    features = load_features(files[1], id_columns=NAMED, categorical=["brand"], missing="nan")
    return log, features, fitted.certify(*files, columns=NAMED, ledger=files[0].parent / "looks.json", details=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_read_as_its_file_is(
    tables: tuple[pa.Table, pa.Table], of_files: tuple[AggregatedLog, RankingData, Certificate], kind: str
) -> None:
    with quietly():
        log, features = (KINDS[kind](table) for table in tables)
    assert load_log(log, columns=NAMED).shown_counts == of_files[0].shown_counts
    found = load_features(features, id_columns=NAMED, categorical=["brand"], missing="nan")
    np.testing.assert_array_equal(found.features, of_files[1].features)
    assert found.feature_names == of_files[1].feature_names


@pytest.mark.parametrize("kind", ["pandas", "ibis"])
def test_a_table_teaches_and_certifies_as_its_file_does(
    tables: tuple[pa.Table, pa.Table],
    of_files: tuple[AggregatedLog, RankingData, Certificate],
    fitted: SafeRanker,
    kind: str,
    tmp_path: Path,
) -> None:
    """One that is copied into memory as it is, and one that stays in its engine."""
    with quietly():
        log, features = (KINDS[kind](table) for table in tables)
    ranker = SafeRanker(**SETTINGS, **MADE_OF).fit(log, features, columns=NAMED)
    assert parameters(ranker.policy.scorer) == parameters(fitted.policy.scorer)
    assert ranker.policy.schema == fitted.policy.schema
    assert ranker.policy.schema.numbers == ("a", "b")
    assert ranker.columns_left_out == ("title",)
    of_table = ranker.certify(log, features, columns=NAMED, ledger=tmp_path / "looks.json", details=False)
    for name in ("verdict", "improvement", "lower", "upper", "interactions"):
        assert getattr(of_table, name) == getattr(of_files[2], name), name


FEW: Any = {"replicates": 2, "em": False, "columns": NAMED, "cutoff": 3}
"""What is asked of doctor."""


@pytest.fixture(scope="module")
def health(files: tuple[Path, Path]) -> Health:
    """What doctor finds in the files."""
    return diagnose(*files, [1, 1 / 2, 1 / 3], **FEW)


@pytest.fixture(scope="module")
def written_split(files: tuple[Path, Path]) -> tuple[TrainingRows, list[dict[str, Any]]]:
    """The split of the file, and its rows in order."""
    made = split_log(files[0], str(files[0].parent / "split.parquet"), columns=NAMED)
    return made, in_order(files[0].parent / "split.parquet")


def in_order(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).sort_by([(n, "ascending") for n in ("search", "rank")]).to_pylist()
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_doctor_and_split_of_a_table(
    tables: tuple[pa.Table, pa.Table],
    health: Health,
    written_split: tuple[TrainingRows, list[dict[str, Any]]],
    kind: str,
    tmp_path: Path,
) -> None:
    with quietly():
        log, features = (KINDS[kind](table) for table in tables)
    steps: list[str] = []
    found = diagnose(log, features, "inverse-rank:1", progress=steps.append, **FEW)
    assert found.findings == health.findings
    assert (found.coverage, found.randomness) == (health.coverage, health.randomness)
    assert found.coverage is not None
    assert found.randomness.rankings is not None
    assert steps
    made = split_log(log, tmp_path / "train.parquet", columns=NAMED)
    assert (made, in_order(tmp_path / "train.parquet")) == written_split
    with pytest.raises(UsageError):
        split_log(log, tmp_path)


@pytest.mark.parametrize("split_by", ["hash", "time"])
def test_certify_takes_the_split_that_was_written(
    tables: tuple[pa.Table, pa.Table], split_by: str, tmp_path: Path
) -> None:
    made = split_log(tables[0], tmp_path / "train.parquet", split="50/20/30", split_by=split_by, columns=NAMED)
    seen = pq.read_table(tmp_path / "train.parquet")["search"].unique()
    scores = tables[1].select(["text", "sku"]).append_column("score", tables[1]["b"])
    options: Any = {"columns": NAMED, "details": False, "trained_without_held_out": True}
    found = certify(scores, tables[0], split=made.split, **options)
    assert (made.kept, made.held_out) == (len(seen), found.interactions)


@pytest.mark.usefixtures("few_queries")
def test_plan_of_a_table(tables: tuple[pa.Table, pa.Table], files: tuple[Path, Path]) -> None:
    log, features = (KINDS["polars"](table) for table in tables)
    made = make_plan(log, features, "b", columns=NAMED)
    assert made.scores_from == "given"
    assert made.ways == make_plan(*files, tables[1]["b"], columns=NAMED).ways
    assert made.ways != make_plan(log, columns=NAMED).ways  # only what was shown, by the mean rank in the log
    with pytest.raises(UsageError):
        make_plan(log, scores="b", columns=NAMED)
    with pytest.raises(DataError):
        make_plan(log, features.head(20), columns=NAMED)
    assert make_plan(log, features.head(20), columns=NAMED, on_bad_rows="drop").notes


def test_certify_finds_the_names_that_the_model_was_fitted_with(
    tables: tuple[pa.Table, pa.Table], files: tuple[Path, Path], fitted: SafeRanker, tmp_path: Path
) -> None:
    """Where our names are not there: a log with ours is read as before."""
    theirs = {name: ours for ours, name in NAMED.items()}
    ours = [table.rename_columns([theirs.get(name, name) for name in table.column_names]) for table in tables]
    fitted.save(tmp_path / "model")
    for given, ranker in ((tables, fitted), (files, SafeRanker.load(tmp_path / "model")), (ours, fitted)):
        found = ranker.certify(*given, ledger=tmp_path / "ledger.json", details=False)
        assert found.inputs["log"]["columns"]["query_id"] == ("query_id" if given is ours else "text")


@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_ranks_of_a_table(
    tables: tuple[pa.Table, pa.Table], files: tuple[Path, Path], fitted: SafeRanker, kind: str, tmp_path: Path
) -> None:
    """By name, whatever the order of columns; a file gives the same, and so does the model once it was saved."""
    data = load_features(files[1], id_columns=NAMED, categorical=["brand"], missing="nan")
    expected = fitted.policy.scores(data)
    fitted.save(tmp_path / "model")
    features = tables[1].rename_columns(
        [{"text": "query_id", "sku": "document_id"}.get(name, name) for name in tables[1].column_names]
    )
    pq.write_table(features, tmp_path / "candidates.parquet")
    with quietly():
        table = KINDS[kind](features.select(features.column_names[::-1]))
    for ranker in (fitted, SafeRanker.load(tmp_path / "model")):
        np.testing.assert_array_equal(ranker.predict(table), expected)
        np.testing.assert_array_equal(ranker.predict(tmp_path / "candidates.parquet"), expected)
        np.testing.assert_array_equal(ranker.rank(table).rank, ranker.rank(data).rank)
        with quietly():
            own = KINDS[kind](tables[1])  # by the names that the log had
        np.testing.assert_array_equal(ranker.predict(own), expected)
        np.testing.assert_array_equal(ranker.predict(files[1]), expected)
        both = tables[1].append_column("query_id", tables[1]["text"]).to_pandas().assign(text="all alike")
        np.testing.assert_array_equal(ranker.predict(both), expected)  # our name comes first, as in `fit`


def test_a_log_in_memory_is_known_again(tables: tuple[pa.Table, pa.Table]) -> None:
    """By what it holds: the same one is the same look in a ledger, and cannot be an earlier log of itself."""
    frame = tables[0].to_pandas()
    first, again, other = (load_log(log, columns=NAMED).manifest for log in (frame, frame.copy(), frame[:3000]))
    assert (first["source"], first["files"]) == (again["source"], again["files"])
    assert other["source"] != first["source"]
    assert other["files"][0]["sha256"] != first["files"][0]["sha256"]


def test_lists_in_a_table_need_ids_of_impressions() -> None:
    """Rows of a table have no number that outlives a filter, and a part goes by the id."""
    nested = pd.DataFrame({"query_id": ["q"] * 4, "document_ids": [["a", "b"]] * 4, "clicks": [[0, 1]] * 4})
    with pytest.raises(DataError) as error:
        load_log(nested)
    assert error.value.column == "impression_id"
    log = load_log(nested.assign(impression_id=range(4)))
    assert sum(log.shown_counts["clicked"].to_pylist()) == 4


def test_scores_made_elsewhere_as_a_table(tables: tuple[pa.Table, pa.Table]) -> None:
    log, features = tables
    scores = {"query_id": features["text"], "document_id": features["sku"], "score": features["b"]}
    rankers = [scores, pa.table(scores), pa.table(scores).to_pandas(), pl.from_arrow(pa.table(scores))]
    rankers.append({"text": features["text"], "sku": features["sku"], "score": features["b"]})  # by the log's names
    quick = CertifySettings(details=False)
    found = [certify(one, log, quick, columns=NAMED, trained_without_held_out=True, cutoff=3) for one in rankers]
    assert len({(one.verdict, one.improvement, one.lower) for one in found}) == 1


def test_row_numbers_that_pandas_writes_are_no_feature(tables: tuple[pa.Table, pa.Table], tmp_path: Path) -> None:
    frame = tables[1].to_pandas()[["text", "sku", "a", "b"]].iloc[::2]
    frame.to_parquet(tmp_path / "features.parquet", index=True)
    frame.to_csv(tmp_path / "features.csv", index=True)
    for file in ("features.parquet", "features.csv"):
        assert load_features(tmp_path / file, id_columns=NAMED, missing="nan").feature_names == ("a", "b")


def test_what_is_wrong_with_a_table(tables: tuple[pa.Table, pa.Table]) -> None:
    log, features = (table.to_pandas() for table in tables)
    with pytest.raises(DataError) as error:
        load_log(log)
    assert str(error.value.file) == f"a table of {len(log):,} rows"
    texts = log.assign(clicked=["no"] * len(log))
    with pytest.raises(DataError) as error:
        load_log(texts, columns=NAMED)
    assert (error.value.row, error.value.column) == (0, "clicked")
    with pytest.raises(DataError):
        load_log(log[:0], columns=NAMED)
    with pytest.raises(DataError) as error:
        load_features(features, id_columns=NAMED)
    assert (error.value.row, error.value.column) == (0, "a")
    with pytest.raises(DataError):
        load_features(pd.DataFrame({"query_id": [1, 1], "document_id": [1, 2], "a": [1, "x"]}))
    twice = [*(("query_id", ["q"]), ("document_id", ["d"])), *[("a", [1.0])] * 2]
    for wrong in (
        pd.DataFrame([["q", "d", 1.0, 1.0]], columns=[name for name, _ in twice]),
        pa.table([values for _, values in twice], names=[name for name, _ in twice]),
    ):
        with pytest.raises(DataError):
            load_features(wrong)
