"""A graph network by torch_geometric

Four members of a karate club are known; a graph convolutional network predicts the groups of the other thirty.

The graph is Zachary's (1977): 34 members of a club, joined by a line where they met outside of it. Its four groups are
those that modularity clustering finds. The layers are those of Kipf and Welling (2017): each node takes a weighted mean
over its neighbours. The loss sees one node of each group.

Needs torch_geometric.
"""

import sys

import matplotlib.pyplot as plt

import torchlite as torch

torch.as_torch()
from torch_geometric.datasets import KarateClub
from torch_geometric.nn import GCNConv
from torch_geometric.utils import get_laplacian, to_dense_adj

from torchlite import nn

STEPS = 2 if "--quick" in sys.argv else 200

torch.manual_seed(0)
data = KarateClub()[0]
print(data)
print(f"{int(data.train_mask.sum())} labels are known")

# %%
# Three layers reach neighbours of neighbours of neighbours. The last layer's input is a point in the plane.


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([GCNConv(34, 8), GCNConv(8, 8), GCNConv(8, 2)])
        self.classify = nn.Linear(2, 4)

    def forward(self, x, edges):
        for layer in self.layers:
            x = layer(x, edges).tanh()
        return self.classify(x), x


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-3)
known = data.train_mask
for step in range(STEPS):
    optimizer.zero_grad()
    scores, _ = model(data.x, data.edge_index)
    loss = nn.functional.cross_entropy(scores[known], data.y[known])
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        accuracy = (scores.argmax(1) == data.y)[~known].float().mean()
        print(f"step {step + 1:3d}  loss {loss.item():.3f}  accuracy on the other thirty {accuracy:.0%}")

# %%
# Left: the graph, placed by eigenvectors of its Laplacian, and coloured by what the network says. Errors have a cross,
# known members a ring. Right: the plane of the last layer.

with torch.no_grad():
    scores, plane = model(data.x, data.edge_index)
said = scores.argmax(1)
edges, weights = get_laplacian(data.edge_index, normalization="sym")
laplacian = to_dense_adj(edges, edge_attr=weights)[0]
places = torch.linalg.eigh(laplacian).eigenvectors[:, 1:3]
wrong = said != data.y
figure, axes = plt.subplots(1, 2, figsize=(9, 4))
for axis, points in zip(axes, (places, plane), strict=True):
    for a, b in data.edge_index.T.tolist():
        axis.plot(points[[a, b], 0], points[[a, b], 1], color="0.85", linewidth=0.7, zorder=1)
    axis.scatter(*points.T, c=said, cmap="tab10", vmax=9, s=60, zorder=2)
    axis.scatter(*points[known].T, facecolors="none", edgecolors="k", s=160, zorder=3)
    axis.scatter(*points[wrong].T, c="k", marker="x", zorder=3)
    axis.set(xticks=[], yticks=[])
axes[0].set_title("The club")
axes[1].set_title("Plane of the last layer")
figure.tight_layout()
