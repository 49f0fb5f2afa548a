"""nn.functional: the wording of errors."""

import pytest

import torchlite as torch
import torchlite.nn.functional as F

X = torch.ones(3, 4)
I3 = torch.tensor([0, 1, 2])
ERRORS = [
    (
        lambda: F.layer_norm(X, (5,)),
        RuntimeError,
        "Given normalized_shape=[5], expected input with shape [*, 5], but got input of size[3, 4]",
    ),
    (
        lambda: F.layer_norm(X, (4,), weight=torch.ones(5)),
        RuntimeError,
        "Expected weight to be of same shape as normalized_shape, but got weight of shape [5] and normalized_shape = "
        "[4]",
    ),
    (
        lambda: F.group_norm(X, 3),
        RuntimeError,
        "Expected number of channels in input to be divisible by num_groups, "
        "but got input of shape [3, 4] and num_groups=3",
    ),
    (
        lambda: F.batch_norm(X[:1], None, None, training=True),
        ValueError,
        "Expected more than 1 value per channel when training, got input size torch.Size([1, 4])",
    ),
    (lambda: F.batch_norm(X, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    (
        lambda: F.batch_norm(X, torch.zeros(5), torch.ones(5)),
        RuntimeError,
        "running_mean should contain 4 elements not 5",
    ),
    (
        lambda: F.instance_norm(torch.ones(2, 3, 1)),
        ValueError,
        "Expected more than 1 spatial element when training, got input size torch.Size([2, 3, 1])",
    ),
    (lambda: F.linear(X, torch.ones(5, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (3x4 and 5x5)"),
    (
        lambda: F.linear(torch.ones(2, 3, 4), torch.ones(5, 5)),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (6x4 and 5x5)",
    ),
    (
        lambda: F.linear(X, torch.ones(5, 4).double()),
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != double",
    ),
    (lambda: F.cross_entropy(X, I3[:2]), ValueError, "Expected input batch_size (3) to match target batch_size (2)."),
    (lambda: F.cross_entropy(X, torch.tensor([0, 1, 7])), IndexError, "Target 7 is out of bounds."),
    (lambda: F.cross_entropy(X, I3.int()), RuntimeError, "expected target dtype to be Long or Byte, but got Int"),
    (lambda: F.cross_entropy(X, I3, reduction="foo"), ValueError, "foo is not a valid value for reduction"),
    (
        lambda: F.cross_entropy(X, I3, weight=torch.ones(3)),
        RuntimeError,
        "weight tensor should be defined either for all 4 classes or no classes but got weight tensor of shape: [3]",
    ),
    (
        lambda: F.cross_entropy(X, I3, label_smoothing=2.0),
        RuntimeError,
        "label_smoothing must be between 0.0 and 1.0. Got: 2",
    ),
    (lambda: F.nll_loss(X, torch.tensor([0, 1, 7])), IndexError, "Target 7 is out of bounds."),
    (
        lambda: F.nll_loss(torch.ones(3, 4, 2), torch.zeros(3, 5).long()),
        RuntimeError,
        "Expected target size [3, 2], got [3, 5]",
    ),
    (lambda: F.binary_cross_entropy(X + 2, X), RuntimeError, "all elements of input should be between 0 and 1"),
    (
        lambda: F.binary_cross_entropy_with_logits(X, X[0]),
        ValueError,
        "Target size (torch.Size([4])) must be the same as input size (torch.Size([3, 4]))",
    ),
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
    (
        lambda: F.softshrink(X, -1),
        RuntimeError,
        "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1",
    ),
    (lambda: F.celu(X, 0.0), RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU"),
    (lambda: F.glu(torch.ones(3)), RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
    (
        lambda: F.prelu(X, torch.ones(3)),
        RuntimeError,
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = 3 and channel size = 4.",
    ),
    (
        lambda: F.prelu(X, torch.ones(4).double()),
        RuntimeError,
        "prelu: Type promoting not supported. Got Float and Double",
    ),
    (
        lambda: F.bilinear(X, X, torch.ones(2, 3, 4)),
        RuntimeError,
        "bilinear(): input1 size does not match weight size: got 4 but expected 3",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, torch.ones(3, 3).bool(), is_causal=True),
        RuntimeError,
        "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True",
    ),
    (lambda: F.huber_loss(X, X, delta=-1), RuntimeError, "huber_loss does not support non-positive values for delta."),
    (lambda: F.multi_margin_loss(X, torch.tensor([0, 1, 9])), RuntimeError, "target out of range"),
    (lambda: F.triplet_margin_loss(X, X, X, margin=-1), ValueError, "margin must be greater than 0, got -1"),
    (lambda: F.gaussian_nll_loss(X, X, -X), ValueError, "var has negative entry/entries"),
    (
        lambda: F.cosine_similarity(X.long(), X.long()),
        RuntimeError,
        "expected common dtype to be floating point, yet common dtype is Long",
    ),
    (
        lambda: F.ctc_loss(torch.ones(5, 2, 4), I3, [6, 5], [2, 1]),
        RuntimeError,
        "Expected input_lengths to have value at most 5, but got value 6 (while checking arguments for "
        "ctc_loss_allocate_outputs)",
    ),
    (lambda: F.embedding_bag(I3, X), ValueError, "offsets has to be a 1D Tensor but got None"),
    (
        lambda: F.embedding_bag(I3, X, torch.tensor([0]), mode="foo"),
        ValueError,
        "mode has to be one of sum, mean or max",
    ),
    (
        lambda: F.no_such_function,
        AttributeError,
        "module 'torchlite.nn.functional' has no attribute 'no_such_function'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS)
def test_errors(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value).startswith(words)
