"""The command by itself, on data and a logging policy made by hand."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from saferank.cli import simulate
from saferank.datasets import dataset
from saferank.datasets.dataset import Dataset
from saferank.engine.click_models.position_based import PositionBasedModel, inverse_rank
from saferank.engine.errors import UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.lab import world
from tests.cli.running import caller, words


def call(*arguments: object) -> str:
    return caller(simulate.simulate)("by-hand", *arguments)


def part(queries: int) -> RankingData:
    rng = np.random.default_rng(queries)
    documents = 6 * queries
    labels = rng.integers(0, 5, documents).astype(np.float32)
    return RankingData(rng.normal(size=(documents, 3)).astype(np.float32), 6 * np.arange(queries + 1), labels)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """How the logging policy was asked for. The data is made by hand, and its scores are the documents' places."""
    by_hand = Dataset("by hand", part(40), part(10), part(10))
    how: dict[str, object] = {}

    def made_by_hand(data: Dataset, **given: object) -> SimpleNamespace:
        how.update(given)
        places = {name: 20.0 * np.tile(np.arange(6), of.queries) for name, of in data.splits.items()}
        return SimpleNamespace(**data.splits, logging_scores=places)

    monkeypatch.setattr(dataset, "load_dataset", lambda _: by_hand)
    monkeypatch.setattr(world, "make_world", made_by_hand)
    return how


@pytest.fixture
def out(asked: dict[str, object], tmp_path: Path) -> Path:
    """Where to write."""
    assert not asked
    return tmp_path / "log.parquet"


def test_a_log_is_written_and_summed_up(out: Path) -> None:
    said = call("--interactions", "1e3", "--out", str(out))
    table = pq.read_table(out)
    assert table.num_rows == 5_000
    clicks = int(table["click"].to_numpy().sum())
    assert f"1,000 interactions with 40 of 40 queries, 5,000 documents shown, {clicks:,} clicks" in words(said)
    assert list(out.parent.glob("log*")) == [out]


def test_options(out: Path) -> None:
    call(
        *("--interactions", "2000", "--out", str(out), "--part", "test"),
        *("--cutoff", "2", "--examination", "inverse-rank:0"),
    )
    table = pq.read_table(out)
    assert len(set(table["query_id"].to_pylist())) == 10
    position, click = table["position"].to_numpy(), table["click"].to_numpy()
    assert set(position) == {1, 2}
    rates = [click[position == rank].mean() for rank in (1, 2)]
    np.testing.assert_allclose(rates, 0.25, atol=0.05)  # examination 1 at both ranks
    first = out.read_bytes()
    call("--interactions", "2000", "--out", str(out), "--part", "test", "--seed", "1", "--cutoff", "2")
    assert out.read_bytes() != first


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--interactions", "0"),
        ("--interactions", "1.5"),
        ("--interactions", "many"),
        ("--interactions", "inf"),
        ("--examination", "steep"),
        ("--relevance-slope", "0.3"),
        ("--relevance-noise", "-0.1"),
        ("--relevance-noise", "nan"),
        ("--part", "dev"),
    ],
)
def test_wrong_calls(option: str, value: str, out: Path) -> None:
    with pytest.raises(UsageError, match=f"{option.strip('-').replace('-', '.')}.*{value}"):
        call("--interactions", "10", option, value, "--out", out)
    assert not out.exists()


def test_examination_as_a_list_and_other_relevance(out: Path) -> None:
    relevance = "--relevance-slope", "0", "--relevance-noise", "0.8"
    call("--interactions", "4000", "--out", str(out), "--examination", "1,0.5,0", *relevance)
    table = pq.read_table(out)
    position, click = table["position"].to_numpy(), table["click"].to_numpy()
    assert set(position) == {1, 2, 3}
    for rank, chance in ((1, 0.8 * 1.0), (2, 0.8 * 0.5), (3, 0.0)):
        assert abs(click[position == rank].mean() - chance) <= 5 * np.sqrt(chance * (1 - chance) / 4_000)


def test_the_scores_are_those_of_the_logging_policy(out: Path, asked: dict[str, object]) -> None:
    """It shows the last document of each query first, and was made as it was asked for."""
    policy = "--logging-fraction", "0.5", "--seed", "3"
    call("--interactions", "1000", "--out", str(out), "--part", "validation", "--cutoff", "3", *policy)
    assert (asked["fraction"], asked["seed"]) == (0.5, 3)
    model, papers = asked["click_model"], PositionBasedModel(inverse_rank(3))
    assert isinstance(model, PositionBasedModel)
    np.testing.assert_array_equal(model.examination, papers.examination)
    np.testing.assert_array_equal(model.relevance([0, 4]), papers.relevance([0, 4]))
    table = pq.read_table(out).filter(pc.field("position") == 1)
    assert table.num_rows == 1_000
    assert set(table["document_id"].to_pylist()) == {"d5"}
