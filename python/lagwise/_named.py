"""Modules whose parameters come from C++ under names with dots."""

import functools
from typing import Iterable, List, Tuple

from torch import Tensor, nn


class Folder(nn.Module):
    """Parameters whose names begin alike."""

    def extra_repr(self) -> str:
        own = self.named_parameters(recurse=False)
        return ", ".join(f"{name} {list(value.shape)}" for name, value in own)


class NamedParameters(nn.Module):
    """Holds tensors as parameters under the names C++ gives them (``q_proj.weight``)."""

    names: List[str]  #: in the order of C++

    def take_parameters(self, named: Iterable[Tuple[str, Tensor]], device=None, dtype=None) -> None:
        self.names = []
        for name, value in named:
            *folders, last = name.split(".")
            at: nn.Module = self
            for folder in folders:
                if not hasattr(at, folder):
                    at.add_module(folder, Folder())
                at = getattr(at, folder)
            at.register_parameter(last, nn.Parameter(value.to(device=device, dtype=dtype)))
            self.names.append(name)

    def tensors(self) -> List[Tensor]:
        return [functools.reduce(getattr, name.split("."), self) for name in self.names]
