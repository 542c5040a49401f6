"""Our Adam beside PyTorch's, to the last bit; and why there is one of our own."""

from copy import deepcopy

import pytest
import torch

from saferank.learning.adam import Adam
from tests.cli.running import run_python


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_the_same_bytes_as_pytorch(weight_decay: float) -> None:
    generator = torch.Generator().manual_seed(1)
    ours = torch.nn.Sequential(torch.nn.Linear(5, 40), torch.nn.ReLU(), torch.nn.Linear(40, 1))
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    theirs = deepcopy(ours)
    unused = torch.nn.Parameter(torch.ones(2))  # has no gradient, and stays
    step = Adam([*ours.parameters(), unused], rate=0.02, weight_decay=weight_decay)
    reference = torch.optim.Adam(theirs.parameters(), lr=0.02, weight_decay=weight_decay)
    for _ in range(30):
        batch = torch.randn(16, 5, generator=generator)
        for scorer, optimizer in ((ours, step), (theirs, reference)):
            if isinstance(optimizer, Adam):
                optimizer.clear_gradients()
            else:
                optimizer.zero_grad()
            (scorer(batch) ** 2).mean().backward()
            optimizer.step()
    for found, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(found, expected)
    assert unused.tolist() == [1.0, 1.0]


def test_training_does_not_load_the_compiler_of_pytorch() -> None:
    """Over a second, which each `fit` and each process of `reproduce` would begin with."""
    code = """
import sys
import numpy as np
from saferank.engine.objectives.skyline import skyline
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.training_loop import fit
from saferank.policy.scorers import make_scorer
data = RankingData(np.eye(2, dtype=np.float32), np.array([0, 2]))
fit(make_scorer("linear", 2, seed=0), data, skyline(np.array([0.0, 1.0]), data.offsets, np.ones(1)))
assert "torch" in sys.modules
assert "torch._dynamo" not in sys.modules
"""
    ran = run_python("-c", code)
    assert ran.exit_code == 0, ran.err
