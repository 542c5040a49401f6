"""The command by itself: a Typer application of one command, as the whole command line will hold it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from saferank.cli import simulate
from saferank.data import dataset
from saferank.data.dataset import Dataset
from saferank.data.ranking_data import RankingData
from saferank.errors import UsageError

app = typer.Typer()
app.command()(simulate.simulate)


def part(queries: int) -> RankingData:
    rng = np.random.default_rng(queries)
    documents = 6 * queries
    labels = rng.integers(0, 5, documents).astype(np.float32)
    return RankingData(rng.normal(size=(documents, 3)).astype(np.float32), 6 * np.arange(queries + 1), labels)


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where to write; the data is made by hand, and its first feature is the score of the logging policy."""
    by_hand = Dataset("by hand", part(40), part(10), part(10))
    monkeypatch.setattr(dataset, "load_dataset", lambda _: by_hand)
    monkeypatch.setattr(
        simulate, "_logging_policy", lambda data, part, *_: (data.parts[part], data.parts[part].features[:, 0])
    )
    return tmp_path / "log.parquet"


def call(*arguments: str) -> str:
    return CliRunner().invoke(app, ["by-hand", *arguments], catch_exceptions=False).output


def test_a_log_is_written_and_summed_up(out: Path) -> None:
    said = call("--interactions", "1e3", "--out", str(out))
    table = pq.read_table(out)
    assert table.num_rows == 5_000
    clicks = int(table["click"].to_numpy().sum())
    assert f"1,000 interactions with 40 of 40 queries, 5,000 documents shown, {clicks:,} clicks" in said
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
    ("arguments", "message"),
    [
        (["--interactions", "0"], "--interactions 0: must be a whole number from 1 up"),
        (["--interactions", "1.5"], "--interactions 1.5: must be"),
        (["--interactions", "many"], "--interactions many: must be"),
        (["--interactions", "inf"], "--interactions inf: must be"),
        (["--interactions", "10", "--examination", "steep"], "--examination steep: write inverse-rank:POWER"),
        (["--interactions", "10", "--examination", "inverse-rank:x"], "--examination inverse-rank:x: write"),
        (["--interactions", "10", "--part", "dev"], "no part is called 'dev'; there are train, validation, test"),
    ],
)
def test_wrong_calls(arguments: list[str], message: str, out: Path) -> None:
    with pytest.raises(UsageError, match=message):
        call(*arguments, "--out", str(out))
    assert not out.exists()


def test_the_scores_are_those_of_the_logging_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A logging policy that shows the last document of each query first, and was made as it was asked for."""
    from saferank.experiments import world

    by_hand = Dataset("by hand", part(40), part(10), part(10))
    asked = {}

    def made_by_hand(data: Dataset, **how: object) -> SimpleNamespace:
        asked.update(how)
        return SimpleNamespace(validation=data.validation, logging_scores={"validation": np.tile([0] * 5 + [90], 10)})

    monkeypatch.setattr(dataset, "load_dataset", lambda _: by_hand)
    monkeypatch.setattr(world, "make_world", made_by_hand)
    out = tmp_path / "log.parquet"
    policy = "--logging-fraction", "0.5", "--seed", "3"
    call("--interactions", "1000", "--out", str(out), "--part", "validation", "--cutoff", "3", *policy)
    assert (asked["fraction"], asked["seed"]) == (0.5, 3)
    table = pq.read_table(out).filter(pc.field("position") == 1)
    assert table.num_rows == 1_000
    assert set(table["document_id"].to_pylist()) == {"d5"}
