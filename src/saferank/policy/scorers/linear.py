"""A weighted sum of features."""

import torch


class Linear(torch.nn.Module):
    """s(d) = w . x(d). No bias: a constant added to all scores changes no Plackett-Luce policy."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(features, 1, bias=False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return one score per row."""
        scores: torch.Tensor = self.layer(features).squeeze(-1)
        return scores
