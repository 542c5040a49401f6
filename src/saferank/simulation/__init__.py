"""Click logs from labelled data: a click model, counts for any number of interactions, and raw logs."""

from typing import TYPE_CHECKING

from saferank._lazy import lazy_names

if TYPE_CHECKING:
    from saferank.simulation.click_model import PositionBasedModel, inverse_rank
    from saferank.simulation.raw_log import write_raw_log
    from saferank.simulation.simulate import simulate

__all__ = ["PositionBasedModel", "inverse_rank", "simulate", "write_raw_log"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "PositionBasedModel": "click_model",
        "inverse_rank": "click_model",
        "simulate": "simulate",
        "write_raw_log": "raw_log",
    },
)
