"""Looks at the held-out part of a log: every new look at the same data costs a share of delta."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from saferank.files.atomic_write import whole_file
from saferank.files.json_format import FileFormat
from saferank.files.table_url import without_secrets
from saferank.logs.earlier_logs import hashes
from saferank.logs.periods import span_of

FORMAT = FileFormat("saferank-ledger", 1, "certify", "remove it only if the log is new: it records the looks")


@dataclass(frozen=True)
class Look:
    """One model, certified once on one state of the held-out part."""

    model: str
    """Hash of what was certified, and of the settings."""
    log: str
    """Hash of what identifies the held-out part: what was counted; of older looks: files, split, sizes."""
    source: str
    period: list[str] | None
    """First and last moment of the log."""
    files: list[str]
    """SHA-256 of its files, where known."""
    delta: float
    """That was asked for."""
    spent: float
    """Share of it that this look used up."""
    interactions: int
    improvement: float
    lower: float
    upper: float
    verdict: str
    at: str

    @classmethod
    def now(cls, model: str, manifest: dict[str, Any], **figures: Any) -> Self:
        """Return the entry for a look that is taken now; `figures` are those of the certificate."""
        period = manifest.get("period")
        return cls(
            model=model,
            log=fingerprints(manifest)[0],
            source=str(manifest.get("source")),
            period=None if period is None else [str(moment) for moment in period],
            files=hashes(manifest),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            **figures,
        )


@dataclass(frozen=True)
class Ledger:
    """Looks at one log, in order."""

    looks: tuple[Look, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file, or begin a new ledger if there is none."""
        return FORMAT.read_as(path, cls) if path.exists() else cls(())

    def write(self, path: Path) -> None:
        """Write the file, atomically."""
        with whole_file(path) as unfinished:
            unfinished.write_text(json.dumps(FORMAT.marked({"looks": [asdict(look) for look in self.looks]}), indent=2))

    def on(self, manifest: dict[str, Any]) -> tuple[Look, ...]:
        """Return the looks at data that may share interactions with this log, by its times and files."""
        return tuple(look for look in self.looks if _overlaps(look, manifest))

    def share(self, model: str, manifest: dict[str, Any], *, any_time: bool = False) -> tuple[float, int]:
        """Return the share of delta for a look at this log with this model, and which look it is.

        The j-th look gets 1/(j (j + 1)), so that all looks add up to 1. The same model on the same data is the same
        look, whatever is done in between; with a bound that holds at any time (`any_time`), also when the data has
        grown. Data that no earlier look has seen starts at j = 1.
        """
        before, states = self.on(manifest), fingerprints(manifest)
        same = (look.model == model and (any_time or look.log in states) for look in before)
        number = next((place for place, is_same in enumerate(same, 1) if is_same), len(before) + 1)
        return 1.0 / (number * (number + 1)), number

    def with_look(self, look: Look, states: Sequence[str] = ()) -> Self:
        """Return the ledger with this look added, unless it is already there, at one of these states of the log."""
        if any(look.model == other.model and other.log in (look.log, *states) for other in self.looks):
            return self
        return replace(self, looks=(*self.looks, look))


def fingerprint(values: Any) -> str:
    """Return a hash of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def fingerprints(manifest: dict[str, Any]) -> list[str]:
    """Return hashes of what distinguishes one state of a held-out part from another, any of which a look may have.

    By content, whatever the file and the order of its rows; and by the files, as in looks of earlier versions, and for
    logs that these have counted.
    """
    by_content = ("content", "cutoff", "period", "unit", "reward")
    by_files = ("source", "files", "rows", "cutoff", "split", "period", "parts", "unit", "reward")
    named = [by_content, by_files] if "content" in manifest else [by_files]
    return [fingerprint({name: manifest.get(name) for name in names}) for names in named]


def ledger_path(source: str) -> Path:
    """Return where the ledger of a log is kept: beside it, and of a table in another engine, here."""
    plain = without_secrets(source).removeprefix("duckdb://").rstrip("/")
    path = Path(plain)
    name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in path.name) or "log"
    folder = path.parent if path.parent.is_dir() else Path()
    return folder / f"{name}.ledger.json"


def _overlaps(look: Look, manifest: dict[str, Any]) -> bool:
    if look.log in fingerprints(manifest):
        return True
    if look.period is not None and manifest.get("period") is not None:
        looked, now = span_of(look.period), span_of(manifest["period"])
        return looked is None or now is None or (now[0] <= looked[1] and looked[0] <= now[1])
    files = hashes(manifest)
    same = look.source == str(manifest.get("source"))
    return not (look.files and files) or same or not {*files}.isdisjoint(look.files)
