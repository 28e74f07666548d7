"""A model of Hugging Face transformers with our exact attention, and one of ours in theirs."""

import torch
import transformers

import lagwise.transformers  # registers attn_implementation="lagwise_exact" and LagwiseConfig

# BLOOM has ALiBi: its bias by distance becomes a table by lag, and no mask is N x N.
config = transformers.BloomConfig(vocab_size=200, hidden_size=64, n_layer=2, n_head=8)
theirs = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
ours = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="lagwise_exact")
ours.load_state_dict(theirs.state_dict())
ours.eval()

prompt = torch.arange(2 * 12).view(2, 12)
mask = torch.ones_like(prompt)
mask[1, :4] = 0  # padded on the left
apart = (ours(prompt, attention_mask=mask).logits - theirs(prompt, attention_mask=mask).logits)
print(f"BLOOM: logits differ by at most {apart[mask.bool()].abs().max():.1e}")
print("BLOOM writes", ours.generate(prompt, attention_mask=mask, max_new_tokens=8, do_sample=False)
      [:, 12:].tolist())

# A model with linear attention, whose cache does not grow.
config = lagwise.transformers.LagwiseConfig(
    vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
    encoding="rope:layout=half", attention="linear:map=elu1,forget=gated")
model = transformers.AutoModelForCausalLM.from_config(config).eval()
print("lagwise writes", model.generate(prompt, attention_mask=mask, max_new_tokens=8, do_sample=False)
      [:, 12:].tolist())
