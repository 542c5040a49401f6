"""`--track mlflow`: what a run has in a store in a folder, and what happens without MLflow."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saferank.cli.track import EXPERIMENT, _shown
from tests.cli.running import Ran
from tests.verdict.small_log import linear_policy, small_log

pytestmark = pytest.mark.usefixtures("short_training")
Call = Callable[..., Ran]
FIT = ("fit", "log.parquet", "--features", "features.parquet", "--out", "model", "--ignore", "logging_score")
QUICK = ("--method", "exposure-ips", "--scorer", "linear", "--epochs", "1", "--track", "mlflow")
CERTIFY = ("certify", "better", "log.parquet", "--features", "features.parquet", "--track", "mlflow")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a log, features, and a model that is better than what made the log."""
    monkeypatch.chdir(tmp_path)
    world = small_log()
    world.write(tmp_path / "log.parquet", 3_000)
    world.write_features(tmp_path / "features.parquet")
    linear_policy(0.3, 0.5).save("better")
    return tmp_path


def runs(place: Path) -> list[Any]:
    tracking = pytest.importorskip("mlflow.tracking", reason="mlflow is not installed: pip install 'saferank[mlflow]'")
    client = tracking.MlflowClient(str(place))
    found: list[Any] = client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id])
    return found


def artifact(run: Any, path: str) -> bytes:
    return Path(run.info.artifact_uri.removeprefix("file://"), path).read_bytes()


def test_fit_and_certify_record_what_they_found(here: Path, saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'saferank[mlflow]'")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(here / "store"))
    printed = json.loads(saferank(*FIT, *QUICK, "--json").out)
    (fitted,) = runs(here / "store")
    assert fitted.info.status == "FINISHED"
    assert fitted.data.params.items() >= {"method": "exposure-ips", "epochs": "1", "delta": "0.05"}.items()
    assert "earlier" not in fitted.data.params
    current, mine = printed["comparison"]
    assert fitted.data.metrics["current_ranker"] == pytest.approx(current["estimate"])
    assert fitted.data.metrics["estimate"] == pytest.approx(mine["estimate"])
    assert artifact(fitted, "model/manifest.json") == Path("model/manifest.json").read_bytes()
    assert artifact(fitted, "model/weights.safetensors") == Path("model/weights.safetensors").read_bytes()

    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    ran = saferank(*CERTIFY, "--serve-as", "sampled", "--logging-scores", "logging_score")
    (certified,) = runs(here / "mlruns")  # where it is by default
    written = json.loads(Path("certificate.json").read_text())
    assert certified.data.tags["verdict"] == written["verdict"]
    assert certified.data.metrics["deploy"] == (ran.exit_code == 0)
    for name in ("improvement", "lower", "upper"):
        assert certified.data.metrics[name] == pytest.approx(written[name])
    assert artifact(certified, "certificate.json") == Path("certificate.json").read_bytes()
    assert artifact(certified, "model/manifest.json") == Path("better/manifest.json").read_bytes()
    manifest = json.loads(Path("better/manifest.json").read_text())
    assert certified.data.tags["weights_sha256"] == manifest["files"]["weights.safetensors"]["sha256"]


def test_a_refusal_is_a_run_that_failed(here: Path, saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'saferank[mlflow]'")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(here / "store"))
    assert saferank(*CERTIFY, "--examination", "1,1,1").exit_code == 1
    (run,) = runs(here / "store")
    assert (run.info.status, run.data.metrics) == ("FAILED", {})


def test_without_the_extra_nothing_is_done(here: Path, saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mlflow", "mlflow.exceptions"):  # as if it were not installed
        monkeypatch.setitem(sys.modules, name, None)
    ran = saferank(*FIT, *QUICK)
    assert ran.exit_code == 2
    assert "saferank[mlflow]" in ran.err
    assert not (here / "model").exists()


def test_the_password_of_a_url_is_not_recorded() -> None:
    url = "postgres://team:secret@host/shop/clicks"
    assert "secret" not in _shown(url) + _shown([url, "log.parquet"])
    assert (_shown("log.parquet"), _shown(0.05), _shown(["a", "b"])) == ("log.parquet", "0.05", "['a', 'b']")
