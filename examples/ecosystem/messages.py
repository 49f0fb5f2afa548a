"""Layers for with_torch_geometric.py: torch-geometric imports the modules that make them once more."""

from torch import nn
from torch_geometric import nn as gnn


class Weighted(gnn.MessagePassing):
    """Messages of one's own."""

    def __init__(self):
        super().__init__(aggr="add", flow="target_to_source")
        self.linear = gnn.Linear(-1, 5)

    def forward(self, x, edge_index, edge_weight):
        return self.propagate(edge_index, x=self.linear(x), edge_weight=edge_weight)

    def message(self, x_i, x_j, edge_weight):
        return edge_weight.view(-1, 1) * (x_j - x_i)

    def update(self, inputs):
        return inputs.relu()


def in_sequence():
    """Layers of which some take the graph."""
    return gnn.Sequential("x, edge_index", [(gnn.GCNConv(8, 6), "x, edge_index -> x"), nn.ReLU(), nn.Linear(6, 2)])
