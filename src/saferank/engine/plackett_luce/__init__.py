"""The Plackett-Luce policy: exact placement, exposure and gradient, rankings, and the sampled gradients of others.

Arrays in, arrays out, ragged by `offsets`.
"""

from typing import TYPE_CHECKING

from saferank.engine.lazy import lazy_names

if TYPE_CHECKING:
    from saferank.engine.plackett_luce.exact import exposure, exposure_vjp, exposure_vjp_with_curvature, placement
    from saferank.engine.plackett_luce.gradients import pl_rank_3_gradient, reinforce_gradient
    from saferank.engine.plackett_luce.padded import padded_exposure
    from saferank.engine.plackett_luce.ranking_probability import log_probability
    from saferank.engine.plackett_luce.sampling import sample_rankings
    from saferank.engine.plackett_luce.torch_ops import expected_exposure

__all__ = [
    "expected_exposure",
    "exposure",
    "exposure_vjp",
    "exposure_vjp_with_curvature",
    "log_probability",
    "padded_exposure",
    "pl_rank_3_gradient",
    "placement",
    "reinforce_gradient",
    "sample_rankings",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "exposure": "exact",
        "exposure_vjp": "exact",
        "exposure_vjp_with_curvature": "exact",
        "placement": "exact",
        "pl_rank_3_gradient": "gradients",
        "reinforce_gradient": "gradients",
        "padded_exposure": "padded",
        "log_probability": "ranking_probability",
        "sample_rankings": "sampling",
        "expected_exposure": "torch_ops",
    },
)
