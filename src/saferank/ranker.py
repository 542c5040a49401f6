"""The Python interface: a log and features in, a policy and its verdict out."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self
from warnings import warn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from saferank.doctor.diagnosis import diagnose
from saferank.engine.click_models.examination import Constant, check_probabilities
from saferank.engine.errors import DataError, UsageError, in_python
from saferank.engine.propensity.examination_estimate import estimate_by_both
from saferank.engine.ragged import offsets_of
from saferank.engine.types.ranking_data import RankingData
from saferank.features.arrays import read_arrays
from saferank.features.reader import joined, read_candidates, text_columns
from saferank.features.table import column_names, query_offsets, read_table
from saferank.files.arrow_tables import Tabular
from saferank.learning.compare_policies import ComparedPolicy
from saferank.learning.fit_policy import Step, fit_policy
from saferank.learning.inputs import load_fit_inputs, log_and_features
from saferank.learning.settings import FitSettings, LoggingPolicy, TrainingSettings
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.examination_text import parse_examination
from saferank.logs.load_log import load_log
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs, Served
from saferank.verdict.certificate import Certificate
from saferank.verdict.certify import certify
from saferank.verdict.checks import MOST_WITHOUT_FEATURES, too_many_below
from saferank.verdict.inputs import live_policy

DEFAULTS = FitSettings()
LOGGER = logging.getLogger(__name__)


class SafeRanker:
    """Learns a ranking policy from a click log, and ranks with it.

    By default it begins with the current ranker and departs from it as far as the clicks support, choosing by what
    `certify` is foreseen to prove. Only `certify`, on held-out clicks, gives a guarantee.

    Args:
        method: how to learn: `auto`, or another of `saferank fit --help`, such as `exposure-crm` (the paper's).
        delta: probability that the lower bound of `exposure-crm` fails, for a policy fixed beforehand.
        constant: constant of its risk term: `proven`, or `paper` for the paper's.
        scorer: `gbdt` (trees), `mlp` or `linear`.
        examination: probability that users examine each rank, if you know it: one number per rank, or text
            (`1,0.5,0.3`, or `inverse-rank:1` for 1/rank). By default it is estimated from the log, by the documents
            that were shown at several ranks.
        cutoff: number of ranks of the log to learn from.
        logging_scores: feature with the scores of the Plackett-Luce policy that made the log. It is then not a feature,
            but trees correct it, so it is needed when the policy is served.
        logging_policy: how training knows what the current ranker shows: `counted` in the log, `modelled` (counts
            shrunk towards a model of it), `known` (its scores), or `auto`. A verdict counts, or knows.
        log1p: whether a feature x is replaced by sign(x) log(1 + |x|) before scaling.
        scaling: `per-query` scales each feature to [0, 1] among the documents of a query; `none` does not.
        missing: `error`; the number to use for missing values; or `indicator`: 0 after scaling, and a further feature
            that is 1 where a value is missing, for each feature that lacks some.
        categorical: columns of text whose values become features, `column=value`, at most 50 per column. New data gets
            the same features; there, other values are 0 in all of them.
        without_features: `drop` leaves shown documents without features out; `error` raises.
        baselines: whether to fit the other methods too, for `comparison`.
        epochs, learning_rate, seed: replace those of `training`.
        training: how `mlp` and `linear` are trained.
        bound: deprecated, the former name of `constant`.

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
        logging_policy: LoggingPolicy = DEFAULTS.logging_policy,
        log1p: bool = DEFAULTS.log1p,
        scaling: Literal["per-query", "none"] = DEFAULTS.scaling,
        missing: float | Literal["error", "indicator"] = DEFAULTS.missing,
        categorical: Sequence[str] = (),
        without_features: Literal["error", "drop"] = DEFAULTS.without_features,
        baselines: bool = DEFAULTS.baselines,
        epochs: int | None = None,
        learning_rate: float | None = None,
        seed: int | None = None,
        training: TrainingSettings = DEFAULTS.training,
        bound: Constant | None = None,
    ) -> None:
        if bound is not None:
            warn("SafeRanker(bound=...) is deprecated; use constant=.", DeprecationWarning, stacklevel=2)
            constant = bound
        self._parameters = {name: value for name, value in locals().items() if name not in ("self", "bound")}
        chosen = {"epochs": epochs, "learning_rate": learning_rate, "seed": seed}
        given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
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
            logging_policy=logging_policy,
            training=replace(training, **given),
        )
        if isinstance(examination, str):
            parse_examination(examination, cutoff)  # fails here rather than after the log was read
        self.examination, self.cutoff, self.logging_scores = examination, cutoff, logging_scores
        self.missing, self.categorical = missing, tuple(categorical)
        self.comparison: tuple[ComparedPolicy, ...] = ()
        """Policies compared on the validation part, beginning with the logging policy; not a certificate."""
        self.left_out = 0
        """Shown pairs of query and document that had no features."""
        self.columns_left_out: tuple[str, ...] = ()
        """Columns of the features without numbers, which are no features; unknown of `RankingData`."""
        self.warnings: tuple[str, ...] = ()
        """Doubts about the log, and about the examination if it was estimated from the log."""
        self.refused_for: tuple[str, ...] = ()
        """Those of the warnings for which `certify` will refuse the log as it is."""
        self._policy: Policy | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 (there is nothing below)
        """Return the arguments with which it was made, as scikit-learn asks for them."""
        return dict(self._parameters)

    def set_params(self, **parameters: Any) -> Self:
        """Change some of the arguments with which it was made; what was learned is kept until the next `fit`."""
        if unknown := [name for name in parameters if name not in self._parameters]:
            raise UsageError(f"there is no parameter '{unknown[0]}'; there are {', '.join(self._parameters)}.")
        kept = ("_policy", "comparison", "left_out", "columns_left_out", "warnings", "refused_for")
        learned = {name: getattr(self, name) for name in kept}
        self.__init__(**{**self._parameters, **parameters})  # type: ignore[misc]
        self.__dict__.update(learned)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn wants to know of an estimator; only called where it is installed."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(string=True, categorical=True, allow_nan=self.missing != "error"),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self._policy is not None

    def fit(
        self,
        log: str | Path | Tabular | ArrayLike | AggregatedLog,
        features: str | Path | Tabular | ArrayLike | RankingData,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        position: str | ArrayLike | None = None,
        impression: str | ArrayLike | None = None,
        document: str | ArrayLike | None = None,
        timestamp: str | ArrayLike | None = None,
        columns: Mapping[str, str] | None = None,
        unit: str | None = None,
        earlier: Sequence[str | Path | Tabular | AggregatedLog] = (),
        live: str | Path | Policy | None = None,
        progress: Callable[[Step], None] | None = None,
    ) -> Self:
        """Learn from the parts `train` and `validation` of the log.

        As LightGBM and XGBoost have it, `fit(X, clicks, qid=..., position=...)` learns from features and clicks of one
        row per shown document. Without `impression`, which names each row's impression as the log does, nobody can
        say later what was held out, and `certify` refuses.

        Args:
            log: a log as files or a table (a pandas or Polars DataFrame, a pyarrow or Ibis table), a folder that
                `saferank aggregate` wrote, or what `load_log` returned.
            features: what `load_features` reads, files or a table, or what it returned.
            qid, group, position, impression, document, timestamp: of rows, as for `features.shown_rows`: the query of
                each row, or the number of rows of each impression; then, if they are known, the rank from 1, the ids
                of impression and document, and the time. Arrays, or names of columns of `X`.
            columns: our names of columns -> those of the log where they differ, as in `{"click": "clicked"}`; ids are
                found by these names in the features too.
            unit: column of the log that names users or sessions, whose interactions are kept in one part; not for rows.
            earlier: logs of the rankers before, whatever they were: they teach about relevance, with all their parts,
                so nothing can be certified on them. None of them may be part of the log.
            live: the policy that drew the rankings of the log (`serve_as="sampled"`), or its folder: learning begins
                with it, and its exposure is known rather than counted.
            progress: called after each epoch.

        Returns:
            The ranker itself.
        """
        if unit is not None and (qid is not None or group is not None):
            raise UsageError("unit is a column of a log; to name users, give a log instead of rows.")
        log, features = log_and_features(
            log, features, qid=qid, group=group, position=position, impression=impression, document=document,
            timestamp=timestamp,
        )  # fmt: skip
        policy = live_policy(live, self.logging_scores)
        aggregated, data, indicators = load_fit_inputs(
            log, features, start=policy, cutoff=self.wanted_cutoff, columns=columns, unit=unit,
            categorical=self.categorical, missing=self.settings.missing, logging_scores=self.logging_scores,
        )  # fmt: skip
        examination, known_from = self._examination(aggregated, data)
        given = None if self.examination is None else examination
        self.refused_for = _doubts(aggregated, data, given) + _lacks_features(aggregated, data)
        if (below := too_many_below(aggregated.manifest)) is not None:
            self.refused_for += (f"{below} certify refuses such a log.",)
        self.warnings += self.refused_for
        origin: dict[str, Any] = {
            "logging_scores": self.logging_scores,
            "examination": known_from,
            "warnings": list(self.warnings),
        }
        if impression is None and (qid is not None or group is not None):
            origin["unnamed_impressions"] = True
        cutoff = aggregated.cutoff
        scores = self.logging_scores if policy is None else policy.scores(data, ignore=data.feature_names or ())
        LOGGER.info("Learning by %s from %s", self.settings.method, aggregated.source)
        fitted = fit_policy(
            aggregated,
            data,
            examination,
            self.settings,
            logging_scores=scores,
            start=policy,
            earlier=[
                one if isinstance(one, AggregatedLog) else load_log(one, columns=columns, cutoff=cutoff)
                for one in earlier
            ],
            origin=origin,
            progress=progress,
        )
        LOGGER.info("Learned")
        learned = fitted.policy
        if policy is None:
            values = {column: tuple(found) for column, found in data.categories.items()}
            learned = replace(learned, schema=replace(learned.schema, categories=values, indicators=indicators))
        self.warnings, self.refused_for = _in_python(self.warnings), _in_python(self.refused_for)
        self._policy, self.comparison, self.left_out = learned, fitted.comparison, fitted.left_out
        used = {*learned.schema.categories, *(columns or {}).values()}
        texts = () if isinstance(features, RankingData) else text_columns(features)
        self.columns_left_out = tuple(name for name in texts if name not in used)
        return self

    @property
    def policy(self) -> Policy:
        """The policy that was learned or loaded."""
        if self._policy is None:
            raise UsageError("there is no policy yet; call fit, or SafeRanker.load.")
        return self._policy

    @property
    def wanted_cutoff(self) -> int | None:
        """Number of ranks to count in a log: the cutoff, or as many as the examination lists; None for the default."""
        if self.examination is None or str(self.examination).startswith("inverse-rank"):
            return self.cutoff
        return len(self._given_examination(self.cutoff))

    def predict(
        self,
        features: str | Path | Tabular | ArrayLike | RankingData,
        offsets: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """Return the scores of documents, which compare documents of one query.

        Args:
            features: raw features, one row per document. In files, in a table (a pandas or Polars DataFrame, a pyarrow
                or Ibis table) and in `RankingData` features are matched by name, and other columns are ignored. An
                array has one column per feature, in the order of `policy.schema.columns`.
            offsets: `offsets[q]:offsets[q + 1]` are the documents of query q. By default a table's column `query_id`
                gives them; without that column all documents belong to one query.
            qid, group: instead of `offsets`, the query of each row (those of a query adjacent), or the number of
                documents of each query.
        """
        data = self._ranking_data(features, _offsets(offsets, qid, group))
        return self.policy.scores(data, ignore=data.feature_names or ())

    def rank(
        self,
        features: str | Path | Tabular | ArrayLike | RankingData,
        offsets: ArrayLike | None = None,
        *,
        serve_as: ServeAs = "deterministic",
        seed: int | None = None,
        cutoff: int | None = None,
    ) -> Served:
        """Return the rank of each document and the exposure that results.

        Args:
            features, offsets: as for `predict`.
            serve_as: `deterministic` ranks by score, `sampled` draws rankings from the policy.
            seed: gives the same sampled rankings again; by default every call draws new ones.
            cutoff: number of documents shown, by default as many as the policy knows the examination of.
        """
        return self.policy.rank(self._ranking_data(features, offsets), serve_as=serve_as, seed=seed, cutoff=cutoff)

    def _ranking_data(
        self, features: str | Path | Tabular | ArrayLike | RankingData, offsets: ArrayLike | None
    ) -> RankingData:
        schema, ids = self.policy.schema, self.policy.id_columns
        if isinstance(features, (RankingData, str, Path)):
            if offsets is not None:
                raise UsageError("RankingData and files have offsets of their own; leave offsets out.")
            if isinstance(features, RankingData):
                return features
            read = read_candidates(features, numbers=schema.numbers, categories=schema.categories, id_columns=ids)
            return joined([*read])
        if column_names(features) is not None:
            return read_table(features, schema.numbers, offsets, categories=schema.categories, query=ids["query_id"])
        return read_arrays(schema, features, offsets)

    def certify(
        self,
        log: str | Path | Tabular | AggregatedLog,
        features: str | Path | Tabular | RankingData,
        *,
        serve_as: ServeAs = "deterministic",
        live: str | Path | Policy | None = None,
        **options: Any,
    ) -> Certificate:
        """Return the verdict on the part `certify` of the log, as `saferank certify` does.

        Args:
            log: as for `fit`; a log that is not aggregated yet is split as for training.
            features: as for `fit`; with `logging_scores`, the logging exposure is known rather than counted.
            serve_as: how the policy will be served.
            live: as for `fit`.
            options: other arguments of `saferank.certify`: `delta`, `tolerance`, `trust_examination`, `earlier`,
                `ledger`, `columns` (by default the names that the model's log had, where ours are not there), ...
        """
        LOGGER.info("Certifying")
        known = self.logging_scores or ("none" if live is None else None)
        options = {"logging_scores": known, "serve_as": serve_as, "live": live} | options
        certificate = certify(self.policy, log, features=features, **options)
        LOGGER.info("Verdict: %s", certificate.verdict.value)
        return certificate

    def save(self, folder: str | Path) -> None:
        """Write the policy as a folder, atomically."""
        self.policy.save(folder)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a policy that `save` or `saferank fit` wrote, to rank with it and to certify it.

        The folder also restores `logging_scores`, the preparation of features, `examination` if it was given,
        `warnings` and `left_out`. `fit` would learn from scratch, with the default method.
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
            categorical=tuple(schema.categories),
        )
        ranker.settings = replace(ranker.settings, scorer=policy.kind.name)
        ranker.warnings = _in_python(inputs.get("warnings", ()))
        ranker.left_out = inputs.get("shown_pairs_without_features", 0)
        ranker._policy = policy
        return ranker

    def _given_examination(self, cutoff: int | None) -> NDArray[np.float64]:
        if isinstance(self.examination, str):
            return parse_examination(self.examination, cutoff)
        assert self.examination is not None
        return check_probabilities("examination", self.examination)

    def _examination(self, log: AggregatedLog, data: RankingData) -> tuple[NDArray[np.float64], str]:
        """Return the examination of the ranks that the log counts, and its origin."""
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


def _in_python(messages: Iterable[str]) -> tuple[str, ...]:
    """Return the messages as Python words them; the policy keeps them with the options of the command line."""
    return tuple(map(in_python, messages))


def _offsets(offsets: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None) -> ArrayLike | None:
    """Return where queries begin, in whichever of these ways it is said, if at all."""
    if sum(one is not None for one in (offsets, qid, group)) > 1:
        raise UsageError("offsets, qid and group say the same; give one of them.")
    if group is not None:
        return offsets_of(np.asarray(group))
    return offsets if qid is None else query_offsets(pa.chunked_array([pa.array(np.asarray(qid))]))


def _doubts(log: AggregatedLog, data: RankingData, given: NDArray[np.float64] | None) -> tuple[str, ...]:
    """Return the findings of `doctor` that rule a verdict out."""
    found = diagnose(log, data, given, em=False).blocking
    return tuple(f"{finding.text} {finding.remedy}".strip() for finding in found)


def _lacks_features(log: AggregatedLog, data: RankingData) -> tuple[str, ...]:
    """Return the warning that `certify` will refuse, if too many clicks are on documents without features."""
    clicks = pc.sum(log.missing_pairs(data)["clicked_sum"]).as_py() or 0
    share = clicks / max(pc.sum(log.shown_counts["clicked"]).as_py() or 0, 1)
    if share <= MOST_WITHOUT_FEATURES:
        return ()
    words = f"{share:.0%} of the clicks are on documents without features; above {MOST_WITHOUT_FEATURES:.0%}, certify"
    return (f"{words} refuses. Add the features of everything that is shown.",)
