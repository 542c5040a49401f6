"""A run that was interrupted goes on from its checkpoint, and from nobody else's."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from saferank.learning.checkpoint import load_checkpoint
from saferank.learning.training_loop import Epoch, Gradient, fit
from tests.learning.problem import EXAMINATION, SETTINGS, Part, new_scorer, parameters


class Stop(Exception):
    pass


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize(
    ("name", "gradient"), [("exposure-crm", "exact"), ("action-crm", "exact"), ("naive", "pl-rank")]
)
def test_an_interrupted_run_ends_as_the_uninterrupted_one(
    train: Part, validation: Part, tmp_path: Path, name: str, gradient: Gradient, epochs: int
) -> None:
    settings = replace(SETTINGS, epochs=5, learning_rate=0.01, gradient=gradient)
    objective, judge = train.objective(name), (validation.data, validation.objective(name))

    def stop(epoch: Epoch) -> None:
        if epoch.epoch == epochs:
            raise Stop

    whole = new_scorer("mlp")
    expected = fit(whole, train.data, objective, EXAMINATION, validation=judge, settings=settings)
    path = tmp_path / "runs" / "run.safetensors"
    with pytest.raises(Stop):
        fit(
            new_scorer("mlp"),
            train.data,
            objective,
            EXAMINATION,
            validation=judge,
            settings=settings,
            checkpoint=path,
            progress=stop,
        )
    seen: list[Epoch] = []
    for new_epochs in (5 - epochs, 0):  # resumed, and then called again although it is done
        seen.clear()
        scorer = new_scorer("mlp")
        found = fit(
            scorer,
            train.data,
            objective,
            EXAMINATION,
            validation=judge,
            settings=settings,
            checkpoint=path,
            progress=seen.append,
        )
        assert len(seen) == new_epochs
        assert found == expected
        assert parameters(scorer) == parameters(whole)
    assert [file.name for file in path.parent.iterdir()] == ["run.safetensors"]


def test_a_run_that_stopped_early_is_not_gone_on_with(train: Part, tmp_path: Path) -> None:
    objective = train.objective("skyline")
    opposite = replace(objective, reward=-objective.reward)
    for new_epochs in (3, 0):
        seen: list[Epoch] = []
        fit(
            new_scorer(),
            train.data,
            objective,
            EXAMINATION,
            validation=(train.data, opposite),
            settings=replace(SETTINGS, epochs=20, patience=2),
            checkpoint=tmp_path / "run",
            progress=seen.append,
        )
        assert len(seen) == new_epochs


@pytest.mark.parametrize("other", ["settings", "objective", "start", "scorer", "validation", "keep_start"])
def test_a_checkpoint_of_another_run_is_ignored_and_replaced(
    train: Part, validation: Part, tmp_path: Path, other: str
) -> None:
    def run(checkpoint: Path | None, other: str = "") -> tuple[int, bytes]:
        scorer = new_scorer("mlp" if other == "scorer" else "linear", seed=6 if other == "start" else 5)
        objective = train.objective("naive" if other == "objective" else "exposure-crm")
        judge = validation.data, validation.objective("naive" if other == "validation" else "exposure-crm")
        seen: list[Epoch] = []
        fit(
            scorer,
            train.data,
            objective,
            EXAMINATION,
            validation=judge,
            settings=replace(SETTINGS, epochs=2, learning_rate=0.04 if other == "settings" else 0.05),
            keep_start=other == "keep_start",
            checkpoint=checkpoint,
            progress=seen.append,
        )
        return len(seen), parameters(scorer)

    path = tmp_path / "run"
    run(path, other)
    assert run(path) == run(None)
    assert run(path)[0] == 0  # now it is there


@pytest.mark.parametrize("damage", ["empty", "garbage", "cut", "no state", "no JSON", "folder"])
def test_a_damaged_checkpoint_is_no_checkpoint(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "run"
    if damage == "folder":
        path.mkdir()
    elif damage.startswith("no "):
        save_file({"model.a": torch.ones(3)}, path, {"state": "{"} if damage == "no JSON" else None)
    else:
        save_file({"model.a": torch.ones(300)}, path, {"state": "{}"})
        content = path.read_bytes()
        path.write_bytes({"empty": b"", "garbage": b"garbage" * 100, "cut": content[:-40]}[damage])
    assert load_checkpoint(path) is None


def test_training_replaces_a_damaged_checkpoint(train: Part, tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"garbage" * 100)
    first, second = new_scorer(), new_scorer()
    fit(first, train.data, train.objective("naive"), EXAMINATION, settings=SETTINGS, checkpoint=path)
    fit(second, train.data, train.objective("naive"), EXAMINATION, settings=SETTINGS)
    assert parameters(first) == parameters(second)
    found = load_checkpoint(path)
    assert found is not None
    assert len(found[1]["history"]) == SETTINGS.epochs
