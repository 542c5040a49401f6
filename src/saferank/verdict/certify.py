"""Decide on held-out interactions whether a new ranker may replace the one that made the log."""

import hashlib
import inspect
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.strata import by_query
from saferank.engine.errors import UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.files.arrow_tables import Tabular
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs
from saferank.verdict.certificate import Certificate, Doubt
from saferank.verdict.decision import certificate_of
from saferank.verdict.inputs import Ranker, VerdictInputs, load_inputs
from saferank.verdict.ledger import Ledger, Look, fingerprint, fingerprints, ledger_path
from saferank.verdict.settings import CertifySettings

__all__ = ["CertifySettings", "certify", "check_options", "take_look"]
SETTINGS = tuple(field.name for field in fields(CertifySettings))
LOG_OPTIONS = (*inspect.signature(load_log).parameters, "part")[1:]


def certify(
    ranker: Ranker,
    log: str | Path | Tabular | AggregatedLog,
    settings: CertifySettings = CertifySettings(),  # noqa: B008 (frozen)
    *,
    features: str | Path | Tabular | RankingData | None = None,
    serve_as: ServeAs = "deterministic",
    examination: str | NDArray[np.float64] | None = None,
    logging_scores: str | NDArray[np.float32] | None = None,
    trained_until: str | float | date | None = None,
    trained_without_held_out: bool = False,
    live: str | Path | Policy | None = None,
    earlier: Sequence[str | Path | Tabular | AggregatedLog] = (),
    ledger: str | Path | None = None,
    **options: Any,
) -> Certificate:
    """Decide on held-out interactions whether a new ranker may replace the one that made the log.

    The part `certify` of the log, which training never saw, is reweighted to what the new ranker would show. The
    verdict is DEPLOY if, with confidence 1 - delta, the new ranker earns at least as many clicks per interaction as
    the current one minus the tolerance; KEEP if, with the same confidence, it earns fewer; and MORE DATA otherwise.
    Examination curve and weight limit come from the other parts of the log.

        certificate = saferank.certify("model", "log.parquet", features="features.parquet")
        certificate.verdict, certificate.lower, certificate.upper
        saferank.certify("scores.parquet", "log.parquet", trained_until="2026-01-31")

    Args:
        ranker: A `Policy` or the folder of one; or the scores of a ranker made elsewhere, as a table with the columns
            `query_id`, `document_id` and `score` (or `rank`), or as Parquet or CSV files with these columns.
        log: A log, as for `load_log`, or a folder that `saferank aggregate` wrote. The log of a model is split as it
            was for training.
        settings: delta, tolerance, the bound, what is trusted, and whether flatter policies are tried too. Each of
            its fields can also be given as a keyword: `delta=0.01`, `trust_examination=True`.
        features: The features of the queries in the log, as for `load_features`; only a model needs them.
        serve_as: How the ranker will be served: `deterministic`, by score, or `sampled`, drawn with Plackett-Luce.
        examination: The examination curve, one number per rank or as `inverse-rank:POWER`, if you know it. By
            default it is the one given when the model was fitted, or it is estimated from the log.
        logging_scores: The scores of the Plackett-Luce policy that drew the log's rankings, if they are known: the
            name of a column of the features, or one value per row of the ranker's pairs. By default the column that
            the model was fitted with; `"none"` for none.
        trained_until: For a ranker made elsewhere: the moment after which it saw nothing of this log, as a `datetime`
            or text (UTC without a time zone; a date is the end of its day). Only later interactions are evaluated.
        trained_without_held_out: For a ranker made elsewhere: True states that it never saw the held-out part of this
            log, because it was made from other data or by rules, or trained on what `saferank split` wrote. Scores
            made elsewhere need one of these two arguments; a model takes neither.
        live: The model that drew the log's rankings (`serve_as="sampled"`), or its folder; its scores are the logging
            scores.
        earlier: Logs of earlier rankers with the same users, from which examination is estimated too. None of them may
            be part of the log.
        ledger: The file that records looks at this log: each further look at the same held-out part costs a share of
            delta. Beside the log by default; a log in memory has none unless it is named.
        options: Fields of `CertifySettings`, and how the log is read, as for `load_log`: `columns`, `layout`, `unit`,
            `reward`, ...

    Returns:
        The verdict with its estimate and bounds, in clicks per interaction, and everything it rests on.

    Raises:
        Refused: If this log allows no guarantee; its `code` says which check failed.
    """
    check_options(options, (*SETTINGS, *LOG_OPTIONS))
    settings = replace(settings, **{name: options.pop(name) for name in SETTINGS if name in options})
    inputs = load_inputs(
        ranker, log, features, serve_as=serve_as, examination=examination, logging_scores=logging_scores,
        trained_until=trained_until, trained_without_held_out=trained_without_held_out, live=live, earlier=earlier,
        **options,
    )  # fmt: skip
    if ledger is None and isinstance(log, (str, Path)):
        ledger = ledger_path(str(log))
    certificate = take_look(inputs, settings, None if ledger is None else Path(ledger))
    if ledger is None and settings.spent == 1.0:
        return replace(certificate, doubts=(*certificate.doubts, NO_LEDGER))
    return certificate


NO_LEDGER = Doubt(
    "no-ledger",
    "This look is not recorded, because the log is a table in memory: the verdict has all of delta, and holds if it is "
    "the only one on this data.",
    "If you look again, name a file in which looks are recorded: ledger='looks.json'.",
)


def check_options(given: Iterable[str], known: Sequence[str] = SETTINGS) -> None:
    """Raise for the first option that is not known, with the nearest one that is."""
    for name in given:
        if name not in known:
            nearest = get_close_matches(name, known, 1)
            meant = f"did you mean '{nearest[0]}'?" if nearest else f"there are {', '.join(known)}."
            raise UsageError(f"there is no option '{name}'; {meant}")


def take_look(inputs: VerdictInputs, settings: CertifySettings, ledger: Path | None) -> Certificate:
    """Certify with the share of delta that is left for this look, and record the look in the ledger.

    Without a ledger the look has all of delta, which assumes that nobody has looked at this data before.
    """
    if ledger is None:
        return _with_fit_warnings(certificate_of(inputs, settings), inputs)
    if settings.spent != 1.0:
        raise UsageError("the ledger decides which share of delta a look gets; leave `spent` out.")
    book, manifest = Ledger.read(ledger), inputs.log.manifest
    unasked = ("spent", "look", "explore", "details")
    asked = {name: value for name, value in asdict(settings).items() if name not in unasked}
    if settings.most_per_unit is None:  # as in looks that were recorded before there was this setting
        del asked["most_per_unit"]
    curve = None if inputs.examination is None else inputs.examination.tolist()
    known = None if inputs.logging_scores is None else hashlib.sha256(inputs.logging_scores.tobytes()).hexdigest()
    earlier = [fingerprints(one.manifest)[0] for one in inputs.earlier]
    model = fingerprint([inputs.ranker.identity, asked, curve, known, *earlier])
    fixed = inputs.logging_scores is not None and inputs.examination is not None
    # of one unit, later interactions depend on earlier ones
    alone = manifest.get("unit") is None and not by_query(inputs.log)
    any_time = settings.bound == "betting" and fixed and alone
    share, number = book.share(model, manifest, any_time=any_time)
    certificate = certificate_of(inputs, replace(settings, spent=share, look=number))
    figures = {name: getattr(certificate, name) for name in ("delta", "spent", "interactions", "improvement", "lower")}
    look = Look.now(model, manifest, **figures, upper=certificate.upper, verdict=certificate.verdict.value)
    book = book.with_look(look, fingerprints(manifest))
    book.write(ledger)
    looks = [asdict(look) for look in book.on(manifest)]
    certificate = replace(certificate, inputs=certificate.inputs | {"looks": looks, "ledger": str(ledger)})
    return _with_fit_warnings(certificate, inputs)


def _with_fit_warnings(certificate: Certificate, inputs: VerdictInputs) -> Certificate:
    """Return the certificate with the warnings of the model's fit among its doubts."""
    fitted = () if inputs.policy is None else inputs.policy.inputs.get("warnings") or ()
    known = {f"{doubt.text} {doubt.remedy}".strip() for doubt in certificate.doubts}
    doubts = (Doubt("fit", f"{text[0].upper()}{text[1:]}") for text in fitted if text and text not in known)
    return replace(certificate, doubts=(*certificate.doubts, *doubts))
