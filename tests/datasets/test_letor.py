import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from saferank.datasets import letor
from saferank.datasets.letor import read_letor
from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., RankingData]:
    """Write a text to a file and read it."""

    def write_and_read(text: str | bytes, features: int | None = None) -> RankingData:
        path = tmp_path / "data.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_letor(path, features=features, cache=False)

    return write_and_read


Read = Callable[..., RankingData]


def test_reads_labels_queries_features_and_document_ids(read: Read) -> None:
    data = read(
        "2 qid:10 1:0.5 2:-3 3:1e2 #docid = GX1 inc = 1 prob = 0.1\n"
        "0 qid:10 1:1 2:2 3:3 #docid = GX2\n"
        "1.5 qid:x-7 1:4 2:5 3:6 # D3 and more\n"
    )
    np.testing.assert_array_equal(data.features, np.array([[0.5, -3, 100], [1, 2, 3], [4, 5, 6]]))
    np.testing.assert_array_equal(data.offsets, [0, 2, 3])
    assert data.labels is not None
    assert data.labels.tolist() == [2.0, 0.0, 1.5]
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["10", "x-7"]
    assert data.document_ids is not None
    assert data.document_ids.tolist() == ["GX1", "GX2", "D3"]
    assert data.feature_names == ("1", "2", "3")
    assert data.source.endswith("data.txt")
    assert data.features.dtype == np.float32


def test_absent_features_are_zero_and_ids_may_be_out_of_order(read: Read) -> None:
    data = read("1 qid:1 5:0.5 2:2\n0 qid:1\n0 qid:1 3:3 1:1 4:4\n")
    np.testing.assert_array_equal(data.features, [[0, 2, 0, 0, 0.5], [0, 0, 0, 0, 0], [1, 0, 3, 4, 0]])


def test_features_says_how_many_there_are(read: Read) -> None:
    assert read("1 qid:1 2:7\n", features=4).features.tolist() == [[0, 7, 0, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "1 qid:1 1:2\n0 qid:2 1:3",
        "1 qid:1 1:2\r\n0 qid:2 1:3\r\n",
        "\n\n1 qid:1 1:2\n   \n\t\n0 qid:2 1:3\n\n",
        "# a header\n1 qid:1 1:2\n  # a remark 7:7\n0 qid:2 1:3\n#",
        "  1\tqid:1\t 1:2  \n0   qid:2 1:3 \t\n",
        "\ufeff1 qid:1 1:2\n0 qid:2 1:3\n",
        "+1 qid:1 1:+2\n-0 qid:2 1:3.\n",
        "1 qid:1 1:2#\n0 qid:2 1:3 #   \n",
        "1 qid:1 0001:2\n0 qid:2 1:0.3e1\n",
    ],
)
def test_layout_of_the_text_does_not_matter(read: Read, text: str) -> None:
    data = read(text)
    assert data.features.tolist() == [[2], [3]]
    assert data.offsets.tolist() == [0, 1, 2]
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0]
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["1", "2"]
    assert data.document_ids is None


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("#docid = A", "A"),
        ("# docid=A inc = 1", "A"),
        ("#docid =A", "A"),
        ("#A", "A"),
        ("#   A b", "A"),
        ("#docid A", "docid"),
        ("#docidA = B", "docidA"),
        ("#http://a/#b c", "http://a/#b"),
        ("#Ärger\r", "Ärger"),
        ("", ""),
    ],
)
def test_document_id_in_the_comment(read: Read, comment: str, expected: str) -> None:
    data = read(f"1 qid:1 1:2 {comment}\n1 qid:1 1:2 #other\n")
    assert data.document_ids is not None
    assert data.document_ids.tolist() == [expected, "other"]


def test_bytes_that_are_not_utf8_stay_apart(read: Read) -> None:
    data = read(b"1 qid:\xe4 1:2\n1 qid:\xf6 1:2\n")
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["\\xe4", "\\xf6"]


def test_query_ids_with_a_common_start_are_different_queries(read: Read) -> None:
    assert read("1 qid:1 1:1\n1 qid:11 1:1\n1 qid:12 1:1\n").offsets.tolist() == [0, 1, 2, 3]


def test_colon_in_a_query_id_is_not_a_feature(read: Read) -> None:
    data = read("1 qid:2024:17 1:1\n")
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["2024:17"]
    assert data.features.shape == (1, 1)


@pytest.mark.parametrize("opener", [gzip.open, bz2.open, lzma.open])
def test_compressed(tmp_path: Path, opener: Callable[..., object]) -> None:
    suffix = {gzip.open: ".gz", bz2.open: ".bz2", lzma.open: ".xz"}[opener]
    path = tmp_path / f"train.txt{suffix}"
    with opener(path, "wb") as file:  # type: ignore[attr-defined]
        file.write(b"1 qid:1 1:0.25 # A\n0 qid:1 2:1 # B")
    data = read_letor(path)
    assert data.features.tolist() == [[0.25, 0], [0, 1]]


def test_many_chunks_give_what_one_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    path = tmp_path / "data.txt"
    lines = [
        f"{row % 3} qid:{row // 7} 1:{random.normal()} 9:{random.random():.3f} # d{row}\n" + "\n" * (row % 4 == 0)
        for row in range(500)
    ]
    path.write_text("".join(lines))
    whole = read_letor(path, cache=False)
    monkeypatch.setattr(letor, "_CHUNK", 97)
    pieces = read_letor(path, cache=False)
    np.testing.assert_array_equal(whole.features, pieces.features)
    np.testing.assert_array_equal(whole.labels, pieces.labels)
    np.testing.assert_array_equal(whole.offsets, pieces.offsets)
    np.testing.assert_array_equal(whole.document_ids, [f"d{row}" for row in range(500)])
    np.testing.assert_array_equal(pieces.document_ids, whole.document_ids)


def as_float32(text: str) -> np.float32:
    return np.float32(float(text))


@pytest.mark.parametrize(
    "text",
    [
        "0.1", "16777217", "16777219", "33554433.0", "0.30000001192092896", "1.00000005960464477539062",
        "1.000000059604644775390625", "1.00000005960464477539063", "123456789012345678901234567890",
        "0.000000000000000000000000000000000000001", "1e-45", "0.7e-45", "0.70064923216240853e-45", "1e-50",
        "-1e-400", "3.4028235e38", "3.40282356779733e38", "9007199254740993", "9007199254740991e22",
        "1e23", "8.5e-23", "00000000000000000000000000000000012.5", "0e9999", "-0", ".5", "5.", "1E+2",
        "1e-0002", "0." + "0" * 40 + "1", "9" * 38, "0." + "9" * 60, "1" + "0" * 30 + "e-30",
        "2e-00000000000000000001",
    ],
)  # fmt: skip
def test_hard_numbers_round_as_python_does(read: Read, text: str) -> None:
    value = read(f"1 qid:1 1:{text} 2:1\n").features[0, 0]
    assert value.tobytes() == as_float32(text).tobytes() or value == as_float32(text) == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@example([float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)])
def test_middles_between_float32_round_as_python_does(read: Read, values: list[float]) -> None:
    """The text of a value half way between two float32, and of one just beside it, is hardest to round."""
    texts = []
    for value in values:
        above = float(np.nextafter(np.float32(value), np.float32(0)))
        middle = (value + above) / 2
        texts += [repr(middle), f"{middle:.60e}", repr(np.nextafter(middle, 0).item()), f"{value:.9g}"]
    data = read("1 qid:1 " + " ".join(f"{place + 1}:{text}" for place, text in enumerate(texts)))
    np.testing.assert_array_equal(data.features[0], [as_float32(text) for text in texts])


tables = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.tuples(
            st.integers(0, 4),
            st.dictionaries(st.integers(1, width), st.floats(-1e30, 1e30, allow_nan=False), min_size=1, max_size=width),
        ),
        min_size=1,
        max_size=12,
    )
)
spelling = st.sampled_from(["{!r}", "{:.6f}", "{:.17g}", "{:e}", "{:+.3g}"])


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables, st.data(), st.sampled_from(["\n", "\r\n", " \n\n", " # d\n"]))
def test_reads_what_sklearn_reads(
    tmp_path: Path, table: list[tuple[int, dict[int, float]]], data: st.DataObject, end: str
) -> None:
    path = tmp_path / "data.txt"
    queries = np.sort([data.draw(st.integers(0, 3)) for _ in table])
    path.write_text(
        "".join(
            f"{label} qid:{query} "
            + " ".join(f"{feature}:{data.draw(spelling).format(row[feature])}" for feature in sorted(row))
            + end
            for query, (label, row) in zip(queries, table, strict=True)
        )
    )
    expected, labels, query_ids = load_svmlight_file(str(path), query_id=True, zero_based=False)
    found = read_letor(path, cache=False)
    np.testing.assert_array_equal(found.features, expected.toarray().astype(np.float32))
    np.testing.assert_array_equal(found.labels, labels)
    assert found.query_ids is not None
    np.testing.assert_array_equal(found.query_ids[found.query_of_document].astype(int), query_ids)


@pytest.mark.parametrize(
    "line",
    [
        *("x qid:2 1:1", "qid:2 1:1", "1_0 qid:2 1:1", "nan qid:2 1:1"),  # no label
        *("1 qid:2 1:NaN", "1 qid:2 2:-inf", "1 qid:2 2:1e39", "1 qid:2 2:1e999"),  # not a finite float32
        *("1 qid:2 2:1.2.3", "1 qid:2 2:-", "1 qid:2 2:1e", "1 qid:2 2:0x1", "1 qid:2 2:1:3"),  # no number
        *("1 qid:2 0:1", "1 qid:2 a:1", "1 qid:2 1.5:1", "1 qid:2 -1:1", "1 qid:2 \xff:1"),  # no feature id
        *("1 qid:2 7", "1 qid:2 1:", "1 qid:2 :1", "1 qid:2 1: 5"),  # not id:value
        *("1 qid: 1:5", "1 1:5 qid:2", "1 1:5", "1", "1 qid:0 1:1"),  # no query id, or one from before
        *("1 qid:2 1:5 3:1 1:5", "1 qid:2 9999999:1", "1 qid:2 " + "9" * 5000 + ":1"),  # twice, too large
    ],
)
@pytest.mark.parametrize("end", ["", " # remark\r\n1 qid:3 1:1\n"])
def test_errors_name_file_and_line(tmp_path: Path, read: Read, line: str, end: str) -> None:
    with pytest.raises(DataError) as error:
        read(f"# header\n\n1 qid:0 1:1 2:2\n1 qid:1 1:1\n{line}{end}")
    assert (error.value.file, error.value.line) == (tmp_path / "data.txt", 5)


def test_message_gives_the_value_and_the_remedy(tmp_path: Path, read: Read) -> None:
    with pytest.raises(DataError) as error:
        read("1 qid:1 3:1\n", features=2)
    assert str(error.value) == (
        f"{tmp_path / 'data.txt'}, line 1: got '3:1', but ids up to 2 were asked for; raise `features`, or drop it."
    )


def test_first_of_many_mistakes_is_reported(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letor, "_CHUNK", 10)
    with pytest.raises(DataError) as error:
        read("1 qid:1 1:1\n" + "1 qid:1 0:1\n" * 20)
    assert error.value.line == 2


@pytest.mark.parametrize("text", ["", "# only\n \n# remarks", "\ufeff", "1 qid:1\n"])
def test_no_data_or_no_features(read: Read, text: str) -> None:
    with pytest.raises(DataError) as error:
        read(text)
    assert error.value.line is None
    with pytest.raises(UsageError):
        read("1 qid:1 3:1\n", features=0)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "text.txt.gz").write_bytes(b"not compressed")
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"1 qid:1 1:1\n" * 99)[:-9])
    for name in ("nowhere.txt", ".", "text.txt.gz", "cut.txt.gz"):
        with pytest.raises(DataError) as error:
            read_letor(tmp_path / name)
        assert error.value.file == tmp_path / name


@pytest.mark.parametrize("suffix", [".query", ".group"])
def test_query_sizes_in_a_file_beside(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "rank.train"
    path.write_text("1 1:1\n0 2:2\n2 1:3\n")
    Path(f"{path}{suffix}").write_text("2\n1\n")
    data = read_letor(path)
    assert data.offsets.tolist() == [0, 2, 3]
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["1", "2"]


def test_query_ids_in_the_file_win_over_a_file_beside(tmp_path: Path) -> None:
    path = tmp_path / "rank.train"
    path.write_text("1 qid:7 1:1\n0 qid:7 2:2\n")
    Path(f"{path}.query").write_text("1\n1\n")
    assert read_letor(path).offsets.tolist() == [0, 2]


@pytest.mark.parametrize(("sizes", "line"), [("2\n2\n", None), ("2\n\nx\n", 3), ("3\n0\n", 2), ("", None)])
def test_wrong_sizes_beside(tmp_path: Path, sizes: str, line: int | None) -> None:
    path = tmp_path / "rank.train"
    path.write_text("1 1:1\n0 2:2\n2 1:3\n")
    Path(f"{path}.query").write_text(sizes)
    with pytest.raises(DataError) as error:
        read_letor(path)
    assert (error.value.file, error.value.line) == (Path(f"{path}.query"), line)


@pytest.mark.parametrize("name", ["mq2008/test.txt", "mslr-mini/vali.txt"])
def test_real_data_equals_sklearn(shared_data: Path, name: str) -> None:
    path = shared_data / name
    if not path.is_file():
        pytest.skip(f"this data set is not here: no file {path}")
    expected, labels, query_ids = load_svmlight_file(str(path), query_id=True, zero_based=False)
    data = read_letor(path, cache=False)
    np.testing.assert_array_equal(data.features, expected.toarray().astype(np.float32))
    np.testing.assert_array_equal(data.labels, labels)
    assert data.query_ids is not None
    np.testing.assert_array_equal(data.query_ids[data.query_of_document].astype(int), query_ids)
