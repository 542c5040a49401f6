"""A log for later steps: an aggregated log is read, anything else is aggregated first."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import ibis.expr.types as ir

from saferank.engine.errors import UsageError
from saferank.files.arrow_tables import Tabular, source_name
from saferank.logs.aggregate import aggregate
from saferank.logs.aggregated_log import AggregatedLog, is_aggregated
from saferank.logs.click_log import open_log
from saferank.logs.split import HashSplit, Split

LOGGER = logging.getLogger(__name__)


def load_log(
    source: str | Path | ir.Table | Tabular,
    *,
    columns: Mapping[str, str] | None = None,
    other_names: Mapping[str, str] | None = None,
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

    Options that contradict the manifest of an aggregated log are refused.
    """
    LOGGER.info("Reading the log %s", source_name(source))
    asked = {"segment": segment, "unit": unit, "reward": reward, "reward_most": reward_most}
    if not is_aggregated(source):
        log = open_log(source, columns=columns, other_names=other_names, layout=layout, **asked)  # type: ignore[arg-type]
        counted = aggregate(
            log, cutoff=cutoff, split=split, on_bad_rows=on_bad_rows, rankings=rankings, progress=progress
        )
        LOGGER.info("Counted %d rows of %s", counted.manifest["rows"], counted.source)
        return counted
    statistics = AggregatedLog.read(source)
    if rankings and statistics.rankings is None:
        raise UsageError(f"{source} has no rankings; aggregate the log again with --rankings.")
    made = statistics.manifest
    given = made | {f"column {name}": theirs for name, theirs in made["columns"].items()}
    of_reward = made.get("reward") or {}
    given |= {"reward": of_reward.get("column"), "reward_most": of_reward.get("most")}
    given |= {f"split {name}": value for name, value in made["split"].items()}
    wanted = asked | {f"column {name}": theirs for name, theirs in (columns or {}).items()} | {"cutoff": cutoff}
    wanted |= {"layout": None if layout == "auto" else layout.partition(":")[0]}
    if isinstance(split, HashSplit) and split.by is None:
        split = split.of_units(made.get("unit") is not None)
    if split is not None:  # without boundaries of its own, it takes those of the folder
        wanted |= {f"split {name}": value for name, value in split.describe().items() if value or name != "boundaries"}
    for name, value in wanted.items():
        if value is not None and value != given.get(name):
            said = f"{source} was aggregated with {name.replace('_', '-')} {given.get(name)}, not {value}"
            raise UsageError(f"{said}; leave that out, or aggregate the log again.")
    return statistics
