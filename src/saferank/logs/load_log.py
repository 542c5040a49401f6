"""A log for the steps that come after: a folder of statistics as it is, anything else aggregated first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import ibis.expr.types as ir

from saferank.engine.errors import UsageError
from saferank.logs.aggregate import aggregate
from saferank.logs.aggregated_log import AggregatedLog, is_aggregated
from saferank.logs.click_log import open_log
from saferank.logs.split import HashSplit, Split


def load_log(
    source: str | Path | ir.Table,
    *,
    columns: Mapping[str, str] | None = None,
    layout: str = "auto",
    cutoff: int | None = None,
    split: Split | None = None,
    segment: str | None = None,
    unit: str | None = None,
    reward: str | None = None,
    reward_most: float | None = None,
    on_bad_rows: str = "error",
    rankings: bool = False,
    progress: Callable[[str], object] | None = None,
) -> AggregatedLog:
    """Read a folder that `saferank aggregate` wrote, or open and aggregate a log: see `open_log` and `aggregate`.

    What a folder was made with cannot be changed: options that contradict its manifest are refused.
    """
    if isinstance(source, ir.Table) or not is_aggregated(source):
        log = open_log(
            source,
            columns=columns,
            layout=layout,
            segment=segment,
            unit=unit,
            reward=reward,
            reward_most=reward_most,
        )
        return aggregate(log, cutoff=cutoff, split=split, on_bad_rows=on_bad_rows, rankings=rankings, progress=progress)
    statistics = AggregatedLog.read(source)
    asked = {"cutoff": cutoff, "segment": segment, "unit": unit, "reward": reward, "reward-most": reward_most}
    _check(statistics, source, columns or {}, layout, split, asked)
    if rankings and statistics.rankings is None:
        raise UsageError(f"{source} holds no rankings; aggregate the log again with --rankings.")
    return statistics


def _check(
    statistics: AggregatedLog,
    source: str | Path,
    columns: Mapping[str, str],
    layout: str,
    split: Split | None,
    asked: Mapping[str, object],
) -> None:
    made = statistics.manifest
    reward = made.get("reward") or {}
    wanted: dict[str, object] = {
        **asked,
        "layout": None if layout == "auto" else layout.partition(":")[0],
        **{f"column {name}": theirs for name, theirs in columns.items()},
    }
    given = {**made, **{f"column {name}": theirs for name, theirs in made["columns"].items()}}
    given |= {"reward": reward.get("column"), "reward-most": reward.get("most")}
    if isinstance(split, HashSplit) and split.by is None:
        split = split.of_units(made.get("unit") is not None)
    if split is not None:
        for name, value in split.describe().items():
            if name != "boundaries" or value:  # none were asked for, then those of the folder will do
                wanted[f"split {name}"], given[f"split {name}"] = value, made["split"].get(name)
    for name, value in wanted.items():
        if value is not None and value != given.get(name):
            raise UsageError(
                f"{source} was aggregated with {name} {given.get(name)}, not {value}; leave that out, "
                "or aggregate the log again."
            )
