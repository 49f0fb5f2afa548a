"""A transformer that reads characters: positional encoding, causal mask, sampling."""

import math

import torchlite as torch
import torchlite.nn as nn
import torchlite.nn.functional as F


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.get_buffer("pe")[:, : x.size(1)]


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(B, T, C))


class Model(nn.Module):
    def __init__(self, vocab, width=16, heads=2, layers=1):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.position = PositionalEncoding(width)
        self.attention = Attention(width, heads)
        layer = nn.TransformerEncoderLayer(width, heads, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=layers)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.size(1))
        x = self.position(self.embed(tokens))
        x = self.encoder(x + self.attention(x), mask=mask)
        return self.head(self.norm(x))


text = "hello world, hello torch. " * 4
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
torch.manual_seed(0)
model = Model(len(chars))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
first = last = 0.0
for step in range(12):
    starts = torch.randint(len(data) - 9, (8,))
    x = torch.stack([data[int(i) : int(i) + 8] for i in starts])
    y = torch.stack([data[int(i) + 1 : int(i) + 9] for i in starts])
    logits = model(x)
    loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    first, last = (loss.item() if step == 0 else first), loss.item()

model.eval()
tokens = data[:4].unsqueeze(0)
with torch.no_grad():
    for _ in range(4):
        probs = F.softmax(model(tokens)[:, -1, :] / 0.8, dim=-1)
        tokens = torch.cat((tokens, torch.multinomial(probs, num_samples=1)), dim=1)
print("".join(chars[i] for i in tokens[0].tolist()), first, last)
assert last < first and tokens.shape == (1, 8)
