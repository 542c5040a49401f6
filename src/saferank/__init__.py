"""saferank: learn a better ranker from clicks, and never ship a worse one."""

from typing import TYPE_CHECKING

from saferank.engine.lazy import lazy_names

if TYPE_CHECKING:
    from saferank.datasets.dataset import load_dataset
    from saferank.doctor.diagnosis import diagnose
    from saferank.engine.errors import DataError, SaferankError, UsageError
    from saferank.features.load_features import load_features
    from saferank.lab.simulate import simulate
    from saferank.logs.load_log import load_log
    from saferank.logs.training_rows import split_log
    from saferank.plan.make_plan import make_plan
    from saferank.policy.policy import Policy
    from saferank.ranker import SafeRanker
    from saferank.verdict.certify import certify
    from saferank.verdict.checks import Refused
    from saferank.verdict.settings import CertifySettings

__version__ = "0.1.0"

__all__ = [
    "CertifySettings",
    "DataError",
    "Policy",
    "Refused",
    "SafeRanker",
    "SaferankError",
    "UsageError",
    "certify",
    "diagnose",
    "load_dataset",
    "load_features",
    "load_log",
    "make_plan",
    "simulate",
    "split_log",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CertifySettings": "verdict.settings",
        "DataError": "engine.errors",
        "Policy": "policy.policy",
        "Refused": "verdict.checks",
        "SafeRanker": "ranker",
        "SaferankError": "engine.errors",
        "UsageError": "engine.errors",
        "certify": "verdict.certify",
        "diagnose": "doctor.diagnosis",
        "load_dataset": "datasets.dataset",
        "load_features": "features.load_features",
        "load_log": "logs.load_log",
        "make_plan": "plan.make_plan",
        "simulate": "lab.simulate",
        "split_log": "logs.training_rows",
    },
    deprecated={
        "Dataset": ("datasets.dataset", "saferank.load_dataset, which returns one"),
        "RankingData": ("engine.types.ranking_data", "saferank.load_features, which returns one"),
        "read_features": ("features.reader", "saferank.load_features"),
        "read_letor": ("datasets.letor", "saferank.load_dataset"),
    },
)
