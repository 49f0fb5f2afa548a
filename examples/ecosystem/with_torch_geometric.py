"""torch-geometric: layers on edge lists and on sparse adjacencies, pooling, mixed graphs, sampling, explanations."""

import torch
import torch_geometric as pyg
import torch_geometric.nn as gnn
from messages import Weighted, in_sequence
from show import gradients, show
from torch import nn
from torch_geometric import transforms as T
from torch_geometric import utils
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.loader import DataLoader, NeighborLoader

torch.manual_seed(0)
N, E = 20, 60
index = torch.randint(0, N, (2, E))
index = utils.coalesce(utils.to_undirected(utils.remove_self_loops(index)[0]))
E = index.size(1)
weight, attributes, kind = torch.rand(E), torch.randn(E, 3), torch.randint(0, 3, (E,))
x, y, places = torch.randn(N, 8), torch.randint(0, 4, (N,)), torch.randn(N, 3)
graph_of = torch.arange(N) // 7
coo = utils.to_torch_coo_tensor(index, weight, size=N)
csr = utils.to_torch_csr_tensor(index, weight, size=N).t().to_sparse_csr()
csc = utils.to_torch_csc_tensor(index, weight, size=N).t()
show("graph", index)


def layer(name, module, *arguments, **keywords):
    """A layer's result and the gradients of its parameters and input."""
    torch.manual_seed(1)
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()
    start = x.clone().requires_grad_()
    result = module(start, *arguments, **keywords)
    result = result[0] if isinstance(result, tuple) else result
    (result * torch.arange(result.numel()).cos().view_as(result)).mean().backward()
    show(name, result)
    show(f"{name}.gradients", gradients(module) if any(True for _ in module.parameters()) else 0)
    show(f"{name}.input", start.grad)


mlp = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 5))
layer("GCN", gnn.GCNConv(8, 5), index, weight)
for adjacency, name in ((coo.t().coalesce(), "coo"), (csr, "csr"), (csc, "csc")):
    layer(f"GCN.{name}", gnn.GCNConv(8, 5), adjacency)
    layer(f"SAGE.{name}", gnn.SAGEConv(8, 5), adjacency)
    layer(f"GIN.{name}", gnn.GINConv(mlp, train_eps=True), adjacency)
    layer(f"GraphConv.{name}", gnn.GraphConv(8, 5, aggr="max"), adjacency)
    layer(f"GAT.{name}", gnn.GATConv(8, 5, heads=2), adjacency)
layer("SAGE", gnn.SAGEConv(8, 5, aggr=["mean", "max", "std"], normalize=True), index)
layer("SAGE.lstm", gnn.SAGEConv(8, 5, aggr="lstm"), index.flip(0))
layer("GAT", gnn.GATConv(8, 5, heads=2, edge_dim=3), index, attributes)
layer("GATv2", gnn.GATv2Conv(8, 5, heads=2, concat=False, edge_dim=3), index, attributes)
layer("GINE", gnn.GINEConv(mlp, edge_dim=3), index, attributes)
layer("Transformer", gnn.TransformerConv(8, 5, heads=2, beta=True, edge_dim=3), index, attributes)
layer("RGCN", gnn.RGCNConv(8, 5, num_relations=3, num_bases=2), index, kind)
layer("FastRGCN", gnn.FastRGCNConv(8, 5, num_relations=3, num_blocks=None), index, kind)
layer("RGAT", gnn.RGATConv(8, 5, num_relations=3), index, kind)
layer("Cheb", gnn.ChebConv(8, 5, K=3), index, weight)
layer("ARMA", gnn.ARMAConv(8, 5, num_stacks=2), index, weight)
layer("SG", gnn.SGConv(8, 5, K=2), index)
layer("TAG", gnn.TAGConv(8, 5), index)
layer("APPNP", gnn.APPNP(K=3, alpha=0.1), index)
layer("GatedGraph", gnn.GatedGraphConv(8, num_layers=2), index)
layer(
    "PNA",
    gnn.PNAConv(8, 8, ["mean", "min", "max", "std"], ["identity", "amplification"], torch.arange(9), 3, 2),
    index,
    attributes,
)
layer("General", gnn.GeneralConv(8, 5, in_edge_channels=3, attention=True), index, edge_attr=attributes)
layer("NN", gnn.NNConv(8, 5, nn.Linear(3, 40)), index, attributes)
layer("CG", gnn.CGConv(8, 3), index, attributes)
layer("Gen", gnn.GENConv(8, 5, edge_dim=3, learn_t=True), index, attributes)
layer("Edge", gnn.EdgeConv(nn.Linear(16, 5)), index)
layer("PointNet", gnn.PointNetConv(nn.Linear(11, 5)), places, index)
layer("Spline", gnn.GMMConv(8, 5, dim=3, kernel_size=4), index, attributes)
layer("Hypergraph", gnn.HypergraphConv(8, 5), index)
layer("FiLM", gnn.FiLMConv(8, 5), index)
layer("GPS", gnn.GPSConv(8, gnn.GCNConv(8, 8), heads=2, dropout=0.0), index, graph_of)
layer("DirGNN", gnn.DirGNNConv(gnn.GCNConv(8, 5)), index)
layer("LightGCN", gnn.LGConv(), index)

# Norms, aggregations, pooling.
for norm in (
    gnn.BatchNorm(8),
    gnn.GraphNorm(8),
    gnn.LayerNorm(8),
    gnn.PairNorm(),
    gnn.InstanceNorm(8),
    gnn.DiffGroupNorm(8, 2),
):
    arguments = () if isinstance(norm, (gnn.BatchNorm, gnn.DiffGroupNorm)) else (graph_of,)
    show(f"norm.{type(norm).__name__}", norm(x, *arguments))
for aggregation in (
    gnn.MeanAggregation(), gnn.SoftmaxAggregation(learn=True), gnn.PowerMeanAggregation(), gnn.MedianAggregation(),
    gnn.QuantileAggregation([0.25, 0.75]), gnn.Set2Set(8, 2), gnn.SortAggregation(4), gnn.VarAggregation(),
    gnn.AttentionalAggregation(nn.Linear(8, 1)), gnn.LSTMAggregation(8, 6), gnn.SetTransformerAggregation(8, heads=2),
    gnn.DeepSetsAggregation(nn.Linear(8, 6), nn.Linear(6, 4)), gnn.MultiAggregation(["mean", "max"]),
):  # fmt: skip
    show(f"aggregated.{type(aggregation).__name__}", aggregation(x.abs(), graph_of))
for pool in (gnn.global_add_pool, gnn.global_mean_pool, gnn.global_max_pool):
    show(pool.__name__, pool(x, graph_of))
for pooling in (gnn.TopKPooling(8, 0.5), gnn.SAGPooling(8, 0.5), gnn.ASAPooling(8, 0.5)):
    pooled = pooling(x, index, batch=graph_of)
    show(f"{type(pooling).__name__}", pooled[0])
    show(f"{type(pooling).__name__}.edges", pooled[1])
dense, mask = utils.to_dense_batch(x, graph_of)
adjacency = utils.to_dense_adj(index, graph_of)
show("dense", dense)
out = gnn.dense_diff_pool(dense, adjacency, torch.randn(3, 7, 2), mask)
show("dense_diff_pool", torch.cat([value.flatten() for value in out]))
show("DenseGCN", gnn.DenseGCNConv(8, 5)(dense, adjacency, mask))
show("max_pool", gnn.max_pool(torch.arange(N) // 2, Data(x=x, edge_index=index, batch=graph_of)).x)

# Functions of graphs.
show("degree", utils.degree(index[0], N))
show("softmax", utils.softmax(weight, index[1], num_nodes=N))
for reduce in ("sum", "mean", "min", "max", "mul"):
    show(f"scatter.{reduce}", utils.scatter(attributes, index[0], 0, N, reduce))
show("segment", utils.segment(x, torch.tensor([0, 7, 7, 14, 20]), "max"))
show("add_self_loops", torch.cat([t.flatten() for t in utils.add_self_loops(index, weight, fill_value="mean")]))
for part in utils.k_hop_subgraph([0, 3], 2, index, relabel_nodes=True):
    show("k_hop_subgraph", part)
show("subgraph", utils.subgraph(list(range(10)), index, weight, relabel_nodes=True)[1])
show("laplacian", utils.get_laplacian(index, weight, "sym")[1])
show("homophily", utils.homophily(index, y))
show("assortativity", utils.assortativity(index))
torch.manual_seed(1)
show("dropout_edge", utils.dropout_edge(index, 0.4)[0])
show("negative_sampling", torch.tensor(utils.negative_sampling(index, N, 10).shape))
show("random_walk_pe", T.AddRandomWalkPE(3)(Data(edge_index=index, num_nodes=N)).random_walk_pe)
show("line_graph", T.LineGraph()(Data(edge_index=index, num_nodes=N)).edge_index)
show("knn", T.Distance()(Data(pos=places, edge_index=index)).edge_attr)
show(
    "gdc",
    T.GDC(sparsification_kwargs={"method": "threshold", "eps": 0.05}, exact=True)(
        Data(edge_index=index, num_nodes=N)
    ).edge_attr,
)
show("to_edge_index", utils.to_edge_index(csr)[1])
show("spmm", utils.spmm(coo, x))
for reduce in ("sum", "mean", "min", "max"):
    show(f"spmm.{reduce}", utils.spmm(csr, x, reduce))
sorted_index = pyg.EdgeIndex(index, sparse_size=(N, N), is_undirected=True, sort_order="row")
show("EdgeIndex", torch.cat([part.flatten() for part in (*sorted_index.get_csr()[0], *sorted_index.get_csc()[0])]))
show("EdgeIndex.matmul", sorted_index.matmul(x, weight, reduce="sum"))
show("EdgeIndex.dense", sorted_index.to_dense())
for convolution in (gnn.GCNConv(8, 5), gnn.GraphConv(8, 5), gnn.SAGEConv(8, 5), gnn.GATConv(8, 5)):
    layer(f"EdgeIndex.{type(convolution).__name__}", convolution, sorted_index)
show("EdgeIndex.csr", sorted_index.to_sparse_csr().values())

# Training: nodes, then graphs.
torch.manual_seed(2)
model = gnn.models.GCN(8, 16, 2, out_channels=4, dropout=0.5, norm="layer")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
data = Data(x=x, edge_index=index, y=y)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(data.x, data.edge_index), data.y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
show("nodes.losses", losses)
show("nodes", model.eval()(x, index))

graphs = []
for count in (3, 5, 4, 6, 3, 5):
    edges = utils.erdos_renyi_graph(count, 0.6)
    graphs.append(Data(x=torch.randn(count, 8), edge_index=edges, y=torch.tensor([edges.size(1) / 10])))
show("batch", Batch.from_data_list(graphs).edge_index)
network = gnn.models.GIN(8, 16, 2, jk="cat")
readout = nn.Linear(16, 1)
optimizer = torch.optim.Adam([*network.parameters(), *readout.parameters()], lr=0.01)
losses = []
for _ in range(3):
    for batch in DataLoader(graphs, batch_size=2, shuffle=True):
        optimizer.zero_grad()
        pooled = gnn.global_mean_pool(network(batch.x, batch.edge_index), batch.batch)
        loss = nn.functional.mse_loss(readout(pooled).flatten(), batch.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
show("graphs.losses", losses)
show("graphs.separated", batch.to_data_list()[1].x)
for name in ("GraphSAGE", "GAT", "PNA", "EdgeCNN", "MLP"):
    torch.manual_seed(3)
    extra = {"aggregators": ["mean", "max"], "scalers": ["identity"], "deg": torch.arange(5)} if name == "PNA" else {}
    made = gnn.models.MLP([8, 16, 4], norm=None) if name == "MLP" else getattr(gnn.models, name)(8, 16, 2, 4, **extra)
    show(f"models.{name}", made(x) if name == "MLP" else made(x, index))
torch.manual_seed(3)
encoder = gnn.VGAE(gnn.models.GCN(8, 16, 1, out_channels=16))
encoder.encoder = type("Encoder", (nn.Module,), {"forward": lambda self, *a: (x @ x.T[:, :4] / 20, x[:, :4] / 9)})()
z = encoder.encode(x, index)
show("VGAE", [encoder.recon_loss(z, index, index.flip(0)).item(), encoder.kl_loss().item()])

# Mixed graphs.
torch.manual_seed(4)
mixed = HeteroData()
mixed["user"].x, mixed["item"].x = torch.randn(6, 8), torch.randn(9, 5)
mixed["user", "buys", "item"].edge_index = torch.stack([torch.randint(0, 6, (15,)), torch.randint(0, 9, (15,))])
mixed["item", "of", "user"].edge_index = mixed["user", "buys", "item"].edge_index.flip(0)
mixed["user", "knows", "user"].edge_index = torch.randint(0, 6, (2, 10))
convolution = gnn.HeteroConv(
    {
        ("user", "buys", "item"): gnn.SAGEConv((-1, -1), 4),
        ("item", "of", "user"): gnn.GATConv((-1, -1), 4, add_self_loops=False),
        ("user", "knows", "user"): gnn.GCNConv(-1, 4),
    }
)
for name, value in convolution(mixed.x_dict, mixed.edge_index_dict).items():
    show(f"HeteroConv.{name}", value)
for cls in (gnn.HGTConv, gnn.HANConv):
    made = cls({"user": 8, "item": 5}, 8, mixed.metadata(), heads=2)
    for name, value in made(mixed.x_dict, mixed.edge_index_dict).items():
        show(f"{cls.__name__}.{name}", value)
single = T.ToUndirected()(mixed).to_homogeneous(add_node_type=True)
show("to_homogeneous", single.edge_index)
show("HeteroDictLinear", gnn.HeteroDictLinear({"user": 8, "item": 5}, 3)(mixed.x_dict)["item"])
show("HeteroLinear", gnn.HeteroLinear(8, 3, 3)(x, y.clamp(max=2)))

# Explanations, splits, sampling.
torch.manual_seed(5)
explainer = Explainer(
    model=gnn.models.GCN(8, 16, 2, out_channels=4), algorithm=GNNExplainer(epochs=5), explanation_type="model",
    node_mask_type="attributes", edge_mask_type="object",
    model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
)  # fmt: skip
explanation = explainer(x, index, index=3)
show("explained.nodes", explanation.node_mask)
show("explained.edges", explanation.edge_mask)
torch.manual_seed(6)
split = T.RandomLinkSplit(is_undirected=True)(data)
show("split", [part.edge_index.size(1) for part in split])
show("node_split", T.RandomNodeSplit(num_val=4, num_test=4)(data).train_mask.float())
if pyg.typing.WITH_PYG_LIB or pyg.typing.WITH_TORCH_SPARSE:
    for part in NeighborLoader(data, [3, 2], batch_size=4):
        show("sampled", part.x)

torch.manual_seed(7)
show("MessagePassing", Weighted()(x, index, weight))
show("Sequential", in_sequence()(x, index))
