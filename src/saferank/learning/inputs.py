"""What a policy is learned from, loaded and checked: a log and features, in files, tables or rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from numpy.typing import ArrayLike

from saferank.engine.errors import UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import load_features, with_ids
from saferank.features.schema import Missing, with_indicators
from saferank.features.shown_rows import shown_rows
from saferank.files.arrow_tables import Tabular, is_tabular
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.logs.row_checks import unmatched_ids_error
from saferank.policy.policy import Policy


def log_and_features(log: Any, features: Any, **rows: str | ArrayLike | None) -> tuple[Any, Any]:
    """Return a log and features, made from rows of features and clicks if `rows` has their `qid` or `group`."""
    if rows["qid"] is not None or rows["group"] is not None:
        return shown_rows(log, features, **rows)
    if any(one is not None for one in rows.values()):
        raise UsageError("position, impression, document and timestamp are of rows; give qid or group too.")
    if not isinstance(log, (str, PurePath, AggregatedLog)) and not is_tabular(log):
        raise UsageError("an array is no log; to learn from rows of features and clicks, give qid or group too.")
    return log, features


def load_fit_inputs(
    log: str | Path | Tabular | AggregatedLog,
    features: str | Path | Tabular | RankingData,
    *,
    start: Policy | None,
    cutoff: int | None,
    columns: Mapping[str, str] | None,
    unit: str | None,
    categorical: Sequence[str],
    missing: Missing,
    logging_scores: str | None,
) -> tuple[AggregatedLog, RankingData, tuple[str, ...]]:
    """Return log, features, and which of them got an indicator; raise if log and features do not belong together.

    `cutoff` is the number of ranks that was asked for, None for that of the log; `unit` the column of users that was
    asked for, None for that of a log that is counted already; `start` is as for `fit_policy`.
    """
    aggregated = log if isinstance(log, AggregatedLog) else load_log(log, columns=columns, cutoff=cutoff, unit=unit)
    if cutoff not in (None, aggregated.cutoff):
        raise UsageError(
            f"cutoff or examination is for {cutoff} ranks, but {aggregated.source} is counted for "
            f"{aggregated.cutoff}; ask for as many, or aggregate it with that cutoff."
        )
    if unit not in (None, aggregated.manifest.get("unit")):
        raise UsageError(
            f"unit '{unit}': {aggregated.source} was aggregated with {aggregated.manifest.get('unit') or 'no unit'}; "
            "aggregate it again with this one."
        )
    if isinstance(features, RankingData):
        data = with_ids(features)
    else:
        data = load_features(
            features,
            categorical=categorical if start is None else start.schema.categories,
            id_columns=columns,
            missing="error" if missing == "error" else "nan",
        )
    indicators: tuple[str, ...] = ()
    if missing == "indicator" and start is None:  # with a policy, they are those of its schema
        data, indicators = with_indicators(data, but=(logging_scores or "",))
    if (unmatched := unmatched_ids_error(aggregated, data)) is not None:
        raise unmatched
    return aggregated, data, indicators
