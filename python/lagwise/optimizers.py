"""AdamW of torch with the settings and the memory of a run."""

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor


def _decays(name: str, value: Tensor) -> bool:
    """Whether weight decay pulls on it: matrices of projections and embeddings alone."""
    return bool(torch.ops.lagwise_bindings.weight_decays(name, value))


def adamw(model: Any) -> torch.optim.AdamW:
    train, moments = model.run["train"], model.run["moments"]
    named = list(zip(model.names, model.tensors()))
    groups = [
        {"params": [x for name, x in named if _decays(name, x)],
         "weight_decay": train["weight_decay"]},
        {"params": [x for name, x in named if not _decays(name, x)], "weight_decay": 0.0}]
    made = torch.optim.AdamW([group for group in groups if group["params"]], lr=train["lr"],
                             betas=(train["beta1"], train["beta2"]), eps=train["eps"])
    if model.run["step"] > 0:
        for i, (_, x) in enumerate(named):
            made.state[x] = {"step": torch.tensor(float(model.run["step"])),
                             "exp_avg": moments[2 * i].clone(),
                             "exp_avg_sq": moments[2 * i + 1].clone()}
    return made


def moments_of(model: Any, optimizer: Optional[torch.optim.Optimizer]) -> Tuple[List[Tensor], int]:
    """NAME.exp_avg and NAME.exp_avg_sq in the order of the parameters, and the steps counted."""
    if optimizer is None:
        return [], 0
    moments: List[Tensor] = []
    steps = 0
    for x in model.tensors():
        state = optimizer.state.get(x, {})
        if state and "exp_avg" not in state or not isinstance(
                optimizer, (torch.optim.Adam, torch.optim.AdamW)):
            raise ValueError("optimizer: expected AdamW or Adam, whose moments a run keeps, got "
                             f"{type(optimizer).__name__}")
        steps = max(steps, int(state.get("step", 0)))
        for key in ("exp_avg", "exp_avg_sq"):
            moments.append(state.get(key, torch.zeros_like(x)).detach().float())
    return moments, steps
