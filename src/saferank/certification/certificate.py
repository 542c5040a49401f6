"""The verdict and all that it rests on, as one JSON file."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from saferank._json import finite
from saferank.data.file_format import FileFormat
from saferank.data.output_path import whole_file
from saferank.errors import DataError

FORMAT = FileFormat("saferank-certificate", 1, "certify", "certify again")


class Verdict(Enum):
    """What to do with the new policy; the exit code is for a pipeline."""

    DEPLOY = "DEPLOY"
    KEEP = "KEEP"
    MORE_DATA = "MORE DATA"

    @property
    def exit_code(self) -> int:
        """0: the new policy may go live; 3: keep the old one; 4: not known yet."""
        return {Verdict.DEPLOY: 0, Verdict.KEEP: 3, Verdict.MORE_DATA: 4}[self]


@dataclass(frozen=True)
class BoundRow:
    """One way to bound the improvement, for comparison."""

    name: str
    lower: float
    upper: float
    guarantee: bool
    any_time: bool


@dataclass(frozen=True)
class SegmentRow:
    """The improvement among the interactions of one segment; all segments' intervals hold together."""

    segment: str
    interactions: int
    improvement: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Certificate:
    """Whether the policy may replace the one that made the log. All utilities are in clicks per interaction."""

    verdict: Verdict
    improvement: float
    """The estimate of U(new) - U(logging)."""
    lower: float
    upper: float
    """Bounds of the improvement, each at level `delta`."""
    delta: float
    tolerance: float
    bound: str
    serve_as: str
    interactions: int
    click_rate: float
    """Clicks per interaction of the logging policy, in the held-out part."""
    needed_interactions: int | None
    """How many held-out interactions would probably decide, if the verdict is MORE DATA and that can be said."""
    logging_exposure: str
    """`known`, or `counted` in the parts that training used."""
    effective_clicks: float
    """Kish's effective number of the weighted clicks."""
    unsupported_exposure: float
    """Share of the new policy's exposure on documents that the log never shows."""
    low: float
    high: float
    """Limits of one interaction's term, by the policies alone."""
    bounds: tuple[BoundRow, ...] = ()
    delta_dial: tuple[tuple[float, float], ...] = ()
    """(delta, lower bound): what another delta would have said; the verdict is that of the delta asked for."""
    segments: tuple[SegmentRow, ...] = ()
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    inputs: dict[str, Any] = field(default_factory=dict)
    """Hashes, counts and splits of the model, the log and the features."""
    saferank: str = ""
    created: str = ""

    @property
    def relative(self) -> tuple[float, float, float]:
        """Improvement, lower and upper bound as shares of the logging policy's click rate; NaN if that is 0."""
        scale = self.click_rate or math.nan
        return self.improvement / scale, self.lower / scale, self.upper / scale

    def write(self, path: str | Path) -> None:
        """Write the JSON file, whole or not at all."""
        values = FORMAT.marked(asdict(self) | {"verdict": self.verdict.value})
        with whole_file(Path(path)) as unfinished:
            unfinished.write_text(json.dumps(finite(values), indent=2, allow_nan=False) + "\n")

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """Read what `write` wrote."""
        values = FORMAT.read(Path(path))
        del values["format"], values["version"]
        try:
            values["verdict"] = Verdict(values["verdict"])
            values["bounds"] = tuple(BoundRow(**row) for row in values["bounds"])
            values["segments"] = tuple(SegmentRow(**row) for row in values["segments"])
            values["delta_dial"] = tuple((delta, lower) for delta, lower in values["delta_dial"])
            for name in ("assumptions", "warnings"):
                values[name] = tuple(values[name])
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"is no certificate of this version ({error}); certify again.", file=path) from error


def meaning(certificate: Certificate) -> str:
    """Return the verdict in one sentence."""
    sure = f"{confidence(certificate.delta)} sure"
    less = f" minus {certificate.tolerance:g}" if certificate.tolerance else ""
    if certificate.verdict is Verdict.DEPLOY:
        return f"It is {sure} that the new policy earns at least the clicks of the old one{less}."
    if certificate.verdict is Verdict.KEEP:
        return f"It is {sure} that the new policy earns fewer clicks than the old one{less}."
    if certificate.needed_interactions is None:
        return "The held-out clicks cannot tell the two apart, and more of them may not either."
    more, there = certificate.needed_interactions, certificate.interactions
    return f"Not decided. About {more:,.0f} held-out interactions would probably do; there are {there:,}."


def confidence(delta: float) -> str:
    """Return 1 - delta in percent, not rounded up to certainty.

    >>> confidence(0.05), confidence(0.001)
    ('95%', '99.9%')
    """
    return f"{100.0 * (1.0 - delta):.10g}%"
