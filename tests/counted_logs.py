"""Logs that several tests and commands read: the same rows, read in the same way, are counted once."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from saferank.logs.aggregate import aggregate
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.click_log import ClickLog

KNOWN: dict[str, AggregatedLog] = {}


def counted_once(log: ClickLog, *, progress: Callable[[str], object] | None = None, **options: Any) -> AggregatedLog:
    """Do what `aggregate` does. Files and tables in memory are known again by their digests; all else is counted anew.

    What makes a log differ is in the key: its bytes, the columns that are read, and the options. Errors are not kept.
    A log whose rankings were counted is also the log without them.
    """
    files = log.source.describe_files()
    if log.layout != "long" or not files or any(file["sha256"] is None for file in files):
        return aggregate(log, progress=progress, **options)
    read_as = log.layout, log.columns, log.asked, log.reward_most, log.groups, log.other_columns
    rankings = options.pop("rankings", False)
    how = repr((files, read_as, sorted(options.items())))
    key = f"{how} {rankings}"
    if key not in KNOWN:
        KNOWN[key] = aggregate(log, progress=progress, rankings=rankings, **options)
    if rankings:
        KNOWN.setdefault(f"{how} False", replace(KNOWN[key], rankings=None))
    manifest = deepcopy(KNOWN[key].manifest) | {"source": log.source.name}
    return replace(KNOWN[key], manifest=manifest)
