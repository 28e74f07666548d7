"""What attention keeps of the past while a text is written."""

from typing import NamedTuple, Optional

import torch
from torch import Tensor


class LinearState(NamedTuple):
    """The state of linear attention: its size does not depend on how much was read."""

    s: Optional[Tensor]  #: [B, H, D', E], sum of phi(k) v^T
    z: Optional[Tensor]  #: [B, H, F], sum of phi(k); F = 0 without a denominator
    m: Optional[Tensor]  #: [B, H], the largest scale so far, of features that have one
    position: int  #: rows read

    @staticmethod
    def nothing() -> "LinearState":
        return LinearState(None, None, None, 0)

    def detach(self) -> "LinearState":
        """The same numbers without a graph: where training through time is cut."""
        return self._map(lambda x: x.detach())

    def reorder(self, order: Tensor) -> "LinearState":
        """Sequence b becomes what sequence order[b] was: beam search."""
        return self._map(lambda x: x.index_select(0, order))

    def bytes(self) -> int:
        return sum(x.numel() * x.element_size() for x in self[:3] if x is not None)

    def _map(self, change) -> "LinearState":
        return LinearState(*(None if x is None else change(x) for x in self[:3]), self.position)


class KeyValueCache(NamedTuple):
    """All keys and values so far, for exact attention: it grows with every row."""

    k: Optional[Tensor] = None  #: [B, H, M, D], before the encoding
    v: Optional[Tensor] = None  #: [B, H, M, E]
    log_decay: Optional[Tensor] = None  #: [B, H, M], of attention with forget=gated

    @property
    def length(self) -> int:
        return 0 if self.k is None else self.k.shape[2]

    def append(self, k: Tensor, v: Tensor, log_decay: Optional[Tensor] = None) -> "KeyValueCache":
        def joined(before: Optional[Tensor], rows: Optional[Tensor]) -> Optional[Tensor]:
            return rows if before is None else torch.cat([before, rows], 2)
        return KeyValueCache(joined(self.k, k), joined(self.v, v),
                             joined(self.log_decay, log_decay))

    def detach(self) -> "KeyValueCache":
        return KeyValueCache(*(None if x is None else x.detach() for x in self))

    def reorder(self, order: Tensor) -> "KeyValueCache":
        """Sequence b becomes what sequence order[b] was: beam search."""
        return KeyValueCache(*(None if x is None else x.index_select(0, order) for x in self))
