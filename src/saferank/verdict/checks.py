"""Cases in which no guarantee can be given, each refused with the reason and the remedy."""

from datetime import datetime
from typing import Any

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog, places_of
from saferank.logs.earlier_logs import share_files
from saferank.logs.periods import seconds_of

MOST_WITHOUT_FEATURES = 0.05
"""Share of the clicks, or of the exposure, on documents that a model has no features of: more is a broken join."""
MOST_BELOW_CUTOFF = 0.05
"""Share of the clicks below the ranks that are counted: a verdict says nothing about them."""
MOST_UNRANKED = 0.5
"""Share of the interactions whose queries the new ranker does not rank: more is a broken join, or says little."""
SAME_MOMENT = 1e-3
"""Seconds by which two moments may differ, as text or as numbers, and be the same."""


class Refused(DataError):
    """No certificate: this log allows no guarantee for this policy. `code` says which check failed."""

    def __init__(self, message: str, *, code: str, **place: Any) -> None:
        self.code = code
        super().__init__(message, **place)


def check_untouched(model: dict[str, Any], log: dict[str, Any]) -> None:
    """Raise if the part `certify` of this log may have been used in training, by the two manifests.

    It was not used if the log is split as for training: the split depends on the impression's id or time, so an
    impression keeps its part when the log grows. If it is split differently, it must be another log altogether. With
    units, it must be split by unit (or time); otherwise users are in both.
    """
    if "certify" in model.get("used_parts", []):
        message = "the model was also trained on the part 'certify', so nothing is held out; fit it again without it."
        raise Refused(message, code="trained-on-certify")
    if model.get("inputs", {}).get("unnamed_impressions"):
        raise Refused(
            "the model was fitted to rows whose impressions have no ids, so nothing shows which part of this log it "
            "has seen; fit it to a log, or to rows with impression=.",
            code="impressions-without-ids",
            file=log.get("source"),
        )
    for earlier in model.get("inputs", {}).get("earlier") or []:
        if share_files(earlier, log):
            raise Refused(
                f"the model was trained on all of {earlier.get('source')} as an earlier log, so nothing of it is held "
                "out; certify on the log that the model was fitted to, or fit it again without the earlier log.",
                code="trained-on-certify",
                file=log.get("source"),
            )
    trained = model.get("inputs", {}).get("log")
    if not trained:
        return
    same_log = share_files(trained, log)
    if same_log and log.get("unit") and (log.get("split") or {}).get("by") == "hash":
        raise Refused(
            f"the model was trained on this log split by impression, so the same {log['unit']} may occur both in "
            "training and in the held-out part; fit it again with --unit.",
            code="units-in-training",
            file=log.get("source"),
        )
    if same_log and trained.get("split") != log.get("split"):
        raise Refused(
            f"the model was trained on this log split {_words(trained.get('split'))}, but here the split is "
            f"{_words(log.get('split'))}, so training and held-out impressions overlap; split it as for training.",
            code="other-split",
            file=log.get("source"),
        )


def check_dated(log: AggregatedLog, *, known: bool, trust: bool) -> None:
    """Raise for a log without timestamps, unless it is trusted or the scores behind its rankings are known.

    A ranker that is retrained while demand drifts makes a log in which a worse ranker looks better, and without times
    such a log looks like any other.
    """
    if not known and not trust and not log.periods:
        raise Refused(
            "the log has no timestamps, so nothing shows whether the ranker changed along with demand (a nightly "
            "retrain, say), in which case a worse ranker could look better. Log timestamps; or, if neither changed, "
            "use --trust-stability.",
            code="no-timestamps",
            file=log.source,
        )


def check_stated(*, until: bool, without_held_out: bool) -> None:
    """Raise unless exactly one statement says why scores made elsewhere are independent of the held-out part."""
    if until and without_held_out:
        raise UsageError("--trained-until and --trained-without-held-out exclude each other; give one of them.")
    if not (until or without_held_out):
        raise Refused(
            "state what the candidate was trained on: --trained-until TIME if it saw nothing of the log after TIME; "
            "--trained-without-held-out if it never saw the log, or only what `saferank split` wrote.",
            code="training-unknown",
        )


def check_later(log: dict[str, Any], until: datetime | float) -> None:
    """Raise if an aggregated log evaluates anything up to the moment until which the ranker was trained."""
    split, trained = log.get("split") or {}, seconds_of(until)
    at_most = split.get("until")
    evaluated = (split.get("boundaries") or [None])[0] if at_most is None else at_most
    begins = None if evaluated is None else seconds_of(evaluated)
    if begins is None or trained is None or begins <= trained - (0.0 if at_most is None else SAME_MOMENT):
        found = f"split by {split.get('by')}" if begins is None else f"evaluated from {evaluated} on"
        raise Refused(
            f"the log is {found}, and the ranker was trained until {until}, so it may have seen the held-out part; "
            "give the log itself, or one aggregated with --split-by time that evaluates only later interactions.",
            code="trained-on-certify",
            file=log.get("source"),
        )


def check_features(clicks: float, exposure: float, *, source: object) -> None:
    """Raise if too many clicks, or too much exposure, are on documents that the model has no features of."""
    if max(clicks, exposure) > MOST_WITHOUT_FEATURES:
        raise Refused(
            f"{clicks:.1%} of the held-out clicks and {exposure:.1%} of the exposure are on documents without "
            f"features, which the model cannot show (the limit is {MOST_WITHOUT_FEATURES:.0%}); add their features.",
            code="missing-features",
            file=source,
        )


def too_many_below(log: dict[str, Any]) -> str | None:
    """Return the words for too many clicks at ranks that are not counted, if there are."""
    below = int(log.get("clicks_below_cutoff") or 0)
    counted = sum(int(part.get("clicks") or 0) for part in (log.get("parts") or {}).values())
    share = below / max(below + counted, 1)
    if share <= MOST_BELOW_CUTOFF:
        return None
    return (
        f"{share:.0%} of the clicks are below rank {log.get('cutoff')}, where nothing is counted (the limit is "
        f"{MOST_BELOW_CUTOFF:.0%}); choose a larger --cutoff (in fit, or in certify with --candidate)."
    )


def check_cutoff(log: dict[str, Any]) -> None:
    """Raise if too many clicks are at ranks that are not counted, where the new ranker could lose them unnoticed."""
    if (words := too_many_below(log)) is not None:
        raise Refused(words, code="clicks-below-cutoff", file=log.get("source"))


def check_ranked(unranked: float, *, source: object) -> None:
    """Raise if most of the interactions are of queries that the new ranker does not rank."""
    if unranked > MOST_UNRANKED:
        raise Refused(
            f"{unranked:.0%} of the held-out interactions belong to queries that the new ranker does not rank (the "
            f"limit is {MOST_UNRANKED:.0%}); check that it uses the log's query ids, and add the missing queries.",
            code="few-queries-ranked",
            file=source,
        )


def check_listed(log: AggregatedLog, data: RankingData) -> None:
    """Raise if the new ranker lists none of the pairs of query and document that the log shows."""
    place = places_of(data).of_pairs(log.shown_counts["query_id"], log.shown_counts["document_id"])
    if (place < 0).all():
        theirs, ours = log.shown_counts["document_id"][0], data.require_ids()[1][0]
        raise Refused(
            f"nothing that this ranker lists for a query is shown for it in {log.source}: the log has documents such "
            f"as {theirs}, and the ranker such as {ours}; name documents as the log does.",
            code="nothing-listed",
            file=data.source,
        )


def _words(split: Any) -> str:
    if not isinstance(split, dict):
        return "unknown"
    shares = "/".join(f"{100 * share:g}" for share in split.get("shares", []))
    more = f", seed {split['seed']}" if "seed" in split else ""
    return f"{shares} by {split.get('by')}{more}"
