import pytest

from tests.cli.running import cells, run_here


def test_learns_and_repeats(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    first, again = (run_here(["demo", "--epochs", "2", "--seed", "1"], monkeypatch, capsys) for _ in range(2))
    assert (first.exit_code, first.err) == (0, "")
    assert "epoch 2/2" in first.out
    assert max(map(len, first.out.splitlines())) <= 80
    rows = cells(first.out)
    before = [float(value) for value in rows["before (random weights)"]]
    after = [float(value) for value in rows["after training"]]
    assert all(new > old + 0.05 for old, new in zip(before, after, strict=True))
    assert cells(again.out) == rows


def test_seed_matters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tables = [
        cells(run_here(["demo", "--epochs", "1", "--seed", seed], monkeypatch, capsys).out)
        for seed in ("1", "2")
    ]
    assert tables[0] != tables[1]
