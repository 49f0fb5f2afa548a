"""bitsandbytes, optimum-quanto, GGUF files: weights of eight, four and two bits, in layers, files and transformers."""

import io
import tempfile
from importlib import import_module

import bitsandbytes as bnb
import gguf
import torch
from bitsandbytes import functional as BF
from optimum.quanto import Calibration, freeze, qint2, qint4, qint8, quantization_map, requantize
from show import show
from torch import nn
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

quantize = import_module("optimum.quanto.quantize").quantize  # the package has a module of the same name
x = torch.linspace(-1, 1, 5 * 128).reshape(5, 128).sin()

# -- bitsandbytes
for size in (64, 256):
    codes, state = BF.quantize_blockwise(x, blocksize=size)
    show(f"blocks.{size}", codes.float())
    show(f"blocks.{size}.back", BF.dequantize_blockwise(codes, state))
for kind in ("nf4", "fp4"):
    for compressed in (False, True):
        codes, state = BF.quantize_4bit(x, blocksize=64, quant_type=kind, compress_statistics=compressed)
        show(f"{kind}.{compressed}", BF.dequantize_4bit(codes, state))
    torch.manual_seed(0)
    layer = bnb.nn.Linear4bit(128, 32, quant_type=kind, compute_dtype=torch.float32).to("cpu")
    given = x.clone().requires_grad_()
    out = layer(given)
    out.sum().backward()
    show(f"{kind}.layer", out)
    show(f"{kind}.gradient", given.grad)
torch.manual_seed(0)
layer = bnb.nn.Linear8bitLt(128, 32, has_fp16_weights=False, threshold=6.0).to("cpu")
show("int8.layer", layer(x))

# -- optimum-quanto
for name, weights, activations in (("qint8", qint8, qint8), ("qint4", qint4, None), ("qint2", qint2, None)):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 32))
    quantize(net, weights=weights, activations=activations)
    if activations is not None:
        with Calibration():
            net(x)
    freeze(net)
    show(name, net(x).dequantize() if activations is not None else net(x))
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    again = nn.Sequential(nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 32))
    requantize(again, torch.load(file, weights_only=False), quantization_map(net))
    show(f"{name}.weight", again[0].weight.dequantize())

# -- files of GGUF
config = LlamaConfig(
    vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4, rms_norm_eps=1e-6
)
torch.manual_seed(0)
state = LlamaForCausalLM(config).state_dict()
names = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    for kind in ("Q8_0", "Q4_0", "Q5_1"):
        writer, dtype = gguf.GGUFWriter(f"{folder}/{kind}.gguf", "llama"), getattr(gguf.GGMLQuantizationType, kind)
        for key, value in {
            "context_length": 128, "embedding_length": 64, "block_count": 1, "feed_forward_length": 128,
            "head_count": 4, "head_count_kv": 4, "layer_norm_rms_eps": 1e-6, "rope_freq_base": 10000.0,
            "rope_dimension_count": 16, "vocab_size": 64, "tokenizer_model": "llama", "bos_token_id": 1,
            "token_list": [f"t{i}" for i in range(64)], "token_scores": [0.0] * 64, "token_types": [1] * 64,
        }.items():  # fmt: skip
            getattr(writer, f"add_{key}")(value)
        for key, value in state.items():
            layer = key.removesuffix(".weight").removeprefix("model.layers.0.")
            place = (
                names[layer] if key.startswith(("model.embed", "model.norm", "lm_head")) else f"blk.0.{names[layer]}"
            )
            if value.ndim == 2:
                writer.add_tensor(f"{place}.weight", gguf.quants.quantize(value.numpy(), dtype), raw_dtype=dtype)
            else:
                writer.add_tensor(f"{place}.weight", value.numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        found = AutoModelForCausalLM.from_pretrained(folder, gguf_file=f"{kind}.gguf", dtype=torch.float32)
        with torch.no_grad():
            show(f"gguf.{kind}", found(torch.tensor([[1, 5, 9, 33]])).logits)
