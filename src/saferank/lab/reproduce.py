"""The paper's experiment: every method at every number of interactions, several runs, in parallel, resumable."""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from saferank import __version__
from saferank.datasets.dataset import Dataset, load_dataset
from saferank.engine.click_models.trust_bias import TrustBias
from saferank.engine.errors import SaferankError, UsageError
from saferank.engine.objectives.risk import Risk
from saferank.engine.propensity.trust_estimate import estimate_trust
from saferank.engine.ragged import core_count
from saferank.engine.types.log_statistics import stacked
from saferank.files.atomic_write import whole_file
from saferank.lab.click_worlds import CLICK_WORLDS
from saferank.lab.experiment import Job, Plan
from saferank.lab.paper_methods import (
    SimulatedLogs,
    evaluate,
    learn_in_world,
    simulate_logs,
    true_clicks,
)
from saferank.lab.results import method_and_told
from saferank.lab.shared_arrays import load_prepared, save_prepared
from saferank.lab.workers import one_thread, workers
from saferank.lab.world import World, make_world, prepare
from saferank.learning.training_loop import FitResult

SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("method", pa.string()),
        ("interactions", pa.int64()),
        ("delta", pa.float64()),
        ("run", pa.int64()),
        ("ndcg", pa.float64()),
        ("ndcg_by_score", pa.float64()),
        ("seconds", pa.float64()),
        ("best_epoch", pa.int64()),  # 0: the start; null: nothing was learned
        ("epochs", pa.int64()),
        ("gain", pa.string()),
        ("world", pa.string()),
        ("clicks", pa.float64()),  # expected per interaction on the training queries, by the labels alone
    ]
)


def reproduce(
    plan: Plan,
    folder: Path,
    *,
    jobs: int = 0,
    dask: str | None = None,
    progress: Callable[[int, int, list[str]], None] | None = None,
) -> Path:
    """Run what is left of the plan and return the path of results.parquet, which grows as results come.

    Results of the same data, scorer, bound and training are added to; a folder of others is refused. `jobs` is the
    number of processes, by default one per core; or else `dask` is the address of a scheduler whose workers see the
    folder under the same path.
    `progress(done, all, running)` is called at each change.
    """
    results, manifest = folder / "results.parquet", folder / "manifest.json"
    described: dict[str, Any] = {"plan": asdict(plan), "settings": plan.settings, "version": __version__}
    rows: list[dict[str, Any]] = []
    seconds = 0.0
    if results.exists():
        known = json.loads(manifest.read_text())
        if [known["settings"], known["version"]] != [described["settings"], __version__]:
            raise UsageError(f"{folder} holds results of other settings; choose another --out, or remove it.")
        seconds = known["seconds"]
        rows = pq.read_table(results).to_pylist()
    have = {Job(row["method"], row["interactions"], row["delta"], row["run"]) for row in rows}
    everything = plan.jobs()
    todo = [job for job in everything if job not in have]
    described["jobs"] = jobs or core_count()
    if not todo:
        return results
    loaded = load_dataset(plan.dataset)
    dataset = prepare(loaded)
    described["test_queries"] = dataset.test.queries
    described["test_queries_left_out"] = loaded.test.queries - dataset.test.queries
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    for row in _run(plan, dataset, todo, folder, described["jobs"], dask, len(everything), progress):
        rows.append(row)
        described["seconds"] = seconds + time.perf_counter() - started
        with whole_file(results) as unfinished:
            pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), unfinished)
        with whole_file(manifest) as unfinished:
            unfinished.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    return results


def _run(
    plan: Plan,
    dataset: Dataset,
    todo: list[Job],
    folder: Path,
    processes: int,
    dask: str | None,
    total: int,
    progress: Callable[[int, int, list[str]], None] | None,
) -> Iterator[dict[str, Any]]:
    for left_over in folder.glob("data-*"):  # of a run that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(dir=folder.resolve(), prefix="data-") as scratch,
        workers(min(processes, len(todo)), dask) as (pool, places),
    ):
        save_prepared(dataset, Path(scratch))
        running: dict[Future[dict[str, Any]], Job] = {}
        queue = iter(todo)
        done = total - len(todo)
        try:
            while True:
                while len(running) < places() and (job := next(queue, None)) is not None:
                    running[pool.submit(_work, plan, scratch, job)] = job
                if progress is not None:
                    progress(done, total, [str(job) for job in running.values()])
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    done += 1
                    yield future.result()
        except BrokenProcessPool:
            raise SaferankError("a worker process died, most likely for want of memory; try --jobs 1.") from None


_worker: dict[str, Any] = {}
"""Of a worker, which has many jobs of the same plan: the plan, and the folder of its data."""


def _start_worker(plan: Plan, data: str) -> None:
    if _worker.get("data") != data:
        one_thread()
        for cached in (_dataset, _world, _logs):
            cached.cache_clear()
        _worker.update(plan=plan, data=data)


@lru_cache(maxsize=1)
def _dataset() -> Any:
    return load_prepared(_worker["plan"].dataset, Path(_worker["data"]))


@lru_cache(maxsize=1)
def _world(policy: int) -> Any:
    plan: Plan = _worker["plan"]
    world = make_world(
        _dataset(), seed=policy, scorer=plan.scorer, fraction=plan.fraction, temperature=plan.logging_temperature
    )
    return CLICK_WORLDS[plan.world].of(world)


@lru_cache(maxsize=1)
def _logs(policy: int, run: int, interactions: int) -> Any:
    return simulate_logs(_world(policy), interactions, run, CLICK_WORLDS[_worker["plan"].world])


def _trust(plan: Plan, world: World, logs: SimulatedLogs | None, told: str) -> TrustBias | None:
    """Return the trust bias that a method corrects for; None for the curve that the others are told."""
    if told == "known":
        return CLICK_WORLDS[plan.world].curve(world).normalised()
    if told and logs is not None:
        log = stacked([logs.train, logs.validation])
        with suppress(UsageError):  # too few clicks for any curve
            return estimate_trust(log, position_based=told == "none")
    return None


def _work(plan: Plan, data: str, job: Job) -> dict[str, Any]:
    _start_worker(plan, data)
    started = time.perf_counter()
    policy = 0 if plan.one_logging_policy else job.run
    world = _world(policy)
    method, told = method_and_told(job.method)
    logs = _logs(policy, job.run, job.interactions) if job.interactions else None
    reports: list[FitResult] = []
    scorer = learn_in_world(
        method,
        world,
        logs,
        seed=job.run,
        risk=Risk(job.delta or plan.delta, plan.constant),
        known=told.exposure,
        last_rank=told.last_rank,
        start=told.start,
        deploy=told.deploy,
        trust=_trust(plan, world, logs, told.trust),
        scorer=plan.scorer,
        training=plan.training_settings,
        report=reports.append,
    )
    ndcg, by_score = evaluate(scorer, world.test, plan.gain)
    return {
        "dataset": plan.dataset,
        **asdict(job),
        "ndcg": ndcg,
        "ndcg_by_score": by_score,
        "seconds": time.perf_counter() - started,
        "best_epoch": reports[0].best_epoch if reports else None,
        "epochs": len(reports[0].history) if reports else None,
        "gain": plan.gain,
        "world": plan.world,
        "clicks": true_clicks(scorer, world, CLICK_WORLDS[plan.world].traffic(world.train.queries)),
    }
