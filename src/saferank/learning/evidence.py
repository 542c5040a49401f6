"""What the clicks say about relevance, how far that can be trusted, and what a verdict would make of a policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.ranker_changes import Compared
from saferank.engine.propensity.click_evidence import click_evidence
from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.propensity.posterior_relevance import posterior_relevance
from saferank.engine.ragged import query_sums, within_queries
from saferank.files.large_table import new_table
from saferank.learning.foresight import Foresight
from saferank.learning.list_lengths import ListLengths
from saferank.learning.methods import LoggedPart
from saferank.learning.relevance import RelevanceModel, Sample, fit_relevance
from saferank.learning.training_loop import Epoch
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees

Floats = NDArray[np.float64]
LEAST_EVIDENCE = 2.6**2
"""A correction whose slope is not 2.6 standard errors above 0 is left out; beyond, it is shrunk by 1 - 2.6^2 / z^2."""


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
    """Of the log alone: these clicks came after the start, and with the logging exposure."""
    history: Sequence[Sample]
    """What R-hat was fitted to: the same documents first, with the clicks of earlier logs."""
    model: RelevanceModel
    starts: Sequence[NDArray[np.float32]]
    held_out: Sequence[Floats]
    """R-hat of each document without the clicks on its query."""
    slopes: Slopes
    logging_exposure: Floats
    """Of the first sample."""
    flatter_exposure: Floats | None
    """The same, see `LoggedPart`."""
    verdict_interactions: int
    judged: tuple[Compared, ...] = ()
    """The same."""

    @cached_property
    def predicted(self) -> Floats:
        """R of each document of the first sample as predicted without its own clicks.

            predicted(d) = m + a R-hat(d) + b start(d) + c log rho_0(d) + e rho_0(d)

        m is the mean relevance of what was examined; R-hat is taken less its mean, and the others less their mean over
        the query. What the current ranker shows often is more relevant, also where no feature tells why: the start is
        only a model of it, rho_0 is what it did. Slopes are fitted to clicks that R-hat has not seen, and shrunk by
        their standard errors, 1 - 1 / z^2, each for what its column adds to those before it (`orthogonal`): the last
        three say nearly the same, so their slopes may be large and cancel out, and shrunk one by one they would not.
        Those of R-hat, and of what start and log rho_0 add, are not below 0.
        """
        sample, offsets, rho_0 = self.samples[0], self.samples[0].data.offsets, self.logging_exposure
        columns = np.stack([self.held_out[0], self.starts[0], _log_exposure(rho_0, sample), rho_0])
        columns = orthogonal(columns, sample)
        slopes, errors = within_query_slopes([sample], [columns])
        kept = _shrunk(slopes, errors)
        kept[:3] = np.maximum(kept[:3], 0.0)
        log, times = self.history[0].log, examined(self.history[0].log, sample.examination)
        mean = log.clicks.sum() / max(times.sum(), 1.0)
        predicted: Floats = mean + kept[0] * (columns[0] - _mean(columns[0], _weight(sample)))
        for slope, column in zip(kept[1:], columns[1:], strict=True):
            predicted += slope * within_queries(column, offsets, rho_0)
        return predicted

    @cached_property
    def relevance(self) -> Floats:
        """R of each document of the first sample: as predicted, and moved by its clicks (`posterior_relevance`)."""
        sample = self.history[0]
        return posterior_relevance(sample.log, sample.examination, self.predicted).relevance

    @cached_property
    def foresight(self) -> Foresight:
        """Foresees verdicts on the first sample."""
        sample = self.samples[0]
        return Foresight(
            sample.log,
            sample.examination,
            self.relevance,
            ListLengths.of(sample.log).exposure(self.starts[0], sample.examination),
            self.logging_exposure,
            self.verdict_interactions,
            self.flatter_exposure,
            self.judged,
        )


def find_evidence(
    scorer: Trees,
    train: LoggedPart,
    validation: LoggedPart,
    *,
    earlier: Sequence[Sample] = (),
    seed: int = 0,
    progress: Callable[[Epoch], None] | None = None,
) -> Evidence:
    """Fit R-hat to both parts and to earlier logs, cross-fitted over queries; weight it against the scorer's scores.

    The weights come from the two parts alone: the scorer may have been learned from the clicks of an earlier log.
    """
    samples, parts = _samples(train, validation)
    history = with_earlier(samples, earlier)
    starts = [score(scorer, part.data.features) for part in parts]
    report = None if progress is None else lambda trees: progress(Epoch(trees, math.nan, math.nan, math.nan))
    model = fit_relevance(history, features=scorer.read, seed=seed, progress=report)
    held_out = [model.cross_fitted(place, sample.data) for place, sample in enumerate(samples)]
    slopes = fit_slopes(samples, starts, held_out)
    size = validation.verdict_interactions or validation.log.total_interactions
    return Evidence(
        samples, history, model, starts, held_out, slopes, parts[0].logging_exposure, parts[0].flatter_exposure, size,
        parts[0].judged,
    )  # fmt: skip


def with_relevance(
    train: LoggedPart, validation: LoggedPart, *, earlier: Sequence[Sample] = (), seed: int = 0
) -> tuple[LoggedPart, LoggedPart]:
    """Return both parts with R-hat of each document, fitted without the clicks on its query."""
    samples, _ = _samples(train, validation)
    model = fit_relevance(with_earlier(samples, earlier), seed=seed)
    found = [np.clip(model.cross_fitted(place, sample.data), 0.0, 1.0) for place, sample in enumerate(samples)]
    return replace(train, relevance=found[0]), replace(validation, relevance=found[-1])


def _samples(train: LoggedPart, validation: LoggedPart) -> tuple[list[Sample], list[LoggedPart]]:
    """Return what R-hat is fitted to: two parts of the same documents are one sample."""
    beta = None if train.trust is None else train.trust.beta
    if train.data is validation.data:
        merged = train.log.merge(validation.log, new_table=new_table)
        return [Sample(train.data, merged, train.examination, beta)], [train]
    parts = [train, validation]
    return [Sample(part.data, part.log, part.examination, beta) for part in parts], parts


def with_earlier(samples: Sequence[Sample], earlier: Sequence[Sample]) -> list[Sample]:
    """Return the samples with the clicks of earlier logs: added where the documents are the same, else appended.

    Whatever ranker showed a document, clicks and examinations add up.
    """
    found = list(samples)
    for one in earlier:
        same = next((place for place, sample in enumerate(samples) if sample.data is one.data), None)
        if same is None:
            found.append(one)
        else:
            found[same] = replace(found[same], log=found[same].log.merge(one.log))
    return found


def fit_slopes(samples: Sequence[Sample], starts: Sequence[NDArray[np.float32]], held_out: Sequence[Floats]) -> Slopes:
    """Weight start scores and R-hat against each other, on clicks that R-hat has not seen."""
    columns = [np.stack([start.astype(np.float64), found]) for start, found in zip(starts, held_out, strict=True)]
    slopes, errors = within_query_slopes(samples, columns)
    return Slopes(float(slopes[0]), float(errors[0]), float(slopes[1]), float(errors[1]))


def within_query_slopes(samples: Sequence[Sample], columns: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the slopes of clicks / examined on the columns, by least squares within queries, and standard errors.

    The columns of a sample are (column, document). Standard errors allow for correlated clicks of a query.
    """
    size = len(columns[0])
    normal, right, kept = np.zeros((size, size)), np.zeros(size), []
    for sample, values in zip(samples, columns, strict=True):
        evidence, offsets = click_evidence(sample.log, sample.examination), sample.data.offsets
        weight = evidence.weight
        x = np.stack([within_queries(column, offsets, weight) for column in values])
        y = within_queries(evidence.relevance, offsets, weight)
        normal += (weight * x) @ x.T
        right += (weight * x) @ y
        kept.append((x, y, weight, offsets))
    inverse = np.linalg.pinv(normal, hermitian=True)
    slopes = inverse @ right
    meat = np.zeros((size, size))
    for x, y, weight, offsets in kept:
        scores = query_sums((weight * (y - slopes @ x) * x).T, offsets)
        meat += scores.T @ scores
    return slopes, np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse), 0.0))


def orthogonal(columns: Floats, sample: Sample) -> Floats:
    """Return each column less what those before it explain within queries, by the weights of the sample's clicks."""
    weight, offsets = _weight(sample), sample.data.offsets
    within = np.stack([within_queries(column, offsets, weight) for column in columns])
    normal = (weight * within) @ within.T
    jitter = np.finfo(np.float64).eps * max(float(normal.trace()), np.finfo(np.float64).tiny)
    root = np.linalg.cholesky(normal + jitter * np.eye(len(columns)))
    return np.asarray(np.linalg.solve(root / np.diag(root), columns))


def _log_exposure(logging_exposure: Floats, sample: Sample) -> Floats:
    """Return log rho_0 of each document; what was never shown counts as half shown once, at the last rank."""
    interactions = np.maximum(sample.log.interactions, 1)[sample.log.query_of_document]
    least = 0.5 * float(sample.examination[sample.examination > 0].min()) / interactions
    return np.log(np.maximum(logging_exposure, least))


def _weight(sample: Sample) -> Floats:
    return click_evidence(sample.log, sample.examination).weight


def _shrunk(slopes: Floats, errors: Floats) -> Floats:
    """Return the slopes times 1 - 1 / z^2; 0 within a standard error of 0."""
    z = np.divide(slopes, errors, out=np.zeros(len(slopes)), where=errors > 0)
    return slopes * np.maximum(1.0 - 1.0 / np.maximum(np.square(z), 1.0), 0.0)


def _mean(values: Floats, weight: Floats) -> float:
    return float(values @ weight) / max(float(weight.sum()), float(np.finfo(np.float64).tiny))
