"""A small neural network."""

from itertools import pairwise

import torch


class MLP(torch.nn.Module):
    """Fully connected layers with ReLU between them, one score out."""

    def __init__(self, features: int, hidden: tuple[int, ...] = (64, 32)) -> None:
        super().__init__()
        sizes = [features, *hidden]
        layers: list[torch.nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return one score per row."""
        scores: torch.Tensor = self.layers(features).squeeze(-1)
        return scores
