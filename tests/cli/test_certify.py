"""`saferank certify`: the screen, the exit codes, the file, and the watch."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.certification.small_log import linear_policy, small_log
from tests.cli.running import Ran, cells, run_here

Call = Callable[..., Ran]

BETTER, WORSE = (0.3, 0.5), (-0.3, 0.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, features with the logging scores beside them, and models of a better and a worse policy."""
    folder, world = tmp_path_factory.mktemp("certify"), small_log()
    world.write(folder / "log.parquet", 40_000)
    data = world.data
    assert data.query_ids is not None
    table = {
        "query_id": np.repeat(data.query_ids, data.lengths),
        "document_id": data.document_ids,
        "good": data.features[:, 0],
        "noise": data.features[:, 1],
        "logging_score": world.logging_scores,
    }
    pq.write_table(pa.table(table), folder / "features.parquet")
    for name, weights in (("better", BETTER), ("worse", WORSE)):
        linear_policy(*weights).save(folder / name)
    return folder


@pytest.fixture
def call(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Certify in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(model: str, *options: str, log: str = "log.parquet") -> Ran:
        inputs = [str(folder / model), str(folder / log), "--features", str(folder / "features.parquet")]
        known = ["--serve-as", "sampled", "--logging-scores", "logging_score"]
        return run_here(["certify", *inputs, *known, *options], monkeypatch, capsys)

    return run


def test_deploy(call: Call, tmp_path: Path) -> None:
    done = call("better")
    assert done.exit_code == 0, done.err
    assert "DEPLOY" in done.out
    assert "It is 95% sure that the new policy earns at least the clicks" in done.out
    assert all(len(line.rstrip()) <= 80 for line in done.out.splitlines())
    told = json.loads((tmp_path / "certificate.json").read_text())
    assert (told["verdict"], told["logging_exposure"], told["warnings"]) == ("DEPLOY", "known", [])
    assert f"{told['improvement']:+.5f} clicks per interaction" in done.out
    assert cells(done.out)["betting"] == [f"{told['lower']:+.5f}", f"{told['upper']:+.5f}", "at every look"]


def test_keep(call: Call, tmp_path: Path) -> None:
    done = call("worse")
    assert done.exit_code == 3
    assert "KEEP" in done.out
    assert json.loads((tmp_path / "certificate.json").read_text())["verdict"] == "KEEP"


def undecided(call: Call, tmp_path: Path) -> tuple[str, str]:
    """A tolerance as large as the estimated loss: that no log can decide."""
    call("worse")
    return "--tolerance", str(-json.loads((tmp_path / "certificate.json").read_text())["improvement"])


def test_more_data(call: Call, tmp_path: Path) -> None:
    done = call("worse", *undecided(call, tmp_path))
    assert done.exit_code == 4
    assert "MORE DATA" in done.out


def test_another_out_and_the_statistics_instead_of_the_log(
    call: Call, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = folder / "stats"
    run_here(["aggregate", str(folder / "log.parquet"), "--out", str(stats), "--cutoff", "3"], monkeypatch, capsys)
    assert call("better", "--out", "new/c.json", log="stats").exit_code == 0
    first = json.loads((tmp_path / "new" / "c.json").read_text())
    assert call("better").exit_code == 0
    second = json.loads((tmp_path / "certificate.json").read_text())
    assert (first["improvement"], first["lower"]) == pytest.approx((second["improvement"], second["lower"]))


def test_watch_stops_when_it_is_decided(call: Call, tmp_path: Path) -> None:
    done = call("better", "--watch", "--every", "0")
    assert done.exit_code == 0
    assert done.out.splitlines()[0].endswith("DEPLOY")
    told = json.loads((tmp_path / "certificate.json").read_text())
    assert len(told["inputs"]["looks"]) == 1
    assert (tmp_path / "certificate.watch.npz").exists()


def test_watch_stops_after_so_many_looks(call: Call, tmp_path: Path) -> None:
    done = call("worse", *undecided(call, tmp_path), "--watch", "--every", "0", "--looks", "3")
    assert done.exit_code == 4
    assert len(json.loads((tmp_path / "certificate.json").read_text())["inputs"]["looks"]) == 3


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--bound", "magic"], 2, "bound 'magic' is unknown"),
        (["--delta", "0"], 2, "delta is the chance that the bound may fail"),
        (["--tolerance", "-1"], 2, "tolerance is a loss that is accepted"),
        (["--looks", "3"], 2, "--looks is for --watch"),
        (["--out", "."], 2, "is a folder; name a file"),
        (["--watch", "--bound", "student-t"], 2, "only the bound 'betting' holds at every look"),
        (["--logging-scores", "nobody"], 1, "column 'nobody': there is no such column"),
    ],
)
def test_wrong_calls_write_nothing(call: Call, tmp_path: Path, options: list[str], code: int, message: str) -> None:
    done = call("better", *options)
    assert done.exit_code == code
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_out_is_checked_before_the_work(call: Call, folder: Path) -> None:
    """Not a file as a folder, and nothing that is read: it would be replaced by what is made from it."""
    features = folder / "features.parquet"
    before = features.read_bytes()
    done = call("better", "--out", str(features / "c.json"))
    assert done.exit_code == 2
    assert "features.parquet is a file; name a file in a folder." in " ".join(done.err.split())
    for name in ("features.parquet", "log.parquet", "better/manifest.json"):
        done = call("better", "--out", str(folder / name))
        assert done.exit_code == 2
        assert f"{name} is what is read; name another file." in " ".join(done.err.split())
    assert features.read_bytes() == before


def test_a_certificate_in_the_folder_of_the_model(call: Call, folder: Path) -> None:
    out = folder / "better" / "certificate.json"
    for _ in range(2):
        assert call("better", "--out", str(out)).exit_code == 0
    out.unlink()


def test_no_model_there(call: Call) -> None:
    done = call("nothing")
    assert done.exit_code == 1
    assert "`saferank fit` writes one" in done.err
