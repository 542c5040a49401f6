"""The runner: the right jobs, results as they come, a stopped run that goes on."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from saferank.datasets.synthetic import PRESETS
from saferank.engine.errors import SaferankError, UsageError
from saferank.lab.experiment import ABLATION, Job, Plan, parse_interactions
from saferank.lab.reproduce import SCHEMA, reproduce
from saferank.learning.settings import UNTIL_CONVERGED

TINY = Plan(
    "synthetic:small",
    ("logging", "naive", "exposure-crm", "exposure-crm-known"),
    (200,),
    runs=1,
    training={"epochs": 1, "least_steps": 2},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e2:1e9:8", tuple(10**i for i in range(2, 10))),
        ("400,1e6", (400, 1_000_000)),
        ("1e2:1e2:3", (100,)),
        ("4e7", (40_000_000,)),
    ],
)
def test_interactions_are_read(text: str, expected: tuple[int, ...]) -> None:
    assert parse_interactions(text) == expected


@pytest.mark.parametrize("text", ["", "many", "1e2:1e9", "0,5", "-3", "1e2:x:5", "nan", "1e20"])
def test_interactions_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"write 1e2:1e9:25 \(log-spaced\) or 400,1e6"):
        parse_interactions(text)


def test_jobs_are_each_method_at_each_number_in_each_run() -> None:
    plan = Plan("d", ("logging", "skyline", "naive", "exposure-crm"), (100, 1000), runs=3)
    jobs = plan.jobs()
    assert len(jobs) == len(set(jobs)) == 3 * (2 + 2 * 2)
    assert Job("logging", 0, None, 2) in jobs
    assert Job("exposure-crm", 1000, 0.01, 0) in jobs
    assert Job("naive", 100, None, 1) in jobs


def test_the_ablation_adds_deltas_to_both_crm_methods_only() -> None:
    plan = Plan("d", ("naive", "action-crm", "exposure-crm", "exposure-crm-known"), (100,), runs=1, ablation=True)
    found = {(job.method, job.delta) for job in plan.jobs()}
    assert {delta for method, delta in found if method == "exposure-crm"} == set(ABLATION)
    assert {delta for method, delta in found if method == "action-crm"} == set(ABLATION)
    assert {delta for method, delta in found if method == "naive"} == {None}
    assert {delta for method, delta in found if method == "exposure-crm-known"} == {0.01}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ("magic",)}, "unknown method magic; choose from: logging, skyline"),
        ({"scorer": "forest"}, "unknown scorer forest; choose from: gbdt, mlp, linear"),
        ({"constant": "provn"}, "unknown constant provn; choose from: paper, proven"),
        ({"methods": ("logging", "skyline")}, "learn from no clicks"),
        ({"methods": ("naive",), "ablation": True}, "add one to the methods"),
        ({"delta": 5.0}, "got 5.0"),
        ({"gain": "square"}, "unknown gain square; choose from: exponential, linear"),
        ({"training": {"stop_by": "eye"}}, "choose from: objective, clicks"),
    ],
)
def test_a_plan_that_cannot_be_run_says_so_at_once(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(TINY, **change)


def test_every_method_is_trained_by_one_rule_which_the_manifest_states_in_full() -> None:
    rule = replace(UNTIL_CONVERGED, epochs=1, least_steps=2, stop_by="clicks")
    assert TINY.settings["training"] == asdict(rule)
    other = replace(TINY, training={**TINY.training, "stop_by": "objective"})
    assert other.settings["training"] == asdict(replace(rule, stop_by="objective"))
    assert other.settings != TINY.settings != replace(TINY, gain="linear").settings


def test_wrong_data_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(SaferankError, match="no such folder"):
        reproduce(replace(TINY, dataset=str(tmp_path / "nowhere")), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("few_queries", "in_this_process")
def test_methods_that_correct_for_trust_run_also_where_the_log_says_nothing_of_it(tmp_path: Path) -> None:
    methods = ("exposure-ips", "exposure-ips-known-trust", "exposure-ips-estimated-trust", "prpo-estimated-trust")
    plan = replace(TINY, methods=methods, interactions=(50, 20_000), world="trust-bias")
    rows = pq.read_table(reproduce(plan, tmp_path / "trust", jobs=1)).to_pylist()
    ndcg = {(row["method"].removeprefix("exposure-ips"), row["interactions"]): row["ndcg"] for row in rows}
    assert len(ndcg) == 8
    assert ndcg["-estimated-trust", 50] == ndcg["", 50]  # the curve that it is told
    assert len({ndcg[told, 20_000] for told in ("", "-known-trust", "-estimated-trust")}) == 3


class Stopped(Exception):
    pass


@pytest.mark.slow
@pytest.mark.usefixtures("few_queries", "in_this_process")
def test_a_stopped_run_goes_on_where_it_was_and_ends_with_the_same_results(tmp_path: Path) -> None:
    whole = pq.read_table(reproduce(TINY, tmp_path / "whole", jobs=1))
    assert whole.schema.equals(SCHEMA)
    assert whole.num_rows == 4
    assert set(whole["method"].to_pylist()) == set(TINY.methods)
    assert all(0 < value < 1 for value in whole["ndcg"].to_pylist())
    told = {row["method"]: (row["best_epoch"], row["epochs"], row["gain"]) for row in whole.to_pylist()}
    assert told["logging"] == (None, None, "exponential")
    assert told["naive"] == (1, 1, "exponential")
    manifest = json.loads((tmp_path / "whole/manifest.json").read_text())
    assert manifest["test_queries"] + manifest["test_queries_left_out"] == PRESETS["small"].queries[2]
    assert manifest["plan"]["dataset"] == "synthetic:small"
    assert not list((tmp_path / "whole").glob("data-*"))

    def stop(done: int, total: int, running: list[str]) -> None:
        assert total == 4
        if done == 2:
            raise Stopped(running)

    with pytest.raises(Stopped):
        reproduce(TINY, tmp_path / "parts", jobs=1, progress=stop)
    assert pq.read_table(tmp_path / "parts/results.parquet").num_rows == 2
    seen = []
    more = replace(TINY, interactions=(200, 300))
    rows = pq.read_table(reproduce(more, tmp_path / "parts", jobs=1, progress=lambda done, *_: seen.append(done)))
    assert (seen[0], seen[-1], rows.num_rows) == (2, 7, 7)
    assert json.loads((tmp_path / "parts/manifest.json").read_text())["seconds"] > 0
    again = rows.filter(pc.field("interactions") != 300).drop_columns(["seconds"])
    assert again.sort_by("method").equals(whole.drop_columns(["seconds"]).sort_by("method"))
    told_again: list[int] = []
    assert reproduce(more, tmp_path / "parts", progress=lambda done, *_: told_again.append(done)).exists()
    assert told_again == []  # nothing was left to do
    with pytest.raises(UsageError, match="holds results of other settings; choose another `out`"):
        reproduce(Plan("synthetic:small", ("naive",), (200,)), tmp_path / "parts")
