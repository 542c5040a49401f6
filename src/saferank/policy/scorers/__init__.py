"""Scorers, as they are learned: `torch.nn.Module`s that take (documents, features) and return (documents,) scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saferank.engine.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

SCORERS = ("gbdt", "mlp", "linear")


def make_scorer(name: str, features: int, *, seed: int, **settings: Any) -> torch.nn.Module:
    """Return a new scorer with random weights drawn from `seed`; PyTorch's own generator is left as it is."""
    import torch

    from saferank.policy.scorers.linear import Linear
    from saferank.policy.scorers.mlp import MLP
    from saferank.policy.scorers.trees import Trees

    kinds: dict[str, type[torch.nn.Module]] = {"linear": Linear, "mlp": MLP, "gbdt": Trees}
    if name not in kinds:
        raise UsageError(f"scorer {name!r} is unknown; choose one of: {', '.join(SCORERS)}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kinds[name](features, **settings)


def scale_scores(scorer: torch.nn.Module, factor: float) -> None:
    """Multiply the scores that the scorer will give by a factor, in place: below 1, its policy explores more."""
    import torch

    from saferank.policy.scorers.trees import LastColumn, Trees

    if isinstance(scorer, LastColumn):
        scorer.scale *= factor
        return
    if isinstance(scorer, Trees):
        scorer.grow(scorer.forest.times(factor))
        if scorer.start is not None:
            scale_scores(scorer.start, factor)
        return
    last = [layer for layer in scorer.modules() if isinstance(layer, torch.nn.Linear)][-1]
    with torch.no_grad():
        for parameter in last.parameters():
            parameter.mul_(factor)


def weights_of(scorer: torch.nn.Module) -> dict[str, NDArray[Any]]:
    """Return a copy of the weights by name, as a policy has them."""
    return {name: tensor.numpy().copy() for name, tensor in scorer.state_dict().items()}


def score(scorer: torch.nn.Module, features: NDArray[np.float32], *, block: int = 1 << 16) -> NDArray[np.float32]:
    """Return the scores of all documents, in blocks: features may be a memory map larger than memory."""
    import numpy as np
    import torch

    out = np.empty(len(features), np.float32)
    with torch.no_grad():
        for start in range(0, len(features), block):
            rows = np.array(features[start : start + block])
            out[start : start + block] = scorer(torch.from_numpy(rows)).numpy()
    return out
