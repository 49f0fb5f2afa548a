"""Constructors and functions raise PyTorch's errors on every device."""

import math

import pytest

import torchlite as torch
from torchlite import nn
from torchlite.nn import functional as F

NUMBERS = {"input_size": 3, "hidden_size": 5}
RECURRENT = [
    ({"batch_first": "x"}, TypeError, "batch_first should be of type bool, got: str"),
    ({"batch_first": 0, "input_size": 0}, TypeError, "batch_first should be of type bool, got: int"),
    ({"input_size": 0}, ValueError, "input_size must be greater than zero"),
    ({"input_size": -1, "hidden_size": 0}, ValueError, "input_size must be greater than zero"),
    ({"bias": 1, "batch_first": 1}, TypeError, "bias should be of type bool, got: int"),
]


@pytest.mark.parametrize(("given", "error", "words"), RECURRENT)
@pytest.mark.parametrize("layer", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers(layer, given, error, words):
    with pytest.raises(error) as caught:
        layer(**{**NUMBERS, **given})
    assert str(caught.value) == words


CONSTRUCTORS = [
    (lambda: nn.HuberLoss(delta=1j), TypeError, "delta must be a float or int, got: <class 'complex'>"),
    (lambda: nn.HuberLoss(delta="a"), TypeError, "delta must be a float or int, got: <class 'str'>"),
    (
        lambda: nn.LinearCrossEntropyLoss(3, 2, weight=torch.ones(3)), RuntimeError,
        "expected weight shape to be (2,), got (3,)",
    ),
    (
        lambda: nn.LinearCrossEntropyLoss(3, 2, label_smoothing=2.0), RuntimeError,
        "expected label_smoothing to be in range [0, 1], got 2.0",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "words"), CONSTRUCTORS)
def test_constructors(make, error, words):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == words


def ones(*shape):
    return lambda device: torch.ones(shape, device=device)


FUNCTIONS = {
    "batch norm": (
        lambda d: F.batch_norm(ones(3, 4)(d), None, None, training=True, eps=0.0), ValueError,
        "batch_norm eps must be positive during training, but got 0.0",
    ),
    "rrelu in order": (
        lambda d: F.rrelu(ones(3)(d), 0.5, 0.1), RuntimeError,
        "Lower bound should be less than or equal to the upper bound",
    ),
    "rrelu in place": (
        lambda d: torch.rrelu_(ones(3)(d), 0.5, 0.1), RuntimeError,
        "Lower bound should be less than or equal to the upper bound",
    ),
    "rrelu finite": (
        lambda d: F.rrelu(ones(3)(d), -math.inf, 0.1, True), RuntimeError,
        "rrelu: lower bound must be finite, got -inf",
    ),
    "rrelu a number": (
        lambda d: F.rrelu(ones(3)(d), 0.1, math.nan), RuntimeError, "rrelu: upper bound must be finite, got nan"
    ),
    "embedding of cubes": (
        lambda d: F.embedding(torch.zeros(2, dtype=torch.int64, device=d), ones(2, 3, 4)(d)), RuntimeError,
        "'weight' must be 2-D",
    ),
    "embedding of a vector": (
        lambda d: torch.embedding(ones(2)(d), torch.zeros(2, dtype=torch.int64, device=d)), RuntimeError,
        "'weight' must be 2-D",
    ),
    "embedding by numbers": (
        lambda d: F.embedding(ones(2)(d), ones(2, 3)(d)), RuntimeError,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
        "torch.FloatTensor instead (while checking arguments for embedding)",
    ),
    "bag of cubes": (
        lambda d: F.embedding_bag(torch.zeros(2, 2, dtype=torch.int64, device=d), ones(2, 3, 4)(d)), ValueError,
        "weight has to be a 2D Tensor, but got Tensor of dimension 3",
    ),
    "same, short kernel": (
        lambda d: F.conv2d(ones(1, 2, 4, 4)(d), ones(2, 2, 3)(d), padding="same"), RuntimeError,
        "Expected 3-dimensional input for 3-dimensional weight[2, 2, 3], but got 4-dimensional input of size "
        "[1, 2, 4, 4] instead",
    ),
    "same, matrix": (
        lambda d: F.conv2d(ones(1, 2, 4, 4)(d), ones(2, 2)(d), padding="same"), RuntimeError,
        "weight should have at least three dimensions",
    ),
    "valid, short kernel": (
        lambda d: F.conv2d(ones(1, 2, 4, 4)(d), ones(2, 2, 3)(d), padding="valid"), RuntimeError,
        "expected stride to be a single integer value or a list of 1 values to match the convolution dimensions, but "
        "got stride=[1, 1]",
    ),
    "convolution with a matrix": (
        lambda d: F.conv1d(ones(1, 2, 4)(d), ones(2, 2)(d)), RuntimeError,
        "weight should have at least three dimensions",
    ),
    "transposed with a matrix": (
        lambda d: F.conv_transpose1d(ones(1, 2, 4)(d), ones(2, 2)(d)), RuntimeError,
        "weight should have at least three dimensions",
    ),
    "convolution with a number": (
        lambda d: F.conv2d(ones(1, 2, 4, 4)(d), torch.tensor(1.0, device=d)), RuntimeError,
        "weight should have at least three dimensions",
    ),
    "linear, bias": (
        lambda d: F.linear(ones(2, 3)(d), ones(4, 3)(d), ones(3)(d)), RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target "
        "sizes: [2, 4].  Tensor sizes: [3]",
    ),
    "linear, bias of rows": (
        lambda d: F.linear(ones(2, 3)(d), ones(4, 3)(d), ones(3, 4)(d)), RuntimeError,
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0.  Target "
        "sizes: [2, 4].  Tensor sizes: [3, 4]",
    ),
    "linear, batches": (
        lambda d: F.linear(ones(2, 2, 3)(d), ones(4, 3)(d), ones(3)(d)), RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target "
        "sizes: [4, 4].  Tensor sizes: [3]",
    ),
    "linear, a vector": (
        lambda d: F.linear(ones(3)(d), ones(4, 3)(d), ones(3)(d)), RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target "
        "sizes: [1, 4].  Tensor sizes: [3]",
    ),
    "linear, cube": (
        lambda d: F.linear(ones(2, 3)(d), ones(4, 3, 3)(d)), RuntimeError,
        "t() expects a tensor with <= 2 dimensions, but self is 3D",
    ),
    "linear, vector and bias": (
        lambda d: F.linear(ones(2, 3)(d), ones(3)(d), ones(1)(d)), RuntimeError,
        "mat2 must be a matrix, got 1-D tensor",
    ),
    "linear of a number": (
        lambda d: F.linear(torch.tensor(1.0, device=d), ones(4, 3)(d)), RuntimeError,
        "both arguments to linear need to be at least 1D, but they are 0D and 2D",
    ),
    "nll of probabilities": (
        lambda d: F.nll_loss(ones(3, 5)(d), ones(3, 5)(d)), RuntimeError,
        "0D or 1D target tensor expected, multi-target not supported",
    ),
    "nll of several": (
        lambda d: F.nll_loss(ones(5)(d), torch.zeros(2, dtype=torch.int64, device=d)), ValueError,
        "For 1D input, 1D target must have size 1, but got target size: 2",
    ),
    "nll by numbers": (
        lambda d: F.nll_loss(ones(3, 5)(d), ones(3)(d)), RuntimeError,
        "expected target dtype to be Long or Byte, but got Float",
    ),
    "linear cross entropy": (
        lambda d: F.linear_cross_entropy(ones(4, 5)(d), ones(2, 3)(d), torch.zeros(4, dtype=torch.int64, device=d)),
        RuntimeError,
        "expected equal input and linear_weight last dimensions (in_features), got 5 and 3, respectively",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, device):
    call, error, words = FUNCTIONS[name]
    with pytest.raises(error) as caught:
        call(device)
    assert str(caught.value) == words


def test_unusual_arguments_are_accepted(device):
    x = ones(3, 4)(device)
    stats = torch.zeros(4, device=device), torch.ones(4, device=device)
    assert F.batch_norm(x, *stats, training=False, eps=0.0).shape == (3, 4)
    assert F.rrelu(x, -0.5, -0.1, True).shape == (3, 4)
    assert F.linear(x, ones(4)(device)).shape == (3,)
    assert F.linear(x, ones(2, 4)(device), ones(3, 2)(device)).tolist() == [[5, 5]] * 3
    assert F.linear(x, ones(2, 4)(device), torch.tensor(1.0, device=device)).tolist() == [[5, 5]] * 3


@pytest.mark.parametrize("weights", [True, False])
def test_attention_over_nothing(device, weights):
    layer = nn.MultiheadAttention(4, 2, device=device)
    for queries, batch in ((3, 0), (0, 2)):
        q = torch.ones(queries, batch, 4, device=device, requires_grad=True)
        k = torch.ones(3, batch, 4, device=device)
        out, found = layer(q, k, k, need_weights=weights)
        assert out.shape == (queries, batch, 4) and (found.shape == (batch, queries, 3) if weights else found is None)
        out.sum().backward()
        assert q.grad.shape == q.shape


@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        ((2, 0, 4), (2, 3, 4), (2, 3, 4)), ((2, 3, 4), (2, 0, 4), (2, 0, 4)), ((0, 3, 4), (0, 3, 4), (0, 3, 4)),
        ((2, 3, 4), (2, 3, 4), (2, 3, 0)), ((0, 2, 3, 4), (0, 2, 5, 4), (0, 2, 5, 4)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("causal", [False, True])
def test_scaled_products_of_nothing(device, query, key, value, causal):
    given = [torch.ones(shape, device=device, requires_grad=True) for shape in (query, key, value)]
    out = F.scaled_dot_product_attention(*given, is_causal=causal)
    assert out.shape == (*query[:-1], value[-1]) and not out.any()
    out.sum().backward()
    assert all(x.grad.shape == x.shape and not x.grad.any() for x in given)


REFUSED = [
    (dtype, mode) for dtype in ("int8", "int16", "int32", "int64", "bool") for mode in ("nearest", "bilinear", "area")
] + [("uint8", "area"), ("complex64", "nearest")]  # fmt: skip


@pytest.mark.parametrize(("dtype", "mode"), REFUSED)
def test_images_that_cannot_be_resampled(device, dtype, mode):
    image = torch.ones(1, 1, 2, 2, device=device).to(getattr(torch, dtype))
    with pytest.raises(NotImplementedError, match="not implemented for '"):
        F.interpolate(image, size=3, mode=mode)
    assert F.interpolate(image.to(torch.uint8), size=3, mode="nearest").dtype is torch.uint8


def test_cosine_embedding_of_unequal_ranks():
    with pytest.raises(RuntimeError, match="1D target tensor expects 2D input tensors, but found inputs with sizes"):
        F.cosine_embedding_loss(torch.ones(2, 3), torch.ones(3), torch.ones(2))


def test_dropout_of_channels_that_are_not_there():
    with pytest.warns(UserWarning, match="assuming that channel-wise 1D dropout behavior is desired"):
        F.dropout2d(torch.ones(2, 3, 4))
    with pytest.warns(UserWarning, match="Received a 5-D input to dropout2d.* please use dropout instead"):
        F.dropout2d(torch.ones(1, 2, 2, 2, 2))


@pytest.mark.parametrize("dim", [-3, 2, 3, 5])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_over_dimensions_that_are_not_there(device, function, dim):
    with pytest.raises(IndexError) as caught:
        function(torch.ones(2, 2, device=device), dim)
    assert str(caught.value) == f"Dimension out of range (expected to be in range of [-2, 1], but got {dim})"


SHAPES = [
    ((2, 3, 4), (2, 3, 5), (2, 3, 4), None, "first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5]."),
    ((2, 3, 4), (2, 5, 4), (2, 3, 4), None, "first two dimensions of batch2 tensor to be: [2, 5] but got: [2, 3]."),
    ((3, 4), (3, 5), (3, 4), None, "mat1 and mat2 shapes cannot be multiplied (3x4 and 5x3)"),
    ((2, 3, 4), (3, 3, 4), (3, 3, 4), None, "The size of tensor a (2) must match the size of tensor b (3)"),
    ((1, 2, 3, 4), (1, 3, 3, 4), (1, 3, 3, 4), None, "tensor b (3) at non-singleton dimension 1"),
    ((2, 3, 4), (2, 3, 4), (2, 3, 4), (5, 5), "The size of tensor a (3) must match the size of tensor b (5)"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "key", "value", "mask", "words"), SHAPES)
def test_attention_checks_shapes(device, query, key, value, mask, words):
    """On every device, before a kernel reads what is not there."""
    given = [torch.ones(shape, device=device) for shape in (query, key, value)]
    with pytest.raises(RuntimeError) as caught:
        F.scaled_dot_product_attention(*given, None if mask is None else torch.ones(mask, device=device))
    assert words in str(caught.value)


LENGTHS = [
    ((1, 1), 2, 5, "Expected tensor to have size at least 5 at dimension 1, but got size 1 for argument #2 'targets'"),
    ((1,), 2, 5, "Expected tensor to have size 5 at dimension 0, but got size 1 for argument #2 'targets'"),
    ((3,), 2, 1, "Expected tensor to have size 1 at dimension 0, but got size 3 for argument #2 'targets'"),
    ((2, 1), 2, 1, "Expected tensor to have size 1 at dimension 0, but got size 2 for argument #2 'targets'"),
    ((1, 1), 2, -1, "Expected target_lengths to have value at least 0, but got value -1"),
    ((1, 1), -1, 1, "Expected input_lengths to have value at least 0, but got value -1"),
    ((1, 1), 3, 1, "Expected input_lengths to have value at most 2, but got value 3"),
    ((1, 1), 2.0, 1, "input_lengths must be integral"),
    ((1, 1), 2, 1.0, "target_lengths must be integral"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "inputs", "targets", "words"), LENGTHS)
def test_ctc_checks_lengths(shape, inputs, targets, words):
    given = (
        torch.zeros(2, 1, 3),
        torch.zeros(shape, dtype=torch.int64),
        torch.tensor([inputs]),
        torch.tensor([targets]),
    )
    with pytest.raises(RuntimeError, match=words):
        F.ctc_loss(*given)
