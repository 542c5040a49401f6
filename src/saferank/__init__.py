"""saferank: learn a better ranker from clicks, and never ship a worse one."""

from typing import TYPE_CHECKING

from saferank._lazy import lazy_names

if TYPE_CHECKING:
    from saferank.data.dataset import Dataset, load_dataset
    from saferank.data.features import read_features
    from saferank.data.letor import read_letor
    from saferank.data.ranking_data import RankingData
    from saferank.errors import DataError, SaferankError, UsageError
    from saferank.safe_ranker import SafeRanker

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "Dataset",
    "RankingData",
    "SafeRanker",
    "SaferankError",
    "UsageError",
    "load_dataset",
    "read_features",
    "read_letor",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "DataError": "errors",
        "Dataset": "data.dataset",
        "RankingData": "data.ranking_data",
        "SafeRanker": "safe_ranker",
        "SaferankError": "errors",
        "UsageError": "errors",
        "load_dataset": "data.dataset",
        "read_features": "data.features",
        "read_letor": "data.letor",
    },
)
