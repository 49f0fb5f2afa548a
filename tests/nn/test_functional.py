"""nn.functional: what is juggled around the ops, losses against their definitions, and the wording of errors."""

import itertools
import math

import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def close(a, b, tol=1e-5):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy() if hasattr(b, "detach") else b, rtol=tol, atol=tol)


# --- activations -----------------------------------------------------------------------------------------------------------------------------------

IN_PLACE = ("relu", "relu6", "leaky_relu", "hardtanh", "elu", "selu", "celu", "silu", "mish", "hardswish", "hardsigmoid")


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_gives_the_same_values_and_gradients(name):
    function = getattr(F, name)
    x = torch.randn(4, 5, requires_grad=True)
    out = function(x)
    out.sum().backward()
    want, x.grad = x.grad, None
    y = x * 1
    assert function(y, inplace=True) is y
    close(y, out)
    y.sum().backward()
    close(x.grad, want)


@pytest.mark.parametrize("name", ["relu_", "elu_", "hardtanh_", "leaky_relu_", "selu_", "celu_", "rrelu_"])
def test_underscored_names(name):
    x = torch.randn(6)
    y = x.clone()
    out = getattr(F, name)(y)
    assert out is y
    close(y, getattr(F, name[:-1])(x))


def test_rrelu_draws_slopes_in_training():
    x = -torch.ones(1000)
    out = F.rrelu(x, 0.1, 0.3, training=True)
    assert out.min() >= -0.3
    assert out.max() <= -0.1
    assert out.unique().numel() > 900


def test_gumbel_softmax():
    logits = torch.randn(200, 4, requires_grad=True)
    hard = F.gumbel_softmax(logits, 0.5, hard=True)
    assert set(hard.detach().numpy().round(5).ravel().tolist()) == {0.0, 1.0}
    (hard * torch.randn(200, 4)).sum().backward()
    assert logits.grad.abs().sum() > 0


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_implicit_dimension(name):
    x = torch.randn(2, 3, 4)
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated"):
        out = getattr(F, name)(x)
    close(out, getattr(F, name)(x, 0))


def test_softmax_of_large_and_of_infinite_numbers():
    x = torch.tensor([[1000.0, 1000.0], [-1000.0, -1001.0], [0.0, -math.inf]])
    close(F.softmax(x, 1), [[0.5, 0.5], [0.731058, 0.268941], [1, 0]])
    close(F.log_softmax(x, 1)[:2], [[-math.log(2), -math.log(2)], [-0.313262, -1.313262]])
    assert F.softmax(torch.full((1, 3), -math.inf), 1).isnan().all()
    assert F.softmax(x.double(), 1, dtype=torch.float32).dtype is torch.float32


# --- normalisation ---------------------------------------------------------------------------------------------------------------------------------


def test_batch_norm_running_statistics():
    x = torch.randn(8, 3, 5)
    mean, var = torch.zeros(3), torch.ones(3)
    versions = mean._version
    F.batch_norm(x, mean, var, training=True, momentum=0.25)
    rows = x.transpose(0, 1).reshape(3, -1)
    close(mean, 0.25 * rows.mean(1))
    close(var, 0.75 + 0.25 * rows.var(1))
    assert mean._version > versions
    close(F.batch_norm(x, mean, var), (x - mean.reshape(1, 3, 1)) / (var.reshape(1, 3, 1) + 1e-5).sqrt(), 1e-4)


def test_batch_norm_leaves_running_statistics_alone_for_an_empty_batch():
    mean, var = torch.zeros(3), torch.ones(3)
    out = F.batch_norm(torch.zeros(0, 3, 2), mean, var, training=True)
    assert out.shape == (0, 3, 2)
    close(mean, np.zeros(3))
    close(var, np.ones(3))


def test_instance_and_group_norm_are_batch_norms_of_parts():
    x = torch.randn(2, 4, 6)
    for sample in range(2):
        alone = F.batch_norm(x[sample : sample + 1], None, None, training=True)
        close(F.instance_norm(x)[sample : sample + 1], alone)
    close(F.group_norm(x, 4), F.instance_norm(x))
    close(F.group_norm(x, 1), F.layer_norm(x, (4, 6)))


# --- embeddings ------------------------------------------------------------------------------------------------------------------------------------


def test_embedding_renormalises_in_place():
    weight = torch.randn(5, 8) * 3
    before = weight.clone()
    out = F.embedding(torch.tensor([1, 1, 3]), weight, max_norm=1.0)
    close(out.norm(dim=1), np.ones(3), 1e-4)
    close(weight[0], before[0])
    close(weight[1], before[1] / before[1].norm(), 1e-4)


def test_embedding_padding_gets_no_gradient():
    weight = torch.randn(4, 2, requires_grad=True)
    F.embedding(torch.tensor([0, 3, 3]), weight, padding_idx=-1).sum().backward()
    close(weight.grad, [[1, 1], [0, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    weight = torch.randn(6, 3, requires_grad=True)
    indices, offsets = torch.tensor([1, 2, 2, 5, 0]), torch.tensor([0, 2, 2])
    out = F.embedding_bag(indices, weight, offsets, mode=mode)
    bags = [weight[indices[0:2]], None, weight[indices[2:5]]]
    reduce = {"sum": lambda b: b.sum(0), "mean": lambda b: b.mean(0), "max": lambda b: b.max(0).values}[mode]
    want = torch.stack([torch.zeros(3) if b is None else reduce(b) for b in bags])
    close(out, want)
    cotangent = torch.randn(3, 3)
    mine = torch.autograd.grad(out, weight, cotangent)[0]
    close(mine, torch.autograd.grad(want, weight, cotangent)[0])
    close(F.embedding_bag(indices[:4].reshape(2, 2), weight, mode=mode), torch.stack([reduce(weight[indices[:2]]), reduce(weight[indices[2:4]])]))


def test_embedding_bag_options():
    weight, indices = torch.randn(6, 3), torch.tensor([1, 2, 2, 5])
    scales = torch.tensor([1.0, 2.0, 3.0, 4.0])
    out = F.embedding_bag(indices, weight, torch.tensor([0, 2, 4]), mode="sum", per_sample_weights=scales, include_last_offset=True)
    close(out, torch.stack([weight[1] + 2 * weight[2], 3 * weight[2] + 4 * weight[5]]))
    padded = F.embedding_bag(indices, weight, torch.tensor([0]), mode="mean", padding_idx=2)
    close(padded[0], (weight[1] + weight[5]) / 2)


# --- losses ----------------------------------------------------------------------------------------------------------------------------------------


def test_cross_entropy_is_log_softmax_and_nll():
    logits = torch.randn(6, 5, requires_grad=True)
    target, weight = torch.tensor([0, 4, 2, 2, 1, 3]), torch.rand(5) + 0.5
    for options in ({}, {"weight": weight}, {"ignore_index": 2}, {"reduction": "sum"}, {"reduction": "none", "weight": weight}):
        close(F.cross_entropy(logits, target, **options), F.nll_loss(F.log_softmax(logits, 1), target, **options))
    one_hot = F.one_hot(target, 5).float()
    close(F.cross_entropy(logits, target, label_smoothing=0.1), F.cross_entropy(logits, one_hot * 0.9 + 0.02))
    assert F.cross_entropy(logits, torch.full((6,), -100)).isnan()


def test_cross_entropy_second_derivative():
    logits = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: F.cross_entropy(x, torch.tensor([0, 2, 1, 1])), (logits,))


def ctc_by_enumeration(log_probs, target, blank=0):
    """Minus the log of the summed probability of every path that collapses to the target."""
    times, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=times):
        collapsed = [k for k, _ in itertools.groupby(path) if k != blank]
        if collapsed == list(target):
            total += math.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return -math.log(total) if total else math.inf


def test_ctc_loss_against_all_paths():
    log_probs = F.log_softmax(torch.randn(4, 3, 3, dtype=torch.float64), 2)
    targets = [(1, 2), (1, 1), (2,)]
    want = [ctc_by_enumeration(log_probs[:, i].numpy(), t) for i, t in enumerate(targets)]
    flat = torch.tensor([k for t in targets for k in t])
    close(F.ctc_loss(log_probs, flat, [4, 4, 4], [2, 2, 1], reduction="none"), want)
    impossible = F.ctc_loss(log_probs[:2], flat, [2, 2, 2], [2, 2, 1], reduction="none")
    assert impossible[1] == math.inf
    assert F.ctc_loss(log_probs[:2], flat, [2, 2, 2], [2, 2, 1], reduction="none", zero_infinity=True)[1] == 0


def test_old_reduction_arguments_warn():
    x, y = torch.randn(3), torch.randn(3)
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        close(F.mse_loss(x, y, size_average=False), F.mse_loss(x, y, reduction="sum"))
    with pytest.warns(UserWarning, match="This will likely lead to incorrect results due to broadcasting"):
        F.l1_loss(x, torch.randn(1))


# --- attention -------------------------------------------------------------------------------------------------------------------------------------


def attention_by_hand(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


def test_scaled_dot_product_attention():
    q, k, v = (torch.randn(2, 3, 5, 4) for _ in range(3))
    close(F.scaled_dot_product_attention(q, k, v), attention_by_hand(q, k, v))
    causal = torch.full((5, 5), -math.inf).triu(1)
    close(F.scaled_dot_product_attention(q, k, v, is_causal=True), attention_by_hand(q, k, v, causal))
    close(F.scaled_dot_product_attention(q, k, v, attn_mask=causal == 0), attention_by_hand(q, k, v, causal))
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    close(F.scaled_dot_product_attention(q, k, v, attn_mask=nothing), np.zeros((2, 3, 5, 4)))
    grouped = F.scaled_dot_product_attention(q.reshape(1, 6, 5, 4), k[:1], v[:1], enable_gqa=True)
    close(grouped, attention_by_hand(q.reshape(1, 6, 5, 4), k[:1].repeat_interleave(2, 1), v[:1].repeat_interleave(2, 1)))
    mask = torch.zeros(5, 5, requires_grad=True)
    F.scaled_dot_product_attention(q, k, v, attn_mask=mask).sum().backward()
    assert mask.grad.shape == (5, 5)


def attention_arguments(features=8, heads=2):
    return {
        "embed_dim_to_check": features, "num_heads": heads, "in_proj_weight": torch.randn(3 * features, features) * 0.3,
        "in_proj_bias": torch.randn(3 * features),
        "bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0, "out_proj_weight": torch.randn(features, features),
        "out_proj_bias": torch.randn(features),
    }  # fmt: skip


def test_multi_head_attention_with_and_without_weights():
    x, memory = torch.randn(5, 3, 8), torch.randn(6, 3, 8)
    options = attention_arguments()
    padding = torch.zeros(3, 6, dtype=torch.bool)
    padding[1, 4:] = True
    for key_padding_mask, attn_mask in ((None, None), (padding, None), (padding, torch.randn(5, 6)), (None, torch.randn(6, 5, 6))):
        masks = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        out, weights = F.multi_head_attention_forward(x, memory, memory, **options, **masks)
        lean, none = F.multi_head_attention_forward(x, memory, memory, **options, **masks, need_weights=False)
        close(out, lean)
        assert none is None
        assert weights.shape == (3, 5, 6)
        close(weights.sum(-1), np.ones((3, 5)))
        if key_padding_mask is not None:
            close(weights[1, :, 4:], np.zeros((5, 2)))
    _, each = F.multi_head_attention_forward(x, memory, memory, **options, average_attn_weights=False)
    assert each.shape == (3, 2, 5, 6)


def test_multi_head_attention_without_a_batch():
    x, options = torch.randn(5, 8), attention_arguments()
    out, weights = F.multi_head_attention_forward(x, x, x, **options)
    batched, _ = F.multi_head_attention_forward(*[x.unsqueeze(1)] * 3, **options)
    close(out, batched[:, 0])
    assert weights.shape == (5, 5)


# --- errors ----------------------------------------------------------------------------------------------------------------------------------------

X = torch.ones(3, 4)
I3 = torch.tensor([0, 1, 2])
ERRORS = [
    (lambda: F.layer_norm(X, (5,)), RuntimeError, "Given normalized_shape=[5], expected input with shape [*, 5], but got input of size[3, 4]"),
    (lambda: F.layer_norm(X, (4,), weight=torch.ones(5)), RuntimeError,
     "Expected weight to be of same shape as normalized_shape, but got weight of shape [5] and normalized_shape = [4]"),
    (lambda: F.group_norm(X, 3), RuntimeError, "Expected number of channels in input to be divisible by num_groups, but got input of shape [3, 4] "
                                               "and num_groups=3"),
    (lambda: F.batch_norm(X[:1], None, None, training=True), ValueError,
     "Expected more than 1 value per channel when training, got input size torch.Size([1, 4])"),
    (lambda: F.batch_norm(X, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    (lambda: F.batch_norm(X, torch.zeros(5), torch.ones(5)), RuntimeError, "running_mean should contain 4 elements not 5"),
    (lambda: F.instance_norm(torch.ones(2, 3, 1)), ValueError,
     "Expected more than 1 spatial element when training, got input size torch.Size([2, 3, 1])"),
    (lambda: F.linear(X, torch.ones(5, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (3x4 and 5x5)"),
    (lambda: F.linear(torch.ones(2, 3, 4), torch.ones(5, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (6x4 and 5x5)"),
    (lambda: F.linear(X, torch.ones(5, 4).double()), RuntimeError, "expected m1 and m2 to have the same dtype, but got: float != double"),
    (lambda: F.cross_entropy(X, I3[:2]), ValueError, "Expected input batch_size (3) to match target batch_size (2)."),
    (lambda: F.cross_entropy(X, torch.tensor([0, 1, 7])), IndexError, "Target 7 is out of bounds."),
    (lambda: F.cross_entropy(X, I3.int()), RuntimeError, "expected target dtype to be Long or Byte, but got Int"),
    (lambda: F.cross_entropy(X, I3, reduction="foo"), ValueError, "foo is not a valid value for reduction"),
    (lambda: F.cross_entropy(X, I3, weight=torch.ones(3)), RuntimeError,
     "weight tensor should be defined either for all 4 classes or no classes but got weight tensor of shape: [3]"),
    (lambda: F.cross_entropy(X, I3, label_smoothing=2.0), RuntimeError, "label_smoothing must be between 0.0 and 1.0. Got: 2"),
    (lambda: F.nll_loss(X, torch.tensor([0, 1, 7])), IndexError, "Target 7 is out of bounds."),
    (lambda: F.nll_loss(torch.ones(3, 4, 2), torch.zeros(3, 5).long()), RuntimeError, "Expected target size [3, 2], got [3, 5]"),
    (lambda: F.binary_cross_entropy(X + 2, X), RuntimeError, "all elements of input should be between 0 and 1"),
    (lambda: F.binary_cross_entropy_with_logits(X, X[0]), ValueError,
     "Target size (torch.Size([4])) must be the same as input size (torch.Size([3, 4]))"),
    (lambda: F.mse_loss(X, X, weight=X[0]), ValueError, "Weights and input must have the same size."),
    (lambda: F.embedding(torch.tensor([5]), X), IndexError, "index out of range in self"),
    (lambda: F.embedding(I3, X, padding_idx=7), AssertionError, "Padding_idx must be within num_embeddings"),
    (lambda: F.one_hot(torch.tensor([1, -1])), RuntimeError, "Class values must be non-negative."),
    (lambda: F.one_hot(torch.tensor([1, 5]), 3), RuntimeError, "Class values must be smaller than num_classes."),
    (lambda: F.softmax(X, 5), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    (lambda: F.softmax(X.long(), 1), NotImplementedError, "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"),
    (lambda: F.gelu(X, approximate="foo"), RuntimeError, "approximate argument must be either none or tanh."),
    (lambda: F.gelu(X.long()), NotImplementedError, "\"GeluKernelImpl\" not implemented for 'Long'"),
    (lambda: F.silu(X.long()), NotImplementedError, "\"silu_cpu\" not implemented for 'Long'"),
    (lambda: F.relu(X > 0), RuntimeError, "Boolean inputs not supported for relu"),
    (lambda: F.hardtanh(X, 2, 1), ValueError, "min_val cannot be greater than max_val"),
    (lambda: F.softshrink(X, -1), RuntimeError, "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1"),
    (lambda: F.celu(X, 0.0), RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU"),
    (lambda: F.glu(torch.ones(3)), RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
    (lambda: F.prelu(X, torch.ones(3)), RuntimeError, "Mismatch of parameter numbers and input channel size. Found parameter numbers = 3 and "
                                                      "channel size = 4."),
    (lambda: F.prelu(X, torch.ones(4).double()), RuntimeError, "prelu: Type promoting not supported. Got Float and Double"),
    (lambda: F.bilinear(X, X, torch.ones(2, 3, 4)), RuntimeError, "bilinear(): input1 size does not match weight size: got 4 but expected 3"),
    (lambda: F.scaled_dot_product_attention(X, X, X, torch.ones(3, 3).bool(), is_causal=True), RuntimeError,
     "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"),
    (lambda: F.huber_loss(X, X, delta=-1), RuntimeError, "huber_loss does not support non-positive values for delta."),
    (lambda: F.multi_margin_loss(X, torch.tensor([0, 1, 9])), RuntimeError, "target out of range"),
    (lambda: F.triplet_margin_loss(X, X, X, margin=-1), ValueError, "margin must be greater than 0, got -1"),
    (lambda: F.gaussian_nll_loss(X, X, -X), ValueError, "var has negative entry/entries"),
    (lambda: F.cosine_similarity(X.long(), X.long()), RuntimeError, "expected common dtype to be floating point, yet common dtype is Long"),
    (lambda: F.ctc_loss(torch.ones(5, 2, 4), I3, [6, 5], [2, 1]), RuntimeError,
     "Expected input_lengths to have value at most 5, but got value 6 (while checking arguments for ctc_loss_allocate_outputs)"),
    (lambda: F.embedding_bag(I3, X), ValueError, "offsets has to be a 1D Tensor but got None"),
    (lambda: F.embedding_bag(I3, X, torch.tensor([0]), mode="foo"), ValueError, "mode has to be one of sum, mean or max"),
    (lambda: F.no_such_function, AttributeError, "module 'torchlite.nn.functional' has no attribute 'no_such_function'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[str(i) for i in range(len(ERRORS))])
def test_errors(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value).startswith(words)
