from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.policy.rank_candidates import check_output, output_schema, rank_candidates, write_tables
from saferank.policy.serve import serve
from tests.policy.made import EXAMINATION, make_data, make_policy


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_blocks_give_the_same_as_the_whole(suffix: str, tmp_path: Path) -> None:
    policy, data = make_policy(), make_data((4, 1, 7, 2, 3))
    rng = np.random.default_rng(2)
    served = serve(policy.scores(data), data.offsets, EXAMINATION[:2], serve_as="sampled", rng=rng)
    blocks = [data.subset([0]), data.subset([1, 2]), data.subset([3, 4])]
    out = tmp_path / "new" / f"ranked{suffix}"
    tables = rank_candidates(policy, blocks, serve_as="sampled", seed=2, cutoff=2)
    assert write_tables(tables, output_schema("sampled"), out) == 17
    table = pq.read_table(out) if suffix == ".parquet" else pyarrow.csv.read_csv(out)
    assert table.column_names == ["query_id", "document_id", "score", "rank", "exposure", "log_probability"]
    assert data.query_ids is not None
    assert data.document_ids is not None
    assert table["query_id"].to_pylist() == data.query_ids[data.query_of_document].tolist()
    assert table["document_id"].to_pylist() == data.document_ids.tolist()
    assert table["rank"].to_pylist() == served.rank.tolist()
    np.testing.assert_allclose(table["score"].to_numpy(), served.scores, rtol=1e-6)
    np.testing.assert_allclose(table["exposure"].to_numpy(), served.exposure, rtol=1e-6)
    assert served.log_probability is not None
    np.testing.assert_allclose(table["log_probability"], served.log_probability[data.query_of_document], rtol=1e-6)
    assert list(out.parent.iterdir()) == [out]


def test_without_a_seed_every_call_draws_afresh() -> None:
    policy, data = make_policy(), make_data((40,))
    one, two = (next(rank_candidates(policy, [data], serve_as="sampled"))["rank"] for _ in range(2))
    assert one != two  # the same order of 40 documents twice: by chance less often than once in 10^9


def test_deterministic_has_no_probability() -> None:
    (table,) = rank_candidates(make_policy(), [make_data()])
    assert table.schema == output_schema("deterministic")
    assert "log_probability" not in table.column_names


def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "ranked.parquet"
    out.write_text("what was there before")

    def tables() -> Iterator[pa.Table]:
        yield from rank_candidates(make_policy(), [make_data()])
        raise DataError("the second block is bad.")

    with pytest.raises(DataError):
        write_tables(tables(), output_schema("deterministic"), out)
    assert out.read_text() == "what was there before"
    assert list(tmp_path.iterdir()) == [out]


def test_the_name_says_the_format() -> None:
    check_output(Path("ranked.csv"))
    with pytest.raises(UsageError):
        check_output(Path("ranked.xlsx"))
