"""Look at a growing log again and again: the weights and the bets are fixed at the first look, so every look counts.

The betting bound holds at all looks together. That needs what each click weighs, and how the capital is shared out,
not to depend on the clicks: both are kept in a file beside the certificate, and later looks use them as they are.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.certification.betting import Bets
from saferank.certification.certificate import Certificate
from saferank.certification.certify import CertifySettings, Weighing, certify, weigh
from saferank.data.aggregated_log import AggregatedLog
from saferank.data.output_path import whole_file
from saferank.data.ranking_data import RankingData
from saferank.errors import DataError, UsageError
from saferank.policy.policy import Policy

ARRAYS = ("exposure", "logging_exposure", "plain_exposure", "examination", "ever_shown", "fractions", "shares")


def look(
    policy: Policy,
    log: AggregatedLog,
    data: RankingData,
    settings: CertifySettings,
    state: Path,
    *,
    logging_scores: NDArray[np.float32] | None = None,
) -> Certificate:
    """Return the verdict at this look, and write down that it was taken.

    `state` is made at the first look. Later ones must be of the same model, features and settings.
    """
    if settings.bound != "betting":
        raise UsageError(f"only the bound 'betting' holds at every look, not '{settings.bound}'; leave --bound out.")
    about = {
        "model": policy.manifest.get("files"),
        "documents": data.documents,
        "delta": settings.delta,
        "serve_as": settings.serve_as,
        "clip": settings.clip,
    }
    if state.exists():
        weighing, looks = _read(state, about)
    else:
        weighing, looks = weigh(policy, log, data, settings, logging_scores=logging_scores), []
    certificate = certify(policy, log, data, settings, logging_scores=logging_scores, weighing=weighing)
    if looks and certificate.interactions < looks[-1]["interactions"]:
        raise DataError(
            f"has {certificate.interactions:,} held-out interactions, fewer than the {looks[-1]['interactions']:,} of "
            "the look before: a log that is watched may only grow.",
            file=log.source,
        )
    looks.append(
        {
            "at": certificate.created,
            "interactions": certificate.interactions,
            "improvement": certificate.improvement,
            "lower": certificate.lower,
            "upper": certificate.upper,
            "verdict": certificate.verdict.value,
        }
    )
    _write(state, about, weighing, looks)
    return replace(certificate, inputs=certificate.inputs | {"looks": looks})


def _write(state: Path, about: dict[str, Any], weighing: Weighing, looks: list[dict[str, Any]]) -> None:
    told = json.dumps({"about": about, "kind": weighing.kind, "looks": looks})
    arrays = {name: getattr(weighing, name) for name in ARRAYS[:5]}
    arrays |= {name: getattr(weighing.bets, name) for name in ARRAYS[5:]}
    with whole_file(state) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, told=np.array(told), **arrays)


def _read(state: Path, about: dict[str, Any]) -> tuple[Weighing, list[dict[str, Any]]]:
    try:
        with np.load(state, allow_pickle=False) as file:
            told = json.loads(str(file["told"]))
            arrays = {name: file[name] for name in ARRAYS}
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"cannot be read ({error}); remove it to begin a new watch.", file=state) from error
    if told["about"] != json.loads(json.dumps(about)):
        raise UsageError(f"{state} is of a watch over another model, or with other settings; name another --out.")
    bets = Bets(arrays.pop("fractions"), arrays.pop("shares"))
    return Weighing(**arrays, kind=told["kind"], bets=bets), told["looks"]
