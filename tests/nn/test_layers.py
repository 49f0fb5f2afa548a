"""Layers against PyTorch's recorded answers: seeded parameters bit for bit, outputs, gradients and
states by checksum.
"""

import json
import pathlib
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn

from . import cases

GOLDEN = json.loads(pathlib.Path(__file__).with_name("layers.json").read_text())


def _flat(tree):
    return [value for item in tree for value in (_flat(item) if isinstance(item, list) else [item])]


@pytest.mark.parametrize("name", cases.LAYERS)
def test_as_pytorch(name, device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cases.answers(torch, name, device)
    want = GOLDEN[name]
    assert found["parameters"] == want["parameters"], "the seeded parameters differ"
    for part in ("outputs", "gradients", "state"):
        np.testing.assert_allclose(_flat(found[part]), _flat(want[part]), rtol=2e-4, atol=2e-4, err_msg=part)


LAZY = {
    "LazyLinear": ((3,), (2, 4), nn.Linear), "LazyConv1d": ((3, 2), (1, 4, 5), nn.Conv1d),
    "LazyConv2d": ((3, 2), (1, 4, 5, 5), nn.Conv2d), "LazyConv3d": ((3, 2), (1, 4, 3, 3, 3), nn.Conv3d),
    "LazyConvTranspose1d": ((3, 2), (1, 4, 5), nn.ConvTranspose1d),
    "LazyConvTranspose2d": ((3, 2), (1, 4, 5, 5), nn.ConvTranspose2d),
    "LazyConvTranspose3d": ((3, 2), (1, 4, 3, 3, 3), nn.ConvTranspose3d),
    "LazyBatchNorm1d": ((), (2, 4, 5), nn.BatchNorm1d), "LazyBatchNorm2d": ((), (2, 4, 5, 5), nn.BatchNorm2d),
    "LazyBatchNorm3d": ((), (2, 4, 2, 2, 2), nn.BatchNorm3d), "LazyInstanceNorm1d": ((), (2, 4, 5), nn.InstanceNorm1d),
    "LazyInstanceNorm2d": ((), (2, 4, 5, 5), nn.InstanceNorm2d),
    "LazyInstanceNorm3d": ((), (2, 4, 2, 2, 2), nn.InstanceNorm3d),
}  # fmt: skip


@pytest.mark.parametrize("name", LAZY)
def test_lazy_layers_become_plain_ones(name):
    args, shape, cls = LAZY[name]
    lazy = getattr(nn, name)(*args)
    assert lazy.has_uninitialized_params()
    x = cases.data(torch, *shape)
    y = lazy(x)
    assert type(lazy) is cls and all(type(p) is nn.Parameter for p in lazy.parameters())
    sizes = (4, *args) if args else (4,)
    plain = cls(*sizes) if "Instance" not in name else cls(4, affine=True, track_running_stats=True)
    plain.load_state_dict(lazy.state_dict(), strict="Norm" not in name)
    if "Norm" not in name:
        assert torch.equal(plain(x), y)


def test_lazy_parameters_refuse_to_be_used():
    lazy = nn.LazyLinear(3)
    assert (
        repr(lazy) == "LazyLinear(in_features=0, out_features=3, bias=True)"
        and repr(lazy.weight) == "<UninitializedParameter>"
    )
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
        lazy.weight + 1
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        _ = lazy.weight.shape
    assert lazy.load_state_dict(nn.Linear(2, 3).state_dict()).missing_keys == [] and lazy.weight.shape == (3, 2)


REPRS = {
    "Conv2d(2, 3, kernel_size=(3, 3), stride=(1, 1), padding=same)": lambda: nn.Conv2d(2, 3, 3, padding="same"),
    "Conv1d(2, 4, kernel_size=(3,), stride=(2,), padding=(1,), dilation=(2,), groups=2, bias=False, "
    "padding_mode=circular)": lambda: nn.Conv1d(2, 4, 3, 2, 1, 2, 2, False, "circular"),
    "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)": lambda: nn.MaxPool2d(2),
    "AvgPool1d(kernel_size=(3,), stride=(3,), padding=(0,))": lambda: nn.AvgPool1d(3),
    "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=False, track_running_stats=True)": lambda: (
        nn.BatchNorm1d(3, bias=False)
    ),
    "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False)": lambda: nn.LayerNorm((2, 3), bias=False),
    "Embedding(3, 4, padding_idx=1, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, sparse=True)": lambda: (
        nn.Embedding(3, 4, 1, 1.0, 1.0, True, True)
    ),
    "EmbeddingBag(3, 4, max_norm=1.0, mode='mean', padding_idx=1)": lambda: nn.EmbeddingBag(3, 4, 1.0, padding_idx=1),
    "ConstantPad1d(padding=(2, 2), value=3.5)": lambda: nn.ConstantPad1d(2, 3.5),
    "Upsample(scale_factor=2.0, mode='bilinear')": lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    "LSTM(2, 3, proj_size=1, num_layers=2, batch_first=True, dropout=0.5, bidirectional=True)": lambda: nn.LSTM(
        2, 3, 2, True, True, 0.5, True, 1
    ),
    "RNNCell(2, 3, bias=False, nonlinearity=relu)": lambda: nn.RNNCell(2, 3, False, "relu"),
    "Dropout(p=0.3, inplace=True)": lambda: nn.Dropout(0.3, True),
    "Softplus(beta=1.0, threshold=20.0)": lambda: nn.Softplus(),
    "Unflatten(dim=1, unflattened_size=(2, 3))": lambda: nn.Unflatten(1, (2, 3)),
}


@pytest.mark.parametrize("text", REPRS)
def test_repr(text):
    assert repr(REPRS[text]()) == text


BAD = [
    (lambda: nn.Conv2d(2, 3, 3, padding_mode="foo"), ValueError, "padding_mode must be one of"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
    (
        lambda: nn.ConvTranspose2d(2, 3, 3, 2)(torch.zeros(1, 2, 4, 4), output_size=[20, 20]),
        ValueError,
        r"requested an output size of \[20, 20\], but valid sizes range from \[9, 9\] to \[10, 10\]",
    ),
    (lambda: nn.Dropout(2), ValueError, "dropout probability has to be between 0 and 1, but got 2"),
    (lambda: nn.BatchNorm2d(3)(torch.zeros(3)), ValueError, r"expected 4D input \(got 1D input\)"),
    (lambda: nn.InstanceNorm2d(3, affine=True)(torch.zeros(1, 4, 2, 2)), ValueError, "to match num_features"),
    (
        lambda: nn.LSTM(2, 3)(torch.zeros(3, 4, 5)),
        RuntimeError,
        r"input.size\(-1\) must be equal to input_size. Expected 2, got 5",
    ),
    (
        lambda: nn.LSTM(2, 3)(torch.zeros(3, 4, 2), (torch.zeros(1, 3, 3), torch.zeros(1, 4, 3))),
        RuntimeError,
        r"Expected hidden\[0\] size \(1, 4, 3\), got \[1, 3, 3\]",
    ),
    (lambda: nn.GRU(2, 3)(torch.zeros(4)), ValueError, "GRU: Expected input to be 2D or 3D, got 1D instead"),
    (
        lambda: nn.LSTM(2, 3)(torch.zeros(3, 4, 2, dtype=torch.float64)),
        ValueError,
        "RNN input dtype .* does not match weight dtype",
    ),
    (lambda: nn.LSTM(2, 3, proj_size=3), ValueError, "proj_size has to be smaller than hidden_size"),
    (
        lambda: nn.GRUCell(2, 3)(torch.zeros(2, 2), torch.zeros(3, 3)),
        RuntimeError,
        "Input batch size 2 doesn't match hidden0 batch size 3",
    ),
    (lambda: nn.MultiheadAttention(5, 2), AssertionError, "embed_dim must be divisible by num_heads"),
    (
        lambda: nn.TransformerEncoderLayer(4, 2, activation="foo"),
        RuntimeError,
        "activation should be relu/gelu, not foo",
    ),
    (lambda: nn.Embedding(3, 4, padding_idx=7), AssertionError, "Padding_idx must be within num_embeddings"),
    (lambda: nn.GroupNorm(3, 4), ValueError, r"num_channels \(4\) must be divisible by num_groups \(3\)"),
    (lambda: nn.MultiMarginLoss(3), ValueError, "only p == 1 and p == 2 supported"),
    (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(10, 20, [5, 10], 2.0)(torch.zeros(2, 10), torch.tensor([1, 30])),
        RuntimeError,
        r"Target values should be in \[0, 19\], but values in range \[1, 30\] were found.",
    ),
    (lambda: nn.FractionalMaxPool2d(2), ValueError, "requires specifying either an output size, or a pooling ratio"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_arguments(number):
    make, kind, message = BAD[number]
    with pytest.raises(kind, match=message):
        make()


def test_packed_sequences_match_padded_ones():
    from torchlite.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, unpack_sequence

    x, lengths = cases.data(torch, 4, 3, 2), [2, 4, 1]
    for layer in (nn.LSTM(2, 3, bidirectional=True), nn.GRU(2, 3, 2), nn.RNN(2, 3)):
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, hidden = layer(packed)
        padded, found = pad_packed_sequence(output)
        assert found.tolist() == lengths
        for place, length in enumerate(lengths):
            alone, last = layer(x[:length, place])
            torch.testing.assert_close(padded[:length, place], alone, rtol=1e-5, atol=1e-6)
            mine, theirs = (hidden[0], last[0]) if isinstance(hidden, tuple) else (hidden, last)
            torch.testing.assert_close(mine[:, place], theirs, rtol=1e-5, atol=1e-6)
    sequences = [cases.data(torch, n, 2) for n in (3, 1, 2)]
    assert all(
        torch.equal(a, b)
        for a, b in zip(unpack_sequence(pack_sequence(sequences, enforce_sorted=False)), sequences, strict=True)
    )
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        pack_padded_sequence(x, lengths)


def test_dropout_between_layers_and_batch_norm_in_evaluation():
    torch.manual_seed(1)
    layer = nn.LSTM(2, 8, 2, dropout=0.5)
    x = cases.data(torch, 3, 2, 2)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])
    norm = nn.BatchNorm1d(2)
    norm(cases.data(torch, 6, 2))
    before = norm.running_mean.clone()
    norm.eval()
    norm(cases.data(torch, 6, 2))
    assert torch.equal(norm.running_mean, before) and norm.num_batches_tracked.item() == 1
