"""Language workloads: transformers, recurrent layers and embeddings."""

from __future__ import annotations

from typing import Any

from .context import Context, Rows


def decoder(T: Any) -> Any:
    """Return a class of causal transformers with an optional key-value cache."""
    nn, F = T.nn, T.nn.functional
    Module: Any = T.nn.Module

    class Layer(Module):
        def __init__(self, width: int, heads: int):
            super().__init__()
            self.heads = heads
            self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
            self.projections, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any, kept: Any = None) -> Any:
            batch, length, width = x.shape
            parts = self.projections(self.before_attention(x)).chunk(3, -1)
            q, k, v = (p.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for p in parts)
            if kept is not None and kept:
                k, v = T.cat([kept[0], k], 2), T.cat([kept[1], v], 2)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
            x = x + self.joined(seen.transpose(1, 2).reshape(batch, length, width))
            if kept is not None:
                kept[:] = k, v
            return x + self.feed(self.before_feed(x))

    class Decoder(Module):
        def __init__(self, words: int, width: int, heads: int, layers: int, length: int):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, indices: Any, kept: Any = None, start: int = 0) -> Any:
            x = self.words(indices) + self.places(T.arange(start, start + indices.shape[1], device=indices.device))
            for i, layer in enumerate(self.layers):
                x = layer(x, None if kept is None else kept[i])
            return self.head(self.last(x))

    return Decoder


def gpt(c: Context) -> Rows:
    T, words, length, batch = c.T, 1000, c.size(128, 8), c.size(8)
    model = decoder(T)(words, c.size(256, 64), 4, c.size(4), 256).to(c.device)
    x, y = c.integers(words, batch, length), c.integers(words, batch * length)
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)
    cross_entropy = T.nn.functional.cross_entropy
    yield "gpt.train", c.step(model, (x,), lambda out: cross_entropy(out.view(-1, words), y), optimizer)
    model.eval()
    prompt, tokens = x[:1, : c.size(64, 8)], c.size(32)

    def generate() -> Any:
        kept: list[list] = [[] for _ in model.layers]
        out, place, found = model(prompt, kept), prompt.shape[1], []
        for _ in range(tokens):
            found.append(out[:, -1].argmax(-1, keepdim=True))
            out = model(found[-1], kept, place)
            place += 1
        return T.cat(found, 1)

    with T.no_grad():
        yield "gpt.generate", generate


def bert(c: Context) -> Rows:
    T = c.T
    words, width, length, layers = c.size(30522), c.size(768, 12 * 8), c.size(128, 8), c.size(12)
    model = decoder(T)(words, width, 12, layers, length).to(c.device).eval()
    x = c.integers(words, 1, length)
    with T.no_grad():
        yield "bert_base.infer", lambda: model(x)


def encoder(c: Context) -> Rows:
    """Transformer encoder of PyTorch's layers."""
    T, nn = c.T, c.T.nn
    layer = nn.TransformerEncoderLayer(c.size(256, 64), 4, c.size(1024, 64), batch_first=True, activation="gelu")
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(c.device)
    z = c.normal(c.size(16), c.size(64, 8), c.size(256, 64))
    optimizer = T.optim.AdamW(encoder.parameters(), lr=1e-4)
    yield "encoder.train", c.step(encoder, (z,), lambda out: (out * out).mean(), optimizer)


def lstm(c: Context) -> Rows:
    T, nn = c.T, c.T.nn
    batch, length, width = c.size(32), c.size(64, 4), c.size(256, 16)
    for name, layer in ("lstm", nn.LSTM), ("gru", nn.GRU):
        recurrent = layer(width // 2, width, 2, batch_first=True).to(c.device)
        head = nn.Linear(width, 10).to(c.device)
        x, y = c.normal(batch, length, width // 2), c.integers(10, batch)
        optimizer = T.optim.Adam([*recurrent.parameters(), *head.parameters()])
        cross_entropy = nn.functional.cross_entropy
        yield (
            f"{name}.train",
            c.step(
                lambda x, r=recurrent, h=head: h(r(x)[0][:, -1]),
                (x,),
                lambda out, y=y: cross_entropy(out, y),
                optimizer,
            ),
        )


def recommender(c: Context) -> Rows:
    """Recommender: two embedding tables, one averaged over a history, and dense features."""
    T, nn = c.T, c.T.nn
    users, items, width, batch, past = c.size(200_000), c.size(100_000), 32, c.size(512, 8), 20
    Module: Any = c.T.nn.Module

    class Recommender(Module):
        def __init__(self, sparse: bool):
            super().__init__()
            self.users = nn.Embedding(users, width, sparse=sparse)
            self.items = nn.Embedding(items, width, sparse=sparse)
            self.history = nn.EmbeddingBag(items, width, mode="mean", sparse=sparse)
            self.dense = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, width))
            self.top = nn.Sequential(nn.Linear(4 * width + 6, 128), nn.ReLU(), nn.Linear(128, 1))

        def forward(self, user: Any, item: Any, history: Any, features: Any) -> Any:
            parts = T.stack([self.users(user), self.items(item), self.history(history), self.dense(features)], 1)
            products = T.bmm(parts, parts.transpose(1, 2))
            pairs = [products[:, i, j] for i in range(4) for j in range(i)]
            return self.top(T.cat([parts.flatten(1), T.stack(pairs, 1)], 1)).squeeze(1)

    inputs = c.integers(users, batch), c.integers(items, batch), c.integers(items, batch, past), c.normal(batch, 16)
    labels = (c.normal(batch) > 0).to(T.float32)
    loss = nn.BCEWithLogitsLoss()
    model = Recommender(sparse=False).to(c.device)
    optimizer = T.optim.Adam(model.parameters(), lr=1e-3)
    yield "recommender.train", c.step(model, inputs, lambda out: loss(out, labels), optimizer)
    model = Recommender(sparse=True).to(c.device)
    tables = [model.users.weight, model.items.weight, model.history.weight]
    first = T.optim.SparseAdam(tables, lr=1e-3)
    second = T.optim.Adam([*model.dense.parameters(), *model.top.parameters()], lr=1e-3)

    def step() -> None:
        first.zero_grad()
        second.zero_grad()
        loss(model(*inputs), labels).backward()
        first.step()
        second.step()

    yield "recommender.train_sparse", step
