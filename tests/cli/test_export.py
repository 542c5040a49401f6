import json
from pathlib import Path

import lightgbm
import numpy as np
import pytest

from saferank.engine.errors import DataError
from saferank.export.export_policy import FORMATS, Format, export_policy, verify_export
from tests.cli.running import Call, words
from tests.policy.made import make_policy, make_trees


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model that every format can hold, and one that is scaled per query."""
    make_trees("none", scaling="none").save(tmp_path / "model")
    make_policy().save(tmp_path / "scaled")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("to", FORMATS)
def test_export_and_verify(here: Path, saferank: Call, to: str) -> None:
    ran = saferank("export", "model", "--to", to, "--out", "new/shop.model")
    assert ran.exit_code == 0
    assert words(ran.out).startswith(f"new/shop.model: {to}; 60 golden vectors in new/shop.model.golden.json, largest")
    assert sorted(file.name for file in (here / "new").iterdir()) == ["shop.model", "shop.model.golden.json"]
    ran = saferank("export", "--verify", "new/shop.model")
    assert (ran.exit_code, words(ran.out)[:34]) == (0, "new/shop.model: 60 golden vectors,")


def test_a_model_of_the_configuration_is_not_in_the_way(here: Path, saferank: Call) -> None:
    (here / "saferank.toml").write_text('[common]\nmodel = "model"\n')
    assert saferank("export", "--to", "solr", "--out", "m.json").exit_code == 0
    assert saferank("export", "--verify", "m.json").exit_code == 0
    assert saferank("export", "model", "--verify", "m.json").exit_code == 2


def test_golden_vectors_are_by_query_with_raw_features(here: Path) -> None:
    export_policy(make_policy(missing=0.0), "onnx", here / "m.onnx")
    golden = json.loads((here / "m.onnx.golden.json").read_text())
    assert golden["features"] == ["price", "stock", "age"]
    assert np.shape(golden["queries"]) == (6, 10, 3)
    assert np.shape(golden["scores"]) == (6, 10)
    values = [value for query in golden["queries"] for row in query for value in row]
    assert None in values
    assert max(value for value in values if value is not None) > 100


def test_what_a_format_cannot_hold(here: Path, saferank: Call) -> None:
    ran = saferank("export", "scaled", "--to", "solr", "--out", "solr.json")
    assert (ran.exit_code, ran.out) == (2, "")
    assert "--scaling none" in words(ran.err)
    assert not (here / "solr.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("model",),
        ("model", "--to", "onnx"),
        ("model", "--to", "pmml", "--out", "m"),
        ("model", "--verify", "m"),
        ("model", "--to", "onnx", "--out", "scaled"),
    ],
)
def test_a_wrong_call(here: Path, saferank: Call, arguments: tuple[str, ...]) -> None:
    assert saferank("export", *arguments).exit_code == 2
    assert sorted(file.name for file in here.iterdir()) == ["model", "scaled"]


def test_a_file_that_was_changed_is_not_verified(here: Path) -> None:
    out = here / "m.txt"
    export_policy(make_trees("none", scaling="none"), "lightgbm", out)
    out.write_bytes(out.read_bytes() + b"\n")
    with pytest.raises(DataError) as error:
        verify_export(out)
    assert error.value.file == out


def test_scores_that_differ_are_found(here: Path, saferank: Call) -> None:
    export_policy(make_trees("none", scaling="none"), "solr", here / "m.json")
    golden = here / "m.json.golden.json"
    values = json.loads(golden.read_text())
    values["scores"][2][3] += 1e-3
    golden.write_text(json.dumps(values))
    ran = saferank("export", "--verify", "m.json")
    assert (ran.exit_code, ran.out) == (1, "")
    assert "60 golden vectors differ" in words(ran.err)


def test_nothing_is_written_if_scores_differ(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = FORMATS["vespa"]
    wrong = Format(right.encode, lambda text, rows, names: right.scores(text, rows, names) + 1e-3)
    monkeypatch.setitem(FORMATS, "vespa", wrong)
    with pytest.raises(DataError) as error:
        export_policy(make_trees("none", scaling="none"), "vespa", here / "m.expression")
    assert error.value.file == here / "m.expression"
    assert not list(here.glob("m.*"))


@pytest.mark.parametrize("to", FORMATS)
def test_a_file_of_another_kind_is_not_read(to: str) -> None:
    with pytest.raises(DataError):
        FORMATS[to].scores(b'{"no": "model"}', np.zeros((2, 3), np.float32), ("price", "stock", "age"))


def test_lightgbm_reads_the_file_itself(here: Path) -> None:
    export_policy(make_trees("none", scaling="none", log1p=False), "lightgbm", here / "m.txt")
    booster = lightgbm.Booster(model_file=here / "m.txt")
    assert booster.feature_name() == ["price", "stock", "age"]
    # price <= 0.25: stock <= -0.5 gives 1, else 2; price > 0.25 gives -3; and 0.5 always
    rows = np.array([[0.25, -0.5, 0], [0.25, -0.4, 0], [0.26, -0.5, 0]])
    assert np.asarray(booster.predict(rows)).tolist() == [1.5, 2.5, -2.5]
