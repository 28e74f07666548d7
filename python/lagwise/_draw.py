"""The moment whose random numbers a module uses."""

from typing import Optional

import torch
from torch import Tensor, nn


def seed_of(seed: Optional[int]) -> int:
    """The given seed, or one of torch's own generator: so ``torch.manual_seed`` governs what
    modules begin with and draw, and no two of them are alike by accident."""
    return int(torch.randint(2**31, (), device="cpu")) if seed is None else seed


class Draw(nn.Module):
    """Seed and step of the noise of an encoding or of random features, int64 [3].

    In training every call draws anew, in evaluation the moment stays, so that the same
    input gives the same output. It is no parameter and not part of a state_dict.
    """

    moment: Tensor

    def __init__(self, seed: int, draws: bool):
        super().__init__()
        self.draws = draws
        self.register_buffer("moment", torch.tensor([seed, 0, 0], device="cpu"), persistent=False)

    def forward(self) -> Tensor:
        if self.draws and self.training:
            self.moment[1] += 1
            return self.moment.clone()  # the graph keeps this one
        return self.moment

    def extra_repr(self) -> str:
        return f"draws={self.draws}"
