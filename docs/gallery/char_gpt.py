"""A character GPT

A small transformer learns the Zen of Python character by character, writes on, and shows where it looks.

The model predicts each character from the ones before it. Causal attention compares a character with its
predecessors only, so that one pass gives a prediction at every position.
"""

import codecs
import contextlib
import io
import sys

import matplotlib.pyplot as plt

import torchlite as torch
from torchlite import nn

STEPS = 5 if "--quick" in sys.argv else 500
LENGTH, WIDTH, HEADS = 48, 64, 4

torch.manual_seed(0)
with contextlib.redirect_stdout(io.StringIO()):
    import this
text = codecs.decode(this.s, "rot13")
symbols = sorted(set(text))
data = torch.tensor([symbols.index(character) for character in text])
print(f"{len(data)} characters, {len(symbols)} different ones")

# %%
# A block adds to its input the output of attention and of a network of two layers. `scaled_dot_product_attention`
# computes softmax(q kᵀ / √d) v.


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def heads(self, x):
        """Queries, keys and values of shape (3, N, heads, length, d)."""
        return self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)

    def forward(self, x):
        attended = nn.functional.scaled_dot_product_attention(*self.heads(x), is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(len(symbols), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(symbols)))

    def embed(self, tokens):
        return self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


model = GPT()
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

# %%
# Each step learns 16 windows of 48 characters. The learning rate falls to zero along a half cosine.

optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
windows = data.unfold(0, LENGTH + 1, 1)
losses = []
for step in range(STEPS):
    batch = windows[torch.randint(len(windows), (16,))]
    loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if step % 100 == 99:
        print(f"step {step + 1:3d}  loss {losses[-1]:.3f} nats per character")

# %%
# The loss begins near ln 45 = 3.8, where all characters are equally probable. At the end the model knows most of the
# text by heart. It continues a line that the poem does not have. Logits divided by 0.5 favour probable characters:

with torch.no_grad():
    tokens = torch.tensor([[symbols.index(character) for character in "Slow is "]])
    for _ in range(160):
        probabilities = (model(tokens[:, -LENGTH:])[:, -1] / 0.5).softmax(-1)
        tokens = torch.cat([tokens, torch.multinomial(probabilities, 1)], 1)
print("".join(symbols[token] for token in tokens[0].tolist()))

# %%
# The right picture shows the first block's attention, averaged over the heads: row by row, the characters that
# the model looks at to predict the next one.

line = "Explicit is better than implicit."
with torch.no_grad():
    tokens = torch.tensor([[symbols.index(character) for character in line]])
    query, key, _ = model.blocks[0].heads(model.embed(tokens))
    scores = query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
    future = torch.ones(len(line), len(line)).triu(1).bool()
    weights = scores.masked_fill(future, -torch.inf).softmax(-1).mean((0, 1))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
left.plot(losses)
left.set(title="Training loss", xlabel="step", ylabel="nats per character")
right.imshow(weights, cmap="Blues")
right.set(title="Attention of the first block", xticks=range(len(line)), yticks=range(len(line)))
right.set_xticklabels(line, family="monospace", fontsize=7)
right.set_yticklabels(line, family="monospace", fontsize=7)
figure.tight_layout()
