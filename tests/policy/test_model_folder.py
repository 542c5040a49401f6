import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import saferank
from saferank.engine.errors import DataError, UsageError
from saferank.engine.plackett_luce import exposure
from saferank.features.schema import FeatureSchema
from saferank.files.json_format import NewerVersion
from saferank.policy import model_folder
from saferank.policy.model_folder import check_model_folder
from saferank.policy.policy import Policy
from saferank.policy.scorers.forest import Forest
from saferank.policy.scorers.trees import Trees
from tests.policy.made import EXAMINATION, NAMES, make_data, make_policy, make_trees


@pytest.mark.parametrize("scorer", ["mlp", "linear"])
def test_round_trip(scorer: str, tmp_path: Path) -> None:
    policy, data = make_policy(scorer, missing=0.5, log1p=False), make_data()
    policy.save(tmp_path / "new" / "model")
    again = Policy.load(tmp_path / "new" / "model")
    np.testing.assert_array_equal(again.scores(data), policy.scores(data))
    np.testing.assert_array_equal(again.exposure(data), policy.exposure(data))
    np.testing.assert_array_equal(again.examination, EXAMINATION)
    assert again.schema == policy.schema
    assert again.kind == policy.kind
    assert again.manifest["inputs"] == {"features": "features.parquet"}
    assert again.manifest["saferank"] == saferank.__version__
    assert sorted(file.name for file in (tmp_path / "new" / "model").iterdir()) == [
        *("manifest.json", "schema.json", "weights.safetensors"),
    ]
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["model"]


def test_a_model_read_and_written_again_has_the_same_bytes(tmp_path: Path) -> None:
    make_policy().save(tmp_path / "a")
    Policy.load(tmp_path / "a").save(tmp_path / "b")
    for name in ("manifest.json", "schema.json", "weights.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_model_that_was_read_and_changed_is_written_as_it_is_now(tmp_path: Path) -> None:
    """What the manifest said of the old weights and ranks is not said of the new ones."""
    make_policy(seed=1).save(tmp_path / "model")
    read, other = Policy.load(tmp_path / "model"), make_policy(seed=2)
    Policy(read.kind, other.weights, read.schema, EXAMINATION[:2], read.manifest).save(tmp_path / "model")
    again = Policy.load(tmp_path / "model")
    np.testing.assert_array_equal(again.scores(make_data()), other.scores(make_data()))
    np.testing.assert_array_equal(again.examination, EXAMINATION[:2])
    assert again.manifest["inputs"] == {"features": "features.parquet"}


@pytest.mark.parametrize("start", ["mlp", "linear", "none", "column"])
def test_a_temperature_divides_the_scores_and_survives_a_folder(start: str, tmp_path: Path) -> None:
    data = make_data()
    for policy in [make_trees(start, missing=0.0), *([make_policy(start)] if start in ("mlp", "linear") else [])]:
        policy.at_temperature(4.0).at_temperature(0.5).save(tmp_path / "flat")
        flat = Policy.load(tmp_path / "flat")
        np.testing.assert_allclose(flat.scores(data), policy.scores(data) / 2.0, rtol=1e-5, atol=1e-6)
        assert flat.manifest["temperature"] == 2.0
        twice = Trees.on(flat.scorer, 3) if isinstance(flat.scorer, Trees) else flat.scorer
        prepared = torch.from_numpy(flat.schema.prepare(data).features)
        assert torch.equal(twice(prepared), flat.scorer(prepared))
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError):
            make_policy().at_temperature(wrong)


def test_scores_are_the_scorers_on_prepared_features() -> None:
    policy, data = make_policy(), make_data()
    with torch.no_grad():
        expected = policy.scorer(torch.from_numpy(policy.schema.prepare(data).features)).numpy()
    np.testing.assert_allclose(policy.scores(data), expected, rtol=1e-6)
    np.testing.assert_allclose(policy.exposure(data), exposure(expected, data.offsets, EXAMINATION), rtol=1e-5)
    assert policy.cutoff == 3


def test_a_model_is_replaced_and_anything_else_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    make_policy(seed=1).save(folder)
    make_policy(seed=2).save(folder)
    np.testing.assert_array_equal(Policy.load(folder).scores(make_data()), make_policy(seed=2).scores(make_data()))
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "manifest.json").write_text("{}")
    for place in (other, other / "manifest.json"):
        with pytest.raises(UsageError):
            make_policy().save(place)
    assert [file.name for file in other.iterdir()] == ["manifest.json"]
    with pytest.raises(UsageError):
        check_model_folder(other / "manifest.json" / "model")


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    make_policy(seed=1).save(folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    whole = Path.write_bytes

    def full(file: Path, text: bytes) -> int:
        if file.name == "manifest.json":
            raise OSError("no space left")
        return whole(file, text)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        make_policy(seed=2).save(folder)
    monkeypatch.undo()
    rename = Path.replace

    def stuck(file: Path, target: Path) -> Path:
        if file.name.endswith(".unfinished"):
            raise OSError("cannot rename")
        return rename(file, target)

    monkeypatch.setattr(Path, "replace", stuck)
    with pytest.raises(OSError, match="cannot rename"):
        make_policy(seed=2).save(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert list(tmp_path.iterdir()) == [folder]


def test_a_manifest_that_json_does_not_have_is_not_written(tmp_path: Path) -> None:
    policy = make_policy()
    policy.manifest["settings"] = {"delta": float("nan")}
    with pytest.raises(ValueError, match="not JSON compliant"):
        policy.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def edit(folder: Path, **values: Any) -> None:
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    """Change the weights, and the hash of them in the manifest: what is left to notice is the tensors."""
    file = folder / "weights.safetensors"
    save_file(change(load_file(file)), file)
    rehash(file)


def rehash(file: Path) -> None:
    manifest = json.loads((file.parent / "manifest.json").read_text())
    manifest["files"][file.name]["sha256"] = model_folder._sha256(file.read_bytes())
    (file.parent / "manifest.json").write_text(json.dumps(manifest))


def cut(file: Path, size: int, *, hashed: bool = False) -> None:
    file.write_bytes(file.read_bytes()[:size])
    if hashed:
        rehash(file)


def swap(first: str, second: str) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    return lambda tensors: tensors | {first: tensors[second], second: tensors[first]}


def schema_text(folder: Path, text: str) -> None:
    (folder / "schema.json").write_text(text)
    rehash(folder / "schema.json")


@pytest.mark.parametrize(
    ("break_it", "file"),
    [
        (lambda f: shutil.rmtree(f), ""),
        (lambda f: (f / "manifest.json").unlink(), "manifest.json"),
        (lambda f: cut(f / "manifest.json", 40), "manifest.json"),
        (lambda f: (f / "manifest.json").write_text("[1]"), "manifest.json"),
        (lambda f: edit(f, format="saferank-statistics"), "manifest.json"),
        (lambda f: edit(f, version=2), "manifest.json"),
        (lambda f: edit(f, scorer={"name": "tree", "settings": {}}), "manifest.json"),
        (lambda f: edit(f, scorer=None), "manifest.json"),
        (lambda f: edit(f, examination=[]), "manifest.json"),
        (lambda f: edit(f, files={}), "manifest.json"),
        (lambda f: (f / "weights.safetensors").unlink(), "weights.safetensors"),
        (lambda f: cut(f / "weights.safetensors", 200), "weights.safetensors"),
        (lambda f: cut(f / "weights.safetensors", 200, hashed=True), "weights.safetensors"),
        (
            lambda f: rewrite(f, lambda t: {name: t[name] for name in t if name != "layers.4.bias"}),
            "weights.safetensors",
        ),
        (lambda f: rewrite(f, lambda t: t | {"layers.6.bias": torch.zeros(1)}), "weights.safetensors"),
        (lambda f: rewrite(f, lambda t: t | {"layers.4.bias": t["layers.4.bias"].double()}), "weights.safetensors"),
        (lambda f: rewrite(f, lambda t: t | {"layers.4.bias": t["layers.4.bias"] * torch.nan}), "weights.safetensors"),
        (lambda f: (f / "schema.json").write_text("{}"), "schema.json"),
        (lambda f: schema_text(f, "{}"), "schema.json"),
        (lambda f: schema_text(f, "{"), "schema.json"),
    ],
)
def test_a_broken_folder_is_refused(break_it: Callable[[Path], None], file: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    make_policy().save(folder)
    break_it(folder)
    with pytest.raises(DataError) as raised:
        Policy.load(folder)
    assert Path(str(raised.value.file)) == folder / file


@pytest.mark.parametrize("start", ["linear", "mlp", "column", "none"])
@pytest.mark.parametrize("grown", [True, False])
def test_trees_survive_a_folder_bit_for_bit(start: str, grown: bool, tmp_path: Path) -> None:
    policy, data = make_trees(start, None if grown else Forest.empty()), make_data()
    policy.save(tmp_path / "a")
    again = Policy.load(tmp_path / "a")
    assert again.scores(data).tobytes() == policy.scores(data).tobytes()
    assert isinstance(again.scorer, Trees)
    assert isinstance(policy.scorer, Trees)
    for mine, theirs in zip(policy.scorer.forest.arrays().values(), again.scorer.forest.arrays().values(), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    assert (again.schema, again.kind) == (policy.schema, policy.kind)
    again.save(tmp_path / "b")
    for name in ("manifest.json", "schema.json", "weights.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def put(name: str, place: int, value: float) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    def change(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        tensors[name][place] = value
        return tensors

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("left", 1, 0),  # a node that comes before: the walk would never end
        put("feature", 1, 3),  # the schema has three
        lambda tensors: tensors | {"threshold": tensors["threshold"].double()},
        lambda tensors: tensors | {"left": tensors["left"][:1].clone()},
        lambda tensors: {name: tensors[name] for name in tensors if name != "root"},
        lambda tensors: tensors | {"start.layer.weight": tensors["start.layer.weight"] * torch.nan},
    ],
)
def test_broken_trees_are_refused(
    change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    make_trees().save(folder)
    rewrite(folder, change)
    with pytest.raises(DataError) as raised:
        Policy.load(folder)
    assert Path(str(raised.value.file)) == folder / "weights.safetensors"


def test_trees_must_not_read_the_column_that_they_begin_with(tmp_path: Path) -> None:
    make_trees("column").save(tmp_path / "model")
    rewrite(tmp_path / "model", put("feature", 1, 2))
    with pytest.raises(DataError) as raised:
        Policy.load(tmp_path / "model")
    assert Path(str(raised.value.file)) == tmp_path / "model" / "weights.safetensors"


@pytest.mark.parametrize(
    "settings",
    [
        {"start": "forest", "sizes": {}},
        {"start": "linear", "sizes": {"left": -1}},
        {"start": "linear", "sizes": {"left": "two"}},
        {"start": "linear", "sizes": [1]},
        {"depth": 3},
    ],
)
def test_settings_that_make_no_trees(settings: dict[str, Any], tmp_path: Path) -> None:
    make_trees().save(tmp_path / "model")
    edit(tmp_path / "model", scorer={"name": "gbdt", "settings": settings})
    with pytest.raises(DataError) as raised:
        Policy.load(tmp_path / "model")
    assert Path(str(raised.value.file)) == tmp_path / "model" / "manifest.json"


def test_a_schema_without_a_base_column_does_not_fit_trees_that_begin_with_one(tmp_path: Path) -> None:
    """Nor does one with a base column fit trees without: the start would be some feature, or the base one of them."""
    for start, base in (("column", None), ("linear", "age")):
        folder = tmp_path / start
        make_trees(start).save(folder)
        names = NAMES if base is None else NAMES[:-1]
        schema_text(folder, json.dumps(FeatureSchema(names, base=base).as_json()))
        with pytest.raises(DataError) as raised:
            Policy.load(folder)
        assert Path(str(raised.value.file)).parent == folder


def test_a_wrong_tensor_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    make_policy().save(folder)
    rewrite(folder, swap("layers.0.weight", "layers.2.weight"))
    with pytest.raises(DataError) as raised:
        Policy.load(folder)
    assert (raised.value.file, raised.value.column) == (folder / "weights.safetensors", "layers.0.weight")


def test_a_model_of_a_later_version_needs_a_later_saferank(tmp_path: Path) -> None:
    make_policy().save(tmp_path / "model")
    edit(tmp_path / "model", version=2, saferank="7.1")
    with pytest.raises(NewerVersion) as raised:
        Policy.load(tmp_path / "model")
    assert raised.value.file == tmp_path / "model" / "manifest.json"


def test_a_schema_of_the_first_models_is_read(tmp_path: Path) -> None:
    """It had no base, categories and indicators."""
    make_policy().save(tmp_path / "model")
    old = {"names": list(NAMES), "log1p": True, "scaling": "per-query", "missing": "error"}
    schema_text(tmp_path / "model", json.dumps(old))
    np.testing.assert_array_equal(
        Policy.load(tmp_path / "model").scores(make_data()), make_policy().scores(make_data())
    )


def test_examination_is_one_number_per_rank() -> None:
    policy = make_policy()
    with pytest.raises(UsageError):
        Policy(policy.kind, policy.weights, policy.schema, np.ones((1, 2)))
