import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from saferank.policy.serve import serve
from tests.cli.running import Call, Ran, words
from tests.policy.made import EXAMINATION, NAMES, make_data, make_policy, write_features

DATA = make_data((4, 1, 7, 2))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and candidates.parquet, to be in."""
    make_policy().save(tmp_path / "model")
    write_features(tmp_path / "candidates.parquet", DATA, title=["words"] * DATA.documents)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(saferank: Call) -> Call:
    def run(*arguments: str, candidates: str = "candidates.parquet", out: str = "ranked.parquet") -> Ran:
        return saferank("rank", "model", candidates, "--out", out, *arguments)

    return run


def test_by_score(here: Path, call: Call) -> None:
    assert call() == (0, "ranked.parquet: 14 documents ranked, deterministic.\n", "")
    table = pq.read_table(here / "ranked.parquet")
    served = serve(make_policy().scores(DATA), DATA.offsets, EXAMINATION)
    assert table.column_names == ["query_id", "document_id", "score", "rank", "exposure"]
    assert table["rank"].to_pylist() == served.rank.tolist()
    assert table["exposure"].to_pylist() == served.exposure.tolist()
    assert table["query_id"].to_pylist()[:5] == ["q0", "q0", "q0", "q0", "q1"]


def test_with_a_model_in_the_configuration_the_argument_is_the_candidates(here: Path, saferank: Call) -> None:
    assert saferank("rank", "candidates.parquet", "--out", "ranked.parquet").exit_code == 2
    (here / "saferank.toml").write_text('[common]\nmodel = "model"\n')
    assert saferank("rank", "candidates.parquet", "--out", "ranked.parquet").exit_code == 0
    assert saferank("rank", "model", "candidates.parquet", "--out", "again.parquet").exit_code == 0
    assert pq.read_table("ranked.parquet") == pq.read_table("again.parquet")
    assert saferank("rank", "--out", "ranked.parquet").exit_code == 2


def test_sampled_to_csv(here: Path, call: Call) -> None:
    ran = call("--serve-as", "sampled", "--seed", "4", "--cutoff", "2", out="new/ranked.csv")
    said = "new/ranked.csv: 14 documents ranked, sampled with --seed 4, the first 2 of each query shown."
    assert words(ran.out) == said
    table = pyarrow.csv.read_csv(here / "new" / "ranked.csv")
    scores = make_policy().scores(DATA)
    served = serve(scores, DATA.offsets, EXAMINATION[:2], serve_as="sampled", rng=np.random.default_rng(4))
    assert table["rank"].to_pylist() == served.rank.tolist()
    np.testing.assert_allclose(table["exposure"].to_numpy(), served.exposure, rtol=1e-6)
    assert served.log_probability is not None
    np.testing.assert_allclose(
        table["log_probability"].to_numpy(), served.log_probability[DATA.query_of_document], rtol=1e-6
    )


def test_without_a_seed_rankings_are_drawn_afresh_and_can_be_drawn_again(here: Path, call: Call) -> None:
    drawn, seeds = [], []
    for _ in range(3):
        seeds += re.findall(r"sampled with --seed (\d+)\.", call("--serve-as", "sampled").out)
        drawn.append(pq.read_table(here / "ranked.parquet"))
    assert len(set(seeds)) == 3
    call("--serve-as", "sampled", "--seed", seeds[1], out="again.parquet")
    assert pq.read_table(here / "again.parquet").equals(drawn[1])


def test_csv_candidates_and_another_order_of_columns_give_the_same(here: Path, call: Call) -> None:
    call()
    table = pq.read_table("candidates.parquet")
    pyarrow.csv.write_csv(table, "candidates.csv")
    pq.write_table(table.select(["document_id", *NAMES[::-1], "query_id"]), "reordered.parquet")
    for candidates in ("candidates.csv", "reordered.parquet"):
        call(candidates=candidates, out="again.parquet")
        assert pq.read_table(here / "again.parquet").equals(pq.read_table(here / "ranked.parquet"))


def test_other_names_and_columns_to_ignore(here: Path, call: Call) -> None:
    call()
    table = pq.read_table("candidates.parquet")
    renamed = table.rename_columns(["q", "d", *table.column_names[2:]])
    pq.write_table(renamed.append_column("label", pa.array(range(14))), "candidates.parquet")
    ran = call("--query-column", "q", "--document-column", "d", out="again.parquet")
    assert ran.exit_code == 1
    assert "candidates.parquet, column 'label': " in ran.err
    assert not Path("again.parquet").exists()
    for names in (
        ("--query-column", "q", "--document-column", "d"),
        ("--column", "query_id=q", "--column", "document_id=d", "--column", "click=clicked"),
    ):
        assert call(*names, "--ignore", "label", out="again.parquet").exit_code == 0
        ranked, again = pq.read_table(here / "ranked.parquet"), pq.read_table(here / "again.parquet")
        assert again.column_names == ["q", "d", *ranked.column_names[2:]]  # can be joined with the candidates
        assert again.rename_columns(ranked.column_names).equals(ranked)


def test_the_names_of_the_log_are_kept_where_the_candidates_have_them(here: Path, call: Call) -> None:
    inputs = {"log": {"columns": {"query_id": "q", "document_id": "sku"}}}
    policy = make_policy()
    replace(policy, manifest=policy.manifest | {"inputs": inputs}).save("model")
    table = pq.read_table("candidates.parquet")
    pq.write_table(table.rename_columns(["query_id", "sku", *table.column_names[2:]]), "candidates.parquet")
    for out in ("ranked.parquet", "ranked.csv"):
        assert call(out=out).exit_code == 0
    assert pq.read_table(here / "ranked.parquet").column_names[:2] == ["query_id", "sku"]
    assert pyarrow.csv.read_csv(here / "ranked.csv").column_names[:2] == ["query_id", "sku"]


def test_nan_as_the_schema_says(here: Path, call: Call) -> None:
    table = pq.read_table("candidates.parquet")
    prices = [None, *table["price"].to_pylist()[1:]]
    place = table.column_names.index("price")
    pq.write_table(table.set_column(place, "price", pa.array(prices, pa.float32())), "candidates.parquet")
    ran = call()
    assert ran.exit_code == 1
    assert "candidates.parquet, column 'price': " in ran.err
    make_policy(missing=7.0).save("model")
    assert call().exit_code == 0
    features = DATA.features.copy()
    features[0, 0] = 7
    scores = make_policy(missing=7.0).scores(replace(DATA, features=features))
    np.testing.assert_array_equal(pq.read_table(here / "ranked.parquet")["score"].to_numpy(), scores)


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["--out", "ranked.txt"], 2),
        (["--cutoff", "4"], 2),
        (["--out", "candidates.parquet"], 2),
        (["--serve-as", "magic"], 2),
        (["--ignore", "age"], 1),
        (["--query-column", "q"], 1),
    ],
)
def test_wrong_calls(arguments: Sequence[str], exit_code: int, here: Path, call: Call) -> None:
    ran = call(*arguments)
    assert (ran.exit_code, ran.out) == (exit_code, "")
    assert arguments[1] in ran.err
    assert {file.name for file in here.iterdir()} - {"cache"} == {"model", "candidates.parquet"}


def test_no_model(here: Path, call: Call) -> None:
    (here / "model" / "manifest.json").write_text("{")
    ran = call()
    assert ran.exit_code == 1
    assert "manifest.json: " in ran.err
