"""Logs that several tests and commands ask doctor about: the same tables with the same features are diagnosed once."""

import hashlib
import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from saferank.doctor import leaking_features
from saferank.doctor.diagnosis import diagnose
from saferank.doctor.health import Health
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog


def diagnosed_once() -> Callable[..., Health]:
    """Return what does what `diagnose` does, and remembers it. Logs in files, and errors, are not remembered.

    What makes a diagnosis differ is in the key: every table and the manifest of the log, all of the features, the
    options, and the one constant of doctor that tests change.
    """
    known: dict[bytes, Health] = {}

    def diagnosed(log: Any, features: Any = None, examination: Any = None, **options: Any) -> Health:
        if not isinstance(log, AggregatedLog) or not (features is None or isinstance(features, RankingData)):
            return diagnose(log, features, examination, **options)
        told = {name: value for name, value in options.items() if name != "progress"}
        key = _digest(_values(log), _values(features), examination, sorted(told.items()), leaking_features.WINDOWS)
        if key not in known:
            known[key] = diagnose(log, features, examination, **options)
        return known[key]

    return diagnosed


def _values(one: AggregatedLog | RankingData | None) -> list[Any]:
    """All fields, without what is worked out from them later."""
    return [] if one is None else [getattr(one, field.name) for field in fields(one)]


def _digest(*values: Any) -> bytes:
    return hashlib.blake2b(pickle.dumps(values)).digest()
