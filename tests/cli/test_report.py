"""The command on a small model, its certificate and its log."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.cli.certify import certify as certify_command
from saferank.cli.report import report
from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.policy.policy import Policy
from saferank.verdict.certificate import Verdict
from saferank.verdict.ledger import Ledger
from tests.cli.running import caller, words
from tests.cli.shown_log import write_shown_log
from tests.doctor.logs import aggregated, random_interactions
from tests.lab.made_up import made_up
from tests.policy.made import EXAMINATION, make_data, make_policy, write_features
from tests.report.made_report import made_certificate, made_manifest

call, judge = caller(report), caller(certify_command)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a model, and nothing else."""
    monkeypatch.chdir(tmp_path)
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


@pytest.mark.parametrize("folder", ["", "models/"])
def test_a_certificate_of_another_name_is_found_too(folder: str) -> None:
    """The latest that belongs to the model; what is no certificate, or of another model, does not matter."""
    files = Policy.load("models/model").manifest["files"]
    for name, moment, verdict in (("old", "2026-01-01", Verdict.KEEP), ("new", "2026-02-01", Verdict.DEPLOY)):
        made = made_certificate(inputs={"model": {"files": files}}, created=moment, verdict=verdict)
        made.write(Path(f"{folder}{name}.json"))
    made_certificate(created="2026-03-01", verdict=Verdict.MORE_DATA).write(Path("other.json"))
    Path("notes.json").write_text("no JSON")
    assert call("models/model") == "DEPLOY  report.html\n"


def test_a_certificate_of_another_model_is_left_out_or_refused() -> None:
    made_certificate().write("certificate.json")
    said = call("models/model")
    assert "certificate.json belongs to another ranker" in words(said)
    assert "not certified" in said
    with pytest.raises(UsageError, match=r"certificate\.json"):
        call("models/model", "--certificate", "certificate.json")
    with pytest.raises(DataError) as error:
        call("models/model", "--certificate", "no.json")
    assert str(error.value.file) == "no.json"


def test_with_log_and_features_it_shows_everything() -> None:
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
    assert "16.7%" in known  # one of six
    assert "16.7%" not in counted
    with pytest.raises(DataError) as error:
        call("models/model", *options, "--logging-scores", "nobody")
    assert error.value.column == "nobody"


def test_a_log_without_features_shows_its_health() -> None:
    write_log()
    call("models/model", "--log", "stats")
    page = Path("report.html").read_text(encoding="utf-8")
    assert 'id="health"' in page
    assert 'id="exposure"' not in page


def write_candidate(*, seed: int = 0) -> None:
    write_shown_log(Path("log.parquet"), queries=30, impressions=60)
    pairs = pq.read_table("log.parquet").group_by(["query_id", "document_id"]).aggregate([])
    scores = np.random.default_rng(seed).random(len(pairs))
    pq.write_table(pairs.append_column("score", pa.array(scores)), "scores.parquet")


CANDIDATE = ("--candidate", "scores.parquet", "--log", "log.parquet")


def test_a_candidate_with_its_certificate_and_without() -> None:
    write_candidate()
    assert call(*CANDIDATE) == "not certified  report.html\n"
    stated = ["--trained-until", "2024-01-05", "--serve-as", "sampled", "--out", "judged.json"]
    judge("--candidate", "scores.parquet", "log.parquet", *stated)
    looks = Ledger.read(Path("log.parquet.ledger.json")).looks
    assert call(*CANDIDATE) == "MORE DATA  report.html\n"
    assert Ledger.read(Path("log.parquet.ledger.json")).looks == looks
    page = Path("report.html").read_text(encoding="utf-8")
    for name in ("improvement", "exposure", "most", "health", "assumptions"):
        assert f'id="{name}"' in page
    for name in ("training", "examination"):
        assert f'id="{name}"' not in page
    assert "--features" not in page  # which a candidate has not
    assert call("--candidate", "scores.parquet") == "MORE DATA  report.html\n"
    write_shown_log(Path("other.parquet"), queries=30, impressions=50)
    assert "not certified" in call("--candidate", "scores.parquet", "--log", "other.parquet")
    write_candidate(seed=1)
    assert call(*CANDIDATE) == "not certified  report.html\n"
    with pytest.raises(UsageError, match=r"judged\.json"):
        call(*CANDIDATE, "--certificate", "judged.json")


def test_a_reproduction() -> None:
    Path("run").mkdir()
    pq.write_table(made_up(runs=1, points=3, ablation=False), "run/results.parquet")
    assert call("run", "--out", "run.html") == "reproduction  run.html\n"
    assert Path("run.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(UsageError, match="run"):
        call("run", "--log", "stats")


def test_wrong_calls() -> None:
    for wrong in (["--features", "features.parquet"], ["--log", "stats", "--logging-scores", "score"], ["--out", "."]):
        with pytest.raises(UsageError, match=wrong[-2][2:].replace("-", "_")):
            call("models/model", *wrong)
    for both in ([], ["models/model", "--candidate", "scores.parquet"]):
        with pytest.raises(UsageError, match="candidate"):
            call(*both)
    with pytest.raises(UsageError, match="`features`"):
        call("--candidate", "scores.parquet", "--log", "stats", "--features", "features.parquet")
    for source in ("models", "nothing"):
        with pytest.raises(DataError) as error:
            call(source)
        assert str(error.value.file) == source
    assert not Path("report.html").exists()


def test_out_does_not_replace_what_is_read() -> None:
    write_log()
    certify(Path("certificate.json"))
    options = ["--log", "stats", "--features", "features.parquet"]
    for out in ("features.parquet", "certificate.json", "models/model/weights.safetensors"):
        before = Path(out).read_bytes()
        with pytest.raises(UsageError, match=out):
            call("models/model", *options, "--out", out)
        assert Path(out).read_bytes() == before
    for _ in range(2):  # a page in the folder of the model is not read
        call("models/model", "--out", "models/model/report.html")
