"""Models that are neither convolutions nor sequences alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from .model_case import model, normal


@model(lambda rng, batch: (rng.integers(0, 30, (batch, 5)), rng.standard_normal((batch, 4)).astype("f")))
def recsys(torch: Any) -> Any:
    nn = torch.nn

    class Recsys(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = nn.EmbeddingBag(30, 6, mode="mean")
            self.dense = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(13, 8), nn.ReLU(), nn.Linear(8, 1))

        def forward(self, ids, dense):
            a, b = self.bag(ids), self.dense(dense)
            crossed = (a * b).sum(1, keepdim=True)
            return torch.sigmoid(self.top(torch.cat([a, b, crossed], 1))).squeeze(-1)

    return Recsys()


@model(normal(5, 8))
def moe(torch: Any) -> Any:
    """A mixture of experts: each token goes to its best two."""
    nn = torch.nn

    class Moe(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(8, 4, bias=False)
            self.experts = nn.ModuleList(
                [nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8)) for _ in range(4)]
            )

        def forward(self, x):
            flat = x.reshape(-1, 8)
            weights, chosen = torch.topk(torch.softmax(self.router(flat), dim=-1), 2, dim=-1)
            weights = weights / weights.sum(dim=-1, keepdim=True)
            gates = torch.zeros(flat.shape[0], 4, device=flat.device).scatter(1, chosen, weights)
            out = torch.zeros_like(flat)
            for i, expert in enumerate(self.experts):
                out = out + gates[:, i : i + 1] * expert(flat)
            load = torch.nn.functional.one_hot(chosen, 4).sum(1).to(torch.float32).mean(0)
            return out.reshape(x.shape), load

    return Moe()


def _edges(rng: Any, batch: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((10, 4)).astype("f"), rng.integers(0, 10, (2, 20))


@model(_edges, batch=None)
def gnn(torch: Any) -> Any:
    """Messages along edges, added up and averaged at their targets; attention by a softmax over these."""
    nn = torch.nn

    class Gnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.message, self.update = nn.Linear(8, 8), nn.Linear(12, 8)
            self.score, self.head = nn.Linear(8, 1), nn.Linear(8, 3)

        def forward(self, x, edges):
            source, target = edges[0], edges[1]
            pairs = torch.cat([x.index_select(0, source), x[target]], dim=1)
            messages = torch.relu(self.message(pairs))
            scores = torch.nn.functional.leaky_relu(self.score(pairs), 0.2).squeeze(1)
            most = torch.full((10,), -1e9, device=scores.device).scatter_reduce(0, target, scores, reduce="amax")
            parts = torch.exp(scores - most[target])
            total = torch.zeros(10, device=parts.device).index_add(0, target, parts)
            weighted = messages * (parts / (total[target] + 1e-6)).unsqueeze(1)
            gathered = torch.zeros(10, 8, device=weighted.device).scatter_add(
                0, target.unsqueeze(1).expand(-1, 8), weighted
            )
            hidden = torch.tanh(self.update(torch.cat([x, gathered], 1)))
            return self.head(hidden), hidden.mean(0)

    return Gnn()


@model(normal(3, 20))
def pointnet(torch: Any) -> Any:
    nn = torch.nn

    class PointNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
            self.matrix = nn.Linear(8, 9)
            self.features = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 16, 1))
            self.head = nn.Sequential(nn.Linear(16, 8), nn.PReLU(), nn.Linear(8, 4))

        def forward(self, x):
            turn = self.matrix(torch.max(self.turn(x), 2)[0]).view(-1, 3, 3) + torch.eye(3, device=x.device)
            x = torch.bmm(turn, x)
            return self.head(torch.amax(self.features(x), dim=2)), turn

    return PointNet()


@model(normal(4, 8, 8))
def swin(torch: Any) -> Any:
    """Attention in windows that are shifted, with biases by table."""
    nn = torch.nn

    class Swin(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.qkv, self.out = nn.LayerNorm(4), nn.Linear(4, 12), nn.Linear(4, 4)
            self.table = nn.Parameter(torch.zeros(49, 2))
            places = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
            away = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + 3
            self.register_buffer("places", (away[..., 0] * 7 + away[..., 1]).reshape(-1))
            self.merge = nn.Linear(16, 8, bias=False)

        def forward(self, x):
            x = x.permute(0, 2, 3, 1)
            y = torch.roll(self.norm(x), shifts=(-2, -2), dims=(1, 2))
            b = y.shape[0]
            y = y.view(b, 2, 4, 2, 4, 4).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 4)
            qkv = self.qkv(y).reshape(-1, 16, 3, 2, 2).permute(2, 0, 3, 1, 4)
            q, k, v = qkv[0], qkv[1], qkv[2]
            bias = self.table[self.places].view(16, 16, 2).permute(2, 0, 1)
            weights = ((q * 0.7) @ k.transpose(-2, -1) + bias.unsqueeze(0)).softmax(-1)
            y = self.out((weights @ v).transpose(1, 2).reshape(-1, 16, 4))
            y = y.view(b, 2, 2, 4, 4, 4).permute(0, 1, 3, 2, 4, 5).reshape(b, 8, 8, 4)
            x = x + torch.roll(y, shifts=(2, 2), dims=(1, 2))
            parts = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
            return self.merge(torch.cat(parts, -1))

    return Swin()
