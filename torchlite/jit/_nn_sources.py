"""TorchScript sources of `torch.nn` layers and functions, for saved files. Layer settings are filled in as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._types.python_source import quote

_INPUT_PARAMETER = "input: Tensor"


def _repeat_value(value: Any, count: int) -> str:
    return str(list(value) if isinstance(value, (tuple, list)) else [value] * count)


def _expression_layer(
    line: str, parameters: str = _INPUT_PARAMETER, result: str = "Tensor"
) -> Callable[[Any], tuple[str, str, str]]:
    """Return the source of a layer with a single expression; settings are in braces."""
    return lambda m: (parameters, f"return {line.format(m=m)}", result)


def _activation_source(name: str, line: str) -> Callable:
    def text(m: Any) -> tuple[str, str, str]:
        inside = getattr(m, "inplace", False)
        return _INPUT_PARAMETER, "return " + line.format(m=m, name=name + "_" * bool(inside)), "Tensor"

    return text


def _convolution_source(dims: int) -> Callable:
    def text(m: Any) -> tuple[str, str, str]:
        same = repr(m.padding) if isinstance(m.padding, str) else _repeat_value(m.padding, dims)
        rest = f"{_repeat_value(m.stride, dims)}, {same}, {_repeat_value(m.dilation, dims)}, {m.groups}"
        given, lines = "input", ""
        if m.padding_mode != "zeros":
            lines = f"input = torch.pad(input, {list(m._reversed_padding_repeated_twice)}, {quote(m.padding_mode)})\n"
            rest = f"{_repeat_value(m.stride, dims)}, {[0] * dims}, {_repeat_value(m.dilation, dims)}, {m.groups}"
        return _INPUT_PARAMETER, f"{lines}return torch.conv{dims}d({given}, self.weight, self.bias, {rest})", "Tensor"

    return text


def _conv_transpose_source(dims: int) -> Callable:
    def text(m: Any) -> tuple[str, str, str]:
        stride, padding, output_padding, dilation = (
            _repeat_value(value, dims) for value in (m.stride, m.padding, m.output_padding, m.dilation)
        )
        rest = f"{stride}, {padding}, {output_padding}, {m.groups}, {dilation}"
        line = f"return torch.conv_transpose{dims}d(input, self.weight, self.bias, {rest})"
        return "input: Tensor, output_size: Optional[List[int]]=None", line, "Tensor"

    return text


def _batch_norm(m: Any) -> tuple[str, str, str]:
    if not m.track_running_stats:
        line = (
            f"return torch.batch_norm(input, self.weight, self.bias, None, None, True, {m.momentum or 0.0}, "
            f"{m.eps}, True)"
        )
        return _INPUT_PARAMETER, line, "Tensor"
    factor = repr(float(m.momentum)) if m.momentum is not None else "1.0 / float(self.num_batches_tracked)"
    return (
        _INPUT_PARAMETER,
        "if self.training:\n  torch.add_(self.num_batches_tracked, 1)\nelse:\n  pass\n"
        f"return torch.batch_norm(input, self.weight, self.bias, self.running_mean, self.running_var, self.training, "
        f"{factor}, {m.eps}, True)",
        "Tensor",
    )


def _instance_norm_source(m: Any) -> tuple[str, str, str]:
    tracked = m.track_running_stats
    mean, var = ("self.running_mean", "self.running_var") if tracked else ("None", "None")
    use = "self.training" if tracked else "True"
    line = (
        f"return torch.instance_norm(input, self.weight, self.bias, {mean}, {var}, {use}, {m.momentum}, {m.eps}, True)"
    )
    return _INPUT_PARAMETER, line, "Tensor"


def _pool_source(name: str, dims: int) -> Callable:
    def text(m: Any) -> tuple[str, str, str]:
        kernel = _repeat_value(m.kernel_size, dims)
        stride = kernel if m.stride is None else _repeat_value(m.stride, dims)
        padding = _repeat_value(m.padding, dims)
        if name == "max_pool":
            indices = f"_pool{dims}d" if not m.return_indices else f"_pool{dims}d_with_indices"
            rest = f"{kernel}, {stride}, {padding}, {_repeat_value(m.dilation, dims)}, {m.ceil_mode}"
            return (
                _INPUT_PARAMETER,
                f"return torch.max{indices}(input, {rest})",
                "Tuple[Tensor, Tensor]" if m.return_indices else "Tensor",
            )
        rest = f"{kernel}, {stride}, {padding}, {m.ceil_mode}, {m.count_include_pad}"
        rest += f", {m.divisor_override}" if dims > 1 else ""
        return _INPUT_PARAMETER, f"return torch.avg_pool{dims}d(input, {rest})", "Tensor"

    return text


def _adaptive_pool_source(name: str, dims: int) -> Callable:
    def text(m: Any) -> tuple[str, str, str]:
        sizes = m.output_size if isinstance(m.output_size, (tuple, list)) else [m.output_size] * dims
        shown = ", ".join(f"torch.size(input, {i - dims})" if s is None else str(s) for i, s in enumerate(sizes))
        first = "" if name == "avg" or getattr(m, "return_indices", False) else "[0]"
        kind = "Tuple[Tensor, Tensor]" if name == "max" and not first else "Tensor"
        return _INPUT_PARAMETER, f"return torch.adaptive_{name}_pool{dims}d(input, [{shown}]){first}", kind

    return text


def _dropout_source(name: str) -> Callable:
    def text(m: Any) -> tuple[str, str, str]:
        return (
            _INPUT_PARAMETER,
            f"return torch.{name}{'_' * bool(m.inplace)}(input, {float(m.p)}, self.training)",
            "Tensor",
        )

    return text


def _softmax_source(name: str) -> Callable:
    return lambda m: (_INPUT_PARAMETER, f"return torch.{name}(input, {m.dim}, None)", "Tensor")


def _embedding_source(m: Any) -> tuple[str, str, str]:
    place = -1 if m.padding_idx is None else m.padding_idx
    line = f"return torch.embedding(self.weight, input, {place}, {m.scale_grad_by_freq}, {m.sparse})"
    return _INPUT_PARAMETER, line, "Tensor"


_BAG = (
    "if torch.dim(input) == 2:\n  offsets = torch.arange(0, torch.numel(input), torch.size(input, 1), dtype=4, "
    "layout=None, device=input.device)\n  input = torch.reshape(input, [-1])\n"
    "  if per_sample_weights is not None:\n    per_sample_weights = torch.reshape(per_sample_weights, [-1])\n"
    "assert offsets is not None\n"
)


def _embedding_bag_source(m: Any) -> tuple[str, str, str]:
    mode = {"sum": 0, "mean": 1, "max": 2}[m.mode]
    rest = f"{m.scale_grad_by_freq}, {mode}, {m.sparse}, per_sample_weights, {m.include_last_offset}, {m.padding_idx}"
    return (
        "input: Tensor, offsets: Optional[Tensor]=None, per_sample_weights: Optional[Tensor]=None",
        f"{_BAG}return torch.embedding_bag(self.weight, input, offsets, {rest})[0]",
        "Tensor",
    )


def _upsample_source(m: Any) -> tuple[str, str, str]:
    size = "None" if m.size is None else str(list(m.size) if isinstance(m.size, (tuple, list)) else m.size)
    factor = m.scale_factor
    dims = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(m.mode)
    lines = []
    for d in (1, 2, 3) if dims is None else (dims,):
        sizes = size if size == "None" or "[" in size else str([m.size] * d)
        given = list(factor) if isinstance(factor, (tuple, list)) else [factor] * d
        factors = "None" if factor is None or size != "None" else str([float(f) for f in given])
        if dims is None and ("[" in sizes and len(format_list_items(sizes)) != d):
            continue
        near = m.mode.startswith("nearest")
        name = {"nearest": "upsample_nearest", "nearest-exact": "_upsample_nearest_exact"}.get(
            m.mode, f"upsample_{m.mode}"
        )
        corners = "" if near else f"{bool(m.align_corners)}, "
        lines.append((d, f"return torch.{name}{d}d(input, {sizes}, {corners}{factors})"))
    if len(lines) == 1:
        return _INPUT_PARAMETER, lines[0][1], "Tensor"
    text = "".join(f"if torch.dim(input) == {d + 2}:\n  {line}\n" for d, line in lines[:-1]) + lines[-1][1]
    return _INPUT_PARAMETER, text, "Tensor"


def format_list_items(text: str) -> list:
    """Return the items of a number list as text."""
    return [part for part in text.strip("[]").split(",") if part.strip()]


def _flatten_source(m: Any) -> tuple[str, str, str]:
    return _INPUT_PARAMETER, f"return torch.flatten(input, {m.start_dim}, {m.end_dim})", "Tensor"


def _sequential_source(m: Any) -> tuple[str, str, str]:
    lines = "".join(f"input = getattr(self, {quote(name)}).forward(input)\n" for name in m._modules)
    return _INPUT_PARAMETER, f"{lines}return input", "Tensor"


def _recurrent_source(m: Any) -> tuple[str, str, str]:
    kind = m.mode.lower()
    cells = kind == "lstm"
    directions = 2 if m.bidirectional else 1
    place = 0 if m.batch_first else 1
    weights = ", ".join(f"self.{name}" for name in m._flat_weights_names)
    rest = (
        f"[{weights}], {m.bias}, {m.num_layers}, {float(m.dropout)}, self.training, {m.bidirectional}, {m.batch_first}"
    )
    hidden = m.proj_size or m.hidden_size
    zeros = (
        "torch.zeros([{n}, torch.size(input, {p}), {h}], dtype=ops.prim.dtype(input), layout=None, device=input.device)"
    )
    first = zeros.format(n=m.num_layers * directions, p=place, h=hidden)
    second = zeros.format(n=m.num_layers * directions, p=place, h=m.hidden_size)
    state = "Tuple[Tensor, Tensor]" if cells else "Tensor"
    fresh = f"({first}, {second})" if cells else first
    wide = "(torch.unsqueeze(hx[0], 1), torch.unsqueeze(hx[1], 1))" if cells else "torch.unsqueeze(hx, 1)"
    lines = [
        "batched = torch.dim(input) == 3",
        "if not batched:",
        f"  input = torch.unsqueeze(input, {place})",
        f"if hx is None:\n  state = {fresh}\nelse:\n  if batched:\n    state = hx\n  else:\n    state = {wide}",
    ]
    if cells:
        lines += [
            f"output, h, c = torch.lstm(input, [state[0], state[1]], {rest})",
            f"if not batched:\n  return (torch.squeeze(output, {place}), (torch.squeeze(h, 1), torch.squeeze(c, 1)))",
            "return (output, (h, c))",
        ]
    else:
        lines += [
            f"output, h = torch.{kind}(input, state, {rest})",
            f"if not batched:\n  return (torch.squeeze(output, {place}), torch.squeeze(h, 1))",
            "return (output, h)",
        ]
    return f"input: Tensor, hx: Optional[{state}]=None", "\n".join(lines), f"Tuple[Tensor, {state}]"


def _cell_source(m: Any) -> tuple[str, str, str]:
    name = type(m).__name__
    weights = "self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh"
    size = f"[torch.size(input, 0), {m.hidden_size}]"
    zeros = f"torch.zeros({size}, dtype=ops.prim.dtype(input), layout=None, device=input.device)"
    if name == "LSTMCell":
        lines = f"if hx is None:\n  zeros = {zeros}\n  state = (zeros, zeros)\nelse:\n  state = hx\n"
        lines += f"return torch.lstm_cell(input, [state[0], state[1]], {weights})"
        return "input: Tensor, hx: Optional[Tuple[Tensor, Tensor]]=None", lines, "Tuple[Tensor, Tensor]"
    call = "gru_cell" if name == "GRUCell" else f"rnn_{m.nonlinearity}_cell"
    lines = f"if hx is None:\n  state = {zeros}\nelse:\n  state = hx\nreturn torch.{call}(input, state, {weights})"
    return "input: Tensor, hx: Optional[Tensor]=None", lines, "Tensor"


def _attention_source(m: Any) -> tuple[str, str, str]:
    heads, size, width = m.num_heads, m.head_dim, m.embed_dim
    if m.bias_k is not None or m.add_zero_attn:
        raise NotImplementedError("MultiheadAttention with bias_k or add_zero_attn")
    turn = (
        "query = torch.transpose(query, 0, 1)\n  key = torch.transpose(key, 0, 1)\n  value = "
        "torch.transpose(value, 0, 1)"
    )
    lines = [
        "batched = torch.dim(query) == 3",
        "if not batched:\n  query = torch.unsqueeze(query, 0)\n  key = torch.unsqueeze(key, 0)\n"
        "  value = torch.unsqueeze(value, 0)\n  if key_padding_mask is not None:\n"
        "    key_padding_mask = torch.unsqueeze(key_padding_mask, 0)",
    ]
    if not m.batch_first:
        lines.append(f"if batched:\n  {turn}")
    if m._qkv_same_embed_dim:
        weights = [f"torch.slice(self.in_proj_weight, 0, {i * width}, {(i + 1) * width}, 1)" for i in range(3)]
    else:
        weights = ["self.q_proj_weight", "self.k_proj_weight", "self.v_proj_weight"]
    for i, (name, weight) in enumerate(zip(("query", "key", "value"), weights, strict=True)):
        bias = (
            "None"
            if m.in_proj_bias is None
            else f"torch.slice(self.in_proj_bias, 0, {i * width}, {(i + 1) * width}, 1)"
        )
        shape = f"[torch.size({name}, 0), torch.size({name}, 1), {heads}, {size}]"
        lines.append(f"{name[0]} = torch.transpose(torch.view(torch.linear({name}, {weight}, {bias}), {shape}), 1, 2)")
    lines += [
        f"scores = torch.matmul(torch.mul(q, {size**-0.5!r}), torch.transpose(k, -2, -1))",
        "if attn_mask is not None:\n  if torch.dim(attn_mask) == 3:\n"
        f"    attn_mask = torch.view(attn_mask, [-1, {heads}, torch.size(attn_mask, 1), torch.size(attn_mask, 2)])\n"
        "  if ops.prim.dtype(attn_mask) == 11:\n"
        "    scores = torch.masked_fill(scores, attn_mask, -inf)\n  else:\n    scores = torch.add(scores, attn_mask)",
        "if key_padding_mask is not None:\n  hidden = torch.unsqueeze(torch.unsqueeze(key_padding_mask, 1), 2)\n"
        "  if ops.prim.dtype(hidden) == 11:\n"
        "    scores = torch.masked_fill(scores, hidden, -inf)\n  else:\n    scores = torch.add(scores, hidden)",
        f"share = torch.dropout(torch.softmax(scores, -1, None), {float(m.dropout)}, self.training)",
        "out = torch.transpose(torch.matmul(share, v), 1, 2)",
        f"out = torch.reshape(out, [torch.size(query, 0), torch.size(query, 1), {width}])",
        "out = torch.linear(out, self.out_proj.weight, self.out_proj.bias)",
        "if average_attn_weights:\n  share = torch.mean(share, [1])",
    ]
    lines.append("if not batched:\n  out = torch.squeeze(out, 0)\n  share = torch.squeeze(share, 0)")
    if not m.batch_first:
        lines.append("if batched:\n  out = torch.transpose(out, 0, 1)")
    lines.append("if need_weights:\n  return (out, share)\nreturn (out, None)")
    parameters = (
        "query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor]=None, need_weights: bool=True, "
        "attn_mask: Optional[Tensor]=None, average_attn_weights: bool=True, is_causal: bool=False"
    )
    return parameters, "\n".join(lines), "Tuple[Tensor, Optional[Tensor]]"


def _apply_activation(m: Any, text: str) -> str:
    code = _activation_name(m.activation)
    if code is None:
        return f"self.activation.forward({text})"
    return f"torch.gelu({text})" if code == "gelu" else f"torch.{code}({text})"


def _activation_name(function: Any) -> str | None:
    if hasattr(function, "_modules"):
        return None
    return getattr(function, "__name__", "relu").rstrip("_")


def _encoder_layer_source(m: Any) -> tuple[str, str, str]:
    attend = (
        "self.dropout1.forward(self.self_attn.forward({0}, {0}, {0}, src_key_padding_mask, False, src_mask, "
        "True, is_causal)[0])"
    )
    feed = "self.dropout2.forward(self.linear2.forward(self.dropout.forward({1})))"

    def feed_forward_text(text: str) -> str:
        return feed.replace("{1}", _apply_activation(m, f"self.linear1.forward({text})"))

    if m.norm_first:
        lines = f"n = self.norm1.forward(src)\nx = torch.add(src, {attend.format('n')})\n"
        lines += f"return torch.add(x, {feed_forward_text('self.norm2.forward(x)')})"
    else:
        lines = f"x = self.norm1.forward(torch.add(src, {attend.format('src')}))\n"
        lines += f"return self.norm2.forward(torch.add(x, {feed_forward_text('x')}))"
    parameters = (
        "src: Tensor, src_mask: Optional[Tensor]=None, src_key_padding_mask: Optional[Tensor]=None, "
        "is_causal: bool=False"
    )
    return parameters, lines, "Tensor"


def _decoder_layer_source(m: Any) -> tuple[str, str, str]:
    own = (
        "self.dropout1.forward(self.self_attn.forward({0}, {0}, {0}, tgt_key_padding_mask, False, tgt_mask, "
        "True, tgt_is_causal)[0])"
    )
    other = (
        "self.dropout2.forward(self.multihead_attn.forward({0}, memory, memory, memory_key_padding_mask, "
        "False, memory_mask, True, memory_is_causal)[0])"
    )

    def feed_forward_text(text: str) -> str:
        hidden = _apply_activation(m, f"self.linear1.forward({text})")
        return f"self.dropout3.forward(self.linear2.forward(self.dropout.forward({hidden})))"

    if m.norm_first:
        lines = f"n = self.norm1.forward(tgt)\nx = torch.add(tgt, {own.format('n')})\nn = self.norm2.forward(x)\n"
        lines += (
            f"x = torch.add(x, {other.format('n')})\nreturn torch.add(x, {feed_forward_text('self.norm3.forward(x)')})"
        )
    else:
        lines = f"x = self.norm1.forward(torch.add(tgt, {own.format('tgt')}))\n"
        lines += f"x = self.norm2.forward(torch.add(x, {other.format('x')}))\n"
        lines += f"return self.norm3.forward(torch.add(x, {feed_forward_text('x')}))"
    return _DECODER.replace("?", "bool=False"), lines, "Tensor"


_DECODER = (
    "tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor]=None, memory_mask: Optional[Tensor]=None, "
    "tgt_key_padding_mask: Optional[Tensor]=None, memory_key_padding_mask: Optional[Tensor]=None, tgt_is_causal: ?, "
    "memory_is_causal: bool=False"
)


def _encoder_source(m: Any) -> tuple[str, str, str]:
    lines = "causal = False\nif is_causal is not None:\n  causal = is_causal\nx = src\n"
    for name in m.layers._modules:
        lines += f"x = getattr(self.layers, {quote(name)}).forward(x, mask, src_key_padding_mask, causal)\n"
    lines += "return x" if m.norm is None else "return self.norm.forward(x)"
    parameters = (
        "src: Tensor, mask: Optional[Tensor]=None, src_key_padding_mask: Optional[Tensor]=None, "
        "is_causal: Optional[bool]=None"
    )
    return parameters, lines, "Tensor"


def _decoder_source(m: Any) -> tuple[str, str, str]:
    lines = "causal = False\nif tgt_is_causal is not None:\n  causal = tgt_is_causal\nx = tgt\n"
    for name in m.layers._modules:
        rest = "tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal, memory_is_causal"
        lines += f"x = getattr(self.layers, {quote(name)}).forward(x, memory, {rest})\n"
    lines += "return x" if m.norm is None else "return self.norm.forward(x)"
    return _DECODER.replace("?", "Optional[bool]=None"), lines, "Tensor"


def _transformer_source(m: Any) -> tuple[str, str, str]:
    parameters = (
        "src: Tensor, tgt: Tensor, src_mask: Optional[Tensor]=None, tgt_mask: Optional[Tensor]=None, "
        "memory_mask: Optional[Tensor]=None, src_key_padding_mask: Optional[Tensor]=None, "
        "tgt_key_padding_mask: Optional[Tensor]=None, memory_key_padding_mask: Optional[Tensor]=None, "
        "src_is_causal: Optional[bool]=None, tgt_is_causal: Optional[bool]=None, memory_is_causal: bool=False"
    )
    lines = "memory = self.encoder.forward(src, src_mask, src_key_padding_mask, src_is_causal)\n"
    lines += (
        "return self.decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, "
        "memory_key_padding_mask, "
        "tgt_is_causal, memory_is_causal)"
    )
    return parameters, lines, "Tensor"


def _loss_source(line: str) -> Callable:
    codes = {"none": 0, "mean": 1, "sum": 2}

    def text(m: Any) -> tuple[str, str, str]:
        return "input: Tensor, target: Tensor", "return " + line.format(m=m, r=codes[m.reduction]), "Tensor"

    return text


def _pad_source(mode: str) -> Callable:
    def text(m: Any) -> tuple[str, str, str]:
        value = getattr(m, "value", None)
        last = "" if mode != "constant" else f", {float(value or 0)}"
        return _INPUT_PARAMETER, f"return torch.pad(input, {list(m.padding)}, {quote(mode)}{last})", "Tensor"

    return text


TEXTS: dict[str, Callable[[Any], tuple[str, str, str]]] = {
    "Linear": _expression_layer("torch.linear(input, self.weight, self.bias)"),
    "Identity": _expression_layer("input"),
    "Flatten": _flatten_source,
    "Bilinear": _expression_layer(
        "torch.bilinear(input1, input2, self.weight, self.bias)", "input1: Tensor, input2: Tensor"
    ),
    **{f"Conv{d}d": _convolution_source(d) for d in (1, 2, 3)},
    **{f"ConvTranspose{d}d": _conv_transpose_source(d) for d in (1, 2, 3)},
    **{f"BatchNorm{d}d": _batch_norm for d in (1, 2, 3)},
    **{f"InstanceNorm{d}d": _instance_norm_source for d in (1, 2, 3)},
    "LayerNorm": lambda m: (
        _INPUT_PARAMETER,
        f"return torch.layer_norm(input, {list(m.normalized_shape)}, self.weight, self.bias, {m.eps})",
        "Tensor",
    ),
    "GroupNorm": _expression_layer("torch.group_norm(input, {m.num_groups}, self.weight, self.bias, {m.eps})"),
    "RMSNorm": lambda m: (
        _INPUT_PARAMETER,
        f"return torch.rms_norm(input, {list(m.normalized_shape)}, self.weight, {m.eps})",
        "Tensor",
    ),
    "Embedding": _embedding_source,
    "EmbeddingBag": _embedding_bag_source,
    "Upsample": _upsample_source,
    "Sequential": _sequential_source,
    "UpsamplingNearest2d": _upsample_source,
    "UpsamplingBilinear2d": _upsample_source,
    **{f"MaxPool{d}d": _pool_source("max_pool", d) for d in (1, 2, 3)},
    **{f"AvgPool{d}d": _pool_source("avg_pool", d) for d in (1, 2, 3)},
    **{f"AdaptiveAvgPool{d}d": _adaptive_pool_source("avg", d) for d in (1, 2, 3)},
    **{f"AdaptiveMaxPool{d}d": _adaptive_pool_source("max", d) for d in (1, 2, 3)},
    "Dropout": _dropout_source("dropout"),
    "Dropout1d": _dropout_source("feature_dropout"),
    "Dropout2d": _dropout_source("feature_dropout"),
    "Dropout3d": _dropout_source("feature_dropout"),
    "AlphaDropout": _dropout_source("alpha_dropout"),
    "FeatureAlphaDropout": _dropout_source("feature_alpha_dropout"),
    "LSTM": _recurrent_source,
    "GRU": _recurrent_source,
    "RNN": _recurrent_source,
    "LSTMCell": _cell_source,
    "GRUCell": _cell_source,
    "RNNCell": _cell_source,
    "MultiheadAttention": _attention_source,
    "TransformerEncoderLayer": _encoder_layer_source,
    "TransformerDecoderLayer": _decoder_layer_source,
    "TransformerEncoder": _encoder_source,
    "TransformerDecoder": _decoder_source,
    "Transformer": _transformer_source,
    "ReLU": _activation_source("relu", "torch.{name}(input)"),
    "SiLU": _activation_source("silu", "torch.{name}(input)"),
    "Hardswish": _activation_source("hardswish", "torch.{name}(input)"),
    "Mish": _activation_source("mish", "torch.{name}(input)"),
    "Hardsigmoid": _activation_source("hardsigmoid", "torch.{name}(input)"),
    "SELU": _activation_source("selu", "torch.{name}(input)"),
    "ReLU6": _activation_source("hardtanh", "torch.{name}(input, 0., 6.)"),
    "Hardtanh": _activation_source("hardtanh", "torch.{name}(input, {m.min_val}, {m.max_val})"),
    "LeakyReLU": _activation_source("leaky_relu", "torch.{name}(input, {m.negative_slope})"),
    "ELU": _activation_source("elu", "torch.{name}(input, {m.alpha})"),
    "CELU": _activation_source("celu", "torch.{name}(input, {m.alpha})"),
    "Threshold": _activation_source("threshold", "torch.{name}(input, {m.threshold}, {m.value})"),
    "GELU": lambda m: (_INPUT_PARAMETER, f"return torch.gelu(input, approximate={quote(m.approximate)})", "Tensor"),
    "Tanh": _expression_layer("torch.tanh(input)"),
    "Sigmoid": _expression_layer("torch.sigmoid(input)"),
    "LogSigmoid": _expression_layer("torch.log_sigmoid(input)"),
    "Softplus": _expression_layer("torch.softplus(input, {m.beta}, {m.threshold})"),
    "PReLU": _expression_layer("torch.prelu(input, self.weight)"),
    "Softsign": _expression_layer("torch.div(input, torch.add(torch.abs(input), 1))"),
    "Tanhshrink": _expression_layer("torch.sub(input, torch.tanh(input))"),
    "Softshrink": _expression_layer("torch.softshrink(input, {m.lambd})"),
    "Hardshrink": _expression_layer("torch.hardshrink(input, {m.lambd})"),
    "Softmax": _softmax_source("softmax"),
    "LogSoftmax": _softmax_source("log_softmax"),
    "GLU": _expression_layer("torch.glu(input, {m.dim})"),
    "Softmin": lambda m: (_INPUT_PARAMETER, f"return torch.softmax(torch.neg(input), {m.dim}, None)", "Tensor"),
    "Softmax2d": _expression_layer("torch.softmax(input, -3, None)"),
    "PixelShuffle": _expression_layer("torch.pixel_shuffle(input, {m.upscale_factor})"),
    "PixelUnshuffle": _expression_layer("torch.pixel_unshuffle(input, {m.downscale_factor})"),
    "ChannelShuffle": _expression_layer("torch.channel_shuffle(input, {m.groups})"),
    "Unflatten": lambda m: (
        _INPUT_PARAMETER,
        f"return torch.unflatten(input, {m.dim}, {list(m.unflattened_size)})",
        "Tensor",
    ),
    "CosineSimilarity": _expression_layer(
        "torch.cosine_similarity(x1, x2, {m.dim}, {m.eps})", "x1: Tensor, x2: Tensor"
    ),
    "MSELoss": _loss_source("torch.mse_loss(input, target, {r})"),
    "L1Loss": _loss_source("torch.l1_loss(input, target, {r})"),
    "SmoothL1Loss": _loss_source("torch.smooth_l1_loss(input, target, {r}, {m.beta})"),
    "HuberLoss": _loss_source("torch.huber_loss(input, target, {r}, {m.delta})"),
    "BCELoss": _loss_source("torch.binary_cross_entropy(input, target, self.weight, {r})"),
    "BCEWithLogitsLoss": _loss_source(
        "torch.binary_cross_entropy_with_logits(input, target, self.weight, self.pos_weight, {r})"
    ),
    "CrossEntropyLoss": _loss_source(
        "torch.cross_entropy_loss(input, target, self.weight, {r}, {m.ignore_index}, {m.label_smoothing})"
    ),
    "NLLLoss": _loss_source("torch.nll_loss_nd(input, target, self.weight, {r}, {m.ignore_index})"),
    "KLDivLoss": _loss_source("torch.kl_div(input, target, {r}, log_target={m.log_target})"),
    **{f"ZeroPad{d}d": _pad_source("constant") for d in (1, 2, 3)},
    **{f"ConstantPad{d}d": _pad_source("constant") for d in (1, 2, 3)},
    **{f"ReflectionPad{d}d": _pad_source("reflect") for d in (1, 2, 3)},
    **{f"ReplicationPad{d}d": _pad_source("replicate") for d in (1, 2, 3)},
    **{f"CircularPad{d}d": _pad_source("circular") for d in (1, 2, 3)},
}
WITHOUT_FORWARD = frozenset(("ModuleList", "ModuleDict", "ParameterList", "ParameterDict"))


# Functions of `torch.nn.functional` whose parameters differ from the ATen op's.
_INPLACE = (
    "def {0}(input: Tensor, inplace: bool=False) -> Tensor:\n  if inplace:\n    return torch.{0}_(input)\n"
    "  return torch.{0}(input)\n"
)
_SOFTMAX = (
    "def {0}(input: Tensor, dim: Optional[int]=None, _stacklevel: int=3, dtype: Optional[int]=None) -> Tensor:\n"
    "  if dim is None:\n    dim = 1\n    if torch.dim(input) == 0 or torch.dim(input) == 1 or torch.dim(input) == 3:\n"
    "      dim = 0\n  return torch.{0}(input, dim, dtype)\n"
)
_DROPOUT = (
    "def {0}(input: Tensor, p: float=0.5, training: bool=True, inplace: bool=False) -> Tensor:\n  if inplace:\n"
    "    return torch.{1}_(input, p, training)\n  return torch.{1}(input, p, training)\n"
)
_SCALED = (
    "def {0}(input: Tensor, {2}, inplace: bool=False) -> Tensor:\n  if inplace:\n    return torch.{0}_(input, {1})\n"
    "  return torch.{0}(input, {1})\n"
)
_REDUCED = (
    'def {0}(input: Tensor, target: Tensor, reduction: str="mean") -> Tensor:\n  code = 1\n'
    '  if reduction == "none":\n    code = 0\n  elif reduction == "sum":\n    code = 2\n'
    "  return torch.{0}(input, target, code)\n"
)
FUNCTIONS: dict[str, str] = {
    "_assert": "def _assert(condition: bool, message: str) -> NoneType:\n  assert condition, message\n  return None\n",
    **{name: _INPLACE.format(name) for name in ("relu", "silu", "hardswish", "hardsigmoid", "mish", "selu")},
    **{name: _SOFTMAX.format(name) for name in ("softmax", "log_softmax")},
    "dropout": _DROPOUT.format("dropout", "dropout"),
    "alpha_dropout": _DROPOUT.format("alpha_dropout", "alpha_dropout"),
    **{f"dropout{d}d": _DROPOUT.format(f"dropout{d}d", "feature_dropout") for d in (1, 2, 3)},
    "leaky_relu": _SCALED.format("leaky_relu", "negative_slope", "negative_slope: float=0.01"),
    "elu": _SCALED.format("elu", "alpha", "alpha: float=1."),
    "celu": _SCALED.format("celu", "alpha", "alpha: float=1."),
    "hardtanh": _SCALED.format("hardtanh", "min_val, max_val", "min_val: float=-1., max_val: float=1."),
    "relu6": "def relu6(input: Tensor, inplace: bool=False) -> Tensor:\n  if inplace:\n    return "
    "torch.hardtanh_(input, 0., 6.)\n"
    "  return torch.hardtanh(input, 0., 6.)\n",
    **{name: _REDUCED.format(name) for name in ("mse_loss", "l1_loss", "soft_margin_loss")},
    "embedding": "def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int]=None) -> Tensor:\n  "
    "place = -1\n"
    "  if padding_idx is not None:\n    place = padding_idx\n  return torch.embedding(weight, input, place, "
    "False, False)\n",
    "batch_norm": "def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], "
    "weight: Optional[Tensor]=None, bias: Optional[Tensor]=None, training: bool=False, momentum: float=0.1, "
    "eps: float=1e-05) -> Tensor:\n  return torch.batch_norm(input, weight, bias, running_mean, running_var, training, "
    "momentum, eps, True)\n",
    "cross_entropy": "def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor]=None, "
    'size_average: Optional[bool]=None, ignore_index: int=-100, reduce: Optional[bool]=None, reduction: str="mean", '
    'label_smoothing: float=0.) -> Tensor:\n  code = 1\n  if reduction == "none":\n    code = 0\n  elif reduction == '
    '"sum":\n    code = 2\n  return torch.cross_entropy_loss(input, target, weight, code, ignore_index, '
    "label_smoothing)\n",
    "normalize": "def normalize(input: Tensor, p: float=2., dim: int=1, eps: float=1e-12) -> Tensor:\n"
    "  return torch.div(input, torch.expand_as(torch.clamp_min(torch.norm(input, p, [dim], True), eps), input))\n",
    "interpolate": "def interpolate(input: Tensor, size: Optional[List[int]]=None, scale_factor: "
    "Optional[List[float]]=None, "
    'mode: str="nearest", align_corners: Optional[bool]=None) -> Tensor:\n'
    "  if size is not None and len(size) == 1:\n    size = size * (torch.dim(input) - 2)\n"
    "  if scale_factor is not None and len(scale_factor) == 1:\n"
    "    scale_factor = scale_factor * (torch.dim(input) - 2)\n  corners = False\n"
    '  if align_corners is not None:\n    corners = align_corners\n  if mode == "bilinear":\n'
    '    return torch.upsample_bilinear2d(input, size, corners, scale_factor)\n  if mode == "bicubic":\n'
    '    return torch.upsample_bicubic2d(input, size, corners, scale_factor)\n  if mode == "linear":\n'
    '    return torch.upsample_linear1d(input, size, corners, scale_factor)\n  if mode == "trilinear":\n'
    "    return torch.upsample_trilinear3d(input, size, corners, scale_factor)\n  if torch.dim(input) == 3:\n"
    "    return torch.upsample_nearest1d(input, size, scale_factor)\n  if torch.dim(input) == 5:\n"
    "    return torch.upsample_nearest3d(input, size, scale_factor)\n"
    "  return torch.upsample_nearest2d(input, size, scale_factor)\n",
}
