"""A training step, eager and recorded as a graph."""

from __future__ import annotations

import torchlite as torch


def step(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=False)
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss


def losses(made, steps=6):
    """The losses of eager steps, and of one that is recorded after a first one and replayed with the same data; `made`
    gives a model of three inputs and its optimizer.
    """
    torch.manual_seed(1)
    data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(steps)]
    model, optimizer = made()
    eager = [step(model, optimizer, x.cuda(), y.cuda()).item() for x, y in data]
    model, optimizer = made()
    x, y = (t.cuda() for t in data[0])
    replayed = [step(model, optimizer, x, y).item()]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(model, optimizer, x, y)
    for new_x, new_y in data[1:]:
        x.copy_(new_x)
        y.copy_(new_y)
        graph.replay()
        replayed.append(loss.item())
    return eager, replayed
