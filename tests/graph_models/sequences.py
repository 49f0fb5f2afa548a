"""Recurrent networks and transformers."""

from __future__ import annotations

import math
from typing import Any

from .model_case import model, normal, tokens


@model(normal(6, 5))
def lstm(torch: Any) -> Any:
    nn = torch.nn

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True), nn.Linear(12, 3)

        def forward(self, x):
            out, (h, c) = self.rnn(x)
            return self.head(out[:, -1]), h, c

    return Lstm()


@model(normal(6, 5))
def gru(torch: Any) -> Any:
    nn = torch.nn

    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(5, 8, batch_first=True), nn.Linear(8, 3)

        def forward(self, x):
            out, h = self.rnn(x)
            return self.head(out.mean(1)), h

    return Gru()


@model(normal(6, 8), scripts=False)
def encoder(torch: Any) -> Any:
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=False)


@model(tokens(20, 8))
def gpt(torch: Any) -> Any:
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self, width: int, heads: int):
            super().__init__()
            self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(x).split(c, dim=2)
            q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self, width: int, heads: int):
            super().__init__()
            self.ln1, self.attention = nn.LayerNorm(width), Attention(width, heads)
            self.ln2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 2 * width), nn.GELU(approximate="tanh"), nn.Linear(2 * width, width), nn.Dropout(0.0)
            )

        def forward(self, x):
            x = x + self.attention(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(20, 8), nn.Embedding(8, 8)
            self.blocks = nn.Sequential(Block(8, 2), Block(8, 2))
            self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 20, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, ids):
            places = torch.arange(ids.size(1), device=ids.device)
            x = self.blocks(self.tokens(ids) + self.places(places))
            return self.head(self.norm(x))

    return Gpt()


@model(lambda rng, batch: (rng.integers(0, 20, (batch, 6)), rng.integers(0, 2, (batch, 6)) | [1, 0, 0, 0, 0, 0]))
def bert(torch: Any) -> Any:
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
            self.out, self.norm1, self.norm2 = nn.Linear(8, 8), nn.LayerNorm(8, eps=1e-12), nn.LayerNorm(8)
            self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)

        def heads(self, x):
            return x.view(x.size(0), x.size(1), 2, 4).permute(0, 2, 1, 3)

        def forward(self, x, mask):
            q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
            weights = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / 2.0 + mask, dim=-1)
            y = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
            x = self.norm1(x + self.out(y.view(y.size(0), y.size(1), 8)))
            return self.norm2(x + self.narrow(torch.nn.functional.gelu(self.wide(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(20, 8, padding_idx=0), nn.Embedding(6, 8)
            self.register_buffer("positions", torch.arange(6).unsqueeze(0))
            self.norm, self.layers = nn.LayerNorm(8), nn.ModuleList([Layer(), Layer()])
            self.pooler = nn.Linear(8, 8)

        def forward(self, ids, mask):
            x = self.norm(self.words(ids) + self.places(self.positions))
            wide = (1.0 - mask[:, None, None, :].to(torch.float32)) * -10000.0
            for layer in self.layers:
                x = layer(x, wide)
            return x, torch.tanh(self.pooler(x[:, 0]))

    return Bert()


@model(normal(3, 16, 16))
def vit(torch: Any) -> Any:
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

        def forward(self, x):
            y = self.norm1(x)
            x = x + self.attention(y, y, y, need_weights=False)[0]
            return x + self.mlp(self.norm2(x))

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, 8, 4, 4)
            self.first = nn.Parameter(torch.zeros(1, 1, 8))
            self.places = nn.Parameter(torch.zeros(1, 17, 8))
            self.layers, self.norm, self.head = nn.Sequential(Layer(), Layer()), nn.LayerNorm(8), nn.Linear(8, 5)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(x.size(0), -1, -1), x], dim=1) + self.places
            return self.head(self.norm(self.layers(x))[:, 0])

    return Vit()


@model(normal(12, 8))
def conformer(torch: Any) -> Any:
    nn = torch.nn

    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.enter = nn.LayerNorm(8), nn.Conv1d(8, 16, 1)
            self.depth, self.batch = nn.Conv1d(8, 8, 5, padding=2, groups=8), nn.BatchNorm1d(8)
            self.leave = nn.Conv1d(8, 8, 1)

        def forward(self, x):
            y = torch.nn.functional.glu(self.enter(self.norm(x).transpose(1, 2)), dim=1)
            y = torch.nn.functional.silu(self.batch(self.depth(y)))
            return self.leave(y).transpose(1, 2)

    class Conformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8))
            self.norm, self.attention = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
            self.convolution = Convolution()
            self.second = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8))
            self.last = nn.LayerNorm(8)

        def forward(self, x):
            x = x + 0.5 * self.first(x)
            y = self.norm(x)
            x = x + self.attention(y, y, y, need_weights=False)[0]
            x = x + self.convolution(x)
            x = x + 0.5 * self.second(x)
            return self.last(x)

    return Conformer()


@model(normal(6, 8))
def mamba(torch: Any) -> Any:
    """A selective scan: a state for each channel that depends on the input."""
    nn = torch.nn

    class Mamba(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.leave = nn.Linear(8, 16, bias=False), nn.Linear(8, 8, bias=False)
            self.conv = nn.Conv1d(8, 8, 3, groups=8, padding=2)
            self.select, self.step = nn.Linear(8, 2 + 2 * 4, bias=False), nn.Linear(2, 8)
            self.decay = nn.Parameter(torch.zeros(8, 4))
            self.direct = nn.Parameter(torch.ones(8))

        def forward(self, x):
            u, gate = self.enter(x).chunk(2, dim=-1)
            u = torch.nn.functional.silu(self.conv(u.transpose(1, 2))[:, :, : x.shape[1]]).transpose(1, 2)
            small, b, c = torch.split(self.select(u), [2, 4, 4], dim=-1)
            step = torch.nn.functional.softplus(self.step(small))
            keep = torch.exp(step.unsqueeze(-1) * -torch.exp(self.decay))
            add = (step * u).unsqueeze(-1) * b.unsqueeze(2)
            state = torch.zeros(x.shape[0], 8, 4, device=x.device)
            outs = []
            for t in range(6):
                state = keep[:, t] * state + add[:, t]
                outs.append((state * c[:, t].unsqueeze(1)).sum(-1))
            y = torch.stack(outs, dim=1) + u * self.direct
            return self.leave(y * torch.nn.functional.silu(gate))

    return Mamba()


@model(tokens(20, 6))
def llama(torch: Any) -> Any:
    """Rotary positions, grouped queries, RMS norm, SwiGLU."""
    nn = torch.nn

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = Norm(), Norm()
            self.q, self.k, self.v = nn.Linear(8, 8, False), nn.Linear(8, 4, False), nn.Linear(8, 4, False)
            self.o, self.up = nn.Linear(8, 8, False), nn.Linear(8, 16, False)
            self.gate, self.down = nn.Linear(8, 16, False), nn.Linear(16, 8, False)

        def turned(self, x, cos, sin):
            a, b = x[..., :2], x[..., 2:]
            return x * cos + torch.cat((-b, a), dim=-1) * sin

        def forward(self, x, cos, sin, mask):
            y = self.norm1(x)
            b, t = y.shape[0], y.shape[1]
            q = self.turned(self.q(y).view(b, t, 2, 4).transpose(1, 2), cos, sin)
            k = self.turned(self.k(y).view(b, t, 1, 4).transpose(1, 2), cos, sin)
            v = self.v(y).view(b, t, 1, 4).transpose(1, 2)
            k, v = k.repeat_interleave(2, dim=1), v.repeat_interleave(2, dim=1)
            scores = (q @ k.transpose(-2, -1)) * 0.5
            scores = scores.masked_fill(mask, float("-inf"))
            x = x + self.o((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, 8))
            y = self.norm2(x)
            return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(20, 8)
            self.layers = nn.ModuleList([Layer(), Layer()])
            self.norm, self.head = Norm(), nn.Linear(8, 20, bias=False)

        def forward(self, ids):
            x = self.tokens(ids)
            t = ids.shape[1]
            turns = torch.arange(t, dtype=torch.float32, device=x.device)[:, None]
            turns = turns * torch.tensor([1.0, 0.01], device=x.device)[None]
            turns = torch.cat([turns, turns], -1)
            mask = torch.triu(torch.ones(t, t, dtype=torch.bool, device=x.device), diagonal=1)
            for layer in self.layers:
                x = layer(x, turns.cos(), turns.sin(), mask)
            return self.head(self.norm(x))

    return Llama()


@model(lambda rng, batch: (rng.integers(0, 20, (batch, 6)), rng.integers(0, 20, (batch, 4))))
def t5(torch: Any) -> Any:
    """Encoder and decoder, with biases of relative positions in buckets."""
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
            self.v, self.o = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)

        def forward(self, x, memory, bias):
            q = self.q(x).unflatten(-1, (2, 4)).transpose(1, 2)
            k = self.k(memory).unflatten(-1, (2, 4)).transpose(1, 2)
            v = self.v(memory).unflatten(-1, (2, 4)).transpose(1, 2)
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)
            return self.o(y.transpose(1, 2).flatten(2))

    class T5(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.biases = nn.Embedding(20, 8), nn.Embedding(8, 2)
            self.inner, self.own, self.across = Attention(), Attention(), Attention()
            self.norms = nn.ModuleList([nn.LayerNorm(8, bias=False) for _ in range(4)])
            self.ff = nn.Sequential(nn.Linear(8, 16, bias=False), nn.ReLU(), nn.Linear(16, 8, bias=False))

        def bias(self, rows: int, columns: int):
            device = self.biases.weight.device
            distance = torch.arange(columns, device=device)[None, :] - torch.arange(rows, device=device)[:, None]
            far = distance.abs().float().clamp(min=1.0)
            large = 2 + (torch.log(far / 2.0) / math.log(4.0) * 2.0).to(torch.int64)
            bucket = torch.where(distance.abs() < 2, distance.abs(), torch.clamp(large, max=3))
            return self.biases(bucket + (distance > 0).to(torch.int64) * 4).permute(2, 0, 1).unsqueeze(0)

        def forward(self, source, target):
            x, y = self.tokens(source), self.tokens(target)
            a = self.norms[0](x)
            x = x + self.inner(a, a, self.bias(6, 6))
            b = self.norms[1](y)
            causal = torch.full((4, 4), float("-inf"), device=y.device).triu(1)
            y = y + self.own(b, b, self.bias(4, 4) + causal)
            y = y + self.across(self.norms[2](y), x, torch.zeros(1, 1, 4, 6, device=y.device))
            y = y + self.ff(self.norms[3](y))
            return torch.matmul(y, self.tokens.weight.t())

    return T5()
