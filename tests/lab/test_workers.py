"""`reproduce` on a Dask cluster of two processes, one of which is killed."""

import os
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import UsageError
from saferank.lab.experiment import Job, Plan
from saferank.lab.reproduce import reproduce

distributed: Any = pytest.importorskip("distributed", reason="install saferank[dask]")


@pytest.mark.engines
@pytest.mark.usefixtures("few_queries")
def test_on_a_cluster_that_loses_a_worker_no_result_is_lost_or_twice(tmp_path: Path) -> None:
    plan = Plan(
        "synthetic:small", ("logging", "naive", "exposure-crm", "exposure-crm-known"), (200,), runs=2,
        training={"epochs": 1, "least_steps": 2},
    )  # fmt: skip
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    killed: list[int] = []
    with distributed.LocalCluster(**options) as cluster:

        def kill(done: int, _total: int, running: list[str]) -> None:
            if done == 1 and not killed:
                assert len(running) == 2
                killed.append(cluster.workers[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        address = cluster.scheduler_address
        rows = pq.read_table(reproduce(plan, tmp_path / "cluster", dask=address, progress=kill)).to_pylist()
    assert killed
    jobs = [Job(row["method"], row["interactions"], row["delta"], row["run"]) for row in rows]
    assert sorted(jobs, key=str) == sorted(plan.jobs(), key=str)
    alone = pq.read_table(reproduce(plan, tmp_path / "alone", jobs=2)).to_pylist()
    kept = ("method", "interactions", "run", "ndcg", "clicks")
    assert sorted(tuple(row[name] for name in kept) for row in rows) == sorted(
        tuple(row[name] for name in kept) for row in alone
    )
    with pytest.raises(UsageError):
        reproduce(plan, tmp_path / "nobody", dask="tcp://127.0.0.1:1")
