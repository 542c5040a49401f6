"""All that a verdict needs, loaded once and in one way for the command line, the report and Python; and the look."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank.engine.click_models.examination import parse_examination
from saferank.engine.errors import UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import load_features, take_column, with_ids
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.logs.split import Split, split_of
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs
from saferank.verdict.certificate import Certificate, Doubt
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.checks import check_untouched
from saferank.verdict.ledger import Ledger, fingerprint, make_look
from saferank.verdict.new_ranker import NewRanker, ranker_of_policy, ranker_of_table, read_ranker

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LogOptions:
    """How a log is to be read: see `load_log`."""

    columns: Mapping[str, str] | None = None
    layout: str = "auto"
    on_bad_rows: str = "error"
    segment: str | None = None
    unit: str | None = None
    reward: str | None = None
    reward_most: float | None = None
    split: Split | None = None
    cutoff: int | None = None


@dataclass(frozen=True, eq=False)
class VerdictInputs:
    """What a verdict is about, and what it is made from."""

    ranker: NewRanker
    log: AggregatedLog
    examination: Floats | None = None
    """A curve that was given, when the model was fitted or now."""
    logging_scores: NDArray[np.float32] | None = None
    policy: Policy | None = None
    """The model, if it is one of ours."""


def load_model_inputs(
    policy: Policy,
    log: str | Path | AggregatedLog,
    features: str | Path | RankingData,
    *,
    serve_as: ServeAs = "deterministic",
    logging_scores: str | None = None,
    examination: str | None = None,
    options: LogOptions = LogOptions(),  # noqa: B008 (frozen)
    part: str = "train",
    progress: Callable[[str], object] | None = None,
) -> VerdictInputs:
    """Load what a verdict on a model needs: the log, cut and split as for training, and its features by name.

    `logging_scores` names the column of scores by which the log's rankings were drawn: by default the one that the
    model was fitted with, `none` for none.
    """
    tell = progress or (lambda _: None)
    tell("Reading the features")
    logging_scores = policy.inputs.get("logging_scores") if logging_scores is None else logging_scores
    logging_scores = None if logging_scores == "none" else logging_scores
    wanted = policy.schema.names if logging_scores is None else (*policy.schema.names, logging_scores)
    if isinstance(features, RankingData):
        data = with_ids(features)
    else:
        holes: Literal["error", "nan"] = "error" if policy.schema.missing == "error" else "nan"
        data = load_features(features, part=part, columns=wanted, missing=holes)
    scores = None
    if logging_scores is not None:
        data, scores = take_column(data, logging_scores)
    origin = policy.inputs
    tell("Reading the log")
    aggregated = log if isinstance(log, AggregatedLog) else read_log(log, options, policy)
    check_untouched(policy.manifest, aggregated.manifest)
    given = None
    if examination is not None:
        given = parse_examination(examination, aggregated.cutoff)
    elif str(origin.get("examination", "")).startswith("given"):
        given = policy.examination
    return VerdictInputs(ranker_of_policy(policy, data, serve_as), aggregated, given, scores, policy)


def load_candidate_inputs(
    candidate: str | Path | pa.Table | Mapping[str, Any],
    log: str | Path | AggregatedLog,
    *,
    serve_as: ServeAs = "deterministic",
    examination: str | None = None,
    options: LogOptions = LogOptions(),  # noqa: B008 (frozen)
    progress: Callable[[str], object] | None = None,
) -> VerdictInputs:
    """Load what a verdict on a ranker made elsewhere needs: its scores or ranks, and the log."""
    tell = progress or (lambda _: None)
    tell("Reading the scores")
    by_name = isinstance(candidate, (str, Path))
    ranker = read_ranker(candidate, serve_as) if by_name else ranker_of_table(candidate, serve_as)  # type: ignore[arg-type]
    tell("Reading the log")
    aggregated = log if isinstance(log, AggregatedLog) else read_log(log, options)
    given = None if examination is None else parse_examination(examination, aggregated.cutoff)
    return VerdictInputs(ranker, aggregated, given)


def read_log(log: str | Path, options: LogOptions, policy: Policy | None = None) -> AggregatedLog:
    """Return the log with these options, or as the model's own log was read where they say nothing."""
    if policy is not None:
        trained = policy.inputs.get("log") or {}
        split = split_of(trained["split"]) if "split" in trained else options.split
        options = replace(options, cutoff=policy.cutoff, split=split, unit=options.unit or trained.get("unit"))
    return load_log(
        log,
        columns=options.columns,
        layout=options.layout,
        cutoff=options.cutoff,
        split=options.split,
        segment=options.segment,
        unit=options.unit,
        reward=options.reward,
        reward_most=options.reward_most,
        on_bad_rows=options.on_bad_rows,
    )


def take_look(inputs: VerdictInputs, settings: CertifySettings, ledger: Path | None) -> Certificate:
    """Certify, with the share of delta that is left for this look, and write the look into the ledger.

    Without a ledger the look has all of delta, and counts on nobody having looked at this data before.
    """
    if ledger is None:
        return _certify(inputs, settings)
    if settings.spent != 1.0:
        raise UsageError("a ledger decides what share of delta a look has; leave `spent` out.")
    book = Ledger.read(ledger)
    asked = {name: value for name, value in asdict(settings).items() if name not in ("spent", "look", "details")}
    curve = None if inputs.examination is None else inputs.examination.tolist()
    known = None if inputs.logging_scores is None else hashlib.sha256(inputs.logging_scores.tobytes()).hexdigest()
    model = fingerprint([inputs.ranker.identity, asked, curve, known])
    any_time = settings.bound == "betting" and inputs.logging_scores is not None and inputs.examination is not None
    share, number = book.share(model, inputs.log.manifest, any_time=any_time)
    certificate = _certify(inputs, replace(settings, spent=share, look=number))
    look = make_look(
        model,
        inputs.log.manifest,
        delta=settings.delta,
        spent=certificate.spent,
        interactions=certificate.interactions,
        improvement=certificate.improvement,
        lower=certificate.lower,
        upper=certificate.upper,
        verdict=certificate.verdict.value,
    )
    book = book.with_look(look)
    book.write(ledger)
    looks = [asdict(look) for look in book.on(inputs.log.manifest)]
    return replace(certificate, inputs=certificate.inputs | {"looks": looks, "ledger": str(ledger)})


def _certify(inputs: VerdictInputs, settings: CertifySettings) -> Certificate:
    certificate = certify(
        inputs.ranker,
        inputs.log,
        settings,
        examination=inputs.examination,
        logging_scores=inputs.logging_scores,
    )
    fitted = () if inputs.policy is None else inputs.policy.inputs.get("warnings") or ()
    known = {f"{doubt.text} {doubt.remedy}".strip() for doubt in certificate.doubts}
    doubts = tuple(Doubt("fit", f"{text[0].upper()}{text[1:]}") for text in fitted if text and text not in known)
    return replace(certificate, doubts=(*certificate.doubts, *doubts))
