"""What to run of the paper's experiment: the plan, and its jobs."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, get_args

import numpy as np

from saferank.engine.click_models.examination import Constant
from saferank.engine.errors import UsageError
from saferank.engine.metrics import Gain
from saferank.engine.objectives.risk import Risk
from saferank.lab.click_worlds import CLICK_WORLDS
from saferank.lab.paper_methods import ALL_METHODS, PAPER_RISK, PAPER_TRAINING, WITHOUT_CLICKS
from saferank.lab.results import TOLD_METHODS, method_and_told
from saferank.learning.methods import METHODS
from saferank.learning.settings import TrainingSettings
from saferank.policy.scorers import SCORERS

ABLATION = (0.1, 0.01, 1e-3, 1e-4, 1e-5)


@dataclass(frozen=True)
class Job:
    """One policy to learn and measure."""

    method: str
    interactions: int
    delta: float | None
    run: int

    def __str__(self) -> str:
        delta = "" if self.delta is None else f" delta {self.delta:g}"
        return f"{self.method} N={self.interactions:.0e}{delta} run {self.run}" if self.interactions else self.method


@dataclass(frozen=True)
class Plan:
    """What to run: all that the results depend on."""

    dataset: str
    methods: tuple[str, ...]
    interactions: tuple[int, ...]
    runs: int = 10
    delta: float = PAPER_RISK.delta
    ablation: bool = False
    """Also both CRM methods at the values of delta in ABLATION."""
    scorer: str = "mlp"
    constant: Constant = PAPER_RISK.constant
    fraction: float = 0.03
    """Share of the training queries whose labels the logging policy is trained on."""
    logging_temperature: float = 1.0
    """What the logging policy's scores are divided by: above 1, it explores more."""
    one_logging_policy: bool = True
    """Whether all runs have the same one; otherwise its own spread adds to that of the methods."""
    world: str = "position-based"
    """How clicks come about: a name in CLICK_WORLDS."""
    gain: Gain = "exponential"
    """Of the NDCG: 2^label - 1, or the label."""
    training: dict[str, Any] = field(default_factory=dict)
    """Changes to PAPER_TRAINING, which is the rule for all methods and numbers of interactions."""

    def __post_init__(self) -> None:
        for what, given, choice in (
            ("method", self.methods, (*ALL_METHODS, *TOLD_METHODS)),
            ("scorer", (self.scorer,), SCORERS),
            ("constant", (self.constant,), get_args(Constant)),
            ("gain", (self.gain,), get_args(Gain)),
            ("world", (self.world,), CLICK_WORLDS),
        ):
            if unknown := [name for name in given if name not in choice]:
                raise UsageError(f"unknown {what} {', '.join(unknown)}; choose from: {', '.join(choice)}.")
        if not set(self.methods) - set(WITHOUT_CLICKS):
            raise UsageError("logging and skyline learn from no clicks; add a method that does, or choose all.")
        if self.ablation and not {"action-crm", "exposure-crm"} & set(self.methods):
            raise UsageError("the ablation varies the delta of exposure-crm and action-crm; add one to the methods.")
        Risk(self.delta)  # checks delta
        self.training_settings  # noqa: B018 (checks them)

    @property
    def training_settings(self) -> TrainingSettings:
        """How every method is trained."""
        return replace(PAPER_TRAINING, **self.training)

    @property
    def settings(self) -> dict[str, Any]:
        """What results must have in common to stand in one table; methods, N and runs may be added to it."""
        extendable = ("methods", "interactions", "runs", "delta", "ablation")
        shared = {name: value for name, value in asdict(self).items() if name not in extendable}
        return shared | {"training": asdict(self.training_settings)}

    def jobs(self) -> list[Job]:
        """Return the jobs, run after run, the cheap ones first."""
        found: dict[Job, None] = {}
        for run in range(self.runs):
            for method in [m for m in self.methods if m in WITHOUT_CLICKS]:
                found[Job(method, 0, None, run)] = None
            for interactions in self.interactions:
                for method in [m for m in self.methods if m not in WITHOUT_CLICKS]:
                    has_risk = METHODS[method_and_told(method)[0]].has_risk
                    deltas = [self.delta] if has_risk else [None]
                    if self.ablation and has_risk and method in METHODS:
                        deltas = list(dict.fromkeys([*deltas, *ABLATION]))
                    found |= {Job(method, interactions, delta, run): None for delta in deltas}
        return list(found)


def parse_interactions(text: str) -> tuple[int, ...]:
    """Read `1e2:1e9:25` (so many log-spaced points) or `400,1e6` (those)."""
    try:
        if ":" in text:
            first, last, count = text.split(":")
            points = np.geomspace(float(first), float(last), int(count))
        else:
            points = np.array([float(part) for part in text.split(",")])
    except ValueError:
        points = np.array([])
    if len(points) == 0 or not np.all((points >= 1) & (points <= 1e15)):
        raise UsageError(f"interactions {text!r} cannot be read; write 1e2:1e9:25 (log-spaced) or 400,1e6.")
    return tuple(dict.fromkeys(round(point) for point in points))
