"""torchao: weights and activations of eight bits, of few bits and of float8, in layers, files and transformers."""

import copy
import io
import tempfile

import torch
from show import gradients, show
from torch import nn
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerAxis,
    PerGroup,
    PerTensor,
    quantize_,
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
from torchao.quantization.qat import IntxFakeQuantizeConfig, QATConfig
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, TorchAoConfig


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32, bias=False))


x = torch.linspace(-1, 1, 5 * 64).reshape(5, 64).sin()
configs = {
    "int8.weights": Int8WeightOnlyConfig(version=2),
    "int8.both": Int8DynamicActivationInt8WeightConfig(version=2),
    "int8.tensor": Int8DynamicActivationInt8WeightConfig(version=2, granularity=PerTensor()),
    "int4.groups": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
    "int3.rows": IntxWeightOnlyConfig(weight_dtype=torch.int3, granularity=PerAxis(0)),
    "int8.int4": Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)),
    "float8.weights": Float8WeightOnlyConfig(),
}
for name, config in configs.items():
    net = network()
    quantize_(net, config)
    show(name, net(x))
    show(f"{name}.weight", net[0].weight.dequantize())
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    again = network()
    again.load_state_dict(torch.load(file), assign=True)
    show(f"{name}.loaded", again(x))

base = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32))
weights = IntxFakeQuantizeConfig(torch.int4, group_size=32)
for name, prepared in {
    "base": QATConfig(base, step="prepare"),
    "weights": QATConfig(weight_config=weights, step="prepare"),
}.items():
    net = network()
    quantize_(net, prepared)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    show(f"qat.{name}", torch.stack([loss, *gradients(net)]))
    if name == "base":
        quantize_(net, QATConfig(base, step="convert"))
        show("qat.converted", net(x))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1)

    def forward(self, images):
        hidden = torch.relu(self.norm(self.first(images)))
        return (self.second(hidden) + hidden).mean((2, 3))


images = torch.linspace(0, 9, 2 * 3 * 64).reshape(2, 3, 8, 8).cos()
for name, prepare in {"static": prepare_pt2e, "qat": prepare_qat_pt2e}.items():
    torch.manual_seed(0)
    net = Convolutions().train(name == "qat")
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_qat=name == "qat"))
    net = prepare(torch.export.export(net, (images,)).module(), quantizer)
    net(images)
    net = convert_pt2e(net)
    show(f"pt2e.{name}", net(images))
    show(f"pt2e.{name}.calls", sum("quantize" in str(node.target) for node in net.graph.nodes))

torch.manual_seed(0)
llama = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2,
    )
).eval()  # fmt: skip
ids = torch.tensor([[1, 5, 9, 33, 77, 120]])
with tempfile.TemporaryDirectory() as folder:
    llama.save_pretrained(folder)
    for name in ("int8.weights", "int4.groups"):
        chosen = TorchAoConfig(copy.deepcopy(configs[name]))
        found = AutoModelForCausalLM.from_pretrained(folder, quantization_config=chosen)
        with torch.no_grad():
            show(f"llama.{name}", found(ids).logits)
        tokens = found.generate(ids, max_new_tokens=8, do_sample=False, pad_token_id=0)
        for row in tokens[0, 6:].split(4):
            show(f"llama.{name}.tokens", row)
        found.save_pretrained(f"{folder}/{name}")
        with torch.no_grad():
            show(f"llama.{name}.loaded", AutoModelForCausalLM.from_pretrained(f"{folder}/{name}")(ids).logits)
