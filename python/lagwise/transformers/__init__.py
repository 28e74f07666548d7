"""lagwise in Hugging Face transformers. Importing it registers

* ``attn_implementation="lagwise_exact"``: exact attention of existing models. Padding is a
  bias per key, ALiBi (BLOOM, MPT) and T5's bias are tables by lag: nothing is N x N;
* ``LagwiseConfig`` and ``LagwiseForCausalLM`` with the Auto classes: models of lagwise, with
  ``save_pretrained``, ``from_pretrained`` and ``generate``.
"""

from lagwise.transformers import alibi, exact, t5
from lagwise.transformers.causal_lm import (
    LagwiseCache, LagwiseConfig, LagwiseForCausalLM, register)
from lagwise.transformers.exact import NAME, exact_attention

exact.register()
alibi.register()
t5.register()
register()

__all__ = ["NAME", "LagwiseCache", "LagwiseConfig", "LagwiseForCausalLM", "exact_attention"]
