"""`saferank certify`: the screen, the exit codes, the files, and the watch."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from saferank.verdict.words import UNSEEN
from tests.cli.running import Ran, cells, run_here, words
from tests.shops import World, make_shop, noisy
from tests.verdict.small_log import linear_policy, small_log

Call = Callable[..., Ran]

MODELS = {"better": (0.3, 0.5), "worse": (-0.3, 0.5), "like": (0.02, 0.4)}
INTERACTIONS = 20_000
KNOWN = ("--serve-as", "sampled", "--logging-scores", "logging_score")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, features with the logging scores beside them, models of three policies, and the better one's scores."""
    folder, world = tmp_path_factory.mktemp("certify"), small_log()
    world.write(folder / "log.parquet", INTERACTIONS)
    world.aggregated(folder / "log.parquet").write(folder / "stats")
    data = world.data
    assert data.query_ids is not None
    ids = {"query_id": np.repeat(data.query_ids, data.lengths), "document_id": data.document_ids}
    world.write_features(folder / "features.parquet")
    for name, weights in MODELS.items():
        linear_policy(*weights).save(folder / name)
    scores = linear_policy(*MODELS["better"]).scores(data)
    pq.write_table(pa.table(ids | {"score": scores}), folder / "scores.parquet")
    pyarrow.csv.write_csv(pa.table(ids | {"score": -scores}), folder / "upside_down.csv")
    rng = np.random.default_rng(1)
    shop = make_shop(rng, queries=20, documents=6, cutoff=3)
    fixed = World(shop, noisy(shop, rng, sampled=False)).draw(4_000, rng)
    pq.write_table(fixed.table(), folder / "fixed.parquet")
    rows = {"query_id": np.repeat(shop.query_ids, 6), "document_id": shop.document_ids}
    pq.write_table(pa.table(rows | {"score": rng.random(120)}), folder / "fixed_scores.parquet")
    return folder


@pytest.fixture
def call(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Certify in an empty folder, and with a ledger in it."""
    monkeypatch.chdir(tmp_path)

    def run(model: str, *options: str, log: str = "stats", known: bool = True, stated: bool = True) -> Ran:
        if model.endswith((".parquet", ".csv")):
            inputs = ["--candidate", str(folder / model), str(folder / log)]
            inputs += ["--trained-without-held-out"] if stated else []
        else:
            inputs = [str(folder / model), str(folder / log), "--features", str(folder / "features.parquet")]
            inputs += KNOWN if known else ()
        book = () if "--ledger" in options else ("--ledger", "looks.json")
        return run_here(["certify", *inputs, *book, *options], monkeypatch, capsys)

    return run


def written(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "certificate.json").read_text())
    return found


def test_deploy(call: Call, tmp_path: Path) -> None:
    done = call("better")
    assert done.exit_code == 0, done.err
    assert "DEPLOY" in done.out
    assert all(len(line.rstrip()) <= 80 for line in done.out.splitlines())
    found = written(tmp_path)
    assert (found["verdict"], found["logging_exposure"], found["warnings"]) == ("DEPLOY", "known", [])
    assert (found["look"], found["spent"]) == (1, pytest.approx(0.025))
    assert f"{found['improvement']:+.5f} clicks per interaction" in done.out
    assert cells(done.out)["one-look"] == [f"{found['lower']:+.5f}", f"{found['upper']:+.5f}", "at one look"]
    assert cells(done.out)["as used"][1:] == [f"{found['improvement']:+.5f}", f"{found['lower']:+.5f}", "DEPLOY"]


@pytest.mark.parametrize(
    ("model", "options", "code", "verdict"),
    [("worse", (), 3, "KEEP"), ("like", ("--delta", "1e-6"), 4, "MORE DATA")],
)
def test_keep_and_more_data(
    call: Call, tmp_path: Path, model: str, options: tuple[str, ...], code: int, verdict: str
) -> None:
    done = call(model, *options, "--json")
    assert done.exit_code == code, done.err
    assert json.loads(done.out) == written(tmp_path)
    assert written(tmp_path)["verdict"] == verdict


def test_a_ranker_made_elsewhere_is_judged_as_the_model_with_these_scores(call: Call, tmp_path: Path) -> None:
    assert call("better", known=False).exit_code == 0
    model = written(tmp_path)
    done = call("scores.parquet", "--ledger", "other.json", "--cutoff", "3", log="log.parquet")
    assert done.exit_code == 0, done.err
    candidate = written(tmp_path)
    for name in ("improvement", "lower", "upper", "verdict", "logging_exposure", "interactions"):
        assert candidate[name] == model[name]
    assert UNSEEN in candidate["assumptions"]  # nobody here knows what it was learned from
    assert UNSEEN not in model["assumptions"]
    assert (candidate["independence"], model["independence"]) == ("stated", None)
    assert "without the held-out part" in " ".join(done.out.split())
    done = call("upside_down.csv", "--ledger", "third.json")
    assert done.exit_code == 3, done.err


def test_a_ledger_beside_the_log_makes_the_next_model_spend_less(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.parquet").write_bytes((folder / "log.parquet").read_bytes())
    monkeypatch.chdir(tmp_path)
    spent = []
    for model in ("better", "worse"):
        arguments = [str(folder / model), "log.parquet", "--features", str(folder / "features.parquet"), *KNOWN]
        run_here(["certify", *arguments], monkeypatch, capsys)
        spent.append(written(tmp_path)["spent"])
    assert spent == pytest.approx([0.05 / 2, 0.05 / 6])
    looks = json.loads((tmp_path / "log.parquet.ledger.json").read_text())["looks"]
    assert [look["verdict"] for look in looks] == ["DEPLOY", "KEEP"]
    assert written(tmp_path)["inputs"]["looks"] == looks


def test_another_out_and_the_statistics_instead_of_the_log(call: Call, tmp_path: Path) -> None:
    assert call("better", "--out", "new/c.json", "--ledger", "other.json", log="stats").exit_code == 0
    first = json.loads((tmp_path / "new" / "c.json").read_text())
    assert call("better", log="log.parquet").exit_code == 0
    second = written(tmp_path)
    assert (first["improvement"], first["lower"]) == pytest.approx((second["improvement"], second["lower"]))


@pytest.mark.parametrize(
    ("model", "options", "code"), [("better", (), 0), ("like", ("--delta", "1e-6", "--looks", "1"), 4)]
)
def test_watch_stops_when_it_is_decided_or_after_the_last_look(
    call: Call, tmp_path: Path, model: str, options: tuple[str, ...], code: int
) -> None:
    done = call(model, *options, "--watch", "--every", "0", log="log.parquet")
    assert done.exit_code == code, done.err
    assert len(written(tmp_path)["inputs"]["looks"]) == 1


def test_watch_looks_again_only_when_the_log_has_grown(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows come between looks, 7 seconds each: 30%, 33% (not enough to look again), 60%, 100% of the log."""
    monkeypatch.chdir(tmp_path)
    table = pq.read_table(folder / "log.parquet")
    shares = iter([0.33, 0.6, 1.0])

    def write(share: float) -> None:
        pq.write_table(table.slice(0, 3 * int(INTERACTIONS * share)), "log.parquet")

    write(0.3)
    monkeypatch.setattr("time.sleep", lambda seconds: write(next(shares)) if seconds == 7 else None)
    arguments = [str(folder / "like"), "log.parquet", "--features", str(folder / "features.parquet"), *KNOWN]
    done = run_here(
        ["certify", *arguments, "--delta", "1e-6", "--watch", "--every", "7", "--looks", "3"], monkeypatch, capsys
    )
    assert done.exit_code == 4, done.err
    looks = written(tmp_path)["inputs"]["looks"]
    sizes = [look["interactions"] for look in looks]
    assert sizes == pytest.approx(0.2 * INTERACTIONS * np.array([0.3, 0.6, 1.0]), rel=0.05)
    assert [look["spent"] for look in looks] == pytest.approx([1e-6 / 2, 1e-6 / 6, 1e-6 / 12])


def test_watch_waits_out_a_half_copied_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log, copied = (folder / "log.parquet").read_bytes(), Path("log.parquet")
    copied.write_bytes(log[:1000])  # which cannot be read
    sizes = iter([len(log) // 2, len(log), len(log)])
    monkeypatch.setattr("time.sleep", lambda _: copied.write_bytes(log[: next(sizes)]))
    arguments = [str(folder / "better"), "log.parquet", "--features", str(folder / "features.parquet"), *KNOWN]
    done = run_here(["certify", *arguments, "--watch"], monkeypatch, capsys)
    assert done.exit_code == 0, done.err
    assert list(sizes) == []


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--bound", "magic"], 2),
        (["--delta", "0"], 2),
        (["--tolerance", "-1"], 2),
        (["--looks", "3"], 2),
        (["--out", "."], 2),
        (["--out", "same.json", "--ledger", "same.json"], 2),
        (["--split", "60/20/20"], 2),
        (["--candidate", "scores.parquet"], 2),
        (["--trained-until", "2026-01-09"], 2),
        (["--trained-without-held-out"], 2),
        (["--explore", "flat", "--serve-as", "deterministic"], 2),
        (["--most-weight", "0.5"], 2),
        (["--logging-scores", "nobody"], 1),
    ],
)
def test_wrong_calls_write_nothing(call: Call, tmp_path: Path, options: list[str], code: int) -> None:
    done = call("better", *options, log="log.parquet")
    assert (done.exit_code, done.out) == (code, "")
    assert options[0].strip("-") in words(done.err).replace("column 'nobody'", "logging-scores")
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_features_or_log_is_a_wrong_call(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, log = str(folder / "better"), str(folder / "log.parquet")
    for inputs in ([model, log], [model, "--features", "f.parquet"]):
        assert run_here(["certify", *inputs], monkeypatch, capsys).exit_code == 2


def test_refused_writes_no_certificate_and_no_look(call: Call, tmp_path: Path) -> None:
    done = call("fixed_scores.parquet", log="fixed.parquet")
    assert done.exit_code == 1
    assert "saferank plan" in done.err
    assert list(tmp_path.iterdir()) == []
    given = ("--examination", "inverse-rank:1")
    assert call("fixed_scores.parquet", *given, log="fixed.parquet").exit_code == 1
    assert list(tmp_path.iterdir()) == []
    done = call("fixed_scores.parquet", *given, "--trust-examination", log="fixed.parquet")
    assert done.exit_code in (0, 3, 4)
    assert done.out.index("cannot confirm") < done.out.index(written(tmp_path)["verdict"])
    assert written(tmp_path)["examination"]["unchecked"] is True


def test_out_and_ledger_do_not_replace_what_is_read(call: Call, folder: Path) -> None:
    for name in ("features.parquet", "log.parquet", "better/manifest.json"):
        before = (folder / name).read_bytes()
        for option in ("--out", "--ledger"):
            assert call("better", option, str(folder / name), log="log.parquet").exit_code == 2
        assert (folder / name).read_bytes() == before


def test_a_certificate_in_the_folder_of_the_model(call: Call, folder: Path) -> None:
    out = folder / "better" / "certificate.json"
    for _ in range(2):
        assert call("better", "--out", str(out)).exit_code == 0
    out.unlink()


def test_no_model_there(call: Call) -> None:
    done = call("nothing")
    assert done.exit_code == 1
    assert "nothing" in done.err


def test_settings_that_commands_share_do_not_get_in_the_way(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model has the split of its fit, a candidate has no features; so both leave what is common out."""
    monkeypatch.chdir(tmp_path)
    paths = "\n".join(f'{name} = "{folder / file}"' for name, file in (("log", "log.parquet"), ("model", "better")))
    (tmp_path / "saferank.toml").write_text(
        f'[common]\n{paths}\nfeatures = "{folder / "features.parquet"}"\nlogging-scores = "logging_score"\n'
        'split = "60/20/20"\ncutoff = 3\n[certify]\nserve-as = "sampled"\nledger = "looks.json"\n'
    )
    assert run_here(["certify"], monkeypatch, capsys).exit_code == 0
    assert "candidate" not in written(tmp_path)["inputs"]["model"]
    scores = ["--candidate", str(folder / "scores.parquet"), "--trained-without-held-out"]
    for log in ([], [str(folder / "log.parquet")]):
        ran = run_here(["certify", *scores, *log, "--serve-as", "deterministic"], monkeypatch, capsys)
        assert ran.exit_code in (0, 3, 4), ran.err
        assert "candidate" in written(tmp_path)["inputs"]["model"]
    ran = run_here(["certify", *scores, "--features", "features.parquet"], monkeypatch, capsys)
    assert (ran.exit_code, ran.out) == (2, "")
    assert run_here(["certify", "--split", "60/20/20"], monkeypatch, capsys).exit_code == 2
