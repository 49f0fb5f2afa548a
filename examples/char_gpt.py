"""A small GPT over characters: learns a text (by default the Zen of Python) and writes on.

python examples/char_gpt.py --device cpu
"""

import argparse
import codecs

import torchlite as torch
from torchlite import Tensor, nn


class Block(nn.Module):
    """Attention to what came before, then a small network, each beside a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        added: Tensor = x + self.mlp(self.norm2(x))
        return added


class GPT(nn.Module):
    def __init__(self, symbols: int, length: int = 32, width: int = 48, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.length = length
        self.tokens, self.positions = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        scores: Tensor = self.head(self.norm(self.blocks(x)))
        return scores

    @torch.no_grad()
    def write(self, tokens: Tensor, count: int) -> Tensor:
        """`count` more tokens, drawn one after the other."""
        for _ in range(count):
            probabilities = self(tokens[:, -self.length :])[:, -1].softmax(-1)
            tokens = torch.cat([tokens, torch.multinomial(probabilities, 1)], 1)
        return tokens


def zen() -> str:
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return codecs.decode(this.s, "rot13")


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--text", help="a text file to learn instead")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    if options.text:
        with open(options.text) as file:
            text = file.read()
    else:
        text = zen()
    symbols = sorted(set(text))
    data = torch.tensor([symbols.index(c) for c in text])
    model = GPT(len(symbols)).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    loss = torch.zeros(())
    for step in range(options.steps):
        starts = torch.randint(0, len(data) - model.length - 1, (16,)).tolist()
        batch = torch.stack([data[s : s + model.length + 1] for s in starts]).to(options.device)
        loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == options.steps - 1:
            print(f"step {step:4d}  loss {loss.item():.3f}")
    written: list[int] = model.write(data[None, :8].to(options.device), 120)[0].tolist()
    print("".join(symbols[i] for i in written))
    return float(loss)


if __name__ == "__main__":
    main()
