"""Programs that prune, for torchlite and for PyTorch (`tools/record_quantization.py`)."""

from __future__ import annotations

import itertools
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

from tests.ao.quantization.cases import named, refused, wave

ANSWERS = pathlib.Path(__file__).with_name("answers.json")
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable) -> Callable:
    PROGRAMS[function.__name__] = function
    return function


def _layers(torch: Any, *sizes: int) -> Any:
    model = torch.nn.Sequential(*(torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)))
    for number, parameter in enumerate(model.parameters()):
        parameter.data = wave(torch, *parameter.shape, step=0.37 + 0.11 * number)
    return model


def _masks(model: Any) -> Any:
    return [layer.parametrizations.weight[0].mask for layer in model]


@program
def weight_norms(torch: Any) -> Any:
    found = []
    for options in (
        {}, {"sparsity_level": 0.3}, {"sparse_block_shape": (2, 2)}, {"zeros_per_block": 2}, {"norm": 1},
        {"sparsity_level": 1.0}, {"sparsity_level": 0.0}, {"sparse_block_shape": (4, 1), "zeros_per_block": 1},
        {"sparsity_level": 1.0, "zeros_per_block": 2}, {"sparse_block_shape": (1, 1), "sparsity_level": 0.8},
    ):  # fmt: skip
        model = _layers(torch, 8, 4, 12)
        sparsifier = torch.ao.pruning.WeightNormSparsifier(**options)
        sparsifier.prepare(model, None)
        sparsifier.step()
        found.append([mask.float() for mask in _masks(model)])
    model = _layers(torch, 7, 5)
    sparsifier = torch.ao.pruning.WeightNormSparsifier(norm=lambda weight: -weight)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight", "sparsity_level": 0.4}])
    sparsifier.step()
    return [found, _masks(model), refused(torch.ao.pruning.WeightNormSparsifier, norm=3)]


@program
def bands(torch: Any) -> Any:
    found = []
    for width in (-1, 0, 1, 3, 5, 7, 4):
        model = _layers(torch, 5, 3)
        sparsifier = torch.ao.pruning.NearlyDiagonalSparsifier(width)
        sparsifier.prepare(model, None)
        error = refused(sparsifier.step)
        found.append([error, None if error != "accepted" else model[0].weight != 0])
    return found


@program
def states(torch: Any) -> Any:
    pruning = torch.ao.pruning
    model, sparsifier = _layers(torch, 8, 4, 4), pruning.WeightNormSparsifier(0.5)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "1.weight", "sparsity_level": 0.25}])
    sparsifier.step()
    state = sparsifier.state_dict()
    shown = repr(sparsifier)
    other_model, other = _layers(torch, 8, 4, 4), pruning.WeightNormSparsifier(0.1)
    other.prepare(other_model, None)
    other.load_state_dict(
        {"state": {key: dict(value) for key, value in state["state"].items()}, "groups": state["groups"]}
    )
    loaded = [other_model[0].weight == model[0].weight, sorted(other.state), [sorted(group) for group in other.groups]]
    sparsifier.squash_mask(params_to_keep=("sparsity_level",), params_to_keep_per_layer={"0": ("sparse_block_shape",)})
    return [
        sorted(state), [sorted(group) for group in state["groups"]], shown, loaded,
        [layer.sparse_params for layer in model], [hasattr(layer, "parametrizations") for layer in model],
        sorted(sparsifier.__getstate__()),
    ]  # fmt: skip


@program
def errors(torch: Any) -> Any:
    pruning = torch.ao.pruning
    model = _layers(torch, 4, 4)

    def prepare(config: Any) -> str:
        return refused(pruning.WeightNormSparsifier().prepare, _layers(torch, 4, 4), config)

    def step(**options: Any) -> str:
        sparsifier = pruning.WeightNormSparsifier(**options)
        sparsifier.prepare(_layers(torch, 4, 4), None)
        return refused(sparsifier.step)

    return [
        prepare([model[0]]), prepare([{"sparsity_level": 0.5}]), prepare([{"tensor_fqn": "0.weight", "module": model}]),
        prepare([{"tensor_fqn": "0.weight", "tensor_name": "bias"}]), prepare([{"tensor_fqn": ".0.weight"}]),
        step(zeros_per_block=5), step(zeros_per_block=-1),
        refused(pruning.FakeSparsity(torch.ones(2)), torch.ones(3)),
        refused(pruning.WeightNormSparsifier().convert, model), refused(pruning.LambdaSL, model, lambda step: step),
        pruning.module_to_fqn(model, torch.nn.ReLU()), pruning.module_to_fqn(model, model),
        pruning.fqn_to_module(model, "0.absent"), pruning.fqn_to_module(model, "0.bias"),
        pruning.get_arg_info_from_tensor_fqn(model, "weight")["module_fqn"],
    ]  # fmt: skip


@program
def schedulers(torch: Any) -> Any:
    pruning, found = torch.ao.pruning, []

    def run(make: Callable, steps: int = 6, order: bool = True) -> None:
        sparsifier = pruning.WeightNormSparsifier(0.8)
        sparsifier.prepare(_layers(torch, 4, 4, 4), None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scheduler = make(sparsifier)
            levels = [scheduler.get_last_sl()]
            for _ in range(steps):
                if order:
                    sparsifier.step()
                scheduler.step()
                levels.append(scheduler.get_last_sl())
        state = {key: value for key, value in scheduler.state_dict().items() if "lambda" not in key}
        found.append([levels, state, [str(item.message) for item in caught], sparsifier._step_count, repr(scheduler)])

    run(lambda sparsifier: pruning.LambdaSL(sparsifier, lambda step: step / 10))
    run(lambda sparsifier: pruning.LambdaSL(sparsifier, [lambda step: step, lambda step: 0.5]), order=False)
    run(lambda sparsifier: pruning.CubicSL(sparsifier, init_sl=0.1, init_t=2, delta_t=1, total_t=4))
    run(lambda sparsifier: pruning.CubicSL(sparsifier, init_t=[1, 2], delta_t=2, total_t=2, initially_zero=True))
    sparsifier = pruning.WeightNormSparsifier()
    sparsifier.prepare(_layers(torch, 4, 4), None)
    return [
        found, refused(pruning.CubicSL, sparsifier, init_sl=[0.1, 0.2]),
        refused(pruning.LambdaSL, sparsifier, [abs, abs]), refused(pruning.BaseScheduler, sparsifier),
    ]  # fmt: skip


@program
def data(torch: Any) -> Any:
    BaseDataScheduler = named(torch, "ao.pruning._experimental.data_scheduler", "BaseDataScheduler")
    DataNormSparsifier = named(torch, "ao.pruning._experimental.data_sparsifier", "DataNormSparsifier")

    found = []
    for options in ({}, {"norm": "L2", "sparse_block_shape": (2, 3)}, {"zeros_per_block": 1, "sparsity_level": 0.9}):
        sparsifier = DataNormSparsifier([("a", wave(torch, 6, 8)), ("b", torch.nn.Embedding(4, 4))], **options)
        sparsifier.add_data("c", wave(torch, 2, 5, step=0.3), sparsity_level=0.2)
        sparsifier.step()
        found.append([sparsifier.get_mask("a"), sparsifier.get_mask("c"), sparsifier.get_data("a", False) != 0])

    class Growing(BaseDataScheduler):
        def get_schedule_param(self):
            return {name: value * self.last_epoch / 4 for name, value in self.base_param.items()}

    scheduler, levels = Growing(sparsifier, "sparsity_level"), []
    for _ in range(3):
        sparsifier.step()
        scheduler.step()
        levels.append(scheduler.get_last_param())
    state = sparsifier.state_dict()
    shown = [
        repr(sparsifier),
        repr(scheduler).count("sparsity_level"),
        sorted(state),
        state["state"]["a"]["mask"].layout,
    ]
    other = DataNormSparsifier()
    other.load_state_dict(state)
    same = other.get_data("a", False) == sparsifier.get_data("a", False)
    sparsifier.squash_mask(names=["a"])
    return [
        found, levels, shown, same, refused(sparsifier.get_data, "a"), refused(sparsifier.get_data, "z"),
        refused(sparsifier.get_mask, "z"), refused(sparsifier.add_data, "d", [1]),
        refused(DataNormSparsifier, norm="L3"),
        refused(sparsifier.add_data, "b", torch.ones(2, 2)), refused(sparsifier.prepare, None, None),
        refused(BaseDataScheduler, torch, "sparsity_level"),
    ]  # fmt: skip


@program
def activations(torch: Any) -> Any:
    ActivationSparsifier = named(
        torch, "ao.pruning._experimental.activation_sparsifier.activation_sparsifier", "ActivationSparsifier"
    )

    def mask(data: Any, share: float) -> Any:
        kept = torch.ones_like(data).flatten()
        kept[data.abs().flatten().argsort()[: round(share * data.numel())]] = 0
        return kept.reshape(data.shape)

    model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
    sparsifier = ActivationSparsifier(model, lambda a, b: a + b, lambda data: data.mean(0), mask, share=0.5)
    sparsifier.register_layer(model[0])
    sparsifier.register_layer(model[1], features=[0, 2], feature_dim=1, share=0.25)
    unknown = [refused(sparsifier.get_mask, "0"), refused(sparsifier.get_mask, "z"), refused(sparsifier.get_mask)]
    for number in range(3):
        model(wave(torch, 2, 4, 3, step=0.4 + number))
    collected = sparsifier.data_groups["0"]["data"]
    sparsifier.step()
    state = sparsifier.state_dict()
    shown = [sorted(state), sorted(state["data_groups"]["1"]), repr(sparsifier).count("features")]
    sparsifier.squash_mask()
    return [
        unknown, collected, sparsifier.get_mask("0"), sparsifier.get_mask(layer=model[1]), shown,
        model(wave(torch, 2, 4, 3)), refused(sparsifier.register_layer, torch.nn.ReLU()),
        refused(ActivationSparsifier(model).register_layer, model[0]),
    ]  # fmt: skip


@program
def channels(torch: Any) -> Any:
    FPGMPruner, LSTMSaliencyPruner, SaliencyPruner = named(
        torch, "ao.pruning._experimental.pruner", "FPGMPruner LSTMSaliencyPruner SaliencyPruner"
    )

    nn, found = torch.nn, []

    def run(pruner: Any, model: Any, x: Any, config: Any) -> None:
        for number, parameter in enumerate(model.parameters()):
            parameter.data = wave(torch, *parameter.shape, step=0.37 + 0.11 * number, size=0.5)
        pruner.prepare(model, config)
        pruner.step()
        masked = model(x)
        pruned = pruner.prune()
        out = pruned(x)
        shapes = {name: list(value.shape) for name, value in pruned.named_parameters()}
        found.append([masked, out, shapes, type(pruned).__name__.startswith("GraphModule")])

    def entry(name: str, share: float = 0.5, **options: Any) -> dict[str, Any]:
        return {"tensor_fqn": name, "sparsity_level": share, **options}

    linear = lambda: nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4), nn.Linear(4, 2))
    for options in ({}, {"prune_bias": False}):
        both = [entry("0.weight", **options), entry("2.weight", **options)]
        run(SaliencyPruner({}), linear(), wave(torch, 5, 3), both)
        run(FPGMPruner(0.34), linear(), wave(torch, 5, 3), [{"tensor_fqn": "0.weight", **options}])
        for padding in (0, 1):
            convs = nn.Sequential(
                nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Conv2d(4, 3, 3, padding=padding), nn.AdaptiveAvgPool2d(2),
                nn.Flatten(), nn.Linear(12, 2),
            )  # fmt: skip
            names = [entry("0.weight", **options), entry("2.weight", 0.34, **options)]
            run(SaliencyPruner({}), convs, wave(torch, 2, 1, 7, 7), names)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.norm, self.linear = nn.LSTM(3, 4, 2), nn.LayerNorm(4), nn.Linear(4, 2)

        def forward(self, x):
            out, _ = self.lstm(x)
            return self.linear(self.norm(out))

    names = [entry(f"lstm.weight_{kind}_l{layer}") for kind in ("ih", "hh") for layer in (0, 1)]
    run(LSTMSaliencyPruner({}), Recurrent(), wave(torch, 2, 1, 3), names)
    return found


@program
def sparse_quantized_layers(torch: Any) -> Any:
    sparse, found = torch.ops.sparse, []
    weight = wave(torch, 5, 10) * (torch.arange(50) % 7 < 4).reshape(5, 10)
    scales, zeros = torch.arange(1, 6) * 0.02, torch.zeros(5, dtype=torch.int32)
    x = wave(torch, 3, 10, step=0.21)
    before = torch.backends.quantized.engine
    try:
        for engine in ("fbgemm", "qnnpack"):
            torch.backends.quantized.engine = engine
            for quantized in (
                torch.quantize_per_tensor(weight, 0.05, 0, torch.qint8),
                torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8),
            ):
                packed = sparse.qlinear_prepack(quantized, wave(torch, 5), 1, 4)
                state = packed.__getstate__()
                parts = [value.tolist() if hasattr(value, "tolist") else value for value in state[0]]
                unpacked = sparse.qlinear_unpack(packed)
                found.append([parts, state[1], unpacked[0].int_repr(), unpacked[1], unpacked[2]])
                if engine == "qnnpack":
                    found.append(sparse.qlinear_dynamic(x, packed))
                else:
                    levels = torch.quantize_per_tensor(x, 0.05, 64, torch.quint8)  # 7 bits: sums of 16 bits hold
                    found.append(sparse.qlinear(levels, packed, 0.1, 120).int_repr())
                    found.append(sparse.qlinear_relu(levels, packed, 0.1, 120).int_repr())
        torch.backends.quantized.engine = "fbgemm"
        layer = torch.ao.nn.sparse.quantized.Linear(10, 5, 1, 4)
        layer.set_weight_bias(quantized, None, 1, 4)
        found.append([repr(layer), sorted(layer.state_dict()), layer._weight_bias()[2:]])
    finally:
        torch.backends.quantized.engine = before
    return found
