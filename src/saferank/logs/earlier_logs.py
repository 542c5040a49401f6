"""Logs of earlier rankers: what they may be used for beside the log of the current one."""

from collections.abc import Sequence
from typing import Any

from saferank.engine.errors import UsageError
from saferank.logs.aggregated_log import AggregatedLog

KEPT = ("source", "files", "rows", "period", "parts")
"""What the manifest of a policy or certificate keeps of an earlier log."""


def hashes(manifest: dict[str, Any]) -> list[str]:
    """Return the SHA-256 of a log's files, where known."""
    return [file["sha256"] for file in manifest.get("files") or [] if file.get("sha256")]


def share_files(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two manifests are of the same source, or have a file in common by its hash."""
    return one.get("source") == other.get("source") or not {*hashes(one)}.isdisjoint(hashes(other))


def check_earlier(log: AggregatedLog, earlier: Sequence[AggregatedLog]) -> None:
    """Raise if an earlier log is counted for other ranks, or is part of the log: it would reveal what is held out."""
    for one in earlier:
        if one.cutoff != log.cutoff:
            raise UsageError(
                f"{one.source} is counted for {one.cutoff} ranks, but {log.source} for {log.cutoff}; aggregate both "
                "with the same cutoff."
            )
        if share_files(log.manifest, one.manifest):
            raise UsageError(
                f"{one.source} is given as an earlier log, but it is part of {log.source}. Learning uses all of an "
                "earlier log, so nothing would be held out. Give only logs that are not part of it."
            )


def described(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what identifies an earlier log."""
    return {name: manifest.get(name) for name in KEPT}


def in_words(earlier: Sequence[dict[str, Any]]) -> str:
    """Return how much these earlier logs, as `described`, hold."""
    total = sum(part["interactions"] for one in earlier for part in one["parts"].values())
    return f"{total:,} interactions from {len(earlier)} earlier log{'' if len(earlier) == 1 else 's'}"
