"""Learners compared on simulated clicks. `python benchmarks/learners.py [--data NAME ...] [--out FOLDER]`.

NDCG@5 by score on test queries, which no log has seen: our methods, LightGBM's lambdarank on the same clicks, and, as
ceilings, both on the true labels. Nothing is chosen on the test queries. Every result is appended to results.jsonl in
--out; another run skips what is there, and the tables are made of all that it holds. Where `auto` says to keep the
current ranker, because no improvement over it is foreseen, the current ranker is measured. `--data` is
`synthetic:small`, `synthetic:mslr10k`, another draw such as `synthetic:small@101`, or a LETOR folder. Ends with an
error unless the checks that are printed below the tables hold.

How lambdarank gets the clicks (LightGBM needs whole numbers as labels; gains are linear in them):

- `lambdarank`: a row per shown document, label clicks / shown, weight shown;
- `lambdarank-positions`: a row per document and rank, label clicks / shown there, weight shown, and LightGBM's option
  `position`, which learns an offset for each rank;
- `lambdarank-examined`: a row per shown document, label (clicks + 1) / (examined + 1 / m), m being the mean of clicks /
  examined: shrunk towards it, because a click at a rank that few examine would dominate otherwise. Like our methods it
  knows the examination curve; nobody who uses LightGBM as it comes has that.

The clicks on the validation queries stop all three, as they stop ours, by NDCG@5.

Worlds: `paper` (relevance 0.2 + 0.025 label), `steep` (0.05 + 0.2 label), and `trust`: as steep, but users also click
what they do not find relevant, most of all at the top (Agarwal et al., WWW 2019). There the clicks are not position-
based, and the curve that our methods are given is not the whole truth.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch  # noqa: F401 (brings libgomp, which LightGBM needs and slim machines lack)
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from saferank.datasets.dataset import Dataset, load_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.metrics import ndcg_by_score
from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.ragged import query_sums
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.paper_methods import CUTOFF, SimulatedLogs, evaluate, learn_in_world, simulate_logs
from saferank.lab.world import World, make_world, prepare
from saferank.learning.boosting import MOST_TREES, PATIENCE
from saferank.learning.lightgbm_trees import ALWAYS
from saferank.learning.training_loop import FitResult

Floats = NDArray[np.float64]
STEEP = PositionBasedModel(relevance_slope=0.2, relevance_noise=0.05)
WORLDS = {"paper": PositionBasedModel(), "steep": STEEP, "trust": STEEP}
INTERACTIONS = tuple(10**power for power in range(2, 9))
OURS = ("auto", "correction", "gain-bound", "doubly-robust", "direct", "exposure-ips", "exposure-crm")
"""With trees; each with the logging policy known, and not."""
PAPER = ("exposure-ips/mlp", "exposure-crm/mlp")
"""As in the paper: a network from a random start."""
LIGHTGBM = ("lambdarank", "lambdarank-positions", "lambdarank-examined")
FROM_LABELS = ("skyline", "lambdarank-labels")
METHODS = ("logging", *FROM_LABELS, *OURS, *LIGHTGBM, *PAPER)
WITHOUT_CLICKS = ("logging", *FROM_LABELS)
LAMBDARANK: dict[str, Any] = ALWAYS | {
    "objective": "lambdarank",
    "metric": "ndcg",
    "eval_at": [CUTOFF],
    "learning_rate": 0.1,
    "num_leaves": 31,
    "num_threads": 1,
}
GRADES = 1000
"""Labels that click-through is rounded to."""
NOTHING = 1e-12


@dataclass(frozen=True)
class Cell:
    """One thing to measure."""

    data: str
    world: str
    run: int
    method: str
    interactions: int = 0
    """0 for what needs no clicks."""
    known: bool | None = None
    """Whether the logging policy is; None where it does not matter."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A table for LightGBM."""

    features: NDArray[np.float32]
    label: Floats
    weight: Floats
    group: NDArray[np.int64]
    position: NDArray[np.int64] | None = None

    def dataset(self, reference: Any = None) -> Any:
        """Return it as LightGBM takes it; rows have a mean weight of 1."""
        import lightgbm

        return lightgbm.Dataset(
            self.features,
            self.label,
            weight=self.weight / self.weight.mean(),
            group=self.group,
            position=self.position if reference is None else None,
            reference=reference,
            params=LAMBDARANK,
        )


def shown_rows(data: RankingData, times: Floats, clicks: Floats, position: NDArray[np.int64] | None = None) -> Rows:
    """Return the rows with times > 0, labelled clicks / times; (document, rank) tables are flattened."""
    ranks = 1 if times.ndim == 1 else times.shape[1]
    document = np.repeat(np.arange(data.documents), ranks)
    weight, clicks = times.reshape(-1), clicks.reshape(-1)
    kept = np.flatnonzero(weight > 0)
    share = clicks[kept] / weight[kept]
    group = query_sums((times > 0).reshape(data.documents, ranks).sum(axis=1).astype(np.float64), data.offsets)
    return Rows(
        data.features[document[kept]],
        np.minimum(np.round(share * GRADES), GRADES),
        weight[kept].astype(np.float64),
        group[group > 0].astype(np.int64),
        None if position is None else position.reshape(-1)[kept],
    )


def rows_for(method: str, data: RankingData, log: LogStatistics, examination: Floats, *, validation: bool) -> Rows:
    if method == "lambdarank-examined":
        times, clicks = examined(log, examination), log.clicks.astype(np.float64)
        mean = max(float(clicks.sum() / times.sum()), NOTHING)
        shown = (times > 0).astype(np.float64)
        return shown_rows(data, shown, shown * (clicks + 1) / (times + 1 / mean))
    if method == "lambdarank-positions" and not validation:
        ranks = np.broadcast_to(np.arange(log.cutoff), log.shown.shape)
        return shown_rows(data, log.shown.astype(np.float64), log.clicked.astype(np.float64), ranks)
    return shown_rows(data, log.times_shown.astype(np.float64), log.clicks.astype(np.float64))


def label_rows(data: RankingData) -> Rows:
    labels = data.require_labels().astype(np.float64)
    return Rows(data.features, labels, np.ones(data.documents), data.lengths)


def lambdarank(train: Rows, validation: Rows, seed: int, **parameters: Any) -> Callable[[NDArray[np.float32]], Floats]:
    """Return the scores that lambdarank learns, as a function of features."""
    import lightgbm

    table = train.dataset()
    booster = lightgbm.train(
        LAMBDARANK | {"seed": seed} | parameters,
        table,
        MOST_TREES,
        valid_sets=[validation.dataset(table)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return lambda features: np.asarray(booster.predict(features, num_threads=1))


@lru_cache(1)
def prepared(data: str) -> Dataset:
    return prepare(load_dataset(data))


@lru_cache(1)
def world_of(data: str, world: str, run: int) -> World:
    return make_world(prepared(data), seed=run, click_model=WORLDS[world])


@lru_cache(1)
def logs_of(data: str, world: str, run: int, interactions: int) -> SimulatedLogs:
    made = world_of(data, world, run)
    logs = simulate_logs(made, interactions, run)
    return with_trust(made, logs, run) if world == "trust" else logs


def with_trust(world: World, logs: SimulatedLogs, seed: int) -> SimulatedLogs:
    """Draw the clicks anew, with trust in the top ranks.

    P(C = 1 | d, k) = examination[k] (e+(k) R(d) + e-(k) (1 - R(d))),   e+(k) = 0.98 - k / 100,   e-(k) = 0.65 / k
    """
    examination, rank = world.click_model.examination, np.arange(1, world.click_model.cutoff + 1)

    def redrawn(part: str, log: LogStatistics, number: int) -> LogStatistics:
        relevance = world.relevance(part)[:, None]
        chance = examination * ((0.98 - rank / 100) * relevance + 0.65 / rank * (1 - relevance))
        clicked = np.random.default_rng([seed, 3, number]).binomial(log.shown, chance)
        return replace(log, clicked=clicked, rankings=None)

    return SimulatedLogs(redrawn("train", logs.train, 0), redrawn("validation", logs.validation, 1))


def measure(cell: Cell) -> dict[str, Any]:
    """Return NDCG@5 by score on the test queries, and the CPU seconds of learning."""
    world = world_of(cell.data, cell.world, cell.run)
    logs = logs_of(cell.data, cell.world, cell.run, cell.interactions) if cell.interactions else None
    method, _, scorer = cell.method.partition("/")
    started = time.process_time()
    if method == "logging":
        return {"ndcg": evaluate(world.logging_scorer, world.test)[1], "seconds": 0.0}
    if method.startswith("lambdarank"):
        if logs is None:
            predict = lambdarank(label_rows(world.train), label_rows(world.validation), cell.run)
        else:
            examination = world.click_model.examination
            train = rows_for(method, world.train, logs.train, examination, validation=False)
            validation = rows_for(method, world.validation, logs.validation, examination, validation=True)
            predict = lambdarank(train, validation, cell.run, label_gain=list(range(GRADES + 1)))
        seconds = time.process_time() - started
        scores = predict(world.test.features)
        found = ndcg_by_score(scores, world.test.require_labels(), world.test.offsets, CUTOFF)
        return {"ndcg": float(found.mean()), "seconds": seconds}
    told: list[FitResult] = []
    learned = learn_in_world(
        method, world, logs, seed=cell.run, known=bool(cell.known), scorer=scorer or "gbdt", report=told.append
    )
    seconds = time.process_time() - started
    if method == "auto" and keeps_the_ranker(told[0]):
        learned = world.logging_scorer
    return {"ndcg": evaluate(learned, world.test)[1], "seconds": seconds}


def keeps_the_ranker(result: FitResult) -> bool:
    """Whether `fit` says to keep the current ranker: nothing learned, or no improvement foreseen."""
    return result.chosen is None or result.chosen.improvement <= 0


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    for data in options.data:
        for world in options.worlds:
            for run in range(options.first_run, options.first_run + options.runs):
                for method in options.methods:
                    if method in WITHOUT_CLICKS:
                        yield Cell(data, world, run, method)
                for interactions in options.interactions:
                    for method in options.methods:
                        if method in OURS:
                            yield Cell(data, world, run, method, interactions, True)
                            yield Cell(data, world, run, method, interactions, False)
                        elif method not in WITHOUT_CLICKS:
                            yield Cell(data, world, run, method, interactions, False if method in PAPER else None)


def read(path: Path) -> dict[Cell, dict[str, Any]]:
    """Return the results by cell; a line that was cut off is left out."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[Cell(**{name: row[name] for name in Cell.__dataclass_fields__})] = row
    return found


def run_cells(todo: list[Cell], path: Path) -> None:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress, path.open("a") as file:
        task = progress.add_task("", total=len(todo))
        for cell in todo:
            known = {None: "", True: ", known", False: ", not known"}[cell.known]
            text = f"{cell.data} {cell.world} run {cell.run}: {cell.method}, N = {cell.interactions:.0e}{known}"
            progress.update(task, description=text)
            file.write(json.dumps(asdict(cell) | measure(cell)) + "\n")
            file.flush()
            progress.advance(task)


class Results:
    """The results of one data set and world; differences are over the runs that both sides have."""

    def __init__(self, rows: dict[Cell, dict[str, Any]], data: str, world: str) -> None:
        self.found: dict[tuple[str, bool | None, int], dict[int, dict[str, Any]]] = defaultdict(dict)
        for cell, row in rows.items():
            if (cell.data, cell.world) == (data, world):
                self.found[cell.method, cell.known, cell.interactions][cell.run] = row
        self.sizes = sorted({size for _, _, size in self.found if size})

    def ndcg(self, method: str, known: bool | None = None, size: int = 0) -> dict[int, float]:
        """By run."""
        return {run: row["ndcg"] for run, row in self.found.get((method, known, size), {}).items()}

    def mean(self, method: str, known: bool | None = None, size: int = 0) -> float | None:
        """Return the mean over runs; None without any."""
        values = list(self.ndcg(method, known, size).values())
        return float(np.mean(values)) if values else None

    def seconds(self, method: str, known: bool | None = None, size: int = 0) -> float | None:
        """Return the mean over runs; None without any."""
        rows = self.found.get((method, known, size), {}).values()
        return float(np.mean([row["seconds"] for row in rows])) if rows else None

    def lead(self, first: dict[int, float], second: dict[int, float]) -> Floats:
        """Return first - second for each run that both have."""
        return np.array([first[run] - second[run] for run in sorted(first.keys() & second.keys())])

    def table(self) -> str:
        """Return Markdown: the mean, and the worst run minus the logging policy; seconds at the largest N."""
        logging, kinds = self.ndcg("logging"), sorted({kind[:2] for kind in self.found}, key=_order)
        lines = [
            "| learner | logging policy | " + " | ".join(f"{size:.0e}" for size in self.sizes) + " | seconds |",
            "|---|---|" + "---|" * (len(self.sizes) + 1),
        ]
        for method, known in kinds:
            if method in WITHOUT_CLICKS:
                mean, seconds = self.mean(method), self.seconds(method) or 0.0
                cells = [f"{mean:.3f}"] + [""] * (len(self.sizes) - 1) + [f"{seconds:.1f}" if seconds else ""]
            else:
                cells = [self._cell(method, known, size, logging) for size in self.sizes]
                taken = [self.seconds(method, known, size) for size in self.sizes]
                cells.append(f"{next(value for value in reversed(taken) if value is not None):.1f}")
            policy = {None: "", True: "known", False: "not known"}[known]
            lines.append(f"| {method} | {policy} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def _cell(self, method: str, known: bool | None, size: int, logging: dict[int, float]) -> str:
        ndcg = self.ndcg(method, known, size)
        if not ndcg:
            return ""
        return f"{np.mean(list(ndcg.values())):.3f} ({self.lead(ndcg, logging).min():+.3f})"

    def checks(self) -> Iterator[tuple[str, bool, str]]:
        """Yield what the default must show: the claim, whether it holds, and the figures."""
        logging, labels = self.ndcg("logging"), self.ndcg("lambdarank-labels")
        for known in (True, False):
            name = "auto, logging policy known" if known else "auto, not known"
            auto = {size: self.ndcg("auto", known, size) for size in self.sizes}
            leads = {size: self.lead(auto[size], logging) for size in self.sizes}
            yield from _least(f"{name}: mean never more than 0.002 below the logging policy", leads, -0.002)
            for other in LIGHTGBM[:2]:
                leads = {size: self.lead(auto[size], self.ndcg(other, None, size)) for size in self.sizes}
                leads = {size: lead for size, lead in leads.items() if size >= 1e5}
                yield from _least(f"{name}: above {other} from 1e5 up", leads, NOTHING)
            crm = [size for size in self.sizes if self.ndcg("exposure-crm/mlp", False, size)]
            if crm:
                leads = {10**6: self.lead(auto.get(10**6, {}), self.ndcg("exposure-crm/mlp", False, crm[-1]))}
                claim = f"{name}: at 1e6 above exposure-crm with a network (the paper) at {crm[-1]:.0e}"
                yield from _least(claim, leads, NOTHING)
            leads = {10**8: self.lead(auto.get(10**8, {}), labels)}
            yield from _least(f"{name}: at 1e8 at most 0.01 below lambdarank on labels", leads, -0.01)


def on_labels(each: list[Results]) -> Iterator[tuple[str, bool, str]]:
    """Yield the claim about trees that see the labels, over all draws: on one of them chance decides."""
    both = [one for one in each if one.ndcg("skyline") and one.ndcg("lambdarank-labels")]
    if both:
        lead = np.array([one.lead(one.ndcg("skyline"), one.ndcg("lambdarank-labels")).mean() for one in both])
        seconds = [sum(one.seconds(name) or 0.0 for one in both) for name in FROM_LABELS]
        error = f" (standard error {lead.std(ddof=1) / np.sqrt(len(lead)):.4f})" if len(lead) > 1 else ""
        ratio = seconds[0] / seconds[1]
        figures = f"{lead.mean():+.4f}{error} over {len(lead)} draw(s), in {ratio:.2f} times the seconds"
        claim = "skyline (trees) not below lambdarank on labels, in at most 1.5 times its seconds"
        yield claim, bool(lead.mean() >= 0 and ratio <= 1.5), figures


def _least(claim: str, leads: dict[int, Floats], least: float) -> Iterator[tuple[str, bool, str]]:
    means = {size: float(lead.mean()) for size, lead in leads.items() if len(lead)}
    if means:
        size = min(means, key=lambda size: means[size])
        yield claim, means[size] >= least, f"least {means[size]:+.4f}, at N = {size:.0e}"


def _order(kind: tuple[str, bool | None]) -> tuple[int, bool]:
    return METHODS.index(kind[0]), not kind[1]


def said(checks: Iterator[tuple[str, bool, str]]) -> bool:
    """Print the claims; return whether all hold."""
    good = True
    for claim, holds, figures in checks:
        good &= holds
        print(f"- {claim}: {'holds' if holds else 'DOES NOT HOLD'} ({figures})")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["synthetic:small"])
    parser.add_argument("--worlds", nargs="+", default=["paper", "steep"], choices=WORLDS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--interactions", nargs="+", type=lambda text: int(float(text)), default=INTERACTIONS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--first-run", type=int, default=0, help="for several processes on one --out")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "saferank-learners")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "results.jsonl"
    done = read(path)
    run_cells([cell for cell in cells(options) if cell not in done], path)
    rows, good, each = read(path), True, []
    for data, world in sorted({(cell.data, cell.world) for cell in rows}):
        if data not in options.data or world not in options.worlds:
            continue
        results = Results(rows, data, world)
        each.append(results)
        runs = len({cell.run for cell in rows if (cell.data, cell.world) == (data, world)})
        print(f"\n## {data}, {world} world\n\nNDCG@5, mean of {runs} run(s) (worst run minus logging policy)\n")
        print(results.table() + "\n")
        good &= said(results.checks())
    print()
    good &= said(on_labels(each))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
