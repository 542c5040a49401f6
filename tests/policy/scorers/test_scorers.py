"""Scorers: features in, one score per document out, the same for a seed."""

from typing import Any

import numpy as np
import pytest
import torch

from saferank.engine.errors import UsageError
from saferank.policy.scorers import make_scorer, score

DRAWN = ("mlp", "linear")
"""The scorers with random weights; trees are grown, and begin with none."""
FEATURES = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)


def weights(scorer: torch.nn.Module) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in scorer.state_dict().items()}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("documents", [0, 1, 100])
def test_one_score_per_document(name: str, documents: int) -> None:
    found = score(make_scorer(name, 6, seed=0), FEATURES[:documents])
    assert found.shape == (documents,)
    assert found.dtype == np.float32
    assert len(np.unique(found)) == documents


@pytest.mark.parametrize("name", DRAWN)
def test_the_seed_decides_and_leaves_the_global_generator_alone(name: str) -> None:
    torch.manual_seed(3)
    state = torch.random.get_rng_state()
    first = make_scorer(name, 6, seed=1)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(4)
    np.testing.assert_equal(weights(make_scorer(name, 6, seed=1)), weights(first))
    assert not np.allclose(score(make_scorer(name, 6, seed=2), FEATURES), score(first, FEATURES))


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("block", [7, 100])
def test_scores_in_blocks_are_those_of_the_whole(name: str, block: int) -> None:
    scorer = make_scorer(name, 6, seed=0)
    with torch.no_grad():
        whole = scorer(torch.from_numpy(FEATURES)).numpy()
    np.testing.assert_allclose(score(scorer, FEATURES, block=block), whole, rtol=1e-5, atol=1e-6)


def test_linear_is_a_weighted_sum_without_a_constant() -> None:
    scorer = make_scorer("linear", 6, seed=0)
    (weight,) = weights(scorer).values()
    np.testing.assert_allclose(score(scorer, FEATURES), FEATURES @ weight[0], rtol=1e-4, atol=1e-6)
    assert score(scorer, np.zeros((1, 6), np.float32)).tolist() == [0.0]


@pytest.mark.parametrize("hidden", [(64, 32), (5,), ()])
def test_mlp_has_a_relu_between_its_layers(hidden: tuple[int, ...]) -> None:
    scorer = make_scorer("mlp", 6, seed=0, hidden=hidden)
    *layers, last = zip(*[iter(weights(scorer).values())] * 2, strict=True)
    assert tuple(len(bias) for _, bias in layers) == hidden
    values = FEATURES
    for weight, bias in layers:
        values = np.maximum(values @ weight.T + bias, 0.0)
    np.testing.assert_allclose(score(scorer, FEATURES), (values @ last[0].T + last[1])[:, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("error")
def test_read_only_features_can_be_scored() -> None:
    """A memory map of a cached data set is read-only, of which PyTorch would warn."""
    features = FEATURES.copy()
    features.flags.writeable = False
    assert len(score(make_scorer("linear", 6, seed=0), features)) == 100


def test_an_unknown_scorer() -> None:
    with pytest.raises(UsageError):
        make_scorer("forest", 6, seed=0)
