"""Layers with arguments and inputs, for recording PyTorch's answers and for comparing with them. `lib` is torchlite or
torch.
"""

import hashlib
import math


def data(lib, *shape, low=-1.0, high=1.0, phase=0.0):
    """Smooth float32 data without a random generator."""
    n = math.prod(shape)
    values = lib.sin(lib.arange(n, dtype=lib.float64) * 1.7 + phase) * (high - low) / 2 + (high + low) / 2
    return values.to(lib.float32).reshape(shape)


def ints(lib, high, *shape):
    """Integers below `high`."""
    return ((lib.arange(math.prod(shape)) * 7 + 3) % high).reshape(shape)


LAYERS = {
    "Linear": (lambda n: n.Linear(4, 3), lambda t: [data(t, 2, 4)]),
    "Bilinear": (lambda n: n.Bilinear(4, 3, 2), lambda t: [data(t, 2, 4), data(t, 2, 3)]),
    "Conv1d": (lambda n: n.Conv1d(2, 4, 3, 2, 1), lambda t: [data(t, 2, 2, 9)]),
    "Conv2d": (lambda n: n.Conv2d(4, 4, 3, padding=1, groups=2), lambda t: [data(t, 2, 4, 6, 6)]),
    "Conv2d reflect": (lambda n: n.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), lambda t: [data(t, 1, 2, 5, 5)]),
    "Conv2d same": (
        lambda n: n.Conv2d(2, 3, 4, padding="same", dilation=2, padding_mode="circular"),
        lambda t: [data(t, 1, 2, 9, 9)],
    ),
    "Conv3d": (lambda n: n.Conv3d(2, 3, 2), lambda t: [data(t, 1, 2, 4, 4, 4)]),
    "ConvTranspose1d": (lambda n: n.ConvTranspose1d(2, 3, 3, 2), lambda t: [data(t, 1, 2, 4)]),
    "ConvTranspose2d": (lambda n: n.ConvTranspose2d(2, 3, 3, 2, 1, 1), lambda t: [data(t, 1, 2, 4, 4)]),
    "BatchNorm1d": (lambda n: n.BatchNorm1d(3), lambda t: [data(t, 4, 3)]),
    "BatchNorm2d": (lambda n: n.BatchNorm2d(2, momentum=None), lambda t: [data(t, 4, 2, 3, 3)]),
    "InstanceNorm2d": (lambda n: n.InstanceNorm2d(2, affine=True), lambda t: [data(t, 2, 2, 3, 3)]),
    "LayerNorm": (lambda n: n.LayerNorm((2, 3)), lambda t: [data(t, 4, 2, 3)]),
    "GroupNorm": (lambda n: n.GroupNorm(2, 4), lambda t: [data(t, 2, 4, 3)]),
    "RMSNorm": (lambda n: n.RMSNorm(5), lambda t: [data(t, 2, 5)]),
    "PReLU": (lambda n: n.PReLU(3), lambda t: [data(t, 2, 3)]),
    "GELU": (lambda n: n.GELU("tanh"), lambda t: [data(t, 2, 3)]),
    "Softmax2d": (lambda n: n.Softmax2d(), lambda t: [data(t, 2, 3, 2, 2)]),
    "MaxPool2d": (lambda n: n.MaxPool2d(3, 2, 1), lambda t: [data(t, 1, 2, 7, 7)]),
    "AvgPool2d": (lambda n: n.AvgPool2d(3, 2, 1, True, False), lambda t: [data(t, 1, 2, 7, 7)]),
    "AdaptiveAvgPool2d": (lambda n: n.AdaptiveAvgPool2d((2, None)), lambda t: [data(t, 1, 2, 7, 5)]),
    "LPPool1d": (lambda n: n.LPPool1d(2, 3), lambda t: [data(t, 1, 2, 9, low=0.1)]),
    "Upsample": (
        lambda n: n.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
        lambda t: [data(t, 1, 2, 3, 3)],
    ),
    "PixelShuffle": (lambda n: n.PixelShuffle(2), lambda t: [data(t, 1, 8, 2, 2)]),
    "Unfold": (lambda n: n.Unfold(2, padding=1), lambda t: [data(t, 1, 2, 3, 3)]),
    "CircularPad2d": (lambda n: n.CircularPad2d((1, 2, 0, 1)), lambda t: [data(t, 1, 2, 3, 3)]),
    "RNN": (lambda n: n.RNN(3, 4, 2, nonlinearity="relu"), lambda t: [data(t, 5, 2, 3)]),
    "GRU": (lambda n: n.GRU(3, 4, bidirectional=True, batch_first=True), lambda t: [data(t, 2, 5, 3)]),
    "LSTM": (lambda n: n.LSTM(3, 4, 2, proj_size=2), lambda t: [data(t, 5, 2, 3)]),
    "LSTM unbatched": (lambda n: n.LSTM(3, 4, bidirectional=True), lambda t: [data(t, 5, 3)]),
    "RNNCell": (lambda n: n.RNNCell(3, 4), lambda t: [data(t, 2, 3)]),
    "GRUCell": (lambda n: n.GRUCell(3, 4), lambda t: [data(t, 2, 3), data(t, 2, 4)]),
    "LSTMCell": (lambda n: n.LSTMCell(3, 4), lambda t: [data(t, 3)]),
    "MultiheadAttention": (
        lambda n: n.MultiheadAttention(4, 2, batch_first=True, kdim=3, vdim=5),
        lambda t: [data(t, 2, 3, 4), data(t, 2, 6, 3), data(t, 2, 6, 5)],
    ),
    "TransformerEncoderLayer": (
        lambda n: n.TransformerEncoderLayer(4, 2, 6, 0.0, "gelu", norm_first=True),
        lambda t: [data(t, 3, 2, 4)],
    ),
    "Transformer": (
        lambda n: n.Transformer(4, 2, 1, 1, 8, 0.0, batch_first=True),
        lambda t: [data(t, 2, 3, 4), data(t, 2, 5, 4)],
    ),
    "CrossEntropyLoss": (lambda n: n.CrossEntropyLoss(label_smoothing=0.1), lambda t: [data(t, 4, 5), ints(t, 5, 4)]),
    "NLLLoss": (lambda n: n.NLLLoss(), lambda t: [data(t, 4, 5, high=0.0), ints(t, 5, 4)]),
    "KLDivLoss": (
        lambda n: n.KLDivLoss(reduction="batchmean"),
        lambda t: [data(t, 4, 5, high=0.0), data(t, 4, 5, low=0.1)],
    ),
    "SmoothL1Loss": (lambda n: n.SmoothL1Loss(beta=0.3), lambda t: [data(t, 4, 5), data(t, 4, 5, phase=1.0)]),
    "BCEWithLogitsLoss": (
        lambda n: n.BCEWithLogitsLoss(),
        lambda t: [data(t, 4, 5), data(t, 4, 5, low=0.0, phase=1.0)],
    ),
    "TripletMarginLoss": (
        lambda n: n.TripletMarginLoss(),
        lambda t: [data(t, 4, 5), data(t, 4, 5, phase=1.0), data(t, 4, 5, phase=2.0)],
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda n: n.AdaptiveLogSoftmaxWithLoss(16, 12, [3, 7], 2.0),
        lambda t: [data(t, 8, 16), ints(t, 12, 8)],
    ),
    "LinearCrossEntropyLoss": (
        lambda n: n.LinearCrossEntropyLoss(4, 5, bias=True),
        lambda t: [data(t, 6, 4), ints(t, 5, 6)],
    ),
}


def _tensors(value):
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return [value] if value is not None and hasattr(value, "dtype") else []


def _checksum(lib, tensor):
    flat = tensor.detach().cpu().to(lib.float64).reshape(-1)
    return round(float((flat * lib.cos(lib.arange(flat.numel(), dtype=lib.float64))).sum()), 7)


def answers(lib, name, device="cpu"):
    """Return a digest of a layer's parameters, seeded on the CPU, and checksums of outputs and gradients."""
    make, inputs = LAYERS[name]
    lib.manual_seed(0)
    layer = make(lib.nn)
    digest = hashlib.sha256()
    for key, value in layer.state_dict().items():
        digest.update(f"{key}{tuple(value.shape)}".encode())
        digest.update(value.detach().numpy().tobytes())
    layer.to(device)
    args = [arg.to(device) for arg in inputs(lib)]
    for arg in args:
        if arg.is_floating_point():
            arg.requires_grad_()
    outputs = [out for out in _tensors(layer(*args)) if out.is_floating_point()]
    total = sum(
        (out * lib.cos(lib.arange(out.numel(), dtype=lib.float32, device=device)).reshape(out.shape)).sum()
        for out in outputs
        if out.requires_grad
    )
    total.backward()
    grads = [tensor.grad for tensor in [*args, *layer.parameters()] if tensor.grad is not None]
    return {
        "parameters": digest.hexdigest()[:16],
        "outputs": [[list(out.shape), _checksum(lib, out)] for out in outputs],
        "gradients": [_checksum(lib, grad) for grad in grads],
        "state": [_checksum(lib, value) for value in layer.state_dict().values()],
    }
