"""The current ranker's scores, corrected by a regression of relevance as far as held-out clicks support it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from saferank.engine.forest import Forest
from saferank.engine.plackett_luce import exposure
from saferank.engine.propensity.click_evidence import click_evidence
from saferank.engine.ragged import query_sums
from saferank.learning.methods import LoggedPart
from saferank.learning.relevance import Sample, fit_relevance
from saferank.learning.training_loop import Epoch, FitResult, ForeseenStep
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees

LEAST_EVIDENCE = 2.6**2
"""A correction whose slope is not 2.6 standard errors above 0 is left out; beyond, it is shrunk by 1 - 2.6^2 / z^2."""
STEPS = tuple(2.0**power for power in range(-5, 9))
"""Shares of the correction that are tried; more than all of it only for a start that hardly prefers anything."""
FLAT = 1.0
"""Standard deviation of the scores of a query up to which steps beyond 1 are tried."""
LARGEST_WEIGHT = 50.0
"""Of a click, in what the verdict is foreseen to see."""
VERDICT_DELTA = 0.05
"""Of the verdict that is foreseen."""


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


def correct(
    scorer: Trees,
    train: LoggedPart,
    validation: LoggedPart,
    *,
    seed: int = 0,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Add trees to the scorer, in place: R-hat, as far as clicks that did not make it support that.

        s(d) = start(d) + step * correction * R-hat(d)

    R-hat is fitted to both parts, cross-fitted over queries. `correction` is how many start scores a unit of it is
    worth (`fit_slopes`). The step is the one with the largest product of the gain that is foreseen and the chance that
    a verdict with as many interactions as the validation part proves it (`foreseen_steps`); without evidence, or
    without a gain, the scorer is left as it is.
    """
    samples, parts = _samples(train, validation)
    starts = [score(scorer, part.data.features) for part in parts]
    report = None if progress is None else lambda trees: progress(Epoch(trees, math.nan, math.nan, math.nan))
    model = fit_relevance(samples, features=scorer.read, seed=seed, progress=report)
    held_out = [model.cross_fitted(place, sample.data) for place, sample in enumerate(samples)]
    slopes = fit_slopes(samples, starts, held_out)
    path = foreseen_steps(
        samples[0],
        starts[0],
        held_out[0],
        slopes,
        parts[0].logging_exposure,
        verdict_interactions=validation.log.total_interactions,
    )
    best = max(path, key=lambda one: one.gain * one.chance, default=ForeseenStep(0.0, 0.0, 0.0))
    step = best.step * slopes.correction if best.gain > 0 else 0.0
    if step > 0:
        scorer.grow(Forest.joined([scorer.forest, model.forest.times(step)]))
    return FitResult(
        model.forests[0].trees if step > 0 else 0,
        (),
        path=path,
        held_out_scores=(starts[0] + step * held_out[0]).astype(np.float32),
    )


def _samples(train: LoggedPart, validation: LoggedPart) -> tuple[list[Sample], list[LoggedPart]]:
    """Return what R-hat is fitted to: two parts of the same documents are one sample."""
    if train.data is validation.data:
        return [Sample(train.data, train.log.merge(validation.log), train.examination)], [train]
    parts = [train, validation]
    return [Sample(part.data, part.log, part.examination) for part in parts], parts


def fit_slopes(
    samples: Sequence[Sample], starts: Sequence[NDArray[np.float32]], held_out: Sequence[NDArray[np.float64]]
) -> Slopes:
    """Weight start scores and R-hat by least squares within queries, on clicks that R-hat has not seen.

    Errors are robust to clicks of one query that go together.
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
        pull = query_sums((weight * (y - slopes @ x) * x).T, offsets)
        meat += pull.T @ pull
    errors = np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse), 0.0))
    return Slopes(float(slopes[0]), float(errors[0]), float(slopes[1]), float(errors[1]))


def foreseen_steps(
    sample: Sample,
    start: NDArray[np.float32],
    held_out: NDArray[np.float64],
    slopes: Slopes,
    logging_exposure: NDArray[np.float64],
    *,
    verdict_interactions: int,
    delta: float = VERDICT_DELTA,
) -> tuple[ForeseenStep, ...]:
    """Foresee, for policies along the path start + step * correction * R-hat, the gain and whether it can be proven.

        gain   = (1/N) sum_q N_q sum_d R(d) (rho(d) - rho_start(d))
        proven = (1/N) sum_q N_q sum_d R(d) (min(rho(d) / rho_0(d), limit) - 1) rho_0(d)
        chance = Phi( proven / error - z_delta ),   error^2 = (1/n) (1/N) sum_d clicks(d) (rho(d) / rho_0(d) - 1)^2

    R is the weighted sum of `fit_slopes` around the query's mean, rho that of R-hat without the document's own clicks:
    neither has seen what the other was fitted to. n is the number of interactions that the verdict will have; it
    credits no document with what the log never showed of it.
    """
    if slopes.correction == 0:
        return ()
    log, examination, offsets = sample.log, sample.examination, sample.data.offsets
    begin = exposure(start, offsets, examination).astype(np.float64)
    issued = log.interactions[sample.data.query_of_document] / max(log.total_interactions, 1)
    relevance = issued * _relevance(sample, max(slopes.start_slope, 0.0) * start + slopes.slope * held_out)
    spread = slopes.correction * _spread(held_out, offsets)
    z = norm.isf(delta)
    found = []
    for step in STEPS:
        if step > 1 and step * spread > FLAT:
            break
        scores = (start + step * slopes.correction * held_out).astype(np.float32)
        rho = exposure(scores, offsets, examination).astype(np.float64)
        gain = float(relevance @ (rho - begin))
        ratio = np.divide(rho, logging_exposure, out=np.zeros(len(rho)), where=logging_exposure > 0)
        weight = np.minimum(ratio, LARGEST_WEIGHT) - 1
        proven = float(relevance * logging_exposure @ weight)
        error = math.sqrt(float(weight**2 @ log.clicks) / max(log.total_interactions, 1) / max(verdict_interactions, 1))
        found.append(ForeseenStep(step, gain, float(norm.cdf(proven / error - z)) if error > 0 else 0.0))
    return tuple(found)


def _relevance(sample: Sample, predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the relevance that is predicted relative to the other documents of a query, at the level of its clicks."""
    evidence, offsets = click_evidence(sample.log, sample.examination), sample.data.offsets
    around = within_queries(predicted, evidence.weight, offsets)
    level = evidence.relevance - within_queries(evidence.relevance, evidence.weight, offsets)
    relevance: NDArray[np.float64] = np.clip(level + around, 0.0, 1.0)
    return relevance


def within_queries(
    values: NDArray[np.float64], weight: NDArray[np.float64], offsets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the values less their weighted mean over the query."""
    mean = query_sums(weight * values, offsets) / np.maximum(query_sums(weight, offsets), np.finfo(np.float64).tiny)
    return values - np.repeat(mean, np.diff(offsets))


def _spread(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> float:
    """Return the standard deviation within queries."""
    return float(np.sqrt(np.mean(within_queries(values, np.ones(len(values)), offsets) ** 2)))
