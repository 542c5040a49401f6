"""What doctor and plan examine, loaded in one way for the command line and Python: a log, candidates, a curve."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.click_models.examination import check_probabilities
from saferank.engine.errors import UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import load_features
from saferank.files.arrow_tables import Tabular, source_name
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.examination_text import parse_examination
from saferank.logs.load_log import load_log


def load_inputs(
    log: str | Path | Tabular | AggregatedLog,
    features: str | Path | Tabular | RankingData | None,
    examination: str | ArrayLike | None,
    *,
    part: str = "train",
    feature_columns: Sequence[str] | None = None,
    progress: Callable[[str], object] | None = None,
    **log_options: Any,
) -> tuple[AggregatedLog, RankingData | None, NDArray[np.float64] | None]:
    """Return the counted log, the features, and one number per rank of the log, each of the last two if it is given.

    A curve that lists one number per rank also says how many ranks to count. `log_options` are those of `load_log`;
    `feature_columns` are the features to read, and `progress` is called with each step.
    """
    report = progress or (lambda _: None)
    if isinstance(examination, str) and not examination.startswith("inverse-rank"):
        examination = parse_examination(examination, log_options.get("cutoff"))
    if isinstance(log, AggregatedLog):
        if log_options:
            raise UsageError(f"the log is counted already; give {', '.join(log_options)} to load_log.")
    else:
        name = source_name(log)
        report(f"Reading {name}")
        if not (examination is None or isinstance(examination, str)) and log_options.get("cutoff") is None:
            log_options["cutoff"] = np.size(examination)
        log = load_log(log, progress=lambda step: report(f"{step} of {name}"), **log_options)
    if features is not None and not isinstance(features, RankingData):
        report("Reading the features")
        ids = log_options.get("columns") or log.manifest.get("columns")
        features = load_features(features, part=part, columns=feature_columns, id_columns=ids, missing="nan")
    if isinstance(examination, str):
        examination = parse_examination(examination, log.cutoff)
    curve = None if examination is None else check_probabilities("examination", examination)
    if curve is not None and len(curve) != log.cutoff:
        raise UsageError(f"the examination curve has {len(curve)} ranks, but the log was cut at {log.cutoff}.")
    return log, features, curve
