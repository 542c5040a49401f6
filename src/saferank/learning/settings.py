"""How to learn: the defaults of the command line, of `SafeRanker` and of the experiments are stated here, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from saferank.engine.click_models.examination import Constant
from saferank.engine.errors import UsageError
from saferank.engine.objectives.risk import Risk
from saferank.learning.methods import FROM_COUNTS, method_named

LoggingPolicy = Literal["auto", "counted", "modelled", "known"]
StopBy = Literal["objective", "clicks"]
"""What chooses the epoch on the validation part: the method's own objective, its risk included, or for every method the
same unpenalised exposure-based IPS estimate of clicks."""
FASTEST = 10
"""Learning rate beyond which weights leave what float32 holds."""


@dataclass(frozen=True)
class TrainingSettings:
    """How the objective is maximised; `benchmarks/training.py` measures what the settings do."""

    epochs: int = 20
    patience: int = 5
    """Epochs without a better validation value after which training stops."""
    batch: int = 32
    """Queries per step."""
    least_steps: int = 50
    """Steps per epoch at least: a log of few queries is passed over several times."""
    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    seed: int = 0
    stop_by: StopBy = "objective"
    """What early stopping looks at, the same for every method: see `validation_objective` in `learning/learn.py`."""
    processes: int = 1
    """That share the queries of each step: see `learning/processes.py`."""

    def __post_init__(self) -> None:
        if not 1 <= self.processes <= self.batch:
            raise UsageError(f"{self.processes} processes: 1 to {self.batch}, because each has a part of every batch.")
        if self.stop_by not in get_args(StopBy):
            raise UsageError(f"stop by '{self.stop_by}' is unknown; choose from: {', '.join(get_args(StopBy))}.")


UNTIL_CONVERGED = TrainingSettings(epochs=200, patience=10, learning_rate=2e-3)
"""The rule of `fit`, for every method and number of interactions: stop after 10 epochs without a higher validation
value, at the latest after 200. `reproduce` has it too, but for `stop_by`."""


@dataclass(frozen=True)
class FitSettings:
    """What to learn, with which scorer, from which features. The defaults of `fit` and `SafeRanker` are stated here."""

    method: str = "auto"
    """`auto` grows trees; for another scorer it is the gain bound."""
    delta: float = Risk.delta
    constant: Constant = Risk.constant
    scorer: str = "gbdt"
    log1p: bool = True
    scaling: Literal["per-query", "none"] = "per-query"
    missing: float | Literal["error", "indicator"] = "error"
    baselines: bool = False
    """Whether the other methods are learned too, for comparison."""
    without_features: Literal["error", "drop"] = "error"
    """What becomes of shown documents without features."""
    logging_policy: LoggingPolicy = "auto"
    """How the objectives know what the logging policy shows; see `learning/logging_policy.py`."""
    training: TrainingSettings = UNTIL_CONVERGED
    """Of the scorers mlp and linear."""

    def __post_init__(self) -> None:
        method_named(self.method, FROM_COUNTS)
        if self.method == "auto" and self.scorer != "gbdt":
            object.__setattr__(self, "method", "gain-bound")
        if self.logging_policy not in get_args(LoggingPolicy):
            choice = ", ".join(get_args(LoggingPolicy))
            raise UsageError(f"logging policy '{self.logging_policy}' is unknown; choose from: {choice}.")
        if not 0 < self.training.learning_rate <= FASTEST:
            raise UsageError(f"learning rate {self.training.learning_rate:g}: must be above 0, and at most {FASTEST}.")
        if self.training.processes > 1 and self.scorer == "gbdt":
            raise UsageError("several processes train the scorers mlp and linear; trees use all cores in one.")

    @property
    def risk(self) -> Risk:
        """delta and the constant."""
        return Risk(self.delta, self.constant)
