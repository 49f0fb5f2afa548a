"""`torch.jit._get_trace_graph`: a run as a graph of operators, as tools that count them read it."""

import collections

import torchlite as torch

nn = torch.nn


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.ConvTranspose2d(4, 2, 2, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3),
    ).eval()  # fmt: skip


def test_operators_and_shapes(device):
    model, x = network().to(device), torch.randn(2, 3, 8, 8, device=device)
    graph, out = torch.jit._get_trace_graph(model, x)
    assert torch.equal(out, model(x))
    nodes = [node for node in graph.nodes() if not node.kind().startswith("prim::")]
    # PyTorch 2.13's for the same module.
    assert [node.kind() for node in nodes] == [
        "aten::_convolution", "aten::batch_norm", "aten::relu_", "aten::max_pool2d", "aten::_convolution",
        "aten::adaptive_avg_pool2d", "aten::flatten", "aten::linear",
    ]  # fmt: skip
    shapes = [node.output().type().sizes() for node in nodes]
    assert shapes[0] == [2, 4, 8, 8] and shapes[3] == [2, 4, 4, 4] and shapes[-1] == [2, 3]
    assert len(list(graph.inputs())) == 1 + len(model.state_dict())
    assert list(graph.outputs()) == [nodes[-1].output()]
    convolutions = [[value.toIValue() for value in node.inputs()] for node in nodes if "conv" in node.kind()]
    assert [(len(values), values[6], values[8]) for values in convolutions] == [(13, False, 1), (13, True, 1)]
    strides = list(nodes[4].inputs())[3].node()
    assert strides.kind() == "prim::ListConstruct" and [v.toIValue() for v in strides.inputs()] == [2, 2]
    assert "aten::linear" in str(graph) and nodes[0].inputsAt(0).uses() == [nodes[0]]


def test_scopes_that_hooks_push():
    def entered(name):
        def hook(module, inputs):
            torch._C._get_tracing_state().push_scope(name)

        return hook

    def left(module, inputs, output):
        torch._C._get_tracing_state().pop_scope()

    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
    for name, module in model.named_modules():
        module.register_forward_pre_hook(entered(name or "root"))
        module.register_forward_hook(left)
    graph, _ = torch.jit._get_trace_graph(model, (torch.ones(1, 2),))
    found = [(node.kind(), node.scopeName()) for node in graph.nodes() if node.kind().startswith("aten")]
    assert found == [("aten::linear", "root/0"), ("aten::relu", "root/1/1.0"), ("aten::linear", "root/1/1.1")]
    assert torch._C._get_tracing_state() is None


def test_lists_tuples_and_constants():
    held = torch.tensor([1.0, 2.0])

    def f(x, pair):
        first, second = torch.chunk(x, 2, 1)
        return torch.cat([first, second, pair[0] * held], 1).to(torch.float64).softmax(-1)

    graph, out, given = torch.jit._get_trace_graph(f, (torch.ones(2, 4), (torch.ones(2, 2),)), return_inputs=True)
    assert out.shape == (2, 6) and len(given) == 2
    count = collections.Counter(node.kind() for node in graph.nodes())
    assert count["aten::chunk"] == count["aten::cat"] == count["aten::mul"] == count["aten::softmax"] == 1
    (chunk,) = graph.findAllNodes("aten::chunk")
    assert chunk.outputsSize() == 2 and [v.type().sizes() for v in chunk.outputs()] == [[2, 2], [2, 2]]
    constants = [node for node in graph.nodes() if node.hasAttribute("value") and node.kindOf("value") == "t"]
    assert [node.t("value").tolist() for node in constants] == [[1.0, 2.0]]
    kind = graph.findNode("aten::softmax").output().type()
    assert kind.dtype() is torch.float64 and kind.scalarType() == "Double" and kind.kind() == "TensorType"
    assert str(kind) == "Double(2, 6, strides=[6, 1], requires_grad=0, device=cpu)"


def test_grad_mode_and_buffers_that_move():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            with torch.no_grad():
                scale = x.abs().amax()
            return self.norm(x) / scale

    model = Net()
    graph, out = torch.jit._get_trace_graph(model, torch.randn(4, 3))
    kinds = [node.kind() for node in graph.nodes() if node.kind().startswith("aten")]
    assert kinds[:2] == ["aten::abs", "aten::amax"] and kinds[-1] == "aten::div" and "aten::batch_norm" in kinds
    assert out.requires_grad and type(model.norm.weight) is nn.Parameter
