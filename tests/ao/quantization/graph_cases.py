"""Networks that are traced and quantized, for torchlite and for PyTorch (`tools/record_quantization.py`)."""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Callable
from typing import Any

ANSWERS = pathlib.Path(__file__).with_name("graph_answers.json")
NETWORKS: dict[str, Callable[[Any], Any]] = {}


def network(function: Callable) -> Callable:
    NETWORKS[function.__name__] = function
    return function


def module(torch: Any, forward: Callable, **layers: Any) -> Any:
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, layer in layers.items():
                setattr(self, name, layer)

        def forward(self, x):
            return forward(self, x)

    return Network()


def nodes(model: Any) -> list[str]:
    """The nodes of a graph as text: the kind, the name and the target of each."""
    named = [(node, getattr(node.target, "__name__", str(node.target))) for node in model.graph.nodes]
    return [f"{node.op} {node.name} {target.partition('.')[0]}" for node, target in named]


def layers(model: Any) -> list[str]:
    """The layers, and the class of each with its package."""
    kinds = [(name, type(part)) for name, part in model.named_modules() if name]
    packages = [kind.__module__.partition(".modules")[0].replace("torchlite", "torch") for _, kind in kinds]
    return [f"{name} {package}.{kind.__name__}" for (name, kind), package in zip(kinds, packages, strict=True)]


def quantized(torch: Any, model: Any, mapping: Any, data: list[Any], **options: Any) -> dict[str, Any]:
    """The graphs of a model with observers and after conversion, and the results of both forms of it."""
    import copy

    fx = torch.ao.quantization.quantize_fx
    prepared = fx.prepare_fx(model.eval(), mapping, (data[0],), **options)
    for x in data:
        prepared(x)
    observed = nodes(prepared)
    reference = fx.convert_to_reference_fx(copy.deepcopy(prepared))
    made = fx.convert_fx(prepared)
    return {
        "observed": observed, "reference": nodes(reference), "quantized": nodes(made), "layers": layers(made),
        "numbers": made(data[0]), "reference numbers": reference(data[0]),
    }  # fmt: skip


def answer(torch: Any, name: str) -> dict[str, Any]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = NETWORKS[name](torch)
    for key in ("numbers", "reference numbers"):
        if key in found:
            found[key] = found[key].detach().cpu().double().reshape(-1).tolist()
    return found


def default(torch: Any) -> Any:
    return torch.ao.quantization.get_default_qconfig_mapping("fbgemm")


@network
def residual_images(torch):
    nn = torch.nn
    model = module(
        torch, lambda m, x: m.head(m.pool(torch.relu(m.norm(m.second(m.relu(m.stem(x)))) + m.stem(x))).flatten(1)),
        stem=nn.Conv2d(3, 4, 3, padding=1), relu=nn.ReLU(), second=nn.Conv2d(4, 4, 3, padding=1),
        norm=nn.BatchNorm2d(4), pool=nn.AdaptiveAvgPool2d(1), head=nn.Linear(4, 5),
    )  # fmt: skip
    return quantized(torch, model, default(torch), [torch.randn(2, 3, 8, 8) for _ in range(3)])


@network
def depthwise_images(torch):
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.ReLU6(), nn.Conv2d(8, 8, 3, groups=8), nn.BatchNorm2d(8),
        nn.Hardswish(), nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3),
        nn.Sigmoid(),
    )  # fmt: skip
    return quantized(torch, model, default(torch), [torch.randn(2, 3, 8, 8) for _ in range(3)])


@network
def attention_of_matrices(torch):
    nn = torch.nn

    def forward(m, x):
        weights = m.softmax(torch.matmul(m.query(x), m.key(x).transpose(1, 2)))
        return m.norm(x + m.out(torch.matmul(weights, m.value(x))))

    model = module(
        torch, forward, query=nn.Linear(6, 6), key=nn.Linear(6, 6), value=nn.Linear(6, 6), out=nn.Linear(6, 6),
        softmax=nn.Softmax(-1), norm=nn.LayerNorm(6),
    )  # fmt: skip
    return quantized(torch, model, default(torch), [torch.randn(2, 4, 6) for _ in range(3)])


@network
def dynamic_layers(torch):
    nn, ao = torch.nn, torch.ao.quantization
    model = module(
        torch, lambda m, x: m.head(m.relu(m.body(m.memory(x)[0]))), memory=nn.LSTM(5, 6), body=nn.Linear(6, 6),
        relu=nn.ReLU(), head=nn.Linear(6, 2),
    )  # fmt: skip
    mapping = ao.QConfigMapping().set_global(ao.default_dynamic_qconfig)
    return quantized(torch, model, mapping, [torch.randn(3, 2, 5)])


@network
def rows_of_embeddings(torch):
    nn, ao = torch.nn, torch.ao.quantization
    model = module(torch, lambda m, x: m.head(m.rows(x)), rows=nn.Embedding(9, 4), head=nn.Linear(4, 2))
    mapping = ao.QConfigMapping().set_object_type(nn.Embedding, ao.float_qparams_weight_only_qconfig)
    return quantized(torch, model, mapping, [torch.tensor([[1, 4], [8, 0]])])


@network
def functions_of_parameters(torch):
    F, nn, geometry = torch.nn.functional, torch.nn, ((1, 1), (0, 0), (1, 1), 1)
    model = module(
        torch,
        lambda m, x: F.linear(F.relu(F.conv2d(x, m.kernel, m.shift, *geometry)).flatten(1), m.matrix, m.offset) * 2 + 1,
        kernel=nn.Parameter(torch.randn(4, 3, 3, 3)), shift=nn.Parameter(torch.randn(4)),
        matrix=nn.Parameter(torch.randn(5, 36)), offset=nn.Parameter(torch.randn(5)),
    )  # fmt: skip
    return quantized(torch, model, default(torch), [torch.randn(2, 3, 5, 5) for _ in range(3)])


@network
def left_out_by_name_type_and_order(torch):
    nn, ao = torch.nn, torch.ao.quantization
    model = module(
        torch, lambda m, x: torch.add(m.last(torch.add(m.first(x), x)), x), first=nn.Linear(3, 3), last=nn.Linear(3, 3)
    )
    mapping = default(torch).set_module_name("first", None).set_object_type(torch.mul, None)
    mapping.set_module_name_object_type_order("", torch.add, 1, None).set_module_name_regex("las.*", ao.default_qconfig)
    return quantized(torch, model, mapping, [torch.randn(4, 3) for _ in range(3)])


@network
def trained_with_rounded_weights(torch):
    nn, ao = torch.nn, torch.ao.quantization
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 2)).train()
    fx = ao.quantize_fx
    prepared = fx.prepare_qat_fx(model, ao.get_default_qat_qconfig_mapping("fbgemm"), (torch.randn(2, 2, 5, 5),))
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.01)
    data = [torch.randn(4, 2, 5, 5) for _ in range(3)]
    for x in data:
        optimizer.zero_grad()
        prepared(x).square().mean().backward()
        optimizer.step()
    observed = nodes(prepared)
    made = fx.convert_fx(prepared.eval())
    return {"observed": observed, "quantized": nodes(made), "layers": layers(made), "numbers": made(data[0])}
