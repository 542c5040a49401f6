"""What a verdict is about and what it is made from, loaded in one way for the command line, the report and Python."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import load_features, take_column, with_ids
from saferank.features.reader import Missing
from saferank.files.arrow_tables import Tabular
from saferank.logs.aggregated_log import AggregatedLog, is_aggregated
from saferank.logs.earlier_logs import check_earlier
from saferank.logs.examination_text import parse_examination
from saferank.logs.load_log import load_log
from saferank.logs.row_checks import unmatched_ids_error
from saferank.logs.split_options import parse_until, split_of, until_split
from saferank.policy.model_folder import is_model
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs
from saferank.verdict.checks import check_later, check_stated, check_untouched
from saferank.verdict.new_ranker import NewRanker, ranker_of_policy, ranker_of_table, read_ranker

Ranker: TypeAlias = NewRanker | Policy | str | Path | Tabular
"""A model or its folder; or scores made elsewhere: a table, or Parquet or CSV files (see `ranker_of_table`)."""


@dataclass(frozen=True, eq=False)
class VerdictInputs:
    """What a verdict is about, and what it is made from."""

    ranker: NewRanker
    log: AggregatedLog
    examination: NDArray[np.float64] | None = None
    """The given curve: now, or when the model was fitted."""
    logging_scores: NDArray[np.float32] | None = None
    """Of the Plackett-Luce policy that made the log, one per row of `ranker.data`, if they are known."""
    policy: Policy | None = None
    """The model, if it is one of ours."""
    trained_until: str | None = None
    """Of a ranker made elsewhere: the moment after which it saw nothing of the log. If None, its maker states that it
    was made without the held-out part."""
    earlier: tuple[AggregatedLog, ...] = ()
    """Logs of the rankers before, which help to estimate the examination of the ranks."""


def load_inputs(
    ranker: Ranker,
    log: str | Path | Tabular | AggregatedLog,
    features: str | Path | Tabular | RankingData | None = None,
    *,
    serve_as: ServeAs = "deterministic",
    examination: str | NDArray[np.float64] | None = None,
    logging_scores: str | NDArray[np.float32] | None = None,
    trained_until: str | float | date | None = None,
    trained_without_held_out: bool = False,
    live: str | Path | Policy | None = None,
    earlier: Sequence[str | Path | Tabular | AggregatedLog] = (),
    part: str = "train",
    progress: Callable[[str], object] | None = None,
    **log_options: Any,
) -> VerdictInputs:
    """Return what a verdict needs: for a model, the log is cut and split as for training, and checked to be held out.

    See `certify` for the arguments. `part` names the part of a data set of features; `progress` is called with each
    step.
    """
    tell = progress or (lambda _: None)
    if isinstance(ranker, (str, Path)) and is_model(Path(ranker)):
        ranker = Policy.load(ranker)
    stated = trained_until is not None or trained_without_held_out
    if isinstance(ranker, Policy) and stated:
        raise UsageError(
            "a model records what it was trained on; --trained-until and --trained-without-held-out are for other "
            "rankers."
        )
    if not isinstance(ranker, Policy) and (stated or not isinstance(ranker, NewRanker) or ranker.made_elsewhere):
        check_stated(until=trained_until is not None, without_held_out=trained_without_held_out)
    until = None if trained_until is None else parse_until(trained_until)
    policy, given = None, examination
    scores: NDArray[np.float32] | str | None = logging_scores
    if isinstance(ranker, Policy):
        if features is None:
            raise UsageError("a model ranks by features; give the features of the queries in the log.")
        tell("Reading the features")
        policy = ranker
        made_by = live_policy(live, logging_scores)
        named = "none" if made_by is not None else logging_scores
        ids = policy.id_columns | dict(log_options.get("columns") or {})
        data, scores = _features(policy, features, named, part, ids)
        if made_by is not None:
            scores = made_by.scores(data, ignore=data.feature_names or ())
        new = ranker_of_policy(policy, data, serve_as)
        if examination is None and str(policy.inputs.get("examination", "")).startswith("given"):
            given = policy.examination
    elif live is not None:
        raise UsageError("a live model ranks by features; give the scores of the live ranker instead.")
    elif isinstance(ranker, NewRanker):
        new = ranker
    else:
        tell("Reading the scores")
        read = isinstance(ranker, (str, Path))
        named = log_options.get("columns")
        new = read_ranker(ranker, serve_as, named) if read else ranker_of_table(ranker, serve_as, named)
    if isinstance(scores, str):
        raise UsageError(
            "logging scores can be named as a column only of a model's features; here, give the scores themselves."
        )
    tell("Reading the log")
    counted = isinstance(log, AggregatedLog) or is_aggregated(log)
    if until is not None and not counted:
        log_options["split"] = until_split(until, log_options.get("split"))
    aggregated = log if isinstance(log, AggregatedLog) else read_log(log, policy, **log_options)
    if until is not None and counted:
        check_later(aggregated.manifest, until)
    if policy is not None:
        check_untouched(policy.manifest, aggregated.manifest)
        if (unmatched := unmatched_ids_error(aggregated, new.data)) is not None:
            raise unmatched
    if isinstance(given, str):
        given = parse_examination(given, aggregated.cutoff)
    past = tuple(
        one if isinstance(one, AggregatedLog) else _read_earlier(one, aggregated, **log_options) for one in earlier
    )
    check_earlier(aggregated, past)
    moment = until.isoformat(timespec="seconds") if isinstance(until, datetime) else until
    return VerdictInputs(new, aggregated, given, scores, policy, None if moment is None else str(moment), past)


def live_policy(live: str | Path | Policy | None, logging_scores: object = None) -> Policy | None:
    """Return the policy that drew the rankings of the log, if it is given; its scores are the logging scores then."""
    if live is not None and logging_scores is not None:
        raise UsageError("the scores of the live model are the logging scores; give one of the two.")
    return live if live is None or isinstance(live, Policy) else Policy.load(live)


def read_log(
    log: str | Path | Tabular,
    policy: Policy | None = None,
    as_in: Mapping[str, Any] | None = None,
    **log_options: Any,
) -> AggregatedLog:
    """Return the log by the options of `load_log`; as in the model's log: cutoff, split, unit and names of columns.

    `as_in`: the manifest of the log to follow, where there is no model.
    """
    if policy is not None:
        as_in = {**(policy.inputs.get("log") or {}), "cutoff": policy.cutoff}
    if as_in is not None:
        log_options["cutoff"] = as_in.get("cutoff")
        log_options["other_names"] = as_in.get("columns")
        log_options["unit"] = log_options.get("unit") or as_in.get("unit")
        if "split" in as_in:
            log_options["split"] = split_of(as_in["split"])
    return load_log(log, **log_options)


def _read_earlier(earlier: str | Path | Tabular, log: AggregatedLog, **log_options: Any) -> AggregatedLog:
    """Return an earlier log, read as the log was, whatever its parts."""
    if is_aggregated(earlier):
        return load_log(earlier)
    reading = {name: log_options[name] for name in ("columns", "layout", "on_bad_rows") if name in log_options}
    return load_log(earlier, cutoff=log.cutoff, other_names=log.manifest.get("columns"), **reading)


def _features(
    policy: Policy,
    features: str | Path | Tabular | RankingData,
    logging_scores: str | NDArray[np.float32] | None,
    part: str,
    id_columns: Mapping[str, str] | None,
) -> tuple[RankingData, NDArray[np.float32] | None]:
    """Return the features that the model reads, and the column of the logging scores, if one is named."""
    if logging_scores is None:
        logging_scores = policy.inputs.get("logging_scores")
    column = logging_scores if isinstance(logging_scores, str) and logging_scores != "none" else None
    if isinstance(features, RankingData):
        data = with_ids(features)
    else:
        wanted = policy.schema.numbers
        if column is not None and column not in wanted:
            wanted = (*wanted, column)
        missing: Missing = "error" if policy.schema.missing == "error" else "nan"
        data = load_features(
            features, part=part, columns=wanted, categorical=policy.schema.categories, id_columns=id_columns,
            missing=missing,
        )  # fmt: skip
    if column is not None:
        return take_column(data, column, keep=column == policy.schema.base)
    return data, None if isinstance(logging_scores, str) else logging_scores
