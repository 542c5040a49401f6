"""The current ranker's scores, corrected by a regression of relevance as far as held-out clicks support it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from saferank.engine.forest import Forest
from saferank.engine.plackett_luce import exposure
from saferank.engine.propensity.click_evidence import click_evidence
from saferank.engine.ragged import query_sums
from saferank.learning.foresight import Foreseen, Foresight
from saferank.learning.methods import LoggedPart
from saferank.learning.relevance import RelevanceModel, Sample, fit_relevance
from saferank.learning.training_loop import Epoch, FitResult
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees

Floats = NDArray[np.float64]
LEAST_EVIDENCE = 2.6**2
"""A correction whose slope is not 2.6 standard errors above 0 is left out; beyond, it is shrunk by 1 - 2.6^2 / z^2."""
STEPS = tuple(2.0**power for power in range(-5, 9))
"""Shares of the correction that are tried; more than all of it only for a start that hardly prefers anything."""
FLAT = 1.0
"""Standard deviation of the scores of a query up to which steps beyond 1 are tried."""


@dataclass(frozen=True)
class Slopes:
    """Relevance = start_slope * start score + slope * R-hat + a constant of the query, with standard errors."""

    start_slope: float
    start_error: float
    slope: float
    error: float

    @property
    def correction(self) -> float:
        """How many start scores one unit of R-hat is worth; 0 without evidence."""
        z = self.slope / self.error if self.error > 0 else 0.0
        kept = 1 - LEAST_EVIDENCE / z**2 if z > 0 else 0.0
        worth = max(self.start_slope, self.start_error)
        return self.slope * kept / worth if kept > 0 and worth > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Evidence:
    """A regression of relevance, and how it compares with the scores that learning starts from."""

    samples: Sequence[Sample]
    model: RelevanceModel
    starts: Sequence[NDArray[np.float32]]
    held_out: Sequence[Floats]
    """R-hat of each document without the clicks on its query."""
    slopes: Slopes
    logging_exposure: Floats
    """Of the first sample."""
    verdict_interactions: int

    @property
    def relevance(self) -> Floats:
        """R of each document of the first sample: predicted within its query, at the level of the query's clicks."""
        sample, slopes = self.samples[0], self.slopes
        evidence, offsets = click_evidence(sample.log, sample.examination), sample.data.offsets
        predicted = max(slopes.start_slope, 0.0) * self.starts[0] + slopes.slope * self.held_out[0]
        level = evidence.relevance - within_queries(evidence.relevance, evidence.weight, offsets)
        relevance: Floats = np.clip(level + within_queries(predicted, evidence.weight, offsets), 0.0, 1.0)
        return relevance

    @cached_property
    def foresight(self) -> Foresight:
        """Foresees verdicts on the first sample."""
        sample = self.samples[0]
        start = exposure(self.starts[0], sample.data.offsets, sample.examination).astype(np.float64)
        return Foresight(
            sample.log, sample.examination, self.relevance, start, self.logging_exposure, self.verdict_interactions
        )


def find_evidence(
    scorer: Trees,
    train: LoggedPart,
    validation: LoggedPart,
    *,
    seed: int = 0,
    progress: Callable[[Epoch], None] | None = None,
) -> Evidence:
    """Fit R-hat to both parts, cross-fitted over queries, and weight it against the scorer's own scores.

    The verdict is taken to have as many interactions as the validation part.
    """
    samples, parts = _samples(train, validation)
    starts = [score(scorer, part.data.features) for part in parts]
    report = None if progress is None else lambda trees: progress(Epoch(trees, math.nan, math.nan, math.nan))
    model = fit_relevance(samples, features=scorer.read, seed=seed, progress=report)
    held_out = [model.cross_fitted(place, sample.data) for place, sample in enumerate(samples)]
    slopes = fit_slopes(samples, starts, held_out)
    size = validation.log.total_interactions
    return Evidence(samples, model, starts, held_out, slopes, parts[0].logging_exposure, size)


def with_relevance(train: LoggedPart, validation: LoggedPart, *, seed: int = 0) -> tuple[LoggedPart, LoggedPart]:
    """Return both parts with R-hat of each document, fitted without the clicks on its query."""
    samples, _ = _samples(train, validation)
    model = fit_relevance(samples, seed=seed)
    found = [np.clip(model.cross_fitted(place, sample.data), 0.0, 1.0) for place, sample in enumerate(samples)]
    return replace(train, relevance=found[0]), replace(validation, relevance=found[-1])


def correct(scorer: Trees, evidence: Evidence, *, by_gain: bool = False) -> FitResult:
    """Add trees to the scorer, in place: R-hat, as far as clicks that did not make it support that.

        s(d) = start(d) + step * correction * R-hat(d)

    `correction` is how many start scores a unit of R-hat is worth (`fit_slopes`). The step is the one of the largest
    foreseen worth: the gain times the chance that the verdict proves it; or, `by_gain`, of the largest gain. Without
    evidence, or without a gain, the scorer is left as it is.
    """
    slopes, start, held_out = evidence.slopes, evidence.starts[0], evidence.held_out[0]
    spread = slopes.correction * _spread(held_out, evidence.samples[0].data.offsets)
    path: dict[float, Foreseen] = {}
    for step in STEPS if slopes.correction > 0 else ():
        if step > 1 and step * spread > FLAT:
            break
        scores = (start + step * slopes.correction * held_out).astype(np.float32)
        path[step] = evidence.foresight.of(f"correction, step {step:g}", scores)
    best = max(path, key=lambda step: path[step].gain if by_gain else path[step].worth, default=0.0)
    taken = best if best and path[best].gain > 0 else 0.0
    step = taken * slopes.correction
    if taken:
        scorer.grow(Forest.joined([scorer.forest, evidence.model.forest.times(step)]))
    return FitResult(
        evidence.model.forests[0].trees if taken else 0,
        (),
        path=tuple(path.values()),
        chosen=path.get(taken),
        held_out_scores=(start + step * held_out).astype(np.float32),
    )


def _samples(train: LoggedPart, validation: LoggedPart) -> tuple[list[Sample], list[LoggedPart]]:
    """Return what R-hat is fitted to: two parts of the same documents are one sample."""
    if train.data is validation.data:
        return [Sample(train.data, train.log.merge(validation.log), train.examination)], [train]
    parts = [train, validation]
    return [Sample(part.data, part.log, part.examination) for part in parts], parts


def fit_slopes(samples: Sequence[Sample], starts: Sequence[NDArray[np.float32]], held_out: Sequence[Floats]) -> Slopes:
    """Weight start scores and R-hat by least squares within queries, on clicks that R-hat has not seen.

    Standard errors allow for clicks of one query that are correlated.
    """
    normal, right, kept = np.zeros((2, 2)), np.zeros(2), []
    for sample, start, relevance in zip(samples, starts, held_out, strict=True):
        evidence, offsets = click_evidence(sample.log, sample.examination), sample.data.offsets
        weight = evidence.weight
        x = np.stack([within_queries(values, weight, offsets) for values in (start.astype(np.float64), relevance)])
        y = within_queries(evidence.relevance, weight, offsets)
        normal += (weight * x) @ x.T
        right += (weight * x) @ y
        kept.append((x, y, weight, offsets))
    inverse = np.linalg.pinv(normal, hermitian=True)
    slopes = inverse @ right
    meat = np.zeros((2, 2))
    for x, y, weight, offsets in kept:
        scores = query_sums((weight * (y - slopes @ x) * x).T, offsets)
        meat += scores.T @ scores
    errors = np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse), 0.0))
    return Slopes(float(slopes[0]), float(errors[0]), float(slopes[1]), float(errors[1]))


def within_queries(values: Floats, weight: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return the values less their weighted mean over the query."""
    mean = query_sums(weight * values, offsets) / np.maximum(query_sums(weight, offsets), np.finfo(np.float64).tiny)
    return values - np.repeat(mean, np.diff(offsets))


def _spread(values: Floats, offsets: NDArray[np.int64]) -> float:
    """Return the standard deviation within queries."""
    return float(np.sqrt(np.mean(within_queries(values, np.ones(len(values)), offsets) ** 2)))
