"""The command on a small model, its certificate and its log."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from saferank.cli.report import report
from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.policy.policy import Policy
from tests.doctor.logs import aggregated, random_interactions
from tests.lab.made_up import made_up
from tests.policy.made import EXAMINATION, make_data, make_policy, write_features
from tests.report.made_report import made_certificate, made_manifest

app = typer.Typer()
app.command()(report)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a model, and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    extra = {name: value for name, value in made_manifest().items() if name not in ("examination", "files", "inputs")}
    replace(make_policy(), manifest=extra).save(tmp_path / "models" / "model")
    return tmp_path


def certify(out: Path, model: str = "models/model") -> None:
    files = Policy.load(model).manifest["files"]
    made_certificate(inputs={"model": {"files": files}}).write(out)


def write_log() -> RankingData:
    data = make_data((6, 6, 6))
    write_features(Path("features.parquet"), data)
    interactions = random_interactions(3, 40, examination=EXAMINATION.tolist())
    manifest: dict[str, Any] = {"columns": {}, "layout": "long", "split": {"by": "hash", "seed": 0}}
    aggregated(interactions[::2], interactions[1::2], cutoff=3, **manifest).write("stats")
    return data


def call(*arguments: str | Path) -> str:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False).output


def test_a_model_alone() -> None:
    assert call("models/model") == "not certified  report.html\n"
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Not certified" in page
    assert 'id="training"' in page
    assert 'id="improvement"' not in page


@pytest.mark.parametrize("place", ["certificate.json", "models/certificate.json"])
def test_a_certificate_is_found_beside_the_model_or_here(place: str) -> None:
    certify(Path(place))
    assert call("models/model") == "DEPLOY  report.html\n"
    assert 'id="improvement"' in Path("report.html").read_text(encoding="utf-8")


def test_a_certificate_of_another_model_is_left_out_or_refused() -> None:
    made_certificate().write("certificate.json")
    said = call("models/model")
    assert "certificate.json is of another model, and left out." in said
    assert "not certified" in said
    with pytest.raises(UsageError, match=r"^certificate.json is of another model than models/model; certify"):
        call("models/model", "--certificate", "certificate.json")
    with pytest.raises(
        DataError, match=r"^no.json: there is no such file, and `saferank certify` writes one; check the path.$"
    ):
        call("models/model", "--certificate", "no.json")


def test_with_log_and_features_it_tells_all() -> None:
    write_log()
    certify(Path("c.json"))
    out = "new/page.html"
    options = ["--certificate", "c.json", "--log", "stats", "--features", "features.parquet", "--out", out]
    assert call("models/model", *options) == f"DEPLOY  {out}\n"
    page = Path(out).read_text(encoding="utf-8")
    for name in ("exposure", "most", "health", "assumptions"):
        assert f'id="{name}"' in page
    assert [path.name for path in Path("new").iterdir()] == ["page.html"]
    first = page
    call("models/model", *options)
    assert Path(out).read_text(encoding="utf-8") == first


def test_known_logging_scores_give_exact_exposure() -> None:
    """The log shows all documents alike, but for chance; with their scores, all alike."""
    data = write_log()
    write_features(Path("features.parquet"), data, score=np.full(data.documents, 2.0))
    options = ["--log", "stats", "--features", "features.parquet"]
    call("models/model", *options)
    counted = Path("report.html").read_text(encoding="utf-8")
    call("models/model", *options, "--logging-scores", "score")
    known = Path("report.html").read_text(encoding="utf-8")
    assert "Exposure in the log is exact, by its scores" not in counted
    assert "Exposure in the log is exact, by its scores" in known
    assert "in another impression of the log in 16.7%" in known  # one of six
    assert "in another impression of the log in 16.7%" not in counted
    with pytest.raises(DataError, match="column 'nobody': there is no such column"):
        call("models/model", *options, "--logging-scores", "nobody")


def test_a_log_without_features_tells_its_health() -> None:
    write_log()
    call("models/model", "--log", "stats")
    page = Path("report.html").read_text(encoding="utf-8")
    assert 'id="health"' in page
    assert 'id="exposure"' not in page
    assert "Without --features, which candidates were never shown is unknown" in page


def test_a_reproduction() -> None:
    Path("run").mkdir()
    pq.write_table(made_up(runs=1, points=3, ablation=False), "run/results.parquet")
    assert call("run", "--out", "run.html") == "reproduction  run.html\n"
    assert "claims that these results can decide" in Path("run.html").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="run is a reproduction; --certificate, --log and --features are for a model"):
        call("run", "--log", "stats")


def test_wrong_calls(here: Path) -> None:
    with pytest.raises(UsageError, match=rf"--out {here} is a folder; name a file, such as .*/report.html"):
        call("models/model", "--out", here)
    with pytest.raises(UsageError, match="--features tells what changes beside a log; give --log too"):
        call("models/model", "--features", "features.parquet")
    with pytest.raises(UsageError, match="--logging-scores is a column of the features; give --features too"):
        call("models/model", "--log", "stats", "--logging-scores", "score")
    with pytest.raises(DataError, match=r"^models: is neither a model that `saferank fit` wrote nor a folder that"):
        call("models")
    with pytest.raises(DataError, match=r"^nothing: is neither"):
        call("nothing")
    assert not Path("report.html").exists()


def test_out_is_checked_before_the_work() -> None:
    """Not a file as a folder, and nothing that is read: it would be replaced by what is made from it."""
    write_log()
    certify(Path("certificate.json"))
    with pytest.raises(UsageError, match=r"features.parquet is a file; name a file in a folder\."):
        call("models/model", "--out", "features.parquet/page.html")
    options = ["--log", "stats", "--features", "features.parquet"]
    for out in ("features.parquet", "certificate.json", "models/model/weights.safetensors"):
        before = Path(out).read_bytes()
        with pytest.raises(UsageError, match=rf"^--out {out} is what is read; name another file\.$"):
            call("models/model", *options, "--out", out)
        assert Path(out).read_bytes() == before
    for _ in range(2):  # a page in the folder of the model is not read
        call("models/model", "--out", "models/model/report.html")
