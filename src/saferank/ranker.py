"""The whole way from Python: a log and features in, a policy out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.doctor.diagnosis import diagnose
from saferank.engine.click_models.examination import check_probabilities, parse_examination
from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.risk import Constant
from saferank.engine.propensity.examination_estimate import estimate_by_both
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import load_features, take_column, with_ids
from saferank.features.table import column_names, read_table
from saferank.learning.compare_policies import ComparedPolicy
from saferank.learning.fit_policy import Step, fit_policy
from saferank.learning.settings import FitSettings, TrainingSettings
from saferank.logs.aggregated_log import AggregatedLog
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs, Served, serve, shown_examination
from saferank.verdict.certificate import Certificate
from saferank.verdict.certify import CertifySettings, certify

DEFAULTS = FitSettings()


class SafeRanker:
    """Learns a ranking policy from a click log, and ranks with it.

    By default it maximises a lower bound on its clicks, so that it leaves the ranking policy that made the log only
    where the log supports it. `delta` is the chance that the bound may fail, for a policy fixed beforehand; what is
    learned is chosen on the data, and needs held-out clicks for a promise.

    `examination`: the chance that each rank is looked at, if you know it: one number per rank, or as text
    (`1,0.5,0.3`, or `inverse-rank:1` for 1/rank). Left out, it is estimated from the log, by the documents that were
    shown at several ranks.
    `cutoff`: learn from so many ranks of the log. `logging_scores` names the feature that holds the scores of the
    Plackett-Luce policy which made the log; it is then not a feature. `baselines`: learn by the other methods too,
    for `comparison`.

    >>> from saferank import SafeRanker
    >>> ranker = SafeRanker(epochs=3)
    >>> ranker.fit("log.parquet", "features.parquet").save("model")
    >>> served = SafeRanker.load("model").rank([[7.5, 3], [2.1, 9], [0.4, 1]])  # one query, two features
    >>> sorted(served.rank.tolist())
    [1, 2, 3]
    """

    def __init__(
        self,
        *,
        method: str = DEFAULTS.method,
        delta: float = DEFAULTS.delta,
        constant: Constant = DEFAULTS.constant,
        scorer: str = DEFAULTS.scorer,
        examination: str | ArrayLike | None = None,
        cutoff: int | None = None,
        logging_scores: str | None = None,
        log1p: bool = DEFAULTS.log1p,
        scaling: Literal["per-query", "none"] = DEFAULTS.scaling,
        missing: float | Literal["error"] = DEFAULTS.missing,
        without_features: Literal["error", "drop"] = DEFAULTS.without_features,
        baselines: bool = DEFAULTS.baselines,
        epochs: int | None = None,
        learning_rate: float | None = None,
        seed: int | None = None,
        training: TrainingSettings = DEFAULTS.training,
    ) -> None:
        changes = {"epochs": epochs, "learning_rate": learning_rate, "seed": seed}
        given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        self.settings = FitSettings(
            method=method,
            delta=delta,
            constant=constant,
            scorer=scorer,
            log1p=log1p,
            scaling=scaling,
            missing=missing,
            baselines=baselines,
            without_features=without_features,
            training=replace(training, **given),
        )
        if isinstance(examination, str):
            parse_examination(examination, cutoff)  # a mistake shows here, and not after the log was read
        self.examination, self.cutoff, self.logging_scores = examination, cutoff, logging_scores
        self.comparison: tuple[ComparedPolicy, ...] = ()
        """How the policy compares with the logging policy (and, with `baselines`, with what other methods learn) on
        the validation part; not a certificate."""
        self.left_out = 0
        """Shown pairs of query and document that had no features."""
        self.warnings: tuple[str, ...] = ()
        """What is doubtful about the examination, if it was estimated from the log."""
        self._policy: Policy | None = None

    def fit(
        self,
        log: str | Path | AggregatedLog,
        features: str | Path | RankingData,
        *,
        progress: Callable[[Step], None] | None = None,
    ) -> SafeRanker:
        """Learn from the parts `train` and `validation` of the log. Returns itself.

        `log`: a log, a folder that `saferank aggregate` wrote, or what `load_log` returned. `features`: what
        `load_features` reads, or returned.
        """
        if isinstance(log, AggregatedLog):
            aggregated = log
        else:
            from saferank.logs.load_log import load_log

            aggregated = load_log(log, cutoff=self.wanted_cutoff)
        wanted = self.wanted_cutoff
        if wanted not in (None, aggregated.cutoff):
            raise UsageError(
                f"{wanted} ranks are asked for (cutoff, or examination), but {aggregated.source} is counted for "
                f"{aggregated.cutoff}; ask for as many, or aggregate it with that cutoff."
            )
        if isinstance(features, RankingData):
            data = with_ids(features)
        else:
            data = load_features(features, missing="error" if self.settings.missing == "error" else "nan")
        origin: dict[str, Any] = {"logging_scores": self.logging_scores}
        scores = None
        if self.logging_scores is not None:
            data, scores = take_column(data, self.logging_scores)
        examination, origin["examination"] = self._examination(aggregated, data)
        self.warnings += _doubts(aggregated, None if self.examination is None else examination)
        origin["warnings"] = list(self.warnings)
        fitted = fit_policy(
            aggregated,
            data,
            examination,
            self.settings,
            logging_scores=scores,
            origin=origin,
            progress=progress,
        )
        self._policy, self.comparison, self.left_out = fitted.policy, fitted.comparison, fitted.left_out
        return self

    @property
    def policy(self) -> Policy:
        """The policy that was learned or loaded."""
        if self._policy is None:
            raise UsageError("there is no policy yet; call fit, or SafeRanker.load.")
        return self._policy

    @property
    def wanted_cutoff(self) -> int | None:
        """Number of ranks to count in a log: as many as were asked for, or as examination was listed for."""
        if self.examination is None or str(self.examination).startswith("inverse-rank"):
            return self.cutoff
        return len(self._given_examination(self.cutoff))

    def predict(self, features: ArrayLike | RankingData, offsets: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the scores of documents with these raw features, one row per document.

        In a table (a pandas or Polars DataFrame, a pyarrow Table) and in `RankingData` features are found by name, and
        other columns are not read. An array has one column per feature, in the order of `policy.schema.names`.
        `offsets[q]:offsets[q + 1]` are the documents of query q; left out, a table's column `query_id` gives them, and
        without that all documents are of one query. Scores compare documents of one query.
        """
        return self._scores(self._ranking_data(features, offsets))

    def rank(
        self,
        features: ArrayLike | RankingData,
        offsets: ArrayLike | None = None,
        *,
        serve_as: ServeAs = "deterministic",
        seed: int | None = None,
        cutoff: int | None = None,
    ) -> Served:
        """Return the rank of each document, by score or drawn, and the exposure that this gives it.

        Features and offsets are those of `predict`. Every call draws afresh, unless a `seed` is given: the same seed
        draws the same rankings.
        """
        data = self._ranking_data(features, offsets)
        examination = shown_examination(self.policy.examination, cutoff)
        rng = np.random.default_rng(seed)
        return serve(self._scores(data), data.offsets, examination, serve_as=serve_as, rng=rng)

    def _scores(self, data: RankingData) -> NDArray[np.float32]:
        return self.policy.scores(data, ignore=data.feature_names or ())

    def _ranking_data(self, features: ArrayLike | RankingData, offsets: ArrayLike | None) -> RankingData:
        if isinstance(features, RankingData):
            if offsets is not None:
                raise UsageError("RankingData has offsets of its own; leave offsets out.")
            return features
        if column_names(features) is not None:
            return read_table(features, self.policy.schema.names, offsets)
        rows = np.asarray(features, np.float32)
        offsets = [0, len(rows)] if offsets is None else offsets
        return RankingData(rows, np.asarray(offsets), source="the array", check_finite=False)

    def certify(
        self,
        log: str | Path | AggregatedLog,
        features: str | Path | RankingData,
        *,
        serve_as: ServeAs = "deterministic",
        ledger: str | Path | None = None,
        **settings: Any,
    ) -> Certificate:
        """Return the verdict on the part `certify` of the log: DEPLOY, KEEP or MORE DATA, and all that it rests on.

        What `saferank certify` does, with the same inputs: a log that is not aggregated yet is split as for training;
        with `logging_scores`, exposure is known and not counted. `settings` are those of `CertifySettings`: `delta`,
        `tolerance`, `bound`, `trust_examination`, ... `ledger` is the file in which looks at this log are kept, beside
        the log by default; an `AggregatedLog` has none unless it is named.
        """
        return certify(
            self.policy,
            log,
            CertifySettings(**settings),
            features=features,
            serve_as=serve_as,
            logging_scores=self.logging_scores or "none",
            ledger=ledger,
        )

    def save(self, folder: str | Path) -> None:
        """Write the policy as a folder, whole or not at all."""
        self.policy.save(folder)

    @classmethod
    def load(cls, folder: str | Path) -> SafeRanker:
        """Read a policy that `save` or `saferank fit` wrote, to rank with it and to certify it.

        What is known about log and features comes with it: `logging_scores`, `missing` and how else features are
        prepared, `examination` if it was given, `warnings`, `left_out`. `fit` would learn anew, by the default method.
        """
        policy = Policy.load(folder)
        inputs, schema = policy.inputs, policy.schema
        given = str(inputs.get("examination", "")).startswith("given")
        ranker = cls(
            examination=policy.examination if given else None,
            logging_scores=inputs.get("logging_scores"),
            log1p=schema.log1p,
            scaling=schema.scaling,
            missing=schema.missing,
        )
        ranker.settings = replace(ranker.settings, scorer=policy.kind.name)
        ranker.warnings = tuple(inputs.get("warnings", ()))
        ranker.left_out = inputs.get("shown_pairs_without_features", 0)
        ranker._policy = policy
        return ranker

    def _given_examination(self, cutoff: int | None) -> NDArray[np.float64]:
        if isinstance(self.examination, str):
            return parse_examination(self.examination, cutoff)
        assert self.examination is not None
        return check_probabilities("examination", self.examination)

    def _examination(self, log: AggregatedLog, data: RankingData) -> tuple[NDArray[np.float64], str]:
        """Return the examination of the ranks that the log counts, and where it is from."""
        self.warnings = ()
        if self.examination is None:
            rng = np.random.default_rng([self.settings.training.seed, 1])
            statistics = log.statistics(("train", "validation"), data)
            if not statistics.clicks.any():
                message = "has no click on documents with features; there is nothing to learn. Check the click column."
                raise DataError(message, file=log.source)
            estimate, _ = estimate_by_both(statistics, rng)
            self.warnings = estimate.warnings
            return estimate.probabilities(), f"estimated by {estimate.method}"
        given = self._given_examination(log.cutoff if str(self.examination).startswith("inverse-rank") else None)
        return given, f"given: {self.examination}" if isinstance(self.examination, str) else "given"


def _doubts(log: AggregatedLog, given: NDArray[np.float64] | None) -> tuple[str, ...]:
    """Return what doctor finds that would keep a verdict from being given."""
    found = diagnose(log, None, given, em=False).blocking
    return tuple(f"{finding.text} {finding.remedy}".strip() for finding in found)
