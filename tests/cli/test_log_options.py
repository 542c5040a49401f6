from pathlib import Path

import pytest

from saferank.cli.log_options import check_output_folder, parse_columns, requested_split
from saferank.engine.errors import UsageError
from saferank.files.atomic_write import check_output_file


@pytest.mark.parametrize(
    ("pairs", "columns"),
    [
        (None, {}),
        (["click=clicked", "query_id=q"], {"click": "clicked", "query_id": "q"}),
        (["click=a=b"], {"click": "a=b"}),
        ([" click = was clicked ", "click=was clicked"], {"click": "was clicked"}),
    ],
)
def test_our_name_to_theirs(pairs: list[str] | None, columns: dict[str, str]) -> None:
    assert parse_columns(pairs) == columns


@pytest.mark.parametrize("pairs", [["click"], ["click="], ["=clicked"], [""], ["click=a", "click=b"]])
def test_pairs_that_cannot_be_used(pairs: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        parse_columns(["query_id=q", *pairs])
    assert error.value.args[0].startswith(f"--column {pairs[-1]}: ")


def test_a_split_is_asked_for_by_its_shares_or_its_way() -> None:
    assert requested_split(None, None) is None
    for shares, by in (("80/10/10", None), (None, "query"), ("80/10/10", "query")):
        split = requested_split(shares, by)
        assert split is not None
        assert split.shares == pytest.approx((0.8, 0.1, 0.1) if shares else (0.6, 0.2, 0.2))
        assert split.describe()["by"] == (by or "hash")


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    """Nor may they replace what is read: it would be lost."""
    read = tmp_path / "log.parquet"
    read.touch()
    check_output_file(tmp_path / "new" / "page.html", [read, None])
    check_output_folder(tmp_path / "new" / "folder")
    for path in (tmp_path, read, read / "page.html", read / "a" / "page.html"):
        with pytest.raises(UsageError, match=str(path)):
            check_output_file(path, ["pattern-*.parquet", str(read)])
    for path in (read, read / "folder"):
        with pytest.raises(UsageError, match=str(path)):
            check_output_folder(path)
