"""Trains a small language model with gated delta attention (Gated DeltaNet) to recall.

A text is pairs of a name and a value, then a name once more: the model must say its value.
The state has a constant size, so it writes on at the same cost however long the text is.
"""

import argparse

import torch
from torch import nn

import lagwise

NAMES, VALUES, PAIRS = 12, 8, 4  # tokens 0..11 are names, 12..19 values
VOCABULARY = NAMES + VALUES


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, width: int, heads: int, layer: int, layers: int):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = lagwise.MultiheadAttention(
            width, heads, batch_first=True, causal=True, attention="gated_deltanet",
            layer=layer, layers=layers)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm(x))[0]
        return x + self.feed(self.norm2(x))


class Recaller(nn.Module):
    def __init__(self, width: int = 32, heads: int = 2, layers: int = 2):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.Sequential(*(Block(width, heads, i, layers) for i in range(layers)))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embed(tokens)))


def batch(size: int) -> tuple:
    """Texts [B, 2 PAIRS + 1] and the value [B] of the name they end with."""
    names = torch.rand(size, NAMES).argsort(1)[:, :PAIRS]
    values = torch.randint(NAMES, VOCABULARY, (size, PAIRS))
    asked = torch.randint(PAIRS, (size, 1))
    pairs = torch.stack([names, values], 2).flatten(1)
    return torch.cat([pairs, names.gather(1, asked)], 1), values.gather(1, asked)[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    steps = parser.parse_args().steps
    torch.manual_seed(0)
    model = Recaller()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    for step in range(1, steps + 1):
        tokens, answer = batch(64)
        loss = nn.functional.cross_entropy(model(tokens)[:, -1], answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == steps:
            tokens, answer = batch(256)
            right = (model(tokens)[:, -1].argmax(1) == answer).float().mean()
            print(f"step {step}: loss {loss:.3f}, {100 * right:.0f} % recalled "
                  f"(a guess: {100 / VALUES:.0f} %)")


if __name__ == "__main__":
    main()
