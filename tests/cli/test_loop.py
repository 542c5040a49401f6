"""docs/loop.md on a log of a few queries: pooled logs of the live model, earlier logs, and looks in one ledger."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from saferank.lab.raw_log import write_raw_log
from saferank.policy.policy import Policy
from tests.cli.running import Ran, words
from tests.verdict.small_log import small_log


@pytest.mark.usefixtures("short_training")
def test_two_rounds(tmp_path: Path, saferank: Callable[..., Ran]) -> None:
    world = small_log()
    data = world.data
    world.write_features(tmp_path / "features.parquet", scores=False)
    with_features = ("--features", tmp_path / "features.parquet")
    curve = ("--examination", "1,0.5,0.25")
    looks = ("--serve-as", "sampled", "--trust-examination", "--ledger", tmp_path / "looks.json")

    def log(folder: str, month: int, scores: np.ndarray, interactions: int) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / f"month-{month}.parquet"
        rng = np.random.default_rng(month)
        write_raw_log(path, data, scores, world.model, interactions, rng, month=month)

    log("live-0", 0, world.logging_scores, 10_000)
    fitted = saferank(
        "fit", tmp_path / "live-0", *with_features, *curve, "--split", "40/10/50", "--out", tmp_path / "model-1"
    )
    assert fitted.exit_code == 0, fitted.err
    found = saferank(
        "certify", tmp_path / "model-1", tmp_path / "live-0", *with_features, *looks, "--out", tmp_path / "1.json",
        "--explore", tmp_path / "live-model-1",
    )  # fmt: skip
    assert found.exit_code == 0, found.out + found.err

    live = Policy.load(tmp_path / "live-model-1")  # as flat as is proven
    temperature = json.loads((tmp_path / "1.json").read_text())["exploration"][-1]["temperature"]
    assert live.manifest["temperature"] == temperature > 1.0
    sharp = Policy.load(tmp_path / "model-1").scores(data)
    np.testing.assert_allclose(live.scores(data), sharp / temperature, rtol=1e-5, atol=1e-6)
    history = ("--live", tmp_path / "live-model-1", "--earlier", tmp_path / "live-0")
    for month in (1, 2):  # the second time, the log of the live model has grown
        log("live-1", month, live.scores(data), 3_000)
        fitted = saferank(
            "fit", tmp_path / "live-1", *with_features, *curve, *history, "--split", "40/10/50", "--out",
            tmp_path / "model-2",
        )  # fmt: skip
        assert fitted.exit_code == 0, fitted.err
        assert "10,000 interactions from 1 earlier log" in fitted.out
        assert ("was replaced" in words(fitted.out)) == (month == 2)
        found = saferank(
            "certify", tmp_path / "model-2", tmp_path / "live-1", *with_features, *history, *looks, "--out",
            tmp_path / "2.json",
        )  # fmt: skip
        assert found.exit_code in (0, 3, 4), found.out + found.err
        assert "10,000 interactions from 1 earlier log" in found.out
        certificate = json.loads((tmp_path / "2.json").read_text())
        assert certificate["inputs"]["log"]["parts"]["train"]["interactions"] > 0.35 * 3_000 * month
        assert certificate["look"] == month
        assert certificate["logging_exposure"] == "known"
        assert [one["source"] for one in certificate["inputs"]["earlier"]] == [str(tmp_path / "live-0")]
    spent = [look["spent"] for look in json.loads((tmp_path / "looks.json").read_text())["looks"]]
    np.testing.assert_allclose(spent, [0.05 / 2, 0.05 / 2, 0.05 / 6])

    refused = saferank(
        "certify", tmp_path / "model-2", tmp_path / "live-0", *with_features, *looks, "--out", tmp_path / "3.json"
    )
    assert refused.exit_code == 1
    wrong = saferank(
        "certify", tmp_path / "model-2", tmp_path / "live-1", *with_features, *looks, "--live", tmp_path / "model-1",
        "--logging-scores", "noise", "--out", tmp_path / "3.json",
    )  # fmt: skip
    assert wrong.exit_code == 2
