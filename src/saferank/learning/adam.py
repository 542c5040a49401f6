"""The steps of training, without PyTorch's own optimizers: the first of those loads its compiler, for over a second."""

from __future__ import annotations

from collections.abc import Iterable

import torch

DECAY, SQUARED_DECAY = 0.9, 0.999
"""Of the running means of the gradient and of its square."""
EPSILON = 1e-8


class Adam:
    """Adam (Kingma and Ba, ICLR 2015, Algorithm 1), with the same bytes as `torch.optim.Adam` on a CPU.

    g is the gradient plus `weight_decay` times the parameter; m and v start at 0. In step t,

        m = 0.9 m + 0.1 g,   v = 0.999 v + 0.001 g^2
        parameter -= rate (m / (1 - 0.9^t)) / (sqrt(v / (1 - 0.999^t)) + 1e-8)
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], *, rate: float, weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.rate, self.weight_decay = rate, weight_decay
        self.steps = 0
        self.moments = [(torch.zeros_like(one), torch.zeros_like(one)) for one in self.parameters]

    def clear_gradients(self) -> None:
        """Forget the gradients of the step before, to which new ones would be added."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters against their gradients."""
        self.steps += 1
        size = self.rate / (1 - DECAY**self.steps)
        correction: float = (1 - SQUARED_DECAY**self.steps) ** 0.5
        for parameter, (mean, square) in zip(self.parameters, self.moments, strict=True):
            gradient = parameter.grad
            if gradient is None:
                continue
            if self.weight_decay:
                gradient = gradient.add(parameter, alpha=self.weight_decay)
            mean.lerp_(gradient, 1 - DECAY)
            square.mul_(SQUARED_DECAY).addcmul_(gradient, gradient, value=1 - SQUARED_DECAY)
            parameter.addcdiv_(mean, (square.sqrt() / correction).add_(EPSILON), value=-size)
